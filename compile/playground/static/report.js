// What a run has come to, in words and as the text that was written.

class Report {
  constructor() {
    this.transformer = new Strip("Written by the transformer");
    this.machine = new Strip("The true machine");
    this.pad = element("pre", { class: "scratchpad", tabindex: "0", "aria-label": "what was written" });
  }
  arrange(job) { byId("strips").replaceChildren(...(job.kind === "machine" ? [this.transformer.root, this.machine.root] : [this.pad])); }
  show(live, table) {
    if (live.job.kind === "machine") this.showTapes(live, table);
    else this.showText(live);
    const total = live.all.length - Math.min(live.all.length, live.given);
    const speed = live.milliseconds > 50 ? `${Math.round((1000 * live.all.length) / live.milliseconds).toLocaleString("en")} tokens/s` : "";
    byId("progress").textContent = [`${live.all.length.toLocaleString("en")} tokens read, ${total.toLocaleString("en")} of them written`, speed].filter(Boolean).join(" · ");
    byId("verdict").replaceChildren(...this.verdict(live));
  }
  showTapes(live, table) {
    const { job } = live, { whole, part } = live.lastLine, steps = live.steps, writing = part.length > 0;
    const truth = job.tape(Math.min(steps + (writing ? 1 : 0), job.tapes.length)) ?? job.tapes.at(-1);
    this.transformer.show(writing ? [...part, ...whole.slice(part.length)] : whole, live, writing ? part.length : whole.length, truth);
    const now = job.firstStep + steps;
    this.transformer.title.textContent = writing ? `The transformer is writing tape ${now + 1}` : `Tape ${now}, written by the transformer`;
    this.machine.show(truth, live);
    this.machine.title.textContent = `Tape ${now + (writing ? 1 : 0)} of the true machine`;
    table.mark(job.coding.machine, job.coding.decode((writing ? whole : whole).filter((t) => t !== SEP)));
  }
  showText(live) {
    const { job } = live, parts = [[]];
    live.all.forEach((token, i) => {
      const wrong = i >= live.given && token !== job.expected(i);
      parts.at(-1).push(wrong ? element("span", { class: "wrong", text: live.names[token] }) : live.names[token]);
      if (token === job.bar) parts.at(-1).push("\n"), parts.push([]);
    });
    if (live.ended === "halted") parts.splice(-1, 1, [element("span", { class: "answer" }, ...parts.at(-1))]);
    this.pad.replaceChildren(...parts.flat());
    this.pad.scrollTop = this.pad.scrollHeight;
  }
  verdict(live) {
    const { job } = live, name = (token) => `\u2068${shortened(nameOf(live, token), 20)}\u2069`;
    const good = (text) => element("span", { class: "good", text }), bad = (text) => element("span", { class: "bad", text });
    const written = Math.max(0, live.all.length - live.given);
    if (live.wrongAt >= 0) {
      const where = job.kind === "machine"
        ? `tape ${job.firstStep + Math.floor((live.wrongAt - job.origin) / job.width)}, place ${(live.wrongAt - job.origin) % job.width}` : `position ${live.wrongAt}`;
      const because = live.changedAt >= 0 && live.changedAt < live.wrongAt ? "The transformer was changed: untouched it would have said something else." : job.explain(live.wrongAt, live.names);
      return [bad("✗ They part. "), `The first wrong token is on ${where}: ${name(live.answers[live.wrongAt - 1])} instead of ${name(job.expected(live.wrongAt))}. ${because || "Nothing that is known about these weights explains this."}`];
    }
    if (live.ended === "refused") return [bad("The weights end here. "), live.model.refusal];
    if (live.ended === "room") return ["Stopped: this is far more than the true run has."];
    if (job.kind === "machine") return this.machineVerdict(live, good, written);
    if (live.ended === "halted") return [good("✓ Done. "), `All ${written.toLocaleString("en")} tokens are right: ${shortened(job.text, 60)} = ${shortened(job.lines.at(-1).slice(0, -1), 80)}.`];
    return [written ? `${written.toLocaleString("en")} tokens written, all of them right.` : "Press Run: the transformer writes the scratchpad, a token at a time."];
  }
  machineVerdict(live, good, written) {
    const { job } = live, steps = job.firstStep + live.steps, spelled = `${steps.toLocaleString("en")} step${steps === 1 ? "" : "s"}`;
    if (live.ended === "halted") {
      const tape = job.coding.decode(live.lastLine.whole.filter((t) => t !== SEP)), { machine } = job.coding;
      const kinds = machine.tags?.kinds ?? 1, left = tape.cells.filter((a) => Math.floor(a / kinds) !== machine.plain.blank).length;
      return [good("✓ Halted "), `in ${quoted(machine.states[tape.state])} after ${spelled} with ${left} cells that are not blank. All ${written.toLocaleString("en")} tokens are those of the true machine.`];
    }
    if (live.ended === "steps") return [good("✓ "), `Stopped after ${spelled}, as asked. All ${written.toLocaleString("en")} tokens are those of the true machine.`];
    if (!written) return ["Press Run: the transformer has read the table and the tape, and writes the tapes that follow, a token at a time."];
    return [good("✓ "), `${spelled} written whole; all ${written.toLocaleString("en")} tokens so far are those of the true machine.`];
  }
}
