"""Where and how a wrong tape goes wrong: its first wrong token decides."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from rasp import TuringMachine
from rasp.machines.tape import eos, sep

PLACES = {
    "near head": "one of the three tokens that a step can change: the state's old place and its two neighbours",
    "end marker": "elsewhere, where bos, eos or the separator belongs",
    "copy": "elsewhere, where the token of the tape before belongs",
}
KINDS = {
    "early stop": "eos or the separator is written where the tape goes on",
    "lost place": "the last two tokens stand elsewhere on this tape too, and what follows them there is written",
    "ran on": "where the tape ends, something else is written (and it is no lost place)",
    "wrong transition": "near the head, a symbol or state is written that is not the machine's (and no lost place)",
    "other": "a token is copied wrongly for none of these reasons",
}
LAST = 2  # tokens that tell a place


@dataclass(frozen=True)
class Failure:
    """One wrong tape. `at` is its first wrong token; `elsewhere` is where the tape was picked up if the place was lost.

    `tape` is without, `expected` and `written` are with the separator after them.
    """

    tape: list[int]
    expected: list[int]
    written: list[int]
    at: int
    place: str
    kind: str
    elsewhere: int | None = None

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def first_failure(
    machine: TuringMachine, tape: Sequence[int], expected: Sequence[int], written: Sequence[int]
) -> Failure | None:
    """What is wrong with `written`; None if nothing is."""
    pairs = enumerate(zip(expected, written, strict=True))
    at = next((i for i, (right, said) in pairs if right != said), None)
    if at is None:
        return None
    place, elsewhere = _place(machine, tape, expected, at), _elsewhere(expected, at, written[at])
    kind = _kind(expected[at], written[at], place, elsewhere)
    found = elsewhere if kind == "lost place" else None
    return Failure(list(tape), list(expected), list(written), at, place, kind, found)


def _place(machine: TuringMachine, tape: Sequence[int], expected: Sequence[int], at: int) -> str:
    head = next(i for i, token in enumerate(tape) if machine.is_state(token))
    if abs(at - head) <= 1:
        return "near head"
    return "copy" if machine.is_symbol(expected[at]) else "end marker"


def _elsewhere(expected: Sequence[int], at: int, said: int) -> int | None:
    """Another place on the tape where the same two tokens are followed by what was said; the nearest one."""
    text = [sep, *expected]  # a tape's first token has the separator before it
    gram = text[max(0, at + 1 - LAST) : at + 1]
    places = [i for i in range(len(expected)) if i != at and text[max(0, i + 1 - len(gram)) : i + 1] == gram]
    return min((i for i in places if expected[i] == said), key=lambda i: abs(i - at), default=None)


def _kind(right: int, said: int, place: str, elsewhere: int | None) -> str:
    if said in (eos, sep) and right != sep:
        return "early stop"
    if elsewhere is not None:
        return "lost place"
    if right in (eos, sep):
        return "ran on"
    return "wrong transition" if place == "near head" else "other"


def anatomy(simulator: str, failures: Iterable[Failure], tapes: int, shown: int = 3) -> dict[str, Any]:
    """The row of one simulator: how many of its `tapes` went wrong in which way, with a few examples of each kind."""
    found = list(failures)
    places, kinds = Counter(f.place for f in found), Counter(f.kind for f in found)
    examples = [f for kind in KINDS for f in [f for f in found if f.kind == kind][:shown]]
    return {
        "simulator": simulator,
        "wrong": len(found),
        "tapes": tapes,
        "places": {place: places[place] for place in PLACES},
        "kinds": {kind: kinds[kind] for kind in KINDS},
        "examples": [f.to_dict() for f in examples],
    }
