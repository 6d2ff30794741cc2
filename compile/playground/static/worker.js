// The worker: runs sequences away from the page, keeps what the views show, and answers in pieces.

// What the inspector's views show of each token: attention, what each stage writes, and the best answers.
class Recorder {
  constructor() { this.clear(); }
  clear() {
    this.attended = { column: new Growing(Int32Array), weight: new Growing(Float32Array), size: new Growing(Int32Array) };
    this.written = { dim: new Growing(Uint16Array), value: new Growing(Float32Array), size: new Growing(Int32Array) };
    this.logits = new Growing(Float32Array);
    this.candidates = new Growing(Int32Array);
  }
  begin(run) { this.on = run.count >= run.weights.starts; }
  head({ tokens, shares, seen }, off) {
    if (!this.on) return;
    const { column, weight, size } = this.attended, before = column.length;
    let best = 0;
    for (let i = 0; i < seen; i++) if (shares[i] > best) best = shares[i];
    for (let i = 0; i < seen && !off; i++) {
      if (shares[i] < best / 255) continue;
      column.push(tokens[i]);
      weight.push(shares[i]);
    }
    size.push(column.length - before);
  }
  stage(run) {
    if (!this.on) return;
    const { changed } = run;
    let size = 0;
    for (let i = 0; i < changed.length; i++) {
      this.written.dim.push(changed.data[i]);
      this.written.value.push(run.x[changed.data[i]]);
      size++;
    }
    this.written.size.push(size);
  }
  answer(run, logits) {
    if (!this.on) return;
    for (const i of largest(logits, 3)) { this.candidates.push(run.weights.outputs[i]); this.logits.push(logits[i]); }
  }
  // Everything since the last time, as arrays that can be handed over.
  take() {
    const parts = {
      columns: this.attended.column.view(), weights: this.attended.weight.view(), sizes: this.attended.size.view(),
      dims: this.written.dim.view(), values: this.written.value.view(), stages: this.written.size.view(),
      candidates: this.candidates.view(), logits: this.logits.view(),
    };
    this.clear();
    return parts;
  }
}

// The places of the largest numbers, largest first.
function largest(numbers, most) {
  const found = [];
  for (let i = 0; i < numbers.length; i++) {
    let at = found.length;
    while (at > 0 && numbers[found[at - 1]] < numbers[i]) at--;
    if (at < most) { found.splice(at, 0, i); if (found.length > most) found.pop(); }
  }
  return found;
}

// Reads what one register holds after every stage of one token of another run.
class Probe {
  constructor({ start, stop }) { Object.assign(this, { start, stop, stages: [] }); }
  begin() { this.stages = []; }
  head() {}
  stage(run) {
    const held = [];
    for (let d = this.start; d < this.stop; d++) if (run.x[d] !== 0) held.push([d, run.x[d]]);
    this.stages.push(held);
  }
  answer() {}
}

function readRegister(weights, register, tokens, position) {
  const probe = new Probe(register), run = new Run(weights, { recorder: probe });
  for (let i = 0; i <= position; i++) run.step(tokens[i]);
  return probe.stages;
}

class Session {
  constructor(weights, { tokens, off, patches, stop, final, steps, most }) {
    const made = patches.map((p) => ({ ...p, stages: readRegister(weights, p, p.tokens, p.from) }));
    Object.assign(this, { weights, queue: tokens, at: 0, stop, steps, most, lines: 0, isFinal: false, ended: "", next: null });
    this.final = final && new Set(final);
    this.recorder = new Recorder();
    this.run = new Run(weights, { off, patches: made, recorder: this.recorder });
    // The same weights untouched, on the same tokens: what would have been said.
    this.twinRecorder = new Recorder();
    this.twin = off.length || made.length ? new Run(weights, { recorder: this.twinRecorder }) : null;
  }
  // So many more tokens, or as many as there is time for.
  more(count, milliseconds) {
    const until = performance.now() + milliseconds, tokens = [], answers = [], untouched = [];
    const started = performance.now();
    while (tokens.length < count && !this.ended && performance.now() < until) {
      const token = this.at < this.queue.length ? this.queue[this.at] : this.next;
      if (token < 0) { this.ended = "refused"; break; }
      if (this.run.position >= this.most) { this.ended = "room"; break; }
      this.at++;
      tokens.push(token);
      if (this.run.position >= RECORDED) this.run.recorder = null;
      this.next = this.weights.outputs[this.run.step(token)];
      answers.push(this.next);
      if (this.twin) {
        if (this.twin.position >= RECORDED) this.twin.recorder = null;
        untouched.push(this.weights.outputs[this.twin.step(token)]);
      }
      this.watch(token);
    }
    return {
      tokens, answers, untouched, ended: this.ended, milliseconds: performance.now() - started, touched: this.run.touched,
      seen: this.recorder.take(), clean: this.twin ? this.twinRecorder.take() : null,
    };
  }
  // A run ends after its stop token: any, where there are no final states to wait for; or when it has its steps.
  watch(token) {
    if (this.at <= this.queue.length) return;
    if (this.final?.has(token)) this.isFinal = true;
    if (token !== this.stop) return;
    this.lines++;
    if (!this.final || this.isFinal) this.ended = "halted";
    else if (this.lines >= this.steps) this.ended = "steps";
    this.isFinal = false;
  }
}

const RECORDED = 4096; // tokens of which everything is kept for the views

const models = [];
let session = null;

function answer({ data }) {
  const { number, kind } = data;
  try {
    if (kind === "load") {
      models.push(...data.models.map(({ about, distances, values }) => new Weights(about, distances, values)));
      postMessage({ number });
    } else if (kind === "begin") {
      session = new Session(models[data.model], data);
      postMessage({ number });
    } else if (kind === "more") {
      const reply = session.more(data.count, data.milliseconds);
      const buffers = [reply.seen, reply.clean].filter(Boolean).flatMap((s) => Object.values(s).map((a) => a.buffer));
      postMessage({ number, ...reply }, buffers);
    }
  } catch (error) {
    postMessage({ number, error: error.message });
  }
}

onmessage = answer;
