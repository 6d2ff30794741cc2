// Turing machines as a person types them: parsed, checked, tagged, run truly, and written as a prompt.
//
// Tokens are the universal program's: sep bos eos empt, symbols, states, L R; `size` says how many symbols and states.

const [SEP, BOS, EOS] = [0, 1, 2], FIRST_SYMBOL = 4;
const MOST_CELLS = 10000, MOST_NAMES = 200, LONGEST_TEXT = 200000;

// Something wrong with what was typed, as a sentence for the person who did.
class Sentence extends Error {}

function quoted(name) { return `\u2068${shortened(String(name), 40)}\u2069`; }

class Machine {
  // rules[state][symbol] = [symbol written, 0 left or 1 right, next state], all numbers; bounce[state] = [on bos, on eos].
  constructor({ name = "", symbols, states, rules, bounce, start = 0, final = [], blank = 0 }) {
    Object.assign(this, { name, symbols, states, rules, bounce, start, blank, final: new Set(final), tags: null });
  }
  static fromNames({ name = "", symbols, states, transitions, start, final = [], blank, bounce = [] }) {
    const symbolAt = numbering("symbol", symbols), stateAt = numbering("state", states);
    const finals = new Set(final.map((q) => stateAt(q)));
    const rules = states.map(() => symbols.map(() => null));
    for (const [q, a, b, move, next] of transitions) {
      const state = stateAt(q), symbol = symbolAt(a);
      if (finals.has(state)) throw new Sentence(`The final state ${quoted(q)} has a rule for ${quoted(a)}: remove the rule, or make the state not final.`);
      if (rules[state][symbol]) throw new Sentence(`State ${quoted(q)} has two rules for ${quoted(a)}: give each rule once.`);
      if (move !== "L" && move !== "R") throw new Sentence(`The rule of ${quoted(q)} for ${quoted(a)} moves ${quoted(move)}: write L or R.`);
      rules[state][symbol] = [symbolAt(b), move === "R" ? 1 : 0, stateAt(next)];
    }
    const ends = states.map((_, q) => [q, q]);
    for (const [q, end, next] of bounce) ends[stateAt(q)][end === "bos" ? 0 : 1] = stateAt(next);
    const machine = new Machine({
      name, symbols: [...symbols], states: [...states], rules, bounce: ends, final: finals,
      start: start === undefined ? 0 : stateAt(start), blank: blank === undefined ? 0 : symbolAt(blank),
    });
    return machine.completed();
  }
  // What is undefined leads to the final state `stuck`, which keeps the symbol and steps right.
  completed() {
    let stuck = this.states.findIndex((name, q) => name === "stuck" && this.final.has(q));
    this.states.slice().forEach((_, q) => {
      if (this.final.has(q)) return;
      this.rules[q] = this.rules[q].map((rule, a) => {
        if (rule) return rule;
        if (stuck < 0) stuck = this.addFinal("stuck");
        return [a, 1, stuck];
      });
    });
    return this;
  }
  addFinal(name) {
    while (this.states.includes(name)) name += "_";
    const q = this.states.push(name) - 1;
    this.final.add(q);
    this.rules.push(this.symbols.map(() => null));
    this.bounce.push([q, q]);
    return q;
  }
  // What is done in state q on a symbol, or on bos (-1) and eos (-2), where the head bounces.
  rule(q, symbol) {
    if (this.final.has(q)) return [symbol, symbol === -1 ? 1 : 0, q];
    if (symbol < 0) return [symbol, symbol === -1 ? 1 : 0, this.bounce[q][symbol === -1 ? 0 : 1]];
    return this.rules[q][symbol];
  }
  // The cells that a run on an endless tape uses: [leftmost, rightmost].
  extent(cells, head, state, steps) {
    const tape = new Map(cells.map((a, i) => [i, a]));
    let [left, right] = [Math.min(0, head), Math.max(head, cells.length - 1)];
    for (let t = 0; t < steps && !this.final.has(state); t++) {
      const [write, move, next] = this.rules[state][tape.get(head) ?? this.blank];
      tape.set(head, write);
      head += move ? 1 : -1;
      state = next;
      [left, right] = [Math.min(left, head), Math.max(right, head)];
    }
    return [left, right];
  }
  // The same machine over pairs of a symbol and a tag that is never overwritten.
  tagged(kinds) {
    const pairs = (a) => Array.from({ length: kinds }, (_, tag) => a * kinds + tag);
    const machine = new Machine({
      name: this.name, states: this.states, start: this.start, final: this.final, bounce: this.bounce, blank: this.blank * kinds,
      symbols: this.symbols.flatMap((name) => pairs(0).map((tag) => `${name}.${tag}`)),
      rules: this.rules.map((row) => row.flatMap((rule) => pairs(0).map((tag) => rule && [rule[0] * kinds + tag, rule[1], rule[2]]))),
    });
    machine.tags = { kinds, plain: this };
    return machine;
  }
  get plain() { return this.tags ? this.tags.plain : this; }
}

