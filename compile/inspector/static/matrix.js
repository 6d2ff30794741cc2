// One head's pattern, large: tokens on both axes, zoom, hover, and the chosen position with its strongest key.

const LEGIBLE = 8; // pixels of a cell from which on every token is named
const LEFT = 74, TOP = 70, RIGHT = 6, BOTTOM = 6;

// Of the letters beside a cell this large: neighbours must not touch.
function nameSize(cell) { return Math.max(8, Math.min(12, 0.8 * cell)); }

class Matrix {
  constructor(page, choose) {
    Object.assign(this, { page, choose, head: null, position: 0, absolute: false, hover: null, picture: null, drag: null });
    this.canvas = element("canvas", { class: "matrix", role: "img", "aria-label": "attention of the chosen head" });
    this.overlay = element("canvas", { class: "matrix overlay" });
    this.info = element("p", { class: "hover", text: "Point at a cell to read its weight." });
    this.frame = element("div", { class: "matrix-frame" }, this.canvas, this.overlay);
    this.buttons = element("span", { class: "buttons" });
    for (const [text, title, act] of [["+", "zoom in", () => this.zoom(0.5)], ["−", "zoom out", () => this.zoom(2)],
                                      ["tokens", "zoom to where tokens can be read", () => this.zoomToTokens()], ["all", "show all", () => this.fit()]]) {
      const button = element("button", { type: "button", title, text });
      button.addEventListener("click", act);
      this.buttons.append(button);
    }
    this.listen();
    new ResizeObserver(() => this.resize()).observe(this.frame);
  }
  get columns() { return this.page.tokens.length + this.head.start; }
  get rows() { return this.page.tokens.length; }
  setHead(head) {
    const fresh = !this.head || this.head.start !== head.start;
    this.head = head;
    this.hover = null;
    if (fresh || !this.view) this.view = { x0: 0, x1: this.columns, y0: 0, y1: this.rows };
    this.picture = null;
    this.draw();
  }
  setPosition(position) {
    this.position = position;
    const { view } = this, height = view.y1 - view.y0;
    if (position < view.y0 || position >= view.y1) this.moveTo(view.x0, position - height / 2);
    this.draw();
  }
  setAbsolute(absolute) {
    this.absolute = absolute;
    this.recolour();
  }
  recolour() {
    this.picture = null;
    this.draw();
  }
  resize() {
    const width = this.frame.clientWidth;
    if (!width || width === this.width) return;
    this.width = width;
    this.height = Math.round(Math.min(width, 620) * (width < 500 ? 1 : 0.92));
    this.frame.style.height = `${this.height}px`;
    this.picture = null;
    this.draw();
  }
  fit() {
    this.view = { x0: 0, x1: this.columns, y0: 0, y1: this.rows };
    this.recolour();
  }
  zoom(factor, at) {
    const { view } = this;
    const best = this.head.best[this.position];
    const centre = at || { x: (best + this.position + this.head.start) / 2, y: this.position };
    const width = Math.round(Math.min(this.columns, Math.max(8, (view.x1 - view.x0) * factor)));
    const height = Math.round(Math.min(this.rows, Math.max(8, (view.y1 - view.y0) * factor)));
    const fx = at ? (at.x - view.x0) / (view.x1 - view.x0) : 0.5, fy = at ? (at.y - view.y0) / (view.y1 - view.y0) : 0.5;
    this.view = { x0: 0, x1: width, y0: 0, y1: height };
    this.moveTo(centre.x - fx * width, centre.y - fy * height);
    this.draw();
  }
  zoomToTokens() {
    const { view } = this, { w, h } = this.cellBox(0, 0);
    const columns = (view.x1 - view.x0) * w, rows = (view.y1 - view.y0) * h;
    const across = Math.min(this.columns, Math.floor(columns / 15)), down = Math.min(this.rows, Math.floor(rows / 15));
    this.view = { x0: 0, x1: across, y0: 0, y1: down };
    const here = this.position + this.head.start, best = this.head.best[this.position];
    this.moveTo(here - best < across - 2 ? (here + best - across) / 2 : best - across / 2, this.position - down / 2);
    this.draw();
  }
  moveTo(x, y) {
    const { view } = this, width = view.x1 - view.x0, height = view.y1 - view.y0;
    const x0 = Math.round(Math.max(0, Math.min(this.columns - width, x)));
    const y0 = Math.round(Math.max(0, Math.min(this.rows - height, y)));
    this.view = { x0, x1: x0 + width, y0, y1: y0 + height };
    this.picture = null;
  }
  // CSS pixels of a cell.
  cellBox(row, column) {
    const { view } = this;
    const w = (this.width - LEFT - RIGHT) / (view.x1 - view.x0), h = (this.height - TOP - BOTTOM) / (view.y1 - view.y0);
    return { x: LEFT + (column - view.x0) * w, y: TOP + (row - view.y0) * h, w, h };
  }
  cellAt(x, y) {
    const { view } = this;
    const column = Math.floor(view.x0 + ((x - LEFT) / (this.width - LEFT - RIGHT)) * (view.x1 - view.x0));
    const row = Math.floor(view.y0 + ((y - TOP) / (this.height - TOP - BOTTOM)) * (view.y1 - view.y0));
    return column >= view.x0 && column < view.x1 && row >= view.y0 && row < view.y1 ? { row, column } : null;
  }
  draw() {
    if (!this.head || !this.width || !colours.table) return;
    const ratio = window.devicePixelRatio || 1;
    const width = this.width - LEFT - RIGHT, height = this.height - TOP - BOTTOM;
    if (!this.picture) {
      this.picture = paintPattern(this.head, this.view, Math.round(width * ratio), Math.round(height * ratio), this.absolute);
    }
    const context = prepareCanvas(this.canvas, this.width, this.height);
    context.imageSmoothingEnabled = false;
    context.drawImage(this.picture, LEFT, TOP, width, height);
    context.strokeStyle = colours.line;
    context.strokeRect(LEFT - 0.5, TOP - 0.5, width + 1, height + 1);
    this.drawSteps(context);
    this.drawNames(context);
    this.drawOverlay();
  }
  // Thin lines between tapes.
  drawSteps(context) {
    const starts = this.page.rows.slice(1);
    context.strokeStyle = colours.line;
    context.lineWidth = 0.5;
    context.beginPath();
    for (const start of starts) {
      const { x, y, w, h } = this.cellBox(start, start + this.head.start);
      if (Math.min(w, h) * (starts[1] - starts[0] || 9) < 12) break;
      if (y > TOP && y < this.height - BOTTOM) { context.moveTo(LEFT, y); context.lineTo(this.width - RIGHT, y); }
      if (x > LEFT && x < this.width - RIGHT) { context.moveTo(x, TOP); context.lineTo(x, this.height - BOTTOM); }
    }
    context.stroke();
    context.lineWidth = 1;
  }
  columnName(column) {
    return column < this.head.start ? this.page.startName : nameOf(this.page, this.page.tokens[column - this.head.start]);
  }
  drawNames(context) {
    const { view } = this, { w, h } = this.cellBox(0, 0), named = Math.min(w, h) >= LEGIBLE;
    context.fillStyle = colours.text;
    context.textBaseline = "middle";
    if (named) this.eachName(view.y0, view.y1, (row) => this.rowName(context, row, nameSize(h)));
    else this.eachStep(view.y0, view.y1, h, 0, this.position, (row, step) => this.rowText(context, row, `step ${step}`, 11));
    if (named) this.eachName(view.x0, view.x1, (column) => this.columnText(context, column, this.columnName(column), nameSize(w)));
    else this.eachStep(view.x0, view.x1, w, this.head.start, this.head.best[this.position], (column, step) => this.columnText(context, column, `step ${step}`, 11));
  }
  eachName(from, to, write) {
    for (let i = from; i < to; i++) write(i);
  }
  // Where tapes begin, as many as have room beside each other and beside the label of the choice.
  eachStep(from, to, size, shift, chosen, write) {
    let free = -Infinity;
    this.page.rows.forEach((start, step) => {
      const at = start + shift;
      if (at < from || at >= to || (at - from) * size < free || Math.abs(at - chosen) * size < 15) return;
      write(at, step);
      free = (at - from) * size + 15;
    });
  }
  rowName(context, row, size) { this.rowText(context, row, nameOf(this.page, this.page.tokens[row]), size); }
  rowText(context, row, text, size) {
    const { y, h } = this.cellBox(row, 0);
    context.font = `${size}px ${FONT}`;
    context.textAlign = "right";
    context.fillText(shortened(text, 9), LEFT - 6, y + h / 2);
  }
  columnText(context, column, text, size) {
    const { x, w } = this.cellBox(0, column);
    context.save();
    context.translate(x + w / 2, TOP - 6);
    context.rotate(-Math.PI / 2);
    context.font = `${size}px ${FONT}`;
    context.textAlign = "left";
    context.fillText(shortened(text, 9), 0, 0);
    context.restore();
  }
  // What changes with the position and the pointer.
  drawOverlay() {
    const context = prepareCanvas(this.overlay, this.width, this.height);
    this.markPosition(context);
    if (this.hover) this.markHover(context);
  }
  markPosition(context) {
    const row = this.position, best = this.head.best[row], { view } = this;
    if (row < view.y0 || row >= view.y1) return;
    const line = this.cellBox(row, view.x0), width = this.width - LEFT - RIGHT;
    context.strokeStyle = colours.accent;
    context.lineWidth = 1.5;
    context.strokeRect(LEFT, line.y - 0.5, width, Math.max(2, line.h + 1));
    this.tag(context, () => this.rowText(context, row, nameOf(this.page, this.page.tokens[row]), 11), LEFT - 68, line.y + line.h / 2 - 7.5, 66, 15);
    if (best < view.x0 || best >= view.x1) return;
    const cell = this.cellBox(row, best), size = Math.max(cell.w, 7), tall = Math.max(cell.h, 7);
    context.lineWidth = 2.5;
    context.strokeRect(cell.x + cell.w / 2 - size / 2 - 1, cell.y + cell.h / 2 - tall / 2 - 1, size + 2, tall + 2);
    this.tag(context, () => this.columnText(context, best, this.columnName(best), 11), cell.x + cell.w / 2 - 8, 2, 16, TOP - 4);
  }
  // A label in the colour of the choice, over whatever was written there.
  tag(context, write, x, y, w, h) {
    context.fillStyle = colours.accent;
    context.beginPath();
    context.roundRect(x, y, w, h, 4);
    context.fill();
    context.fillStyle = colours.onAccent;
    context.textBaseline = "middle";
    write();
  }
  markHover(context) {
    const { row, column } = this.hover, cell = this.cellBox(row, column);
    context.strokeStyle = colours.text;
    context.globalAlpha = 0.6;
    context.lineWidth = 1;
    context.beginPath();
    context.moveTo(LEFT, cell.y + cell.h / 2);
    context.lineTo(this.width - RIGHT, cell.y + cell.h / 2);
    context.moveTo(cell.x + cell.w / 2, TOP);
    context.lineTo(cell.x + cell.w / 2, this.height - BOTTOM);
    context.stroke();
    context.globalAlpha = 1;
    context.strokeRect(cell.x, cell.y, Math.max(3, cell.w), Math.max(3, cell.h));
  }
  tell() {
    if (!this.hover) {
      this.info.textContent = "Point at a cell to read its weight.";
      return;
    }
    const { row, column } = this.hover, key = column - this.head.start;
    const from = `${row} ${shortened(nameOf(this.page, this.page.tokens[row]), 24)}`;
    const to = key < 0 ? shortened(this.page.startName, 24) : `${key} ${shortened(this.columnName(column), 24)}`;
    const hidden = column > this.head.lastColumn(row) ? ", in its future" : column < this.head.firstColumn(row) ? ", outside its window" : "";
    this.info.textContent = `from ${from} to ${to}: ${percent(this.head.weight(row, column))}${hidden}`;
  }
  listen() {
    const target = this.overlay;
    const at = (event) => {
      const box = target.getBoundingClientRect();
      return { x: event.clientX - box.left, y: event.clientY - box.top };
    };
    target.addEventListener("pointermove", (event) => {
      const { x, y } = at(event);
      if (this.drag) this.pan(x, y);
      else {
        this.hover = this.cellAt(x, y);
        this.drawOverlay();
        this.tell();
      }
      measured("hover", performance.now() - event.timeStamp);
    });
    target.addEventListener("pointerleave", () => { this.hover = null; this.drawOverlay(); this.tell(); });
    target.addEventListener("pointerdown", (event) => { this.drag = { ...at(event), view: this.view, moved: false }; });
    window.addEventListener("pointerup", (event) => {
      const drag = this.drag;
      this.drag = null;
      if (!drag || drag.moved || event.target !== target) return;
      const cell = this.cellAt(drag.x, drag.y);
      if (cell) this.choose(cell.row);
    });
    target.addEventListener("dblclick", () => this.fit());
    target.addEventListener("wheel", (event) => {
      const { x, y } = at(event), cell = this.cellAt(x, y);
      if (!cell || !(event.ctrlKey || event.shiftKey)) return; // the bare wheel scrolls the page
      event.preventDefault();
      this.zoom(event.deltaY + event.deltaX > 0 ? 1.25 : 0.8, { x: cell.column, y: cell.row });
    }, { passive: false });
  }
  pan(x, y) {
    const { drag } = this;
    if (!drag.moved && Math.hypot(x - drag.x, y - drag.y) < 4) return;
    drag.moved = true;
    const { w, h } = this.cellBox(0, 0);
    this.view = drag.view;
    this.moveTo(drag.view.x0 - (x - drag.x) / w, drag.view.y0 - (y - drag.y) / h);
    this.draw();
  }
}
