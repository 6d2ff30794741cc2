"""Whether learned heads do what compiled heads do: the verdict on the match head, and maps of layers x heads."""

from __future__ import annotations

from collections.abc import Sequence

from experiments.comparison.sections.pieces import folded, note, table, text, verdict
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


def mechanism(results: Results) -> str:
    machines = [m for m in results["machines"] if m.get("mechanism")]
    if not machines:
        return ""
    first = machines[0]["mechanism"]
    head = ["learned model", "best learned head", "attends alike", "shuffled", "lost without it", "counterpart"]
    maps, crosses = map(_maps, machines), (_cross(m, index == 0) for index, m in enumerate(machines))
    return (
        WORDS.format(compiled=text(first["compiled"]), label=text(first["induction"]["label"]))
        + table(head, map(_verdict_row, machines))
        + f'<h3>Where each learned model keeps it</h3>{note(MAPS)}<div class="maps">{"".join(maps)}</div>'
        + f"<h3>Every compiled head beside every learned one</h3>{note(CROSS)}{''.join(crosses)}"
    )


def _verdict_row(machine: Record) -> list[str]:
    row = machine["mechanism"]["induction"]
    shift, others = row.get("shift", 0), row.get("others", ())
    small = [f"{abs(shift)} token{'s' * (abs(shift) > 1)} {'after' if shift > 0 else 'before'}"] if shift else []
    small += [f"also {', '.join(_head_name(other) for other in others)}"] if others else []
    return [
        text(machine["name"]),
        f"{_head_name(row)}<small>{'; '.join(small)}</small>",
        digits(row["agreement"]),
        digits(row["baseline"]),
        digits(row["lost_when_ablated"]),
        verdict(VERDICTS[row["verdict"]], row["verdict"]),
    ]


def _head_name(row: Record) -> str:
    return f"layer {row['layer']}, head {row['head']}"


# --- maps -------------------------------------------------------------------------------------------------------------


def _maps(machine: Record) -> str:
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
    pair = _heat(alike, windows, "match", "attends alike") + _heat(lost, windows, "lost", "lost without it")
    return f'<div><h4>{text(machine["name"])}</h4><div class="pair">{pair}</div></div>'


def _heat(values: Sequence[Sequence[float]], windows: Sequence[Sequence[int | None]], kind: str, title: str) -> str:
    top = "".join(f"<th>{window or '∞'}</th>" for window in max(windows, key=len))
    rows = "".join(
        f'<tr><th class="words">L{layer}</th>{"".join(map(_cell, row))}</tr>' for layer, row in enumerate(values)
    )
    return f'<table class="heat {kind}"><caption>{title}</caption><tr><th></th>{top}</tr>{rows}</table>'


def _cell(value: float) -> str:
    strong = ' class="strong"' if value > 0.6 else ""
    shown = f"{value:.2f}".removeprefix("0") if value >= 0.05 else ""
    return f'<td{strong} style="--v: {min(1.0, max(0.0, value)):.3f}" title="{value:.3f}">{shown}</td>'


def _cross(machine: Record, unfolded: bool) -> str:
    """Compiled heads as rows, learned heads as columns."""
    heads = machine["mechanism"]["heads"]
    top = "".join(f'<th colspan="{len(row)}">layer {layer}</th>' for layer, row in enumerate(heads[0]["matches"]))
    rows = "".join(
        f'<tr><th class="words">{head["layer"]}.{head["head"]} {text(head["label"])}</th>{_bars(head)}</tr>'
        for head in heads
    )
    made = f'<div class="scroll"><table class="heat"><tr><th></th>{top}</tr>{rows}</table></div>'
    return folded(text(machine["name"]), made, unfolded)


def _bars(head: Record) -> str:
    cells = []
    for layer, (found, chance) in enumerate(zip(head["matches"], head["baseline"], strict=True)):
        for index, (a, b) in enumerate(zip(found, chance, strict=True)):
            kind = "bar-cell cut" if layer and not index else "bar-cell"
            hint = f"layer {layer}, head {index}: {a:.2f} alike, {b:.2f} shuffled"
            heights = f"--a: {100 * a:.0f}%; --b: {100 * min(a, b):.0f}%"
            cells.append(f'<td class="{kind}" style="{heights}" title="{hint}"></td>')
    return "".join(cells)
