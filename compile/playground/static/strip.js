// A tape as a person reads it: cells in a row, the head above the cell that it stands on.

const CELLS = 41; // at most so many are drawn, around the head

class Strip {
  constructor(title) {
    this.title = element("h3", { text: title });
    this.row = element("div", { class: "strip", role: "img" });
    this.root = element("div", { class: "strip-frame" }, this.title, this.row);
  }
  // `tokens` of a tape; those from `written` on are not written yet and come from the tape before.
  show(tokens, live, written = tokens.length, compare = null) {
    const { coding } = live.job, cells = [];
    tokens.forEach((token, i) => {
      if (token === SEP) return;
      if (coding.isState(token) && cells.length) { cells.at(-1).state = token; return; }
      cells.push({ token, old: i >= written, wrong: compare && i < written && compare[i] !== token });
    });
    tokens.forEach((token, i) => { if (compare && i < written && coding.isState(token) && compare[i] !== token) cells.forEach((c) => { if (c.state === token) c.wrong = true; }); });
    const head = cells.findIndex((cell) => cell.state !== undefined);
    const from = Math.max(0, Math.min(cells.length - CELLS, (head < 0 ? cells.length : head) - (CELLS >> 1)));
    const shown = cells.slice(from, from + CELLS);
    this.row.setAttribute("aria-label", shown.map((c) => (c.state === undefined ? live.names[c.token] : `[${live.names[c.state]}:${live.names[c.token]}]`)).join(" "));
    this.row.replaceChildren(
      ...(from > 0 ? [element("span", { class: "more-cells", text: `${from} more` })] : []),
      ...shown.map((cell) => this.cell(cell, live)),
      ...(from + CELLS < cells.length ? [element("span", { class: "more-cells", text: `${cells.length - from - CELLS} more` })] : []),
    );
    const marked = this.row.querySelector(".has-head");
    if (marked) this.row.scrollLeft = marked.offsetLeft - this.row.clientWidth / 2;
  }
  cell({ token, state, old, wrong }, live) {
    const { machine } = live.job.coding, symbol = token - FIRST_SYMBOL, tags = machine.tags;
    const isSymbol = symbol >= 0 && symbol < machine.symbols.length;
    const name = isSymbol ? machine.plain.symbols[tags ? Math.floor(symbol / tags.kinds) : symbol] : (live.names[token] ?? "?");
    const box = element("span", { class: `strip-cell${isSymbol ? "" : " marker"}${old ? " old" : ""}${wrong ? " wrong" : ""}${state === undefined ? "" : " has-head"}` });
    const above = element("span", { class: "strip-state" });
    if (state !== undefined) above.append(element("bdi", { text: shortened(live.names[state] ?? "?", 9), title: live.names[state] ?? "" }));
    box.append(above, element("bdi", { class: "strip-symbol", text: shortened(name, 6), title: name }));
    box.append(element("small", { class: "strip-tag", text: isSymbol && tags ? `tag ${symbol % tags.kinds}` : "" }));
    return box;
  }
}

// The machine's table, with the rule that is carried out marked.
class RuleTable {
  constructor() { this.root = element("div", { class: "rule-table" }); }
  build(machine) {
    const plain = machine.plain, head = element("tr", {}, element("th", { text: "" }));
    plain.symbols.forEach((name) => head.append(element("th", { scope: "col" }, element("bdi", { text: shortened(name, 8), title: name }))));
    const body = element("tbody");
    this.cells = plain.states.map((name, q) => {
      const row = element("tr", {}, element("th", { scope: "row" }, element("bdi", { text: shortened(name, 12), title: name })));
      body.append(row);
      if (plain.final.has(q)) {
        row.append(element("td", { class: "halts", colspan: plain.symbols.length, text: "halts" }));
        return [];
      }
      return plain.rules[q].map(([write, move, next]) => {
        const cell = element("td", {}, element("bdi", { text: `${shortened(plain.symbols[write], 6)} ${"LR"[move]} ` }), element("bdi", { class: "next-state", text: shortened(plain.states[next], 10) }));
        row.append(cell);
        return cell;
      });
    });
    this.root.replaceChildren(element("table", {}, element("thead", {}, head), body));
    this.marked = null;
  }
  mark(machine, tape) {
    this.marked?.classList.remove("on");
    this.marked = null;
    if (!tape || tape.head < 0 || tape.head >= tape.cells.length) return;
    const symbol = machine.tags ? Math.floor(tape.cells[tape.head] / machine.tags.kinds) : tape.cells[tape.head];
    this.marked = this.cells[tape.state]?.[symbol] ?? null;
    this.marked?.classList.add("on");
  }
}
