// Putting it together: one state (position, heads, theme), kept in the address.

class Inspector {
  constructor(page) {
    this.page = page;
    this.timings = timings;
    this.position = Math.min(page.tokens.length - 1, Math.max(page.given - 1, Math.floor(0.6 * page.tokens.length)));
    setTheme(storedTheme());
    page.startName = page.models.map((m) => m.startName).find(Boolean) || "";
    this.tape = new Tape(page, (position) => this.go(position));
    this.panes = page.models.map((model, i) => new Pane(page, model, i, (p) => this.go(p), (index, head) => this.chooseHead(index, head)));
    this.arrange();
    this.writeSummary();
    this.listen();
    this.panes.forEach((pane) => pane.selectHead(this.firstHead(pane)));
    this.readAddress();
    this.show();
  }
  // The head that decides what is written comes last.
  firstHead(pane) { return pane.model.allHeads[pane.model.allHeads.length - 1]; }
  arrange() {
    const main = byId("main"), column = (...parts) => element("div", { class: "column" }, ...parts.filter(Boolean));
    if (this.panes.length === 1) {
      const [pane] = this.panes;
      main.className = "single";
      main.append(column(this.tape.root, pane.prediction, pane.attended, pane.registers), column(pane.overview, pane.focus));
      if (pane.program) main.append(pane.program);
    } else {
      main.className = "double";
      main.append(this.tape.root);
      for (const pane of this.panes) {
        main.append(column(pane.prediction, pane.attended, pane.overview, pane.focus, pane.registers, pane.program));
      }
      const shapes = this.panes.map((pane) => pane.model.layers.map((layer) => layer.length).join());
      byId("link-label").hidden = false;
      byId("link").checked = shapes[0] === shapes[1];
    }
  }
  writeSummary() {
    const { page } = this, scored = [];
    page.truth.forEach((token, i) => { if (token >= 0 && i >= page.given - 1) scored.push(i); });
    byId("title").replaceChildren(element("bdi", { text: shortened(page.title, 60), title: page.title }));
    const parts = page.models.map((model) => {
      const right = scored.filter((i) => model.predictions[i] === page.truth[i]).length;
      return (page.models.length > 1 ? `${shortened(model.title, 30)}: ` : "") + `${right} of ${scored.length} tokens right`;
    });
    byId("summary").textContent = `${page.tokens.length} tokens · ${parts.join(" · ")}`;
    byId("slider").max = page.tokens.length - 1;
  }
  go(position) {
    this.position = Math.max(0, Math.min(this.page.tokens.length - 1, position));
    this.show();
  }
  chooseHead(index, head) {
    this.panes[index].selectHead(head);
    if (this.panes.length > 1 && byId("link").checked) {
      const same = this.panes[1 - index].headAt(head.layer, head.index);
      if (same) this.panes[1 - index].selectHead(same);
    }
    this.show();
  }
  show() {
    const started = performance.now();
    this.tape.show(this.position, this.panes[0].head);
    this.panes.forEach((pane) => pane.show(this.position));
    byId("slider").value = this.position;
    byId("readout").textContent = this.readout();
    this.writeAddress();
    measured("step", performance.now() - started);
  }
  readout() {
    const { page, position } = this, line = this.tape.lineOf(position);
    const token = shortened(nameOf(page, page.tokens[position]), 16);
    return `position ${position} of ${page.tokens.length - 1} · step ${line}, place ${position - page.rows[line]} · \u2068${token}\u2069`;
  }
  // ---- address
  writeAddress() {
    const values = new URLSearchParams();
    this.panes.forEach(({ head }, i) => {
      values.set(i ? `layer${i + 1}` : "layer", head.layer);
      values.set(i ? `head${i + 1}` : "head", head.index);
    });
    values.set("pos", this.position);
    const hash = `#${values}`;
    if (location.hash === hash) return;
    try { history.replaceState(null, "", hash); } catch { /* a frame in a notebook has no address of its own */ }
  }
  readAddress() {
    const values = new URLSearchParams(location.hash.slice(1));
    this.panes.forEach((pane, i) => {
      const suffix = i && values.has(`layer${i + 1}`) ? String(i + 1) : "";
      const head = pane.headAt(Number(values.get(`layer${suffix}`) ?? NaN), Number(values.get(`head${suffix}`) ?? NaN));
      if (head) pane.selectHead(head);
    });
    const position = Number(values.get("pos") ?? NaN);
    if (Number.isInteger(position)) this.position = Math.max(0, Math.min(this.page.tokens.length - 1, position));
  }
  // ---- theme
  toggleTheme() {
    setTheme(otherTheme());
    this.recolour();
  }
  recolour() {
    const absolute = byId("scale").value === "absolute";
    this.panes.forEach((pane) => pane.recolour(absolute));
    this.show();
  }
  // ---- playing
  get playing() { return Boolean(this.timer); }
  togglePlay() {
    if (this.timer) return this.stop();
    if (this.position >= this.page.tokens.length - 1) this.go(this.page.given - 1);
    this.timer = setInterval(() => {
      if (this.position >= this.page.tokens.length - 1) this.stop();
      else this.go(this.position + 1);
    }, 1000 / Number(byId("speed").value));
    byId("play").textContent = "Pause";
  }
  stop() {
    clearInterval(this.timer);
    this.timer = null;
    byId("play").textContent = "Play";
  }
  // The same place on the tape before or after.
  jumpLine(by) {
    const { rows, tokens } = this.page, line = this.tape.lineOf(this.position), next = line + by;
    if (next < 0 || next >= rows.length) return;
    const end = (rows[next + 1] ?? tokens.length) - 1;
    this.go(Math.min(end, rows[next] + this.position - rows[line]));
  }
  jumpHead(by) {
    const heads = this.panes[0].model.allHeads, at = heads.indexOf(this.panes[0].head);
    this.chooseHead(0, heads[(at + by + heads.length) % heads.length]);
  }
  toggleHelp() {
    byId("help").hidden = !byId("help").hidden;
    byId("help-button").setAttribute("aria-expanded", !byId("help").hidden);
  }
  listen() {
    const last = this.page.tokens.length - 1;
    const clicks = {
      first: () => this.go(0), back: () => this.go(this.position - 1), play: () => this.togglePlay(),
      forward: () => this.go(this.position + 1), last: () => this.go(last), theme: () => this.toggleTheme(),
      "help-button": () => this.toggleHelp(),
    };
    for (const [id, act] of Object.entries(clicks)) byId(id).addEventListener("click", act);
    byId("slider").addEventListener("input", (event) => this.go(Number(event.target.value)));
    byId("scale").addEventListener("change", () => this.recolour());
    byId("speed").addEventListener("change", () => { if (this.timer) { this.stop(); this.togglePlay(); } });
    window.addEventListener("hashchange", () => { this.readAddress(); this.show(); });
    const keys = {
      ArrowLeft: () => this.go(this.position - 1), ArrowRight: () => this.go(this.position + 1),
      ArrowUp: () => this.jumpLine(-1), ArrowDown: () => this.jumpLine(1), " ": () => this.togglePlay(),
      Home: () => this.go(0), End: () => this.go(last), ",": () => this.jumpHead(-1), ".": () => this.jumpHead(1),
      t: () => this.toggleTheme(), "?": () => this.toggleHelp(),
    };
    window.addEventListener("keydown", (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest("select, summary, [type=checkbox], .graph-frame")) return;
      const act = keys[event.key];
      if (!act) return;
      event.preventDefault();
      act();
    });
  }
}

async function start() {
  if (typeof DecompressionStream === "undefined") {
    byId("summary").textContent = "This browser is too old for this page: it needs DecompressionStream (2023).";
    return;
  }
  const page = JSON.parse(byId("data").textContent);
  await Promise.all(page.models.map((model) => unpackModel(model, page.tokens.length)));
  window.inspector = new Inspector(page);
  document.documentElement.dataset.ready = "true";
}

start().catch((error) => {
  byId("summary").textContent = `This page could not be drawn: ${error.message}`;
  throw error;
});
