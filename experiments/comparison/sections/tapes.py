"""Tapes as a person reads them: the tape given, the one that should follow, the one that was written."""

from __future__ import annotations

import html
from collections.abc import Sequence
from typing import Any

from rasp import TuringMachine
from rasp.machines.tape import bos, eos, sep

AROUND = 11  # tokens shown on each side of the error
SMALL = 28  # tapes up to this many tokens are shown whole
MARKERS = {sep: "|", bos: "⊢", eos: "⊣"}


def example_html(example: dict[str, Any], machine: TuringMachine, who: str) -> str:
    """One wrong tape, its first wrong token marked; of a long one only what lies around that token."""
    at, expected, written = example["at"], example["expected"], example["written"]
    start, stop = _window(at, max(len(expected), len(written)))
    place, kind = html.escape(example["place"]), html.escape(example["kind"])
    lines = [
        _line("given", example["tape"], machine, start, stop, {}),
        _line("should be", expected, machine, start, stop, {at: "due"}),
        _line("written", written, machine, start, stop, {at: "wrong"}, after=at),
    ]
    cells = len(expected) - 4
    said = f"<p><b>{html.escape(who)}</b>, {cells} cells: {kind}, {place}.</p>"
    return f'<div class="example">{said}<div class="tapes">{"".join(lines)}</div></div>'


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
) -> str:
    cells = [
        _cell(tape, i, machine, marks.get(i, ""), after is not None and i > after)
        for i in range(start, min(stop, len(tape)))
    ]
    before, behind = ('<i class="gap">…</i>' if more else "" for more in (start > 0, stop < len(tape)))
    return f'<div class="tape"><span class="who">{name}</span>{before}{"".join(cells)}{behind}</div>'


def _cell(tape: Sequence[int], at: int, machine: TuringMachine, mark: str, after: bool) -> str:
    """The state stands right of the cell under the head; both are marked as the head."""
    token = tape[at]
    kinds = [mark] * bool(mark) + ["after"] * after
    if token in MARKERS:
        kinds.append("marker")
    if machine.is_state(token) or (at + 1 < len(tape) and machine.is_state(tape[at + 1])):
        kinds.append("head")
    named = html.escape(machine.vocabulary[token]) if 0 <= token < len(machine.vocabulary) else str(token)
    return f'<i class="{" ".join(kinds)}">{MARKERS.get(token, named)}</i>'
