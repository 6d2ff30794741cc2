"""How often each is right: the table, by length, and for many steps in a row."""

from __future__ import annotations

from compile.markup import Markup, joined
from experiments.comparison import drawing
from experiments.comparison.sections.pieces import NOTHING, figure, named, note, share_cell, table
from experiments.comparison.summary import (
    Results,
    caption,
    learned_of,
    length_text,
    rollout_times,
    summary_table,
    words_of,
)


def summary(results: Results) -> Markup:
    found = summary_table(results)
    rows = [[named(results, family), *map(share_cell, cells)] for family, cells in found.rows]
    kinds = [family.kind for family, _ in found.rows]
    head = [f"share of {words_of(results).whole}s right", *found.columns]
    return joined((table(head, rows, kinds), note(caption(results))))


def accuracy(results: Results) -> Markup:
    if "task" in results:
        return problems(results)
    bands = "Bands: 95% intervals."
    if len(results["machines"]) > 1:
        bands = "Thin lines: the learned model of each machine; thick: their mean; bands: the range over machines."
    said = (
        f"{bands} Left: the whole next tape, written greedily token by token. Right: single wrong tokens, when "
        "what stands before them is right. A compiled model lies on the line of its program. Learned models see "
        "the whole text, not only a window of the length they were trained with."
    )
    return figure(drawing.accuracy_figure(results), "accuracy", "accuracy by length", said)


def problems(results: Results) -> Markup:
    said = (
        "Bands: 95% intervals. Left: the whole text after the problem, scratchpad and answer. Right: single wrong "
        "tokens, when what stands before them is right. A compiled model lies on the line of its program. Learned "
        "models look through the window with which they are evaluated: the context they were trained with."
    )
    return figure(drawing.accuracy_figure(results), "accuracy", "accuracy by length", said)


def rollout(results: Results) -> Markup:
    at = rollout_times(results)
    if at is None:
        return NOTHING
    whose = " the training length" if learned_of(results) else ""
    said = (
        "Each step is taken on the tape that the simulator wrote itself; a run counts until its first wrong token. "
        f"Tapes of {length_text(results, at)}{whose}."
    )
    return figure(drawing.rollout_figure(results), "rollout", "runs without error by step", said)
