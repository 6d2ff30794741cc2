// The transformer itself: one token through compiled weights, at the cost of the nonzeros it touches.
//
// Activations are sparse, so only the columns of what is on are read. A window head takes the mean of what its last
// tokens carry. An unbounded head scores every token so far, through an index from each entry of a key to the tokens
// that have it, and takes the softmax over those scores. Nothing is assumed about the weights but that most are zero,
// so the arithmetic is the same when a head is switched off or a register is overwritten.

const DROPPED = 1e-6; // activations below it are not read: registers hold 0 and 1 up to a few hundredths
const NEGLIGIBLE = 35; // a key that scores this much less than the best gets less than 1e-15 of the attention

class Columns {
  constructor(rows, columns, places, values) {
    this.rows = rows;
    this.start = new Int32Array(columns + 1);
    for (const place of places) this.start[(place % columns) + 1]++;
    for (let c = 0; c < columns; c++) this.start[c + 1] += this.start[c];
    const next = this.start.slice();
    this.row = new Int32Array(places.length);
    this.value = new Float64Array(places.length);
    places.forEach((place, i) => {
      const at = next[place % columns]++;
      this.row[at] = Math.floor(place / columns);
      this.value[at] = values[i];
    });
  }
}

// Tensors arrive as the places of their nonzeros (as distances from one to the next) and their values.
class Weights {
  constructor(model, distances, values) {
    Object.assign(this, { dims: model.dims, starts: model.starts, startToken: model.startToken, outputs: model.outputs });
    let at = 0;
    const tensors = {};
    for (const [name, shape, count] of model.tensors) {
      const places = new Int32Array(count);
      for (let i = 0, place = 0; i < count; i++) places[i] = place += distances[at + i];
      tensors[name] = { shape, places, values: values.subarray(at, at + count) };
      at += count;
    }
    const columns = (name, flip) => {
      const { shape: [rows, width], places, values: numbers } = tensors[name];
      if (!flip) return new Columns(rows, width, places, numbers);
      return new Columns(width, rows, places.map((place) => (place % width) * rows + Math.floor(place / width)), numbers);
    };
    const vector = (name) => {
      const { shape: [size], places, values: numbers } = tensors[name];
      const dense = new Float64Array(size);
      places.forEach((place, i) => { dense[place] = numbers[i]; });
      return dense;
    };
    this.embed = columns("embed.weight", true);
    this.unembed = this.stage(columns("unembed.weight"), vector("unembed.bias"));
    this.layers = model.shapes.map(({ windows, size }, l) => {
      const layer = { windows, size, heads: windows.length };
      if (windows.length) {
        layer.project = this.stage(columns(`blocks.${l}.attn.qkv.weight`), vector(`blocks.${l}.attn.qkv.bias`));
        layer.out = columns(`blocks.${l}.attn.out.weight`);
        layer.outBias = this.stage(null, vector(`blocks.${l}.attn.out.bias`));
      }
      if (tensors[`blocks.${l}.mlp.up.weight`]) {
        layer.up = this.stage(columns(`blocks.${l}.mlp.up.weight`), vector(`blocks.${l}.mlp.up.bias`));
        layer.down = columns(`blocks.${l}.mlp.down.weight`);
        layer.downBias = this.stage(null, vector(`blocks.${l}.mlp.down.bias`));
      }
      return layer;
    });
  }
  // A matrix with its bias, and the rows that count even if nothing touches them.
  stage(columns, bias) {
    const always = [];
    bias.forEach((value, row) => { if (value !== 0) always.push(row); });
    return { columns, bias, always };
  }
  get largest() {
    return Math.max(...this.layers.flatMap((l) => [l.project, l.up]).filter(Boolean).map((s) => s.bias.length), this.outputs.length);
  }
}

// Numbers that grow in number.
class Growing {
  constructor(Kind, room = 64) { this.data = new Kind(room); this.length = 0; }
  push(value) {
    if (this.length === this.data.length) {
      const larger = new this.data.constructor(2 * this.length);
      larger.set(this.data);
      this.data = larger;
    }
    this.data[this.length++] = value;
  }
  view() { return this.data.slice(0, this.length); }
}

// What one head remembers: the values of all tokens and, if it sees them all, an index of their keys.
class HeadMemory {
  constructor(size) {
    this.first = new Growing(Int32Array);
    this.dim = new Growing(Int32Array);
    this.value = new Growing(Float64Array);
    this.keys = Array.from({ length: size }, () => null);
    this.first.push(0);
  }
  carry(dim, value) { this.dim.push(dim); this.value.push(value); }
  close() { this.first.push(this.dim.length); }
  index(dim, token, value) {
    const found = (this.keys[dim] ||= { token: new Growing(Int32Array), value: new Growing(Float64Array) });
    found.token.push(token);
    found.value.push(value);
  }
}