function numbering(what, names) {
  const places = new Map();
  if (!Array.isArray(names) || !names.length) throw new Sentence(`There is no ${what}: a machine has at least one.`);
  if (names.length > MOST_NAMES) throw new Sentence(`There are ${names.length} ${what}s: at most ${MOST_NAMES} are read.`);
  names.forEach((name, i) => {
    if (typeof name !== "string" || !name) throw new Sentence(`${quoted(JSON.stringify(name))} is no name of a ${what}: give text.`);
    if (places.has(name)) throw new Sentence(`The ${what} ${quoted(name)} is listed twice: list it once.`);
    if (what === "symbol" && ["sep", "bos", "eos", "empt"].includes(name)) throw new Sentence(`A symbol is called ${name}, which is the name of a marker: choose another.`);
    places.set(name, i);
  });
  return (name) => {
    const found = places.get(name);
    if (found === undefined) throw new Sentence(`There is no ${what} ${quoted(name)}: the ${what}s are ${names.slice(0, 8).map(quoted).join(" ")}${names.length > 8 ? " …" : ""}.`);
    return found;
  };
}

// ---- text

function parseMachine(text) {
  const trimmed = text.trim();
  if (!trimmed) throw new Sentence("There is no machine: choose one from the gallery, or type rules.");
  if (trimmed.length > LONGEST_TEXT) throw new Sentence(`The machine is ${trimmed.length.toLocaleString("en")} characters long: at most ${LONGEST_TEXT.toLocaleString("en")} are read.`);
  if (/^(?:[0-9][LR][A-Z]|---)+(?:_(?:[0-9][LR][A-Z]|---)+)*$/.test(trimmed)) return fromBbchallenge(trimmed);
  return trimmed.startsWith("{") ? fromJson(trimmed) : fromRules(trimmed);
}

function fromBbchallenge(text) {
  const rows = text.split("_").map((row) => row.match(/.../g)), digits = [..."0123456789"].slice(0, rows[0].length);
  if (rows.length > 25 || rows[0].length > 10) throw new Sentence(`${rows.length} states and ${rows[0].length} symbols: bbchallenge text has at most 25 and 10.`);
  const letters = [..."ABCDEFGHIJKLMNOPQRSTUVWXY"].slice(0, rows.length), transitions = [];
  let halts = false;
  rows.forEach((row, q) => {
    if (row.length !== digits.length) throw new Sentence(`State ${letters[q]} has ${row.length} rules: expected ${digits.length}, as state A has.`);
    row.forEach((triple, a) => {
      const [write, move, next] = triple === "---" ? [digits[Math.min(1, digits.length - 1)], "R", "Z"] : triple;
      const known = letters.includes(next);
      if (!known && next !== "Z" && next !== "H") throw new Sentence(`${triple} goes to state ${next}: expected ${letters[0]} to ${letters.at(-1)}, or Z to halt.`);
      halts ||= !known;
      transitions.push([letters[q], digits[a], write, move, known ? next : "Z"]);
    });
  });
  return Machine.fromNames({ name: text, symbols: digits, states: [...letters, ...(halts ? ["Z"] : [])], transitions, final: halts ? ["Z"] : [] });
}

