// The form: what is typed becomes a job, or a sentence that says why not; and the address that holds it.

class Setup {
  constructor(data, changed) {
    Object.assign(this, { data, changed });
    const select = byId("gallery");
    select.append(element("option", { value: "", text: "your own" }), ...data.gallery.map(({ name, description }) => element("option", { value: name, text: `${name}: ${description}` })));
    select.addEventListener("change", () => { if (select.value) this.choose(select.value); });
    for (const radio of document.querySelectorAll("[name=task]")) radio.parentElement.hidden = this.modelOf(radio.value) < 0;
    this.table = new RuleTable();
    byId("rule-table").replaceWith(this.table.root);
    byId("setup").addEventListener("submit", (event) => event.preventDefault());
    for (const id of ["rules", "tape", "room", "tags", "steps", "problem"]) byId(id).addEventListener("input", () => this.typed(id));
    for (const radio of document.querySelectorAll("[name=task]")) radio.addEventListener("change", () => { this.showTask(radio.value); this.changed(); });
  }
  get task() { return document.querySelector("[name=task]:checked").value; }
  get model() { return this.modelOf(this.task); }
  modelOf(task) { return this.data.models.findIndex((m) => (task === "machine" ? "universal" in m.extra : m.extra.task === task)); }
  entry(name) { return this.data.gallery.find((e) => e.name === name); }
  typed(id) {
    if (id === "rules") byId("gallery").value = "";
    clearTimeout(this.waiting);
    this.waiting = setTimeout(this.changed, 250);
  }
  choose(name) {
    const { machine, tape, steps } = this.entry(name);
    byId("gallery").value = name;
    byId("rules").value = formatMachine(fromJson(JSON.stringify(machine)));
    byId("tape").value = tape;
    byId("room").checked = byId("tags").checked = true;
    byId("steps").value = Math.min(steps ?? 60, this.most);
    this.changed();
  }
  get most() { return this.data.models[0].extra.steps; }
  showTask(task, problem) {
    for (const radio of document.querySelectorAll("[name=task]")) radio.checked = radio.value === task;
    byId("machine-fields").hidden = task !== "machine";
    byId("problem-fields").hidden = task === "machine";
    if (task !== "machine") {
      byId("problem").value = problem ?? (task === "addition" ? "4324+139" : "4324*7");
      const { n, lines } = this.data.models[this.model].extra;
      byId("problem-hint").textContent = `Two numbers with ${task === "addition" ? "+" : "*"} between them${task === "addition" ? "" : ", the second of one digit"}. Weights for texts of ${lines} lines; copies are looked up by ${n + 1} tokens.`;
    }
  }
  // The job that the form describes; throws a Sentence.
  read() {
    if (this.task !== "machine") return new ProblemJob(this.data.models[this.model], byId("problem").value);
    const machine = parseMachine(byId("rules").value), tape = parseTape(machine, byId("tape").value), { extra } = this.data.models[this.model];
    const steps = Number(byId("steps").value);
    if (!Number.isInteger(steps) || steps < 1 || steps > extra.steps) throw new Sentence(`Steps are ${quoted(byId("steps").value || "nothing")}: these weights count to ${extra.steps}, so give 1 to ${extra.steps}.`);
    this.table.build(machine);
    const roomy = byId("room").checked ? this.withRoom(machine, tape, steps) : tape;
    const [runs, start] = byId("tags").checked ? this.withTags(machine, roomy, extra.n) : [machine, roomy];
    const job = new MachineJob(new Coding(runs, extra.universal), extra.n, start, steps);
    if (job.isHalted(job.tapes[0])) throw new Sentence(`The tape begins in the final state ${quoted(machine.states[tape.state])}: there is nothing to run.`);
    return job;
  }
  withRoom(machine, { cells, head, state }, steps) {
    const [left, right] = machine.extent(cells, head, state, steps), blanks = (count) => new Array(count).fill(machine.blank);
    return checkLength({ cells: [...blanks(-left), ...cells, ...blanks(right + 1 - cells.length)], head: head - left, state });
  }
  withTags(machine, { cells, head, state }, n) {
    const { kinds, tags } = tagRow(cells.length, n);
    return [machine.tagged(kinds), { cells: cells.map((a, i) => a * kinds + tags[i]), head, state }];
  }
  say(text, refused = false) {
    byId("message").textContent = text;
    byId("message").classList.toggle("refused", refused);
  }
  describe(job) {
    if (job.kind !== "machine") return `A prompt of ${job.prompt.length} tokens; the whole text has ${job.whole.length}.`;
    const { machine, symbols, left, firstState } = job.coding, cells = job.width - 4;
    const tags = machine.tags && machine.tags.kinds > 1 ? ` (${machine.plain.symbols.length} with ${machine.tags.kinds} tags)` : "";
    return `${machine.symbols.length}${tags} of ${symbols} symbols, ${machine.states.length} of ${left - firstState} states, ${cells.toLocaleString("en")} cells. ` +
      `The prompt is the table and the tape: ${job.prompt.length.toLocaleString("en")} tokens.`;
  }
  // ---- address
  address() {
    const values = new URLSearchParams({ task: this.task });
    if (this.task === "machine") {
      values.set("machine", byId("gallery").value || byId("rules").value.trim());
      values.set("tape", byId("tape").value);
      values.set("steps", byId("steps").value);
      for (const id of ["room", "tags"]) values.set(id, byId(id).checked ? "1" : "0");
    } else values.set("problem", byId("problem").value);
    return values;
  }
  // Fill the form in from an address.
  fill(values) {
    const task = this.modelOf(values.get("task")) >= 0 ? values.get("task") : "machine";
    this.showTask(task, values.get("problem") ?? undefined);
    if (task !== "machine") return;
    const given = values.get("machine"), known = this.entry(given ?? "bb3");
    byId("gallery").value = known ? known.name : "";
    byId("rules").value = known ? formatMachine(fromJson(JSON.stringify(known.machine))) : given;
    byId("tape").value = values.get("tape") ?? known?.tape ?? "";
    byId("steps").value = values.get("steps") ?? Math.min(known?.steps ?? 60, this.most);
    for (const id of ["room", "tags"]) byId(id).checked = values.get(id) !== "0";
  }
}
