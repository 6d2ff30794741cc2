// The RASP program as a drawing; what the chosen head computes stands out, and a box leads to its head.

const SVG = "http://www.w3.org/2000/svg";
const MARGIN = 16;

function shape(tag, attributes, text) {
  const made = document.createElementNS(SVG, tag);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (text !== undefined) made.textContent = text;
  return made;
}

class ProgramGraph {
  constructor(graph, heads, choose) {
    this.graph = graph;
    this.frame = element("div", { class: "graph-frame", tabindex: "0", role: "group", "aria-label": "program" });
    this.whole = element("button", { type: "button", text: "fit width" });
    this.whole.addEventListener("click", () => this.toggleFit());
    this.legend = element("p", { class: "legend" });
    this.svg = shape("svg", {});
    this.frame.append(this.svg);
    this.headOf = new Map();
    for (const head of heads) for (const node of head.nodes) if (!this.headOf.has(node)) this.headOf.set(node, head);
    this.draw(choose);
    this.zoom(0.8);
  }
  draw(choose) {
    const { nodes, edges } = this.graph;
    const left = Math.min(...nodes.map((n) => n.at[0] - n.size[0] / 2)) - MARGIN;
    const right = Math.max(...nodes.map((n) => n.at[0] + n.size[0] / 2)) + MARGIN;
    const bottom = Math.max(...nodes.map((n) => n.at[1] + n.size[1] / 2)) + MARGIN;
    this.size = [right - left, bottom + MARGIN];
    this.svg.setAttribute("viewBox", `${left} ${-MARGIN} ${this.size[0]} ${this.size[1]}`);
    this.edges = edges.map((edge) => {
      const path = shape("path", { d: this.path(edge), class: "edge" });
      this.svg.append(path);
      return { ...edge, path };
    });
    this.boxes = nodes.map((node, i) => this.box(node, i, choose));
    for (const [kind, text] of [["input", "input"], ["map", "function of each token"], ["delay", "earlier token"],
                                ["width", "counter"], ["kqv", "attention"]]) {
      if (nodes.some((n) => n.op === kind)) {
        this.legend.append(element("span", { class: `key ${kind}` }), document.createTextNode(text));
      }
    }
  }
  box(node, i, choose) {
    const group = shape("g", { class: `node ${node.op}` });
    const [w, h] = node.size, x = node.at[0] - w / 2, y = node.at[1] - h / 2;
    const rounded = ["delay", "width", "kqv"].includes(node.op) ? 8 : 2;
    group.append(shape("rect", { x, y, width: w, height: h, rx: rounded }));
    if (i === this.graph.output) group.classList.add("output");
    node.lines.forEach((line, k) => {
      const attributes = { x: node.at[0], y: y + 6 + 14 * (k + 0.75), "text-anchor": "middle" };
      if (k === 0) attributes.class = "first";
      group.append(shape("text", attributes, line));
    });
    const head = this.headOf.get(i);
    if (head) {
      group.classList.add("has-head");
      group.append(shape("title", {}, `${head.name}: click to see it`));
      group.addEventListener("click", () => choose(head));
    }
    this.svg.append(group);
    return group;
  }
  path({ from, to, route }) {
    const points = route.map(([x, y]) => [x, y]);
    points[0][1] += this.graph.nodes[from].size[1] / 2;
    points[points.length - 1][1] -= this.graph.nodes[to].size[1] / 2;
    let d = `M${points[0]}`;
    for (let k = 1; k < points.length; k++) {
      const [x0, y0] = points[k - 1], [x1, y1] = points[k], middle = (y0 + y1) / 2;
      d += `C${x0} ${middle} ${x1} ${middle} ${x1} ${y1}`;
    }
    return d;
  }
  zoom(scale) {
    this.svg.style.width = scale === null ? "100%" : `${this.size[0] * scale}px`;
    this.svg.style.height = scale === null ? "auto" : `${this.size[1] * scale}px`;
  }
  toggleFit() {
    this.fitted = !this.fitted;
    this.zoom(this.fitted ? null : 0.8);
    this.whole.textContent = this.fitted ? "readable size" : "fit width";
    this.reveal();
  }
  select(head) {
    this.chosen = head.nodes;
    const on = new Set(head.nodes);
    this.boxes.forEach((box, i) => box.classList.toggle("on", on.has(i)));
    for (const { from, to, path } of this.edges) path.classList.toggle("on", on.has(to) || on.has(from));
    this.reveal();
  }
  // Scrolls inside the frame only: the page itself stays where it is.
  reveal() {
    if (!this.chosen || !this.chosen.length || !this.frame.clientWidth) return;
    const box = this.boxes[this.chosen[0]].getBoundingClientRect(), frame = this.frame.getBoundingClientRect();
    this.frame.scrollLeft += box.left + box.width / 2 - frame.left - frame.width / 2;
    this.frame.scrollTop += box.top + box.height / 2 - frame.top - frame.height / 2;
  }
}
