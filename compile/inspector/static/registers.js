// The residual stream at the chosen position: which register holds what, and where it was written.

class Registers {
  constructor(page, registers) {
    Object.assign(this, { page, registers });
    this.body = element("tbody");
    const head = element("tr");
    for (const text of ["register", "holds", "written by"]) head.append(element("th", { text, scope: "col" }));
    this.table = element("table", { class: "registers" }, element("thead", {}, head), this.body);
    this.rows = registers.names.map((name) => this.makeRow(name));
  }
  makeRow(name) {
    const row = element("tr");
    const cells = [element("td", { class: "name" }), element("td", { class: "holds" }), element("td", { class: "stage" })];
    cells[0].append(element("bdi", { text: name, title: name }));
    row.append(...cells);
    this.body.append(row);
    return { row, holds: cells[1], stage: cells[2] };
  }
  // [index, amount] of the largest two directions of a register.
  read(stage, register, position) {
    const { names, index, amount } = this.registers, tokens = this.page.tokens.length;
    const at = 2 * ((stage * names.length + register) * tokens + position);
    return [[index[at], amount[at]], [index[at + 1], amount[at + 1]]];
  }
  show(position) {
    const last = this.registers.stages.length - 1;
    this.rows.forEach(({ row, holds, stage }, r) => {
      const values = this.read(last, r, position).filter(([, amount]) => Math.abs(amount) > 0.01);
      row.classList.toggle("empty", !values.length);
      holds.replaceChildren();
      if (!values.length) holds.textContent = "–";
      values.forEach((value) => holds.append(this.describe(r, value)));
      stage.textContent = values.length ? this.registers.stages[this.written(r, position)] : "";
    });
  }
  describe(register, [index, amount]) {
    const { values, tokens } = this.registers;
    const text = values[register][index] ?? String(index);
    const name = tokens[register] && /^\d+$/.test(text) ? nameOf(this.page, Number(text)) : text === "-1" ? "before the input" : text;
    const span = element("span", { class: "value" }, element("bdi", { text: shortened(name, 20), title: name }));
    if (Math.abs(amount - 1) > 0.02) span.append(element("small", { text: ` ${amount.toFixed(2)}` }));
    return span;
  }
  // The first stage after which the register stays as it is.
  written(register, position) {
    const last = this.registers.stages.length - 1;
    const final = this.read(last, register, position);
    let stage = last;
    while (stage > 0 && this.same(this.read(stage - 1, register, position), final)) stage--;
    return stage;
  }
  same(a, b) {
    return a.every(([, amount], k) => Math.abs(amount - b[k][1]) < 0.01) && (a[0][0] === b[0][0] || Math.abs(a[0][1]) < 0.01);
  }
}