// One sequence. `off` names heads ("layer.head") that bring nothing; `patches` are what registers hold instead.
class Run {
  constructor(weights, { off = [], patches = [], recorder = null } = {}) {
    Object.assign(this, { weights, recorder, count: 0, touched: 0 });
    this.off = new Set(off);
    this.patches = patches;
    this.x = new Float64Array(weights.dims);
    this.on = new Int32Array(weights.dims); // the dimensions of x that count, of which there are `listed`
    this.isOn = new Uint8Array(weights.dims);
    this.listed = 0;
    this.changed = new Growing(Int32Array);
    this.isChanged = new Uint8Array(weights.dims);
    const most = weights.largest;
    this.acc = new Float64Array(most);
    this.rows = new Int32Array(most);
    this.isRow = new Uint8Array(most);
    for (const [name, Kind] of [["dims", Int32Array], ["amounts", Float64Array], ["filled", Int32Array], ["brought", Float64Array]]) this[name] = new Kind(most);
    this.scores = new Float64Array(0);
    this.seen = 0; // how many `tokens` are attended to, with which `shares`
    this.need(256);
    this.memories = weights.layers.map(({ heads, size }) => Array.from({ length: heads }, () => new HeadMemory(size)));
    for (let i = 0; i < weights.starts; i++) this.step(weights.startToken);
  }
  get position() { return this.count - this.weights.starts; }
  add(dim, value) {
    if (!this.isOn[dim]) {
      this.isOn[dim] = 1;
      this.on[this.listed++] = dim;
    }
    if (!this.isChanged[dim]) {
      this.isChanged[dim] = 1;
      this.changed.push(dim);
    }
    this.x[dim] += value;
  }
  addColumn(columns, column, factor) {
    const end = columns.start[column + 1];
    for (let e = columns.start[column]; e < end; e++) this.add(columns.row[e], columns.value[e] * factor);
    this.touched += end - columns.start[column];
  }
  addBias({ bias, always }) { for (const d of always) this.add(d, bias[d]); }
  // acc = matrix @ x + bias on the rows that anything touches; returns how many these are.
  multiply({ columns, bias, always }) {
    const { acc, rows, isRow, x, on } = this, { start, row, value } = columns;
    let size = 0;
    for (const r of always) {
      isRow[r] = 1;
      acc[r] = bias[r];
      rows[size++] = r;
    }
    for (let i = 0; i < this.listed; i++) {
      const dim = on[i], amount = x[dim];
      if (amount < DROPPED && amount > -DROPPED) continue;
      const end = start[dim + 1];
      this.touched += end - start[dim];
      for (let e = start[dim]; e < end; e++) {
        const r = row[e];
        if (!isRow[r]) {
          isRow[r] = 1;
          acc[r] = 0;
          rows[size++] = r;
        }
        acc[r] += value[e] * amount;
      }
    }
    for (let i = 0; i < size; i++) isRow[rows[i]] = 0;
    return size;
  }
  // One token; returns the place of the largest logit.
  step(token) {
    const { weights } = this;
    for (let i = 0; i < this.listed; i++) this.x[this.on[i]] = this.isOn[this.on[i]] = 0;
    this.listed = 0;
    if (this.recorder) this.recorder.begin(this);
    this.addColumn(weights.embed, token, 1);
    this.closeStage(0);
    for (let l = 0; l < weights.layers.length; l++) {
      const layer = weights.layers[l];
      if (layer.heads) this.attend(layer, l);
      this.closeStage(2 * l + 1);
      if (layer.up) this.compute(layer);
      this.closeStage(2 * l + 2);
    }
    const best = this.answer();
    this.count++;
    return best;
  }
  closeStage(stage) {
    for (const patch of this.patches) if (patch.position === this.position) this.overwrite(patch, stage);
    if (this.recorder) this.recorder.stage(this);
    for (let i = 0; i < this.changed.length; i++) this.isChanged[this.changed.data[i]] = 0;
    this.changed.length = 0;
  }
  overwrite({ start, stop, stages }, stage) {
    for (let d = start; d < stop; d++) if (this.isOn[d]) this.add(d, -this.x[d]);
    for (const [dim, value] of stages[stage]) this.add(dim, value);
  }
  attend(layer, l) {
    const { heads, size, windows } = layer, memories = this.memories[l], { dims, amounts, filled } = this.sorted(layer);
    const brought = this.brought.fill(0, 0, heads * size);
    for (let h = 0; h < heads; h++) {
      const memory = memories[h], values = (2 * heads + h) * size;
      for (let i = 0; i < filled[2 * heads + h]; i++) memory.carry(dims[values + i], amounts[values + i]);
      memory.close();
      if (windows[h] === null) this.look(memory, h, heads + h, size);
      else this.lookBack(windows[h]);
      const isOff = this.off.size > 0 && this.off.has(`${l}.${h}`);
      if (this.recorder) this.recorder.head(this, isOff);
      if (!isOff) this.bring(memory, h * size);
    }
    for (let d = 0; d < heads * size; d++) {
      if (brought[d] > DROPPED || brought[d] < -DROPPED) this.addColumn(layer.out, d, brought[d]);
    }
    this.addBias(layer.outBias);
  }
  // All queries, keys and values of this token that are not zero, each head's in a stretch of its own.
  sorted({ project, heads, size }) {
    const touched = this.multiply(project), { dims, amounts, filled, rows, acc } = this;
    filled.fill(0, 0, 3 * heads);
    for (let i = 0; i < touched; i++) {
      const row = rows[i], value = acc[row];
      if (value < DROPPED && value > -DROPPED) continue;
      const part = Math.floor(row / size), at = part * size + filled[part]++;
      dims[at] = row - part * size;
      amounts[at] = value;
    }
    return this;
  }
  need(size) {
    if (this.scores.length >= size) return;
    this.scores = new Float64Array(2 * size);
    this.tokens = new Int32Array(2 * size);
    this.shares = new Float64Array(2 * size);
  }
  // What a window head attends to: its last tokens, all alike.
  lookBack(window) {
    const seen = Math.min(this.count + 1, window);
    this.need(seen);
    for (let i = 0; i < seen; i++) { this.tokens[i] = this.count + 1 - seen + i; this.shares[i] = 1 / seen; }
    this.seen = seen;
  }
  // What an unbounded head attends to: every token whose score is near the best.
  look(memory, query, key, width) {
    const now = this.count, size = now + 1, { dims, amounts, filled } = this;
    for (let i = key * width; i < key * width + filled[key]; i++) memory.index(dims[i], now, amounts[i]);
    this.need(size);
    const { scores, tokens, shares } = this;
    scores.fill(0, 0, size);
    for (let i = query * width; i < query * width + filled[query]; i++) {
      const keys = memory.keys[dims[i]];
      if (!keys) continue;
      const token = keys.token.data, value = keys.value.data, factor = amounts[i], end = keys.token.length;
      for (let e = 0; e < end; e++) scores[token[e]] += factor * value[e];
      this.touched += end;
    }
    let best = -Infinity;
    for (let j = 0; j < size; j++) if (scores[j] > best) best = scores[j];
    const least = best - NEGLIGIBLE;
    let total = 0, seen = 0;
    for (let j = 0; j < size; j++) {
      if (scores[j] < least) continue;
      tokens[seen] = j;
      total += shares[seen++] = Math.exp(scores[j] - best);
    }
    for (let i = 0; i < seen; i++) shares[i] /= total;
    this.seen = seen;
  }
  bring(memory, to) {
    const { brought, tokens, shares, seen } = this, first = memory.first.data, dim = memory.dim.data, value = memory.value.data;
    for (let i = 0; i < seen; i++) {
      const end = first[tokens[i] + 1], share = shares[i];
      for (let e = first[tokens[i]]; e < end; e++) brought[to + dim[e]] += share * value[e];
    }
  }
  compute(layer) {
    const touched = this.multiply(layer.up), { acc, rows } = this;
    // The units are all computed before the first of them writes; what is written is not in `acc`.
    for (let i = 0; i < touched; i++) if (acc[rows[i]] > DROPPED) this.addColumn(layer.down, rows[i], acc[rows[i]]);
    this.addBias(layer.downBias);
  }
  answer() {
    const { unembed, outputs } = this.weights, touched = this.multiply(unembed), logits = new Float64Array(outputs.length);
    for (let i = 0; i < touched; i++) logits[this.rows[i]] = this.acc[this.rows[i]];
    let best = 0;
    for (let i = 1; i < logits.length; i++) if (logits[i] > logits[best]) best = i;
    if (this.recorder) this.recorder.answer(this, logits);
    return best;
  }
}
