// For the chosen position: arcs from its token to the tokens it attends to, on one line with all tokens.

const MOST_NAMED = 8, LEAST_SHOWN = 16;

class Arcs {
  constructor(page) {
    this.page = page;
    this.canvas = element("canvas", { class: "arcs", role: "img", "aria-label": "arcs to what the position attends to" });
    this.list = element("ol", { class: "strongest" });
    this.root = element("div", { class: "arcs-frame" }, this.canvas, this.list);
    new ResizeObserver(() => this.draw()).observe(this.root);
  }
  show(head, position) {
    Object.assign(this, { head, position });
    this.draw();
    this.write();
  }
  name(column) {
    return column < this.head.start ? this.page.startName : nameOf(this.page, this.page.tokens[column - this.head.start]);
  }
  write() {
    this.list.replaceChildren();
    const found = this.merged();
    for (const { column, weight, count } of found.slice(0, MOST_NAMED)) {
      const place = column < this.head.start ? (count > 1 ? `${count} ×` : "") : `${column - this.head.start}`;
      const item = element("li", {}, element("span", { class: "place", text: place }));
      item.append(element("bdi", { class: "token", text: shortened(this.name(column), 16), title: this.name(column) }));
      item.append(element("span", { class: "weight", text: percent(weight) }));
      this.list.append(item);
    }
    const left = found.slice(MOST_NAMED);
    if (left.length) {
      const rest = left.reduce((sum, f) => sum + f.weight, 0);
      this.list.append(element("li", { class: "rest", text: `and ${left.length} more: ${percent(rest)}` }));
    }
  }
  // Tokens put in front are alike, so their weights are added up.
  merged() {
    const found = this.head.strongest(this.position);
    const front = found.filter((f) => f.column < this.head.start);
    const rest = found.filter((f) => f.column >= this.head.start).map((f) => ({ ...f, count: 1 }));
    if (front.length) {
      rest.push({ column: front[0].column, weight: front.reduce((s, f) => s + f.weight, 0), count: front.length });
    }
    return rest.sort((a, b) => b.weight - a.weight || a.column - b.column);
  }
  draw() {
    const width = this.root.clientWidth;
    if (!this.head || !width || !colours.table) return;
    const height = 148, ground = 112, { from, to } = this.range();
    this.canvas.style.height = `${height}px`;
    const context = prepareCanvas(this.canvas, width, height);
    const x = (column) => 14 + ((column - from + 0.5) / (to - from)) * (width - 28);
    this.drawGround(context, x, ground, from, to);
    const here = this.position + this.head.start;
    const found = this.head.strongest(this.position, 200).reverse();
    for (const { column, weight } of found) this.drawArc(context, x(here), x(column), ground, weight);
    this.drawLabels(context, x, ground, here, width, from, to);
  }
  // Tokens from the furthest one that counts to a little past this one.
  range() {
    const here = this.position + this.head.start, count = this.page.tokens.length + this.head.start;
    const furthest = Math.min(here, ...this.head.strongest(this.position).map((f) => f.column));
    const to = Math.min(count, here + 4);
    return { from: Math.max(0, Math.min(furthest - 2, to - LEAST_SHOWN)), to };
  }
  drawGround(context, x, ground, first, end) {
    context.strokeStyle = colours.faint;
    context.beginPath();
    context.moveTo(x(first), ground);
    context.lineTo(x(end - 1), ground);
    for (const start of this.page.rows) {
      if (start + this.head.start <= first || start + this.head.start >= end) continue;
      context.moveTo(x(start + this.head.start - 0.5), ground - 4);
      context.lineTo(x(start + this.head.start - 0.5), ground + 4);
    }
    context.stroke();
  }
  drawArc(context, from, to, ground, weight) {
    const lift = Math.min(ground - 10, 18 + Math.abs(from - to) * 0.5);
    context.strokeStyle = colourOf(0.3 + 0.7 * weight);
    context.lineWidth = 0.8 + 4 * weight;
    context.beginPath();
    if (Math.abs(from - to) < 1) context.arc(from, ground - 9, 8, 0, 2 * Math.PI);
    else {
      context.moveTo(from, ground);
      context.bezierCurveTo(from, ground - 1.25 * lift, to, ground - 1.25 * lift, to, ground);
    }
    context.stroke();
    context.lineWidth = 1;
  }
  // Names of the ends, strongest first; one that would cover another is left out.
  drawLabels(context, x, ground, here, width, from, to) {
    const taken = [];
    const write = (column, accent) => {
      const text = shortened(this.name(column), 8), half = context.measureText(text).width / 2 + 4;
      const at = Math.min(width - half - 1, Math.max(half + 1, x(column)));
      if (taken.some(([a, b]) => at - half < b && at + half > a)) return;
      taken.push([at - half, at + half]);
      if (accent) {
        context.fillStyle = colours.accent;
        context.beginPath();
        context.roundRect(at - half, ground + 8, 2 * half, 18, 4);
        context.fill();
      }
      context.fillStyle = accent ? colours.onAccent : colours.text;
      context.fillText(text, at, ground + 17);
    };
    context.font = `12px ${FONT}`;
    context.textAlign = "center";
    context.textBaseline = "middle";
    write(here, true);
    for (const { column } of this.head.strongest(this.position, 12)) write(column, false);
    for (let column = from; column < to && to - from <= 40; column++) write(column, false);
  }
}
