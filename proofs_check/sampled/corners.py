"""Sampled runs of unusual shapes: where programs go wrong that are right on small alphabets, short grams and tapes.

Each corner is a sweep of the sharp theorem (any horizon, so also past base**n), and says what shows in it.
"""

from __future__ import annotations

from dataclasses import dataclass

from proofs_check.programs import Predictions
from proofs_check.sampled.report import Report
from proofs_check.sampled.sweep import verify
from rasp.progress import Progress


@dataclass(frozen=True)
class Corner:
    name: str
    why: str
    symbols: int
    states: int
    cells: int
    steps: int
    n: int
    packing: str


CORNERS = (
    Corner("wide alphabet", "more than 32 token ids", 26, 14, 12, 8, 1, "paper"),
    Corner("long grams", "n = 6: seven tokens are hashed", 2, 2, 24, 12, 6, "unbounded"),
    Corner("past the bound", "64 steps of at most base**n = 9", 3, 2, 3, 64, 1, "paper"),
    Corner("long tapes", "40 cells: what is looked up lies 42 tokens back", 12, 16, 40, 4, 3, "paper"),
    Corner("many steps", "64 steps, counted above the hash", 12, 16, 6, 64, 2, "unbounded"),
    Corner("tuples", "n = 9: ten tokens, compared one by one", 2, 2, 40, 6, 9, "tuple"),
)

# Wrong programs (`symbolic.mutants`) that other checks let through, and the corner that notices each.
SHOWS_IN = {
    "the hash is in base 32 whatever the alphabet": "wide alphabet",
    "at most six tokens are hashed": "long grams",
    "the digits of the hash are reversed": "past the bound",
    "the hash is packed with base**(n+1)": "past the bound",
    "only 28 tokens back are seen": "long tapes",
    "the gram is one token too long": "many steps",
    "a separator does not hide what lies before it": "many steps",
    "a missing key gives empt": "wide alphabet",
    "every other separator is counted": "many steps",
    "the hash has too small a base": "many steps",
    "what lies before a separator is seen by tuples": "tuples",
}


def verify_corners(
    machines: int = 200,
    seed: int = 0,
    progress: Progress | None = None,
    program: str | Predictions | None = None,
) -> dict[str, Report]:
    """The report of every corner, by its name."""
    found = {}
    for done, corner in enumerate(CORNERS):
        if progress:
            progress(done, len(CORNERS))
        found[corner.name] = verify_corner(corner, machines, seed, program)
    if progress:
        progress(len(CORNERS), len(CORNERS))
    return found


def verify_corner(
    corner: Corner, machines: int = 200, seed: int = 0, program: str | Predictions | None = None
) -> Report:
    """By `stream`, which needs no compilation: that would take longer than the runs."""
    return verify(
        machines,
        symbols=corner.symbols,
        states=corner.states,
        length=corner.cells,
        steps=corner.steps,
        n=corner.n,
        packing=corner.packing,
        seed=seed,
        engine="stream",
        program=program,
        workers=1,
    )
