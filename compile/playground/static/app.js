// Putting it together: a form, a worker, a run that grows, and the inspector's views on it.

const MOST_TOKENS = 2000000; // of one run
const PIECE = 40; // milliseconds of work between two looks at the page
const REDRAW = 150; // milliseconds between two drawings of everything, at full speed; more where drawing is slow

const pause = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds));

class Playground {
  constructor(data, engine) {
    Object.assign(this, { data, engine, generation: 0, position: 0, playing: false, live: null, timings });
    setTheme(storedTheme());
    this.setup = new Setup(data, () => this.apply());
    this.report = new Report();
    this.changes = new Changes(this);
    if (matchMedia("(prefers-reduced-motion: reduce)").matches) byId("speed").value = "0";
    this.listen();
    this.readAddress();
  }
  // ---- beginning
  apply() {
    this.playing = false;
    let job;
    try { job = this.setup.read(); } catch (error) {
      if (!(error instanceof Sentence)) throw error;
      this.setup.say(error.message, true);
      this.refused = true;
      this.generation++;
      this.showButtons();
      return Promise.resolve();
    }
    this.refused = false;
    this.setup.say(this.setup.describe(job));
    this.changes.clear();
    this.restored?.forEach((name) => this.changes.off.add(name));
    this.restored = null;
    return this.begin(job);
  }
  async begin(job, upto = 0, position = null) {
    const generation = ++this.generation, model = this.data.models[this.setup.model];
    this.playing = false;
    this.job = job;
    this.busy = true;
    this.showButtons();
    const live = new Live(job, model);
    await this.engine.ask(this.question(job));
    const wanted = Math.max(upto, job.prompt.length);
    while (generation === this.generation && live.all.length < wanted && !live.ended) {
      const reply = await this.engine.ask({ kind: "more", count: wanted - live.all.length, milliseconds: 200 });
      if (generation !== this.generation) return;
      live.append(reply);
      byId("progress").textContent = `reading: ${live.all.length.toLocaleString("en")} of ${wanted.toLocaleString("en")} tokens`;
    }
    if (generation !== this.generation) return;
    this.live = live;
    this.busy = false;
    this.build();
    this.position = Math.min(position ?? Infinity, live.tokens.length - 1);
    this.show();
    this.writeAddress();
  }
  // A job as the worker takes it.
  question(job) {
    const { off, patches } = this.changes;
    return {
      kind: "begin", model: this.setup.model, tokens: job.prompt, stop: job.stop, final: job.final, steps: job.steps, most: Math.min(MOST_TOKENS, job.most),
      off: [...off], patches: patches.map(({ position, start, stop, tokens, from }) => ({ position, start, stop, tokens, from })),
    };
  }
  // The same job with other interventions, as far as it had come.
  restart(position = this.position) { return this.begin(this.job, this.live.all.length, position); }
  build() {
    const { live } = this, chosen = this.pane?.head;
    this.tape = new LiveTape(live, (position) => this.go(position));
    this.pane = new Pane(live, live.models[0], 0, (position) => this.go(position), (_, head) => this.chooseHead(head));
    this.pane.registerTable = new LiveRegisters(live, live.models[0].registers);
    this.pane.registers.querySelector("table").replaceWith(this.pane.registerTable.table);
    this.changes.fill(live.model);
    this.offButton = element("button", { type: "button", class: "off-button" });
    this.offButton.addEventListener("click", () => this.changes.toggle(this.pane.head));
    this.pane.matrix.buttons.prepend(this.offButton);
    const column = (...parts) => element("div", { class: "column" }, ...parts.filter(Boolean));
    byId("main").replaceChildren(
      column(this.tape.root, this.pane.prediction, this.changes.root, this.pane.attended, this.pane.registers),
      column(this.pane.overview, this.pane.focus), this.pane.program);
    this.report.arrange(live.job);
    for (const [head, { button }] of this.pane.tiles) button.classList.toggle("off", this.changes.off.has(`${head.layer}.${head.index}`));
    byId("summary").textContent = live.model.about;
    byId("edit").hidden = live.job.kind !== "machine";
    this.changes.other.value = this.initialText();
    const wanted = this.wantedHead, same = chosen && this.pane.headAt(chosen.layer, chosen.index);
    this.wantedHead = null;
    this.pane.selectHead((wanted && this.pane.headAt(...wanted)) || same || live.heads.at(-1));
  }
  initialText() {
    const { job } = this.live;
    return job.kind === "machine" ? this.plainText(job.tapes[0]) : job.text;
  }
  plainText(tokens) {
    const { coding } = this.live.job, tape = coding.decode(tokens), kinds = coding.machine.tags?.kinds ?? 1;
    return tape && formatTape(coding.machine.plain, { ...tape, cells: tape.cells.map((a) => Math.floor(a / kinds)) });
  }
  // A typed tape of this run's machine, with the tags that its cells have.
  typedTape(text, sameLength) {
    const { coding, n, width } = this.live.job, { machine } = coding, tape = parseTape(machine.plain, text), cells = width - 4;
    if (sameLength && tape.cells.length !== cells) throw new Sentence(`The tape has ${tape.cells.length} cells, and this run's has ${cells}: give as many.`);
    if (!machine.tags) return tape;
    const { kinds, tags } = tagRow(tape.cells.length, n);
    if (kinds > machine.tags.kinds) throw new Sentence(`A tape of ${tape.cells.length} cells needs ${kinds} tags, and this run has ${machine.tags.kinds}: give at most ${cells} cells, or type it above.`);
    return { ...tape, cells: tape.cells.map((a, i) => a * machine.tags.kinds + tags[i]) };
  }
  otherJob(text) {
    const { job, model } = this.live;
    return job.kind === "machine" ? new MachineJob(job.coding, job.n, this.typedTape(text, true), job.steps) : new ProblemJob(model, text);
  }
  // The last whole tape is replaced by the edited one, and the transformer goes on from there.
  async goOn() {
    const { live } = this, { job } = live;
    try {
      const tape = this.typedTape(byId("edited").value, false), { part } = live.lastLine;
      const at = part.length ? live.previousStart(live.lineAt) : live.lineAt;
      const past = { tokens: live.all.slice(0, at), step: job.firstStep + live.steps, tableLength: job.tableLength, rows: [] };
      const next = new MachineJob(job.coding, job.n, tape, job.steps, past);
      if (next.isHalted(next.tapes[0])) throw new Sentence("The edited tape is in a final state: there is nothing to go on with.");
      this.setup.say(this.setup.describe(next));
      await this.begin(next);
    } catch (error) {
      if (!(error instanceof Sentence)) throw error;
      this.setup.say(error.message, true);
    }
  }
  // ---- running
  get canRun() { return this.live && !this.busy && !this.refused && !this.live.ended; }
  togglePlay() {
    if (this.playing) { this.playing = false; this.showButtons(); return null; }
    if (this.live?.ended && !this.busy && !this.refused) return this.begin(this.job).then(() => this.play());
    return this.play();
  }
  async play() {
    if (!this.canRun || this.playing) return;
    const generation = this.generation, wrongBefore = this.live.wrongAt;
    this.playing = true;
    this.showButtons();
    let drawn = 0, slow = 0, asked = this.askMore();
    while (this.playing || asked) {
      const started = performance.now(), rate = Number(byId("speed").value), reply = await asked;
      if (generation !== this.generation) return;
      this.live.append(reply);
      if (this.live.ended || (wrongBefore < 0 && this.live.wrongAt >= 0)) this.playing = false;
      asked = this.playing && !rate ? this.askMore() : null;
      if (rate || performance.now() - drawn > Math.max(REDRAW, 4 * slow)) {
        const begun = performance.now();
        this.follow();
        drawn = performance.now();
        slow = drawn - begun;
      }
      if (!this.playing && !asked) break;
      if (rate) {
        await pause(Math.max(0, (1000 * reply.tokens.length) / rate - (performance.now() - started)));
        if (generation !== this.generation) return;
        if (this.playing) asked = this.askMore();
      }
    }
    this.playing = false;
    if (wrongBefore < 0 && this.live.wrongAt >= 0) { await this.stopWhereWrong(); return; }
    this.follow();
    this.showButtons();
  }
  // At full speed more has been written by the time it is seen that a token is wrong: go back to the end of its line.
  stopWhereWrong() {
    const { all, wrongAt } = this.live;
    let end = wrongAt;
    while (end < all.length && !this.live.closes(all[end])) end++;
    return this.begin(this.job, end + 1, wrongAt - 1);
  }
  askMore() {
    const rate = Number(byId("speed").value);
    return this.engine.ask(rate ? { kind: "more", count: Math.max(1, Math.round(rate / 30)), milliseconds: 1000 } : { kind: "more", count: 1e9, milliseconds: PIECE });
  }
  async advance(done) {
    if (!this.canRun || this.playing) return;
    const generation = this.generation;
    this.busy = true;
    do {
      const reply = await this.engine.ask({ kind: "more", count: 1, milliseconds: 1000 });
      if (generation !== this.generation) return;
      this.live.append(reply);
    } while (!done() && !this.live.ended);
    this.busy = false;
    this.follow();
  }
  oneToken() { return this.advance(() => true); }
  oneLine() { return this.advance(() => this.live.closes(this.live.all.at(-1))); }
  // After new tokens: look at the last one.
  follow() {
    this.position = this.live.tokens.length - 1;
    this.show();
  }
  // ---- looking
  go(position) {
    if (!this.live) return;
    this.position = Math.max(0, Math.min(this.live.tokens.length - 1, position));
    this.show();
  }
  show() {
    const started = performance.now(), { live, pane, tape, position } = this, { matrix } = pane;
    if (this.grown !== live.tokens.length || this.grownOf !== live) {
      const whole = !this.grown || this.grownOf !== live || (matrix.view.y1 - matrix.view.y0 >= this.grown);
      this.grown = live.tokens.length;
      this.grownOf = live;
      tape.grow();
      for (const tile of pane.tiles.values()) tile.picture = null;
      if (whole) matrix.fit(); else matrix.recolour();
    }
    tape.show(position, pane.head);
    pane.show(position);
    this.changes.show(position);
    this.report.show(live, this.setup.table);
    byId("slider").max = live.tokens.length - 1;
    byId("slider").value = position;
    byId("readout").textContent = this.readout();
    if (!this.playing && live.job.kind === "machine" && document.activeElement !== byId("edited")) {
      const { whole } = live.lastLine;
      byId("edited").value = this.plainText(whole.filter((t) => t !== SEP)) ?? "";
    }
    this.showButtons();
    measured("show", performance.now() - started);
  }
  readout() {
    const { live, position } = this, line = this.tape.lineOf(position);
    const cut = live.all.length > SHOWN ? ` · the first ${SHOWN.toLocaleString("en")} tokens are shown` : "";
    return `position ${position} of ${live.tokens.length - 1} · line ${live.job.lineLabel(line)}, place ${position - live.rows[line]} · \u2068${shortened(nameOf(live, live.tokens[position]), 16)}\u2069${cut}`;
  }
  showButtons() {
    byId("play").textContent = this.playing ? "Pause" : this.live?.ended && !this.refused ? "Run again" : "Run";
    byId("play").disabled = Boolean(this.busy || this.refused);
    for (const id of ["token", "line"]) byId(id).disabled = !this.canRun || this.playing;
    byId("again").disabled = byId("go-on").disabled = Boolean(this.busy || this.refused);
    if (this.offButton) {
      const name = `${this.pane.head.layer}.${this.pane.head.index}`;
      this.offButton.textContent = this.changes.off.has(name) ? "switch on" : "switch off";
    }
  }
  chooseHead(head) {
    this.pane.selectHead(head);
    this.show();
    this.writeAddress();
  }
  jumpLine(by) {
    const { rows, tokens } = this.live, line = this.tape.lineOf(this.position), next = line + by;
    if (next < 0 || next >= rows.length) return;
    this.go(Math.min((rows[next + 1] ?? tokens.length) - 1, rows[next] + this.position - rows[line]));
  }
  jumpHead(by) {
    const { heads } = this.live, at = heads.indexOf(this.pane.head);
    this.chooseHead(heads[(at + by + heads.length) % heads.length]);
  }
  recolour() {
    this.pane?.recolour(byId("scale").value === "absolute");
    if (this.live) this.show();
  }
  // ---- address
  address() {
    const values = this.setup.address();
    if (this.changes.off.size) values.set("off", [...this.changes.off].join());
    if (this.pane) { values.set("layer", this.pane.head.layer); values.set("head", this.pane.head.index); }
    return `#${values}`;
  }
  writeAddress() {
    this.written = this.address();
    try { history.replaceState(null, "", this.written); } catch { /* a frame has no address of its own */ }
  }
  readAddress() {
    const values = new URLSearchParams(location.hash.slice(1));
    this.restored = (values.get("off") ?? "").split(",").filter((name) => /^\d+\.\d+$/.test(name));
    this.wantedHead = values.has("layer") ? [Number(values.get("layer")), Number(values.get("head"))] : null;
    this.setup.fill(values);
    return this.apply();
  }
  async share() {
    this.writeAddress();
    let copied = false;
    try { await navigator.clipboard.writeText(location.href); copied = true; } catch { /* not allowed for files: the box below it is */ }
    document.querySelector(".link-box")?.remove();
    const field = element("input", { type: "text", readonly: "", "aria-label": "link" });
    field.value = location.href;
    document.querySelector("header").append(element("div", { class: "link-box" }, element("span", { text: copied ? "copied:" : "copy:" }), field));
    field.select();
  }
  // ---- hands
  listen() {
    const clicks = {
      play: () => this.togglePlay(), token: () => this.oneToken(), line: () => this.oneLine(), again: () => this.begin(this.job), "go-on": () => this.goOn(),
      first: () => this.go(0), back: () => this.go(this.position - 1), forward: () => this.go(this.position + 1), last: () => this.go(Infinity),
      theme: () => { setTheme(otherTheme()); this.recolour(); }, share: () => this.share(), "help-button": () => this.toggleHelp(),
    };
    for (const [id, act] of Object.entries(clicks)) byId(id).addEventListener("click", act);
    byId("slider").addEventListener("input", (event) => this.go(Number(event.target.value)));
    byId("scale").addEventListener("change", () => this.recolour());
    byId("edited").addEventListener("keydown", (event) => { if (event.key === "Enter") this.goOn(); });
    window.addEventListener("hashchange", () => { if (location.hash !== this.written) this.readAddress(); });
    const keys = {
      ArrowLeft: clicks.back, ArrowRight: clicks.forward, ArrowUp: () => this.jumpLine(-1), ArrowDown: () => this.jumpLine(1),
      " ": clicks.play, n: clicks.token, m: clicks.line, r: clicks.again, Home: clicks.first, End: clicks.last,
      ",": () => this.jumpHead(-1), ".": () => this.jumpHead(1), x: () => this.changes.toggle(this.pane.head), t: clicks.theme, "?": clicks["help-button"],
    };
    window.addEventListener("keydown", (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input:not([type=range]), textarea, select, summary, .graph-frame")) return;
      if (!keys[event.key] || !this.live) return;
      event.preventDefault();
      keys[event.key]();
    });
  }
  toggleHelp() {
    byId("help").hidden = !byId("help").hidden;
    byId("help-button").setAttribute("aria-expanded", !byId("help").hidden);
  }
}

async function start() {
  if (typeof DecompressionStream === "undefined") {
    byId("summary").textContent = "This browser is too old for this page: it needs DecompressionStream (2023).";
    return;
  }
  const data = JSON.parse(byId("data").textContent), engine = new Engine(byId("worker").textContent);
  await engine.load(data.models);
  window.playground = new Playground(data, engine);
  document.documentElement.dataset.ready = "true";
}

start().catch((error) => {
  byId("summary").textContent = `This page could not be started: ${error.message}`;
  throw error;
});
