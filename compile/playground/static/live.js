// A run as it grows, in the form in which the inspector's views read one.

const SHOWN = 4096; // tokens that the views show; the run itself may be longer

class LiveHead extends Head {
  constructor(layer, index, about, start) {
    super(layer, index, about, 0, start);
    Object.assign(this, { role: about.role, peaks: [], best: [], levels: 255, at: [0], column: new Numbers(Int32Array), value: new Numbers(Float32Array) });
  }
  append(columns, weights) {
    let best = this.peaks.length + this.start, peak = 0;
    for (let i = 0; i < columns.length; i++) if (weights[i] > peak) { peak = weights[i]; best = columns[i]; }
    this.column.append(columns);
    this.value.append(weights);
    this.at.push(this.column.length);
    this.peaks.push(peak);
    this.best.push(best);
  }
  share(row, column) {
    for (let e = this.at[row]; e < this.at[row + 1]; e++) if (this.column.data[e] === column) return this.value.data[e] / this.peaks[row];
    return 0;
  }
  each(row, from, to, visit) {
    for (let e = this.at[row]; e < this.at[row + 1]; e++) {
      const column = this.column.data[e];
      if (column >= from && column <= to) visit(column, this.value.data[e] / this.peaks[row]);
    }
  }
  strongest(row, most) {
    const found = [];
    for (let e = this.at[row]; e < this.at[row + 1]; e++) {
      if (this.value.data[e] > 0.004) found.push({ column: this.column.data[e], weight: this.value.data[e] });
    }
    found.sort((a, b) => b.weight - a.weight || a.column - b.column);
    return most ? found.slice(0, most) : found;
  }
}

// Numbers that grow by whole pieces.
class Numbers {
  constructor(Kind) { this.data = new Kind(1024); this.length = 0; }
  append(piece) {
    while (this.length + piece.length > this.data.length) {
      const larger = new this.data.constructor(2 * this.data.length);
      larger.set(this.data);
      this.data = larger;
    }
    this.data.set(piece, this.length);
    this.length += piece.length;
  }
}

// The residual stream after every stage of every token, kept as what each stage changed.
class Residuals {
  constructor(dims, stages) {
    Object.assign(this, { dims, stages, dim: new Numbers(Uint16Array), value: new Numbers(Float32Array), at: [0], cached: -1 });
  }
  append({ dims, values, stages }) {
    this.dim.append(dims);
    this.value.append(values);
    for (const size of stages) this.at.push(this.at.at(-1) + size);
  }
  get positions() { return (this.at.length - 1) / this.stages; }
  after(position, stage) {
    if (this.cached !== position) {
      let now = new Float32Array(this.dims);
      this.found = [];
      for (let s = 0; s < this.stages; s++) {
        now = now.slice();
        const first = this.at[position * this.stages + s], end = this.at[position * this.stages + s + 1];
        for (let e = first; e < end; e++) now[this.dim.data[e]] = this.value.data[e];
        this.found.push(now);
      }
      this.cached = position;
    }
    return this.found[stage];
  }
  // [index, amount] of the two largest directions of a register.
  read(position, stage, { start, stop }) {
    const x = this.after(position, stage);
    let [first, second] = [[0, 0], [0, 0]];
    for (let d = start; d < stop; d++) {
      const size = Math.abs(x[d]);
      if (size > Math.abs(first[1])) [first, second] = [[d - start, x[d]], first];
      else if (size > Math.abs(second[1])) second = [d - start, x[d]];
    }
    return [first, second];
  }
}

class LiveRegisters extends Registers {
  read(stage, register, position) { return this.registers.residuals.read(position, stage, this.registers.places[register]); }
  show(position) { if (position < this.registers.residuals.positions) super.show(position); }
}

