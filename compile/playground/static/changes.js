// Interventions: heads switched off, registers that hold what they hold in another run, and what must follow from it.

// The operations of the program that can feel a change: those that are changed, and everything computed from them.
function downstream(graph, changed) {
  const reached = new Set(changed), after = new Map();
  for (const { from, to } of graph.edges) after.set(from, [...(after.get(from) ?? []), to]);
  const waiting = [...reached];
  while (waiting.length) {
    for (const next of after.get(waiting.pop()) ?? []) if (!reached.has(next)) { reached.add(next); waiting.push(next); }
  }
  return reached;
}

class Changes {
  constructor(app) {
    this.app = app;
    this.off = new Set();
    this.patches = [];
    this.list = element("ul");
    this.prediction = element("p", { class: "prediction-of-change" });
    this.seen = element("p", { class: "seen-change" });
    this.message = element("p", { class: "refused", role: "alert" });
    this.root = element("section", { class: "panel changes" }, element("h2", { text: "Change the transformer" }), this.list, this.swapForm(), this.message, this.prediction, this.seen);
  }
  get active() { return this.off.size > 0 || this.patches.length > 0; }
  swapForm() {
    this.register = element("select", { "aria-label": "register" });
    this.other = element("input", { type: "text", placeholder: "another tape", "aria-label": "tape of the other run", spellcheck: "false" });
    this.button = element("button", { type: "button", class: "swap-button", text: "swap in" });
    this.button.addEventListener("click", () => this.swap());
    return element("div", { class: "swap" }, element("span", { text: "At the chosen position, register" }), this.register,
      element("span", { text: "holds what it holds there in the run on" }), this.other, this.button);
  }
  fill(model) {
    this.model = model;
    this.register.replaceChildren(...model.registers.map((r, i) => element("option", { value: i, text: shortened(r.name, 44) })));
    const usual = model.registers.findIndex((r) => r.name === "next_symbol" || r.name === "digit");
    if (usual >= 0) this.register.value = usual;
  }
  clear() {
    this.off.clear();
    this.patches = [];
  }
  toggle(head) {
    const name = `${head.layer}.${head.index}`;
    if (!this.off.delete(name)) this.off.add(name);
    this.app.restart();
  }
  // The other run is the true text on another tape or problem, read as far as the chosen position.
  swap() {
    this.message.textContent = "";
    const register = this.model.registers[this.register.value], position = this.app.position;
    try {
      const job = this.app.otherJob(this.other.value), tokens = [];
      for (let i = 0; i <= position; i++) tokens.push(job.expected(i));
      if (tokens.includes(-1)) throw new Sentence(`The other run ends before position ${position}: choose an earlier one.`);
      this.patches.push({ position, start: register.start, stop: register.stop, name: register.name, nodes: register.nodes, tokens, from: position, text: this.other.value });
      this.app.restart(position);
    } catch (error) {
      if (!(error instanceof Sentence)) throw error;
      this.message.textContent = error.message;
    }
  }
  show(position) {
    const { live } = this.app, remove = (act) => {
      const button = element("button", { type: "button", text: "undo" });
      button.addEventListener("click", () => { act(); this.app.restart(); });
      return button;
    };
    this.list.replaceChildren(
      ...[...this.off].map((name) => element("li", {}, `head ${name} is off (${shortened(this.headOf(name).label, 60)}) `, remove(() => this.off.delete(name)))),
      ...this.patches.map((p) => element("li", {}, "register ", element("bdi", { text: shortened(p.name, 40) }), ` at position ${p.position} is the other run's `, remove(() => { this.patches = this.patches.filter((q) => q !== p); }))),
    );
    if (!this.active) {
      this.list.replaceChildren(element("li", { text: "Nothing is changed. Choose a head and switch it off, or swap a register." }));
      this.prediction.textContent = this.seen.textContent = "";
      return;
    }
    this.predict();
    this.compare(live, position);
  }
  headOf(name) {
    const [layer, head] = name.split(".").map(Number);
    return this.model.heads[layer][head];
  }
  // The circuit is known: what is not computed from what was changed must stay as it is.
  get reach() {
    const nodes = [...[...this.off].flatMap((name) => this.headOf(name).nodes), ...this.patches.flatMap((p) => p.nodes)];
    const reached = downstream(this.model.graph, nodes), touched = new Set(this.patches.map((p) => p.name));
    return {
      answer: reached.has(this.model.graph.output),
      registers: new Set(this.model.registers.flatMap((r, i) => (r.role === "overflow" || touched.has(r.name) || r.nodes.some((n) => reached.has(n)) ? [i] : []))),
    };
  }
  predict() {
    const { answer, registers } = this.reach, all = this.model.registers.length;
    this.prediction.textContent = `From the circuit: ${registers.size} of ${all} registers are computed from what was changed and may differ, the other ${all - registers.size} must not; the answer ${answer ? "may" : "cannot"} change.`;
  }
  // What really differs at this position, beside the same weights untouched on the same tokens.
  compare(live, position) {
    if (position >= live.clean.positions) { this.seen.textContent = ""; return; }
    const last = live.clean.stages - 1, { registers } = this.reach, now = live.residuals.after(position, last), then = live.clean.after(position, last);
    const differing = this.model.registers.flatMap(({ start, stop }, i) => {
      for (let d = start; d < stop; d++) if (Math.abs(now[d] - then[d]) > 0.01) return [i];
      return [];
    });
    const wrong = differing.filter((i) => !registers.has(i)), names = differing.slice(0, 6).map((i) => `\u2068${shortened(this.model.registers[i].name, 24)}\u2069`).join(", ");
    const said = nameOf(live, live.answers[position]), was = nameOf(live, live.untouched[position]);
    const first = live.changedAt < 0 ? "No answer has changed so far." : `The first answer that changed is the one after position ${live.changedAt}.`;
    this.seen.replaceChildren(
      `Seen at position ${position}: ${differing.length ? `${differing.length} registers differ (${names}${differing.length > 6 ? " …" : ""})` : "no register differs"}, `,
      element("b", { class: wrong.length ? "wrong-mark" : "right", text: wrong.length ? `✗ ${wrong.length} of them should not` : "✓ as predicted" }),
      said === was ? `. It says \u2068${said}\u2069, as it would have. ` : `. It says \u2068${said}\u2069; untouched it would have said \u2068${was}\u2069. `, first,
    );
  }
}