function fromJson(text) {
  let data;
  try { data = JSON.parse(text); } catch (error) { throw new Sentence(`This is not JSON: ${shortened(error.message, 120)}.`); }
  const known = ["format", "name", "symbols", "blank", "states", "start", "final", "transitions", "bounce"];
  const strange = Object.keys(data).find((key) => !known.includes(key));
  if (strange !== undefined) throw new Sentence(`The JSON has ${quoted(strange)}: expected ${known.join(", ")}.`);
  const flat = (table) => Object.entries(table ?? {}).flatMap(([q, row]) => Object.entries(row ?? {}).map(([a, value]) => [q, a, value]));
  const transitions = flat(data.transitions).map(([q, a, value]) => {
    if (!Array.isArray(value) || value.length !== 3) throw new Sentence(`The rule of ${quoted(q)} for ${quoted(a)} is ${quoted(JSON.stringify(value))}: expected [write, "L" or "R", next state].`);
    return [q, a, ...value];
  });
  for (const key of ["symbols", "states"]) if (!Array.isArray(data[key])) throw new Sentence(`The JSON has no list of ${key}.`);
  const name = typeof data.name === "string" ? data.name : "";
  return Machine.fromNames({ ...data, name, transitions, final: data.final ?? [], bounce: flat(data.bounce) });
}

