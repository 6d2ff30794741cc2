// Everything about one model: what it predicts, all its heads, the chosen head, its registers and its program.

const TILE = 62;

class Pane {
  constructor(page, model, index, choosePosition, chooseHead) {
    Object.assign(this, { page, model, index, chooseHead });
    page.startName ||= model.startName;
    this.matrix = new Matrix(page, choosePosition);
    this.arcs = new Arcs(page);
    this.tiles = new Map();
    this.prediction = this.buildPrediction();
    this.overview = this.buildOverview();
    this.focus = this.buildFocus();
    this.attended = this.buildAttended();
    this.registers = model.registers ? this.buildRegisters() : null;
    this.program = model.graph ? this.buildProgram() : null;
  }
  buildPrediction() {
    this.verdict = element("p", { class: "verdict" });
    this.candidates = element("ul", { class: "candidates" });
    const title = this.page.models.length > 1 ? this.model.title : "Prediction";
    const heading = element("h2", {}, element("bdi", { text: title, title }));
    const { levels } = this.model.attention;
    const kept = levels < 255 ? ` · weights kept to 1/${levels} of each row's largest` : "";
    const about = element("p", { class: "about", text: this.model.about + kept });
    return element("section", { class: "panel prediction" }, heading, about, this.verdict, this.candidates);
  }
  buildOverview() {
    const layers = element("div", { class: "layers" });
    this.model.layers.forEach((heads, layer) => {
      const row = element("div", { class: "tiles" });
      heads.forEach((head) => row.append(this.makeTile(head)));
      const group = element("div", { class: "layer" }, element("h3", { text: `Layer ${layer}` }), row);
      group.style.setProperty("--heads", Math.max(2, heads.length));
      const mlp = this.model.mlps[layer];
      if (mlp) group.append(element("p", { class: "mlp", title: mlp }, element("b", { text: "MLP " }), element("bdi", { text: shortened(mlp, 220) })));
      layers.append(group);
    });
    return element("section", { class: "panel overview" }, element("h2", { text: "Heads" }), layers);
  }
  makeTile(head) {
    const canvas = element("canvas", { width: TILE, height: TILE });
    const top = element("span", { class: "top-key" });
    const title = element("span", { class: "tile-title" }, element("b", { text: `${head.layer}.${head.index}` }),
      element("span", { class: "window", text: head.window === null ? "all" : `w ${head.window}`, title: head.sees }));
    const label = element("bdi", { class: "tile-label", text: head.label || "–" });
    const button = element("button", { class: head.label ? "tile" : "tile plain", type: "button", "data-head": `${head.layer}.${head.index}` },
      title, canvas, label, top);
    button.title = `${head.name}, ${head.sees}: ${head.label}`;
    button.addEventListener("click", () => {
      this.chooseHead(this.index, head);
      this.reveal();
    });
    this.tiles.set(head, { button, canvas, top, picture: null });
    return button;
  }
  buildFocus() {
    this.headTitle = element("h2", { class: "head-title" });
    this.headLabel = element("p", { class: "head-label" });
    const bar = element("div", { class: "focus-bar" }, this.headTitle, this.matrix.buttons);
    return element("section", { class: "panel focus" }, bar, this.headLabel, this.matrix.frame, this.matrix.info);
  }
  buildAttended() {
    return element("section", { class: "panel attended" }, element("h2", { text: "What this position attends to" }), this.arcs.root);
  }
  buildRegisters() {
    this.registerTable = new Registers(this.page, this.model.registers);
    const summary = element("summary", {}, element("h2", { text: "Residual stream at this position" }));
    const details = element("details", { class: "panel residual" }, summary, this.registerTable.table);
    details.open = window.innerWidth > 700;
    return details;
  }
  buildProgram() {
    this.graph = new ProgramGraph(this.model.graph, this.model.allHeads, (head) => this.chooseHead(this.index, head));
    const bar = element("div", { class: "focus-bar" }, element("h2", { text: "The RASP program" }), this.graph.whole);
    this.operation = element("p", { class: "operation" });
    return element("section", { class: "panel program" }, bar, this.operation, this.graph.frame, this.graph.legend);
  }
  // After a click on a small map the large one should be in sight.
  reveal() {
    const box = this.matrix.frame.getBoundingClientRect();
    if (box.top + box.height / 2 > window.innerHeight || box.bottom < 120) this.focus.scrollIntoView({ block: "nearest" });
  }
  headAt(layer, index) {
    const row = this.model.layers[layer];
    return (row && row[index]) || null;
  }
  selectHead(head) {
    this.head = head;
    for (const [other, { button }] of this.tiles) {
      button.classList.toggle("chosen", other === head);
      button.setAttribute("aria-pressed", other === head);
    }
    this.headTitle.textContent = `Layer ${head.layer}, head ${head.index} · ${head.sees}`;
    this.headLabel.replaceChildren(element("bdi", { text: head.label || "no label" }));
    this.matrix.setHead(head);
    if (this.graph) {
      this.graph.select(head);
      const names = head.nodes.map((i) => this.describeNode(this.model.graph.nodes[i].lines));
      const shown = [...new Set(names)].slice(0, 4).join("; ");
      this.operation.textContent = head.nodes.length ? `This head computes: ${shown}` : "No single operation stands behind this head.";
    }
  }
  describeNode([name, ...what]) { return what.join(" ") || name; }
  show(position) {
    this.position = position;
    this.matrix.setPosition(position);
    this.arcs.show(this.head, position);
    this.showPrediction(position);
    for (const head of this.tiles.keys()) this.drawTile(head);
    if (this.registerTable) this.registerTable.show(position);
  }
  showPrediction(position) {
    const { page, model } = this, truth = page.truth[position], said = model.predictions[position];
    const prompt = position + 1 < page.given;
    const right = said === truth, known = truth >= 0 && !prompt;
    const token = (id) => element("bdi", { class: "token", text: shortened(nameOf(page, id), 24), title: nameOf(page, id) });
    const mark = element("b", { class: known ? (right ? "right" : "wrong-mark") : "" });
    mark.textContent = known ? (right ? "✓ right" : "✗ wrong") : prompt ? "inside the prompt: nothing to get right yet" : "the trace ends here";
    this.verdict.replaceChildren("says ", token(said));
    if (known) this.verdict.append(", should be ", token(truth));
    this.verdict.append(" ", mark);
    const lengths = model.logits[position], low = Math.min(...lengths, 0), high = Math.max(...lengths, 1e-6);
    this.candidates.replaceChildren(...model.candidates[position].map((id, k) => {
      const bar = element("span", { class: "bar" });
      bar.style.width = `${(100 * (lengths[k] - low)) / (high - low)}%`;
      return element("li", {}, token(id), element("span", { class: "track" }, bar), element("small", { text: lengths[k].toFixed(2) }));
    }));
  }
  drawTile(head) {
    const tile = this.tiles.get(head), ratio = window.devicePixelRatio || 1, size = Math.round(TILE * ratio);
    const view = { x0: 0, x1: this.page.tokens.length + head.start, y0: 0, y1: this.page.tokens.length };
    tile.picture ||= paintPattern(head, view, size, size, this.matrix.absolute);
    const context = prepareCanvas(tile.canvas, TILE, TILE);
    context.imageSmoothingEnabled = false;
    context.drawImage(tile.picture, 0, 0, TILE, TILE);
    const y = ((this.position + 0.5) / view.y1) * TILE, best = head.best[this.position];
    context.fillStyle = colours.accent;
    context.globalAlpha = 0.75;
    context.fillRect(0, y - 0.5, TILE, 1);
    context.globalAlpha = 1;
    context.fillRect(((best + 0.5) / view.x1) * TILE - 2, y - 2, 4, 4);
    this.lightTile(tile, head, best);
  }
  // A head lights up by how surely it looks at something inside the input.
  lightTile(tile, head, best) {
    const inside = best >= head.start, weight = head.peaks[this.position];
    tile.button.style.setProperty("--lit", inside ? weight.toFixed(2) : "0");
    const name = inside ? nameOf(this.page, this.page.tokens[best - head.start]) : this.page.startName;
    tile.top.textContent = `→ ${shortened(name, 7)} ${percent(weight)}`;
  }
  recolour(absolute) {
    for (const tile of this.tiles.values()) tile.picture = null;
    this.matrix.setAbsolute(absolute);
    if (this.position !== undefined) this.show(this.position);
  }
}
