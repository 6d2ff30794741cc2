// What is to be run: a prompt, what should follow every token, where it ends, and why it may go wrong.

class MachineJob {
  // `origin` is where the tape stands in `prompt`, `firstStep` its number: a run that goes on from an edited tape has a past.
  constructor(coding, n, tape, steps, past = null) {
    Object.assign(this, { coding, n, kind: "machine", stop: SEP, steps, final: coding.final });
    this.tapes = [coding.encode(tape)];
    const before = past ? past.tokens : [...coding.table(), SEP];
    this.prompt = [...before, ...this.tapes[0], SEP];
    this.origin = before.length;
    this.firstStep = past ? past.step : 0;
    this.past = past;
    this.width = this.tapes[0].length + 1;
    this.tableLength = past ? past.tableLength : before.length;
    this.most = this.prompt.length + 2 * (steps + 1) * this.width; // a run that has gone wrong may never end a tape
  }
  isHalted(tape) { return tape.some((token) => this.final.includes(token)); }
  // The true tape after t steps; null past the first one in a final state.
  tape(t) {
    while (this.tapes.length <= t && !this.isHalted(this.tapes.at(-1))) this.tapes.push(this.coding.step(this.tapes.at(-1)));
    return this.tapes[t] ?? null;
  }
  // What should stand at a position: [tape, place]; -1 after the true run has ended.
  expected(position) {
    if (position < this.prompt.length) return this.prompt[position];
    const t = Math.floor((position - this.origin) / this.width), tape = t > this.steps ? null : this.tape(t);
    return tape ? (tape[(position - this.origin) % this.width] ?? SEP) : -1;
  }
  // Where lines of the tape view begin, and what stands before them.
  lineLabel(line) {
    const rules = this.coding.machine.states.length;
    return line < rules ? "rules" : String(line - rules);
  }
  lineStarts() {
    const perState = 5 * (this.coding.machine.symbols.length + 2), starts = [];
    for (let at = 0; at + 1 < this.tableLength; at += perState) starts.push(at);
    return starts;
  }
  // Why the token at `position` is wrong: the gram before it stands twice on the true tape, once before a larger token.
  explain(position, names) {
    const t = Math.floor((position - this.origin) / this.width), place = (position - this.origin) % this.width;
    const tape = [...this.tape(t), SEP], size = this.n + 1;
    const gram = (end) => tape.slice(Math.max(0, end - size), end).join();
    const name = (token) => names[token];
    if (place === 0) return `The last tape should be followed by ${name(BOS)}.`;
    const twin = tape.findIndex((token, end) => end !== place && end >= 1 && token > tape[place] && Math.min(end, size) === Math.min(place, size) && gram(end) === gram(place));
    if (twin < 0) return "";
    const spelled = tape.slice(Math.max(0, place - size), place).map(name).join(" ");
    return `Tape ${this.firstStep + t} holds the ${size}-gram \u2068${shortened(spelled, 60)}\u2069 twice, before place ${place} and before place ${twin}. ` +
      `Asked what follows it, the transformer takes the larger of the two answers, \u2068${shortened(name(tape[twin]), 20)}\u2069. Tags on the cells tell them apart.`;
  }
}

// ---- addition and multiplication

const DIGITS = "0123456789", LETTERS = "abcdefghij", MOST_PROBLEM_DIGITS = 2000;

const digitAt = (number, place) => (place < number.length ? Number(number.at(-1 - place)) : 0);
const underWork = (number, place) => (place < number.length ? number.slice(0, number.length - 1 - place) + LETTERS[digitAt(number, place)] : "^");

function* sumLines(left, right) {
  let carry = 0, total = "";
  for (let place = 0; place < Math.max(left.length, right.length) || carry; place++) {
    const here = digitAt(left, place) + digitAt(right, place) + carry;
    carry = Math.floor(here / 10);
    total = `${here % 10}${total}`;
    yield `${underWork(left, place)}+${underWork(right, place)}(${carry},${total})|`;
  }
  yield `${total}.`;
}

function* productLines(left, factor) {
  const k = factor.length;
  let carry = 0, total = "";
  for (let place = 0; place < left.length || carry; place++) {
    const times = digitAt(left, place) * Number(factor), here = times + carry;
    carry = Math.floor(here / 10);
    total = `${here % 10}${total}`;
    yield `${underWork(left, place)}*${factor}(${String(times).padStart(k + 1, "0")}~${String(carry).padStart(k, "0")},${total})|`;
  }
  yield `${total}.`;
}

class ProblemJob {
  constructor(model, text) {
    const { task, n } = model.extra, sign = task === "addition" ? "+" : "*";
    const [left, right, ...rest] = text.replace(/\s+/g, "").split(sign), example = task === "addition" ? "4324+139" : "4324*7";
    if (!left || !right || rest.length) throw new Sentence(`${quoted(text)} is not a problem: write two numbers with ${sign} between them, as in ${example}.`);
    for (const number of [left, right]) {
      if (/[^0-9]/.test(number)) throw new Sentence(`${quoted(number)} is not a number: write digits 0 to 9 only.`);
      if (number.length > MOST_PROBLEM_DIGITS) throw new Sentence(`A number has ${number.length} digits: at most ${MOST_PROBLEM_DIGITS} are read.`);
    }
    const factorDigits = Number(/\d+$/.exec(task)?.[0] ?? 0);
    if (factorDigits && right.length !== factorDigits) throw new Sentence(`The factor ${quoted(right)} has ${right.length} digits: these weights multiply by ${factorDigits} digit.`);
    const token = new Map(model.names.map((name, i) => [name, i])), read = (line) => Array.from(line).map((c) => token.get(c));
    Object.assign(this, { kind: task, n, sign, text: `${left}${sign}${right}`, stop: token.get("."), final: null, steps: Infinity, bar: token.get("|") });
    this.prompt = read(`$${left}${sign}${right}|`);
    this.lines = [...(task === "addition" ? sumLines(left, right) : productLines(left, right))];
    this.whole = [...this.prompt, ...this.lines.flatMap(read)];
    this.most = 2 * this.whole.length + 100;
  }
  expected(position) { return this.whole[position] ?? -1; }
  lineLabel(line) { return String(line); }
  lineStarts() { return [0]; }
  // The part of the line that is copied, and the gram that stands twice in it.
  explain(position, names) {
    let start = this.prompt.length;
    for (const line of this.lines) {
      for (const [at, region] of this.copied(line)) {
        const place = position - start - at;
        if (place < 0 || place >= region.length) continue;
        const size = this.n + 1, gram = (end) => region.slice(Math.max(0, end - size), end);
        const twin = [...region].findIndex((_, end) => end !== place && Math.min(end, size) === Math.min(place, size) && gram(end) === gram(place));
        if (twin < 0) return "";
        return `What is copied here, \u2068${shortened(region, 40)}\u2069, holds \u2068${gram(place)}\u2069 twice: asked what follows it, the transformer takes the larger of the answers. It looks ${size} tokens back.`;
      }
      start += line.length;
    }
    return "";
  }
  copied(line) {
    if (line.endsWith(".")) return [[0, `${line.slice(0, -1)})`]];
    const sign = line.indexOf(this.sign), comma = line.indexOf(",") + 2, parts = [[0, line.slice(0, sign)]];
    if (this.sign === "+") parts.push([sign + 1, line.slice(sign + 1, line.indexOf("("))]);
    return [...parts, [comma, line.slice(comma, -1)]];
  }
}