// Lines `state read -> write move next`; also `name:`, `blank:`, `start:`, and # before a remark.
function fromRules(text) {
  const transitions = [], bounce = [], said = {};
  text.split("\n").forEach((line, i) => {
    const words = line.replace(/(^|\s)#.*/, "").split(/\s+/).filter((word) => word && word !== "->" && word !== "→");
    if (!words.length) return;
    const note = /^(name|blank|start):$/.exec(words[0]);
    if (note) { said[note[1]] = words.slice(1).join(" "); return; }
    if (words.length !== 5) throw new Sentence(`Line ${i + 1}, ${quoted(line.trim())}, is no rule: write state, symbol read, symbol written, L or R, next state, as in q0 1 -> 0 R q1.`);
    const [q, a, , move, next] = words;
    if (a !== "bos" && a !== "eos") transitions.push(words);
    else if (words[2] !== a || move !== (a === "bos" ? "R" : "L")) throw new Sentence(`Line ${i + 1}: on ${a} the head bounces, so write ${q} ${a} -> ${a} ${a === "bos" ? "R" : "L"} ${quoted(next)}.`);
    else bounce.push([q, a, next]);
  });
  const sources = unique([...transitions, ...bounce].map(([q]) => q));
  const states = unique([...(said.start ? [said.start] : []), ...sources, ...transitions.map((r) => r[4]), ...bounce.map((r) => r[2])]);
  const seen = unique(transitions.flatMap(([, a, b]) => [a, b]));
  if (!seen.length) throw new Sentence("There are no rules: write at least one, as in q0 1 -> 0 R q1.");
  const blank = said.blank ?? ["_", "0"].find((name) => seen.includes(name)) ?? seen[0];
  return Machine.fromNames({
    name: said.name ?? "", symbols: unique([blank, ...seen]), states, transitions, bounce, blank,
    start: said.start ?? sources[0], final: states.filter((q) => !sources.includes(q)),
  });
}

function unique(names) { return [...new Set(names)]; }

// The machine as lines of rules, where its names allow it; else as JSON. `parseMachine` reads both.
function formatMachine(machine) {
  const { name, symbols, states, rules, bounce, start, blank, final } = machine;
  const stuck = states.findIndex((s, q) => s === "stuck" && final.has(q));
  const speakable = [...symbols, ...states].every((word) => /^[^\s#]+$/.test(word) && !["->", "→", "name:", "blank:", "start:"].includes(word));
  const rows = [];
  states.forEach((q, i) => {
    if (final.has(i)) return;
    rules[i].forEach((r, a) => { if (!(r[2] === stuck && r[0] === a && r[1] === 1)) rows.push([q, symbols[a], symbols[r[0]], "LR"[r[1]], states[r[2]]]); });
    ["bos", "eos"].forEach((end, e) => { if (bounce[i][e] !== i) rows.push([q, end, end, "RL"[e], states[bounce[i][e]]]); });
  });
  const silent = states.some((q, i) => !final.has(i) && !rows.some((row) => row[0] === q)); // would be taken for final
  if (!speakable || silent) {
    const table = {}, ends = {};
    rows.forEach(([q, a, b, move, next]) => {
      if (a === "bos" || a === "eos") (ends[q] ||= {})[a] = next;
      else (table[q] ||= {})[a] = [b, move, next];
    });
    const finals = [...final].map((q) => states[q]);
    return JSON.stringify({ name, symbols, blank: symbols[blank], states, start: states[start], final: finals, transitions: table, ...(Object.keys(ends).length ? { bounce: ends } : {}) });
  }
  const wide = Math.max(...rows.map((row) => row[0].length));
  const notes = [...(name && !/^\s|\s$|[\n#]/.test(name) ? [`name: ${name}`] : []), `start: ${states[start]}`, `blank: ${symbols[blank]}`];
  return [...notes, ...rows.map(([q, a, b, move, next]) => `${q.padEnd(wide)} ${a} -> ${b} ${move} ${next}`)].join("\n");
}

// ---- tapes

// `10110`, `10[1]10`, `10[q1:1]10` or, where names are longer, `a1 a2 [q0:a3]`; a backslash takes the next letter as it is.
function parseTape(machine, text) {
  const letters = [];
  for (let i = 0, all = Array.from(text); i < all.length; i++) {
    if (all[i] !== "\\") letters.push([all[i], false]);
    else if (i + 1 < all.length) letters.push([all[++i], true]);
    else throw new Sentence("The tape ends in a lone backslash: write two for a backslash symbol.");
  }
  const marks = letters.flatMap(([c, literal], i) => (!literal && (c === "[" || c === "]") ? [i] : []));
  const symbol = numbering("symbol", machine.symbols), state = numbering("state", machine.states);
  const names = (part) => namesOf(machine, part).map((name) => symbol(name));
  if (!marks.length) {
    const cells = names(letters);
    return checkLength({ cells: cells.length ? cells : [machine.blank], head: 0, state: machine.start });
  }
  if (marks.length !== 2 || letters[marks[0]][0] !== "[" || letters[marks[1]][0] !== "]") throw new Sentence(`The tape ${quoted(text)} must mark the head by one pair of brackets, as in 10[1]10, or by none: the first cell.`);
  const left = names(letters.slice(0, marks[0])), right = names(letters.slice(marks[1] + 1));
  const inside = letters.slice(marks[0] + 1, marks[1]), colon = inside.findIndex(([c, literal]) => c === ":" && !literal);
  const word = (part) => part.map(([c]) => c).join("");
  const known = (part, all) => (all.includes(word(part)) ? word(part) : word(part).trim());
  const under = known(inside.slice(colon > 0 ? colon + 1 : 0), [...machine.symbols, "bos", "eos"]);
  const in_ = colon > 0 ? state(known(inside.slice(0, colon), machine.states)) : machine.start;
  if (under === "bos" || under === "eos") {
    if (under === "bos" ? left.length : right.length) throw new Sentence(`The tape has cells beyond ${under}: write [${under}] at its own end.`);
    return checkLength({ cells: [...left, ...right], head: under === "bos" ? -1 : left.length, state: in_ });
  }
  return checkLength({ cells: [...left, symbol(under), ...right], head: left.length, state: in_ });
}

function checkLength(tape) {
  if (tape.cells.length <= MOST_CELLS) return tape;
  throw new Sentence(`The tape has ${tape.cells.length.toLocaleString("en")} cells: at most ${MOST_CELLS.toLocaleString("en")} can be run here.`);
}

function namesOf(machine, letters) {
  if (machine.symbols.every((name) => Array.from(name).length === 1)) {
    return letters.filter(([c, literal]) => literal || machine.symbols.includes(c) || !(/\s/.test(c) || c === ",")).map(([c]) => c);
  }
  const names = [""];
  for (const [c, literal] of letters) {
    if (!literal && (/\s/.test(c) || c === ",")) names.push("");
    else names[names.length - 1] += c;
  }
  return names.filter(Boolean);
}

function formatTape(machine, { cells, head, state }) {
  const single = machine.symbols.every((name) => Array.from(name).length === 1);
  const escape = (name, special) => Array.from(name).map((c) => (special.includes(c) ? `\\${c}` : c)).join("");
  const parts = cells.map((a) => escape(machine.symbols[a], single ? "[]\\" : "[]\\, "));
  const inside = head >= 0 && head < cells.length, at = Math.max(head, 0);
  const under = inside ? escape(machine.symbols[cells[head]], "[]\\:") : head < 0 ? "bos" : "eos";
  parts.splice(at, inside ? 1 : 0, `[${escape(machine.states[state], "[]:\\")}:${under}]`);
  return parts.join(single ? "" : " ");
}

// Tags for so many cells in which no n+1 neighbours repeat, of as few kinds as there can be (a de Bruijn sequence).
function tagRow(cells, n) {
  let kinds = 1;
  while (kinds ** (n + 1) + n < cells) kinds++;
  if (kinds === 1) return { kinds, tags: new Array(cells).fill(0) };
  const cycle = [];
  let word = [-1];
  while (word.length) {
    word[word.length - 1]++;
    if ((n + 1) % word.length === 0) cycle.push(...word);
    word = Array.from({ length: n + 1 }, (_, i) => word[i % word.length]);
    while (word.length && word.at(-1) === kinds - 1) word.pop();
  }
  const tags = [...cycle, ...cycle.slice(0, n)].slice(0, cells);
  return { kinds: Math.max(...tags) + 1, tags };
}

// ---- tokens

class Coding {
  constructor(machine, [symbols, states]) {
    Object.assign(this, { machine, symbols, firstState: FIRST_SYMBOL + symbols, left: FIRST_SYMBOL + symbols + states });
    if (machine.symbols.length > symbols || machine.states.length > states) {
      const tagged = machine.tags ? ` (${machine.plain.symbols.length} with ${machine.tags.kinds} tags each)` : "";
      throw new Sentence(`The machine has ${machine.symbols.length} symbols${tagged} and ${machine.states.length} states: these weights take at most ${symbols} symbols and ${states} states${machine.tags ? "; run it without tags, or on fewer cells" : ""}.`);
    }
  }
  symbol(a) { return a === -1 ? BOS : a === -2 ? EOS : FIRST_SYMBOL + a; }
  isState(token) { return token >= this.firstState && token < this.left; }
  get final() { return [...this.machine.final].map((q) => this.firstState + q); }
  encode({ cells, head, state }) {
    const tokens = [BOS, ...cells.map((a) => FIRST_SYMBOL + a), EOS];
    tokens.splice(head + 2, 0, this.firstState + state);
    return tokens;
  }
  // The tape that tokens stand for; null if they are none.
  decode(tokens) {
    const heads = tokens.flatMap((t, i) => (this.isState(t) ? [i] : []));
    const cells = tokens.filter((t) => t >= FIRST_SYMBOL && t < this.firstState).map((t) => t - FIRST_SYMBOL);
    const known = cells.every((a) => a < this.machine.symbols.length) && heads.every((i) => tokens[i] - this.firstState < this.machine.states.length);
    if (heads.length !== 1 || !known || cells.length + 3 !== tokens.length || tokens[0] !== BOS || heads[0] === 0) return null;
    return { cells, head: heads[0] - 2, state: tokens[heads[0]] - this.firstState };
  }
  // q s q' s' D for every state and every one of bos, eos and the symbols.
  table() {
    const { machine } = this, rules = [];
    machine.states.forEach((_, q) => {
      [-1, -2, ...machine.symbols.keys()].forEach((a) => {
        const [write, move, next] = machine.rule(q, a);
        rules.push(this.firstState + q, this.symbol(a), this.firstState + next, this.symbol(write), this.left + move);
      });
    });
    return rules;
  }
  // The tape after one true step: a tape between two markers, off which the head bounces.
  step(tokens) {
    const after = Array.from(tokens), at = after.findIndex((t) => this.isState(t)), under = after[at - 1];
    const symbol = under === BOS ? -1 : under === EOS ? -2 : under - FIRST_SYMBOL;
    const [write, move, next] = this.machine.rule(after[at] - this.firstState, symbol);
    after[at - 1] = this.symbol(write);
    const to = move ? at + 1 : at - 1;
    after[at] = after[to];
    after[to] = this.firstState + next;
    return after;
  }
  names(all) {
    const names = [...all];
    this.machine.symbols.forEach((name, a) => { names[FIRST_SYMBOL + a] = name; });
    this.machine.states.forEach((name, q) => { names[this.firstState + q] = name; });
    return names;
  }
}
