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
        layer.outBias = vector(`blocks.${l}.attn.out.bias`);
      }
      if (tensors[`blocks.${l}.mlp.up.weight`]) {
        layer.up = this.stage(columns(`blocks.${l}.mlp.up.weight`), vector(`blocks.${l}.mlp.up.bias`));
        layer.down = columns(`blocks.${l}.mlp.down.weight`);
        layer.downBias = vector(`blocks.${l}.mlp.down.bias`);
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
    this.scores = new Float64Array(256);
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
  addBias(bias) { for (let d = 0; d < bias.length; d++) if (bias[d] !== 0) this.add(d, bias[d]); }
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
    this.recorder?.begin(this);
    this.addColumn(weights.embed, token, 1);
    this.closeStage(0);
    weights.layers.forEach((layer, l) => {
      if (layer.heads) this.attend(layer, l);
      this.closeStage(2 * l + 1);
      if (layer.up) this.compute(layer);
      this.closeStage(2 * l + 2);
    });
    const best = this.answer();
    this.count++;
    return best;
  }
  closeStage(stage) {
    for (const patch of this.patches) if (patch.position === this.position) this.overwrite(patch, stage);
    this.recorder?.stage(this, stage);
    for (let i = 0; i < this.changed.length; i++) this.isChanged[this.changed.data[i]] = 0;
    this.changed.length = 0;
  }
  overwrite({ start, stop, stages }, stage) {
    for (let d = start; d < stop; d++) if (this.isOn[d]) this.add(d, -this.x[d]);
    for (const [dim, value] of stages[stage]) this.add(dim, value);
  }
  attend(layer, l) {
    const { heads, size, windows } = layer, memories = this.memories[l];
    const buckets = Array.from({ length: 3 * heads }, () => []);
    const touched = this.multiply(layer.project);
    for (let i = 0; i < touched; i++) {
      const row = this.rows[i], value = this.acc[row];
      if (value > DROPPED || value < -DROPPED) buckets[Math.floor(row / size)].push(row % size, value);
    }
    const found = [];
    for (let h = 0; h < heads; h++) {
      const memory = memories[h], carried = buckets[2 * heads + h];
      for (let i = 0; i < carried.length; i += 2) memory.carry(carried[i], carried[i + 1]);
      memory.close();
      const seen = windows[h] === null ? this.look(memory, buckets[h], buckets[heads + h]) : this.lookBack(windows[h]);
      const isOff = this.off.has(`${l}.${h}`);
      this.recorder?.head(this, l, h, seen, isOff);
      if (!isOff) found.push([h, this.bring(memory, seen, size)]);
    }
    for (const [h, brought] of found) {
      for (let d = 0; d < size; d++) {
        if (brought[d] > DROPPED || brought[d] < -DROPPED) this.addColumn(layer.out, h * size + d, brought[d]);
      }
    }
    this.addBias(layer.outBias);
  }
  // What a window head attends to: its last tokens, all alike.
  lookBack(window) {
    const seen = Math.min(this.count + 1, window), tokens = [], shares = [];
    for (let j = this.count + 1 - seen; j <= this.count; j++) { tokens.push(j); shares.push(1 / seen); }
    return { tokens, shares };
  }
  // What an unbounded head attends to: every token whose score is near the best.
  look(memory, query, key) {
    const now = this.count, size = now + 1;
    for (let i = 0; i < key.length; i += 2) memory.index(key[i], now, key[i + 1]);
    if (this.scores.length < size) this.scores = new Float64Array(2 * size);
    const { scores } = this;
    scores.fill(0, 0, size);
    for (let i = 0; i < query.length; i += 2) {
      const keys = memory.keys[query[i]];
      if (!keys) continue;
      const token = keys.token.data, value = keys.value.data, factor = query[i + 1], end = keys.token.length;
      for (let e = 0; e < end; e++) scores[token[e]] += factor * value[e];
      this.touched += end;
    }
    let best = -Infinity;
    for (let j = 0; j < size; j++) if (scores[j] > best) best = scores[j];
    const tokens = [], shares = [], least = best - NEGLIGIBLE;
    let total = 0;
    for (let j = 0; j < size; j++) {
      if (scores[j] < least) continue;
      const share = Math.exp(scores[j] - best);
      total += share;
      tokens.push(j);
      shares.push(share);
    }
    for (let i = 0; i < shares.length; i++) shares[i] /= total;
    return { tokens, shares };
  }
  bring(memory, { tokens, shares }, size) {
    const brought = new Float64Array(size), first = memory.first.data, dim = memory.dim.data, value = memory.value.data;
    for (let i = 0; i < tokens.length; i++) {
      const end = first[tokens[i] + 1];
      for (let e = first[tokens[i]]; e < end; e++) brought[dim[e]] += shares[i] * value[e];
    }
    return brought;
  }
  compute(layer) {
    const touched = this.multiply(layer.up), units = [];
    for (let i = 0; i < touched; i++) {
      const unit = this.rows[i];
      if (this.acc[unit] > DROPPED) units.push(unit, this.acc[unit]);
    }
    for (let i = 0; i < units.length; i += 2) this.addColumn(layer.down, units[i], units[i + 1]);
    this.addBias(layer.downBias);
  }
  answer() {
    const { unembed, outputs } = this.weights, touched = this.multiply(unembed), logits = new Float64Array(outputs.length);
    for (let i = 0; i < touched; i++) logits[this.rows[i]] = this.acc[this.rows[i]];
    let best = 0;
    for (let i = 1; i < logits.length; i++) if (logits[i] > logits[best]) best = i;
    this.recorder?.answer(this, logits, best);
    return best;
  }
}
