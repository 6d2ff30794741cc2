// Data of the page: unpacked once, then read by everything else.

const FONT = "ui-monospace, 'DejaVu Sans Mono', Menlo, Consolas, monospace";
const byId = (id) => document.getElementById(id);
const timings = {};

function measured(what, milliseconds) {
  (timings[what] ||= []).push(milliseconds);
  if (timings[what].length > 1000) timings[what].shift();
}

async function inflate(text) {
  const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Response(stream).arrayBuffer();
}

// One attention pattern: rows are tokens, columns are the tokens put in front followed by all tokens.
class Head {
  constructor(layer, index, about, tokens, start) {
    Object.assign(this, { layer, index, tokens, start, label: about.label, window: about.window, nodes: about.nodes || [] });
    this.offsets = new Int32Array(tokens + 1);
    for (let row = 0; row < tokens; row++) {
      this.offsets[row + 1] = this.offsets[row] + (row + start + 1 - this.firstColumn(row));
    }
  }
  get name() { return `layer ${this.layer}, head ${this.index}`; }
  get sees() { return this.window === null ? "sees all tokens" : `window ${this.window}`; }
  firstColumn(row) { return this.window === null ? 0 : Math.max(0, row + this.start + 1 - this.window); }
  lastColumn(row) { return row + this.start; }
  // 0..1: the weight as a share of the row's largest.
  share(row, column) {
    const first = this.firstColumn(row);
    if (column < first || column > this.lastColumn(row)) return 0;
    return this.weights[this.offsets[row] + column - first] / this.levels;
  }
  // Calls visit(column, share) for every share from column `from` to column `to` that is not zero.
  each(row, from, to, visit) {
    const first = Math.max(from, this.firstColumn(row)), last = Math.min(to, this.lastColumn(row));
    const base = this.offsets[row] - this.firstColumn(row);
    for (let column = first; column <= last; column++) {
      const stored = this.weights[base + column];
      if (stored !== 0) visit(column, stored / this.levels);
    }
  }
  weight(row, column) { return this.share(row, column) * this.peaks[row]; }
  strongest(row, most) {
    const found = [];
    for (let column = this.firstColumn(row); column <= this.lastColumn(row); column++) {
      const weight = this.weight(row, column);
      if (weight > 0.004) found.push({ column, weight });
    }
    found.sort((a, b) => b.weight - a.weight || a.column - b.column);
    return most ? found.slice(0, most) : found;
  }
}

async function unpackModel(model, tokens) {
  const { levels, ...packed } = model.attention;
  const weights = new Uint8Array(await inflate(packed.weights));
  const peaks = new Float32Array(await inflate(packed.peaks));
  const best = new Uint16Array(await inflate(packed.best));
  let at = 0, place = 0;
  model.layers = model.heads.map((layer, l) => layer.map((about, h) => {
    const head = new Head(l, h, about, tokens, model.start);
    const size = head.offsets[tokens];
    head.levels = levels;
    head.weights = weights.subarray(at, at + size);
    head.peaks = peaks.subarray(place, place + tokens);
    head.best = best.subarray(place, place + tokens);
    at += size;
    place += tokens;
    return head;
  }));
  model.allHeads = model.layers.flat();
  if (model.registers) {
    model.registers.index = new Uint16Array(await inflate(model.registers.index));
    model.registers.amount = new Float32Array(await inflate(model.registers.amount));
  }
  return model;
}

function nameOf(page, token) {
  if (token < 0) return "refused";
  return page.names[token] ?? String(token);
}

// Names are cut by characters as people count them, so that emoji stay whole.
function shortened(text, most) {
  const letters = Array.from(text);
  return letters.length <= most ? text : letters.slice(0, most - 1).join("") + "…";
}

function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [key, value] of Object.entries(attributes)) {
    if (key === "class") made.className = value;
    else if (key === "text") made.textContent = value;
    else made.setAttribute(key, value);
  }
  made.append(...children);
  return made;
}

function percent(weight) {
  return weight >= 0.9995 ? "1.00" : weight >= 0.1 ? weight.toFixed(2) : weight.toFixed(3);
}