// The page that the views read: tokens as they have been read by the transformer, and what it said after each.
class Live {
  constructor(job, model) {
    const shapes = model.shapes, stages = 2 * shapes.length + 1;
    const layers = shapes.map((shape, l) => shape.windows.map((window, h) => new LiveHead(l, h, { ...model.heads[l][h], window }, model.starts)));
    this.job = job;
    this.model = model;
    this.names = job.coding ? job.coding.names(model.names) : model.names;
    this.states = new Set(job.coding ? job.coding.machine.states.map((_, q) => job.coding.firstState + q) : []);
    Object.assign(this, { tokens: [], truth: [], rows: [], given: job.prompt.length, startName: model.startName, title: "" });
    Object.assign(this, { all: [], answers: [], untouched: [], lineAt: 0, wrongAt: -1, changedAt: -1, milliseconds: 0, ended: "" });
    this.residuals = new Residuals(model.dims, stages);
    this.clean = new Residuals(model.dims, stages);
    const names = ["embedding", ...shapes.flatMap((_, l) => [`layer ${l} attention`, `layer ${l} MLP`])];
    this.models = [{
      title: model.name, about: model.about, start: model.starts, startName: model.startName, mlps: model.mlps, graph: model.graph,
      layers, allHeads: layers.flat(), attention: { levels: 255 }, predictions: [], candidates: [], logits: [],
      registers: {
        stages: names, names: model.registers.map((r) => r.name), values: model.registers.map((r) => r.values),
        tokens: model.registers.map((r) => r.tokens), places: model.registers, residuals: this.residuals,
      },
    }];
    this.starts = new Set(job.lineStarts());
    for (const at of job.past?.rows ?? []) this.starts.add(at);
  }
  get heads() { return this.models[0].allHeads; }
  // What the worker has just read and said.
  append(reply) {
    const { job } = this;
    reply.tokens.forEach((token, k) => {
      const position = this.all.length, before = this.all[position - 1];
      if (this.starts.has(position) || (position && this.endsLine(before, position))) this.startLine(position);
      this.all.push(token);
      this.answers.push(reply.answers[k]);
      const expected = job.expected(position + 1);
      if (position < SHOWN) { this.tokens.push(token); this.truth.push(expected); this.models[0].predictions.push(reply.answers[k]); }
      if (reply.untouched.length) {
        this.untouched.push(reply.untouched[k]);
        if (this.changedAt < 0 && position + 1 >= this.given && reply.untouched[k] !== reply.answers[k]) this.changedAt = position;
      }
      if (this.wrongAt < 0 && position + 1 >= this.given && expected >= 0 && reply.answers[k] >= 0 && reply.answers[k] !== expected) this.wrongAt = position + 1;
    });
    this.appendSeen(reply.seen);
    if (reply.clean) this.clean.append(reply.clean);
    this.milliseconds += reply.milliseconds;
    this.ended = reply.ended;
  }
  endsLine(token, position) {
    if (this.job.kind !== "machine") return token === this.job.bar;
    return token === SEP && position >= this.job.tableLength;
  }
  startLine(position) {
    this.lineAt = position;
    if (position < SHOWN) this.rows.push(position);
  }
  appendSeen(seen) {
    const { heads } = this, model = this.models[0], positions = seen.sizes.length / heads.length;
    let at = 0;
    for (let p = 0; p < positions; p++) {
      heads.forEach((head, h) => {
        const size = seen.sizes[p * heads.length + h];
        head.append(seen.columns.subarray(at, at + size), seen.weights.subarray(at, at + size));
        at += size;
      });
      const best = seen.candidates.length / positions;
      model.candidates.push(Array.from(seen.candidates.subarray(p * best, (p + 1) * best)));
      model.logits.push(Array.from(seen.logits.subarray(p * best, (p + 1) * best)));
    }
    this.residuals.append(seen);
  }
  // The last whole tape or line that was read, and the one being written after it.
  get lastLine() {
    const start = this.lineAt, rest = this.all.slice(start);
    if (rest.length && !this.closes(rest.at(-1))) return { whole: this.all.slice(this.previousStart(start), start), part: rest };
    return { whole: rest, part: [] };
  }
  closes(token) { return token === (this.job.kind === "machine" ? SEP : this.job.bar) || token === this.job.stop; }
  previousStart(start) {
    let at = start - 1;
    while (at > 0 && !this.closes(this.all[at - 1])) at--;
    return Math.max(0, at);
  }
  // How many steps (tapes or lines) have been written whole.
  get steps() {
    let count = 0;
    for (let i = this.given; i < this.all.length; i++) if (this.closes(this.all[i])) count++;
    return count;
  }
}

// The trace, a line per tape, with cells added as tokens come.
class LiveTape extends Tape {
  build() {
    const { coding } = this.page.job, names = coding ? ["eos", ...coding.machine.symbols, ...coding.machine.states] : this.page.names.slice(0, -1);
    const longest = Math.max(...names.map((name) => Array.from(name).length));
    if (!coding) this.root.querySelector("h2").textContent = "Lines";
    this.list.style.setProperty("--cell", `${Math.max(26, 10 + 7.3 * Math.min(longest, 8))}px`);
    this.shown = -1;
  }
  grow() {
    const { tokens, rows, states } = this.page;
    for (let i = this.cells.length; i < tokens.length; i++) {
      if (rows[this.lines.length] === i) this.addLine(i);
      const cell = this.makeCell(i, states, i);
      if (states.has(tokens[i]) && i > 0 && rows[this.lines.length - 1] !== i && i >= (this.page.job.tableLength ?? 0)) this.cells[i - 1].classList.add("under-head");
      this.lines.at(-1).append(cell);
    }
  }
  addLine(position) {
    const label = element("span", { class: "step", text: this.page.job.lineLabel(this.lines.length) });
    const line = element("div", { class: "tape-line" }, label);
    if (position) line.append(element("span", { class: "cell gap" }));
    else {
      this.startCell = element("span", { class: "cell start", title: "put in front of every input by the compiler", text: this.page.startName });
      line.append(this.startCell);
    }
    this.lines.push(line);
    this.list.append(line);
  }
  show(position, head) {
    this.cells[this.shown]?.classList.remove("now");
    this.lines[this.shownLine]?.classList.remove("current");
    this.shown = position;
    this.shownLine = this.lineOf(position);
    const cell = this.cells[position], line = this.lines[this.shownLine], box = this.list;
    if (!cell) return;
    cell.classList.add("now");
    line.classList.add("current");
    this.shade(position, head);
    if (line.offsetTop < box.scrollTop || line.offsetTop + 40 > box.scrollTop + box.clientHeight) box.scrollTop = line.offsetTop - box.clientHeight / 2;
    if (cell.offsetLeft < box.scrollLeft + 60 || cell.offsetLeft + 90 > box.scrollLeft + box.clientWidth) box.scrollLeft = Math.max(0, cell.offsetLeft + 60 - box.clientWidth);
  }
  lineOf(position) {
    const { rows } = this.page;
    let low = 0, high = rows.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (rows[middle] <= position) low = middle; else high = middle - 1;
    }
    return low;
  }
}
