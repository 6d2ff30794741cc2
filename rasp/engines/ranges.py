"""Between which bounds the result of an operator lies, by the bounds of its operands.

The bounds are those of the exact result, before it wraps around at 64 bits: where they lie within an int64, Python's
unbounded integers need no correction, and an index needs no check.
"""

from __future__ import annotations

from typing import Any

from rasp.arithmetic import COMPARISONS, HIGHEST, LOWEST
from rasp.scalar import Table

Range = tuple[int, int]
ANY: Range = (LOWEST, HIGHEST)
POSITIONS = 2**45  # no sequence is longer: at a microsecond a token it would take a year


def fits(r: Range) -> bool:
    return r[0] >= LOWEST and r[1] <= HIGHEST


def hull(*ranges: Range) -> Range:
    return min(r[0] for r in ranges), max(r[1] for r in ranges)


def of_number(value: Any) -> Range:
    return int(value), int(value)


def of_table(table: Table) -> Range:
    """Room for the tables of other machines of the same size: a power of two above values and indices."""
    if table.values is None or not table.values.size:
        return ANY
    highest = max(int(table.values.max()), *table.values.shape, 1)
    lowest = min(int(table.values.min()), 0)
    return -(1 << (-lowest).bit_length()) if lowest else 0, (1 << highest.bit_length()) - 1


def of_unary(op: str, a: Range) -> Range:
    low, high = a
    if op == "neg":
        return -high, -low
    if op == "invert":
        return ~high, ~low
    if op == "abs":
        return a if low >= 0 else (0, max(-low, high))
    return (0, 1) if op == "not" else a


def of_binary(op: str, a: Range, b: Range) -> Range:
    if op in COMPARISONS:
        return 0, 1
    if op == "+":
        return a[0] + b[0], a[1] + b[1]
    if op == "-":
        return a[0] - b[1], a[1] - b[0]
    if op == "*":
        products = [x * y for x in a for y in b]
        return min(products), max(products)
    if op == "<<":
        return of_binary("*", a, (1 << b[0], 1 << b[1])) if b[0] >= 0 and b[1] < 64 else (-(2**127), 2**127)
    if op in ("&", "|", "^"):
        return _of_bits(op, a, b)
    if op == "**":
        return _of_power(a, b)
    return _of_division(op, a, b)


def _of_division(op: str, a: Range, b: Range) -> Range:
    if op == ">>":
        shifted = [x >> y for x in a for y in b] if b[0] >= 0 and b[1] < 64 else [*a, -1 if a[0] < 0 else 0, 0]
        return min(shifted), max(shifted)
    if op == "//":
        if b[0] > 0:
            quotients = [x // y for x in a for y in b]
            return min(quotients), max(quotients)
        largest = max(abs(a[0]), abs(a[1]))
        return -largest, largest
    if a[0] >= 0 and b[0] > 0:
        return 0, min(a[1], b[1] - 1)
    return min(b[0] + 1, 0), max(b[1] - 1, 0)


def _of_bits(op: str, a: Range, b: Range) -> Range:
    if op == "&" and (a[0] >= 0 or b[0] >= 0):
        return 0, min(r[1] for r in (a, b) if r[0] >= 0)
    bits = max((x if x >= 0 else ~x).bit_length() for x in (*a, *b))
    return (0 if a[0] >= 0 and b[0] >= 0 else -(1 << bits)), (1 << bits) - 1


def power_fits(a: Range, by: int) -> bool:
    """Whether a number of this range to the power of `by` is surely an int64."""
    return by >= 0 and by * max(abs(a[0]), abs(a[1])).bit_length() < 64


def _of_power(a: Range, b: Range) -> Range:
    largest = max(abs(a[0]), abs(a[1]))
    if b[0] >= 0 and b[1] * max(largest.bit_length(), 1) <= 64:
        top = max(largest ** b[1], 1)
        return (0 if a[0] >= 0 else -top), top
    return ANY  # the helper wraps around by itself
