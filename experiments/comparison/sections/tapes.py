"""Tapes as a person reads them: the tape given, the one that should follow, the one that was written."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from compile.markup import Markup, joined, markup
from experiments.comparison.sections.pieces import NOTHING
from rasp import TuringMachine
from rasp.machines.tape import bos, eos, sep

AROUND = 11  # tokens shown on each side of the error
SMALL = 28  # tapes up to this many tokens are shown whole
MARKERS = {sep: "|", bos: "⊢", eos: "⊣"}


def example_html(example: dict[str, Any], machine: TuringMachine, who: str) -> Markup:
    """One wrong tape, its first wrong token marked; of a long one only what lies around that token."""
    at, expected, written = example["at"], example["expected"], example["written"]
    start, stop = _window(at, max(len(expected), len(written)))
    lines = [
        _line("given", example["tape"], machine, start, stop, {}),
        _line("should be", expected, machine, start, stop, {at: "due"}),
        _line("written", written, machine, start, stop, {at: "wrong"}, after=at),
    ]
    cells = len(expected) - 4
    said = markup("<p><b>{}</b>, {} cells: {}, {}.</p>", who, cells, example["kind"], example["place"])
    return markup('<div class="example">{}<div class="tapes">{}</div></div>', said, joined(lines))


def _window(at: int, size: int) -> tuple[int, int]:
    if size <= SMALL:
        return 0, size
    start = max(0, min(at - AROUND, size - 2 * AROUND - 1))
    return start, min(size, start + 2 * AROUND + 1)


def _line(
    name: str,
    tape: Sequence[int],
    machine: TuringMachine,
    start: int,
    stop: int,
    marks: dict[int, str],
    after: int | None = None,
) -> Markup:
    cells = [
        _cell(tape, i, machine, marks.get(i, ""), after is not None and i > after)
        for i in range(start, min(stop, len(tape)))
    ]
    before, behind = (Markup('<i class="gap">…</i>') if more else NOTHING for more in (start > 0, stop < len(tape)))
    return markup('<div class="tape"><span class="who">{}</span>{}{}{}</div>', name, before, joined(cells), behind)


def _cell(tape: Sequence[int], at: int, machine: TuringMachine, mark: str, after: bool) -> Markup:
    """The state stands right of the cell under the head; both are marked as the head."""
    token = tape[at]
    kinds = [mark] * bool(mark) + ["after"] * after
    if token in MARKERS:
        kinds.append("marker")
    if machine.is_state(token) or (at + 1 < len(tape) and machine.is_state(tape[at + 1])):
        kinds.append("head")
    named = machine.vocabulary[token] if 0 <= token < len(machine.vocabulary) else str(token)
    return markup('<i class="{}">{}</i>', " ".join(kinds), MARKERS.get(token, named))
