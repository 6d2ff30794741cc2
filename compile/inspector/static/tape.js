// The trace as tapes, one line per step. Each token is a button; the one the head reads stands left of the state.

class Tape {
  constructor(page, choose) {
    this.page = page;
    this.shaded = [];
    this.cells = [];
    this.lines = [];
    this.list = element("div", { class: "tape-lines", tabindex: "-1" });
    this.root = element("section", { class: "panel tape" }, element("h2", { text: "Tapes" }), this.list);
    this.build();
    this.list.addEventListener("click", (event) => {
      const cell = event.target.closest("[data-position]");
      if (cell) choose(Number(cell.dataset.position));
    });
  }
  build() {
    const { tokens, rows, states } = this.page;
    const isState = new Set(states);
    const longest = Math.max(...tokens.map((t) => Array.from(nameOf(this.page, t)).length));
    this.list.style.setProperty("--cell", `${Math.max(26, 10 + 7.3 * Math.min(longest, 10))}px`);
    rows.forEach((start, step) => {
      const stop = rows[step + 1] ?? tokens.length;
      const line = element("div", { class: "tape-line" }, element("span", { class: "step", text: String(step) }));
      if (step === 0 && this.page.models.some((m) => m.start)) {
        this.startCell = element("span", { class: "cell start", title: "put in front of every input by the compiler" });
        this.startCell.textContent = this.page.models.find((m) => m.start).startName;
        line.append(this.startCell);
      } else if (this.page.models.some((m) => m.start)) {
        line.append(element("span", { class: "cell gap" }));
      }
      for (let i = start; i < stop; i++) line.append(this.makeCell(i, isState, stop));
      this.lines.push(line);
      this.list.append(line);
    });
  }
  makeCell(i, isState, stop) {
    const { tokens, given, truth, models } = this.page;
    const name = nameOf(this.page, tokens[i]);
    const cell = element("button", { class: "cell", type: "button", tabindex: "-1", "data-position": i });
    cell.append(element("bdi", { text: name }));
    cell.title = `position ${i}: ${name}`;
    if (isState.has(tokens[i])) cell.classList.add("state");
    if (i + 1 < stop && isState.has(tokens[i + 1])) cell.classList.add("under-head");
    if (["sep", "bos", "eos", "empt"].includes(name) && tokens[i] < 4) cell.classList.add("marker");
    if (i < given) cell.classList.add("given");
    if (i >= given && models.some((m) => m.predictions[i - 1] !== truth[i - 1])) {
      cell.classList.add("wrong");
      cell.title += ", predicted wrongly";
    }
    this.cells.push(cell);
    return cell;
  }
  lineOf(position) {
    let line = 0;
    while (line + 1 < this.page.rows.length && this.page.rows[line + 1] <= position) line++;
    return line;
  }
  show(position, head) {
    this.cells.forEach((cell, i) => {
      cell.classList.toggle("now", i === position);
      cell.classList.toggle("next", i === position + 1);
      cell.classList.toggle("future", i > position + 1);
    });
    this.lines.forEach((line, i) => line.classList.toggle("current", i === this.lineOf(position)));
    this.shade(position, head);
    const line = this.lines[this.lineOf(position)], cell = this.cells[position];
    const box = this.list, low = line.offsetTop, left = cell.offsetLeft; // both inside the list
    if (low < box.scrollTop + 30 || low + 60 > box.scrollTop + box.clientHeight) {
      box.scrollTop = low - box.clientHeight / 2;
    }
    if (left < box.scrollLeft + 60 || left + 90 > box.scrollLeft + box.clientWidth) {
      box.scrollLeft = left - box.clientWidth / 2;
    }
  }
  // What the chosen head attends to from here, as shades; the strongest has a mark of its own.
  shade(position, head) {
    for (const cell of this.shaded) {
      cell.style.background = cell.style.color = "";
      cell.classList.remove("most");
    }
    this.shaded = [];
    if (!head) return;
    let onStart = 0;
    for (const { column, weight } of head.strongest(position)) {
      if (column < head.start) onStart += weight;
      else this.paint(this.cells[column - head.start], weight / head.peaks[position]);
    }
    if (this.startCell && onStart > 0.01) this.paint(this.startCell, onStart);
    const best = head.best[position];
    const mark = best < head.start ? this.startCell : this.cells[best - head.start];
    if (mark) {
      mark.classList.add("most");
      this.shaded.push(mark);
    }
  }
  paint(cell, share) {
    cell.style.background = colourOf(share);
    cell.style.color = inkOn(share);
    this.shaded.push(cell);
  }
}
