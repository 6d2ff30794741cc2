"""An arbitrary position of an input of any length."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import z3

from proofs_check.symbolic.sequences import POSITIONS, AnyLength, Local
from proofs_check.symbolic.terms import BITS, Value, known, number

START = 8  # positions below this are looked at one by one, so that all others are known to be far from the start


def position(name: str = "p") -> z3.BitVecRef:
    return z3.BitVec(name, BITS)


def every_position(*sequences: AnyLength) -> Iterator[tuple[str, Value, z3.BoolRef]]:
    """The cases of an arbitrary position: a name, the position, and what is known of it."""
    for p in range(START):
        yield f"p={p}", p, z3.BoolVal(True)
    far = position()
    for rasp in sequences:
        rasp.assume_at_least(far, START)
    yield f"p>={START}", far, z3.And(far >= START, far < POSITIONS - 64)


def back(p: Value, distance: int) -> Value:
    """The position `distance` before p."""
    return p - distance if known(p) else z3.simplify(number(p) - distance)


def around(rasp: AnyLength, name: str, here: Value, cell: Callable[[int], Value], limit: int = POSITIONS) -> Local:
    """An input known near a position: `cell(d)` stands d to the right of `here`."""
    anywhere = rasp.sequence(name)

    def at(p: Value) -> Value:
        d = z3.simplify(number(p) - number(here))
        return cell(d.as_signed_long()) if z3.is_bv_value(d) else anywhere.at(p)

    return Local(rasp, at, limit=limit)
