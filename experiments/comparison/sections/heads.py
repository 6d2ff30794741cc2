"""Whether learned heads do what compiled heads do: the verdict on the match head, and maps of layers x heads."""

from __future__ import annotations

from collections.abc import Sequence

from compile.markup import Markup, joined, markup
from experiments.comparison.sections.pieces import NOTHING, folded, note, table, verdict, with_small
from experiments.comparison.summary import Record, Results, digits

WORDS = """<p>The compiled program ({compiled}) finds its place by one head, <code>{label}</code>: it attends to the
place on the last tape whose last tokens are those just written, as an induction head does. Has training found the
same? Both models read the same traces. <em>Attends alike</em> is the attention that two heads have in common: the sum
of the smaller of their two weights, at the best fixed offset. <em>Shuffled</em> is the same with the learned head's
attention on a trace of another length: what position alone explains. <em>Lost without it</em> is the share of next
tapes that are no longer right when the head's output is replaced by its mean.</p>"""
MAPS = """Rows are layers, columns heads, with the window that each is confined to (∞: none). Blue: attends like the
compiled match head, beyond what is shuffled. Orange: accuracy lost without the head."""
CROSS = """Rows: compiled heads. Columns: learned heads. The height of a bar is the attention they have in common;
grey is what position alone explains, blue what it does not."""
VERDICTS = {"found": "good", "partly": "some", "not found": "bad"}


def mechanism(results: Results) -> Markup:
    machines = [m for m in results["machines"] if m.get("mechanism")]
    if not machines:
        return NOTHING
    first = machines[0]["mechanism"]
    head = ["learned model", "best learned head", "attends alike", "shuffled", "lost without it", "counterpart"]
    maps = joined(map(_maps, machines))
    crosses = joined(_cross(m, index == 0) for index, m in enumerate(machines))
    parts = (
        markup(WORDS, compiled=first["compiled"], label=first["induction"]["label"]),
        table(head, map(_verdict_row, machines)),
        markup('<h3>Where each learned model keeps it</h3>{}<div class="maps">{}</div>', note(MAPS), maps),
        markup("<h3>Every compiled head beside every learned one</h3>{}{}", note(CROSS), crosses),
    )
    return joined(parts)


def _verdict_row(machine: Record) -> list[str]:
    row = machine["mechanism"]["induction"]
    shift, others = row.get("shift", 0), row.get("others", ())
    small = [f"{abs(shift)} token{'s' * (abs(shift) > 1)} {'after' if shift > 0 else 'before'}"] if shift else []
    small += [f"also {', '.join(_head_name(other) for other in others)}"] if others else []
    return [
        machine["name"],
        with_small(_head_name(row), "; ".join(small)),
        digits(row["agreement"]),
        digits(row["baseline"]),
        digits(row["lost_when_ablated"]),
        verdict(VERDICTS[row["verdict"]], row["verdict"]),
    ]


def _head_name(row: Record) -> str:
    return f"layer {row['layer']}, head {row['head']}"


# --- maps -------------------------------------------------------------------------------------------------------------


def _maps(machine: Record) -> Markup:
    """How much each learned head attends like the match head, and what is lost without it."""
    found = machine["mechanism"]
    match = next(head for head in found["heads"] if head["label"] == found["induction"]["label"])
    alike = [
        [max(0.0, a - b) for a, b in zip(*rows, strict=True)]
        for rows in zip(match["matches"], match["baseline"], strict=True)
    ]
    known = {(row["layer"], row["head"]): row for row in found["ablation"]}
    lost = [[known[layer, head]["lost"] for head in range(len(row))] for layer, row in enumerate(alike)]
    windows = [[known[layer, head]["window"] for head in range(len(row))] for layer, row in enumerate(alike)]
    pair = _heat(alike, windows, "match", "attends alike"), _heat(lost, windows, "lost", "lost without it")
    return markup('<div><h4>{}</h4><div class="pair">{}{}</div></div>', machine["name"], *pair)


def _heat(values: Sequence[Sequence[float]], windows: Sequence[Sequence[int | None]], kind: str, title: str) -> Markup:
    top = joined(markup("<th>{}</th>", window or "∞") for window in max(windows, key=len))
    rows = joined(
        markup('<tr><th class="words">L{}</th>{}</tr>', layer, joined(map(_cell, row)))
        for layer, row in enumerate(values)
    )
    return markup('<table class="heat {}"><caption>{}</caption><tr><th></th>{}</tr>{}</table>', kind, title, top, rows)


def _cell(value: float) -> Markup:
    strong = Markup(' class="strong"') if value > 0.6 else NOTHING
    shown = f"{value:.2f}".removeprefix("0") if value >= 0.05 else ""
    inside = min(1.0, max(0.0, value))
    return markup('<td{} style="--v: {:.3f}" title="{:.3f}">{}</td>', strong, inside, value, shown)


def _cross(machine: Record, unfolded: bool) -> Markup:
    """Compiled heads as rows, learned heads as columns."""
    heads = machine["mechanism"]["heads"]
    top = joined(
        markup('<th colspan="{}">layer {}</th>', len(row), layer) for layer, row in enumerate(heads[0]["matches"])
    )
    rows = joined(
        markup('<tr><th class="words">{}.{} {}</th>{}</tr>', head["layer"], head["head"], head["label"], _bars(head))
        for head in heads
    )
    made = markup('<div class="scroll"><table class="heat"><tr><th></th>{}</tr>{}</table></div>', top, rows)
    return folded(machine["name"], made, unfolded)


def _bars(head: Record) -> Markup:
    cells = []
    for layer, (found, chance) in enumerate(zip(head["matches"], head["baseline"], strict=True)):
        for index, (a, b) in enumerate(zip(found, chance, strict=True)):
            kind = "bar-cell cut" if layer and not index else "bar-cell"
            hint = f"layer {layer}, head {index}: {a:.2f} alike, {b:.2f} shuffled"
            heights = f"--a: {100 * a:.0f}%; --b: {100 * min(a, b):.0f}%"
            cells.append(markup('<td class="{}" style="{}" title="{}"></td>', kind, heights, hint))
    return joined(cells)
