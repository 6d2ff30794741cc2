"""A function of finite sets as a list of boxes: few products of subsets on each of which it is constant.

A ReLU unit tests membership in a box (`relu(sum of memberships - (sides - 1))`), so the number of boxes is the number
of units. Boxes are disjoint: exactly one contains any combination of values, and the units just add up.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

from compile.errors import CompileError
from compile.front.bounds import at_all
from rasp.scalar import Expr, arg, arguments, const, evaluate_int, substitute

MOST_BOXES = 20_000  # of any one map
MOST_SPLITS = 500_000  # values tried in search of them
SMALL_TABLE = 4096  # combinations from which a function is split as a table instead of as an expression
FEW = 3  # values an argument may have to be split on before all others

Sides = tuple[tuple[int, frozenset[int]], ...]  # (argument, the values it may have); other arguments are free
Set = tuple[int, ...]


class TooManyBoxes(CompileError):
    """The function needs more units than allowed."""


@dataclass(frozen=True)
class Box:
    sides: Sides
    value: int


def cover(e: Expr, domains: Sequence[Set], most: int) -> list[Box]:
    """Disjoint boxes that cover the product of `domains`, with the value of `e` on each."""
    return merge(_Splitting(domains, most).boxes(e))


class _Splitting:
    def __init__(self, domains: Sequence[Set], most: int) -> None:
        self.domains = domains
        self.most = most
        self.known: dict[Expr, list[Box]] = {}
        self.tried = 0

    def boxes(self, e: Expr) -> list[Box]:
        if e not in self.known:
            self.known[e] = self._boxes(e)
        if len(self.known[e]) > 4 * self.most:  # merging rarely saves more than this
            raise TooManyBoxes(f"at least {self.most} cases")
        return self.known[e]

    def _boxes(self, e: Expr) -> list[Box]:
        used = sorted(arguments(e))
        if not used:
            return [Box((), evaluate_int(e, ()))]
        if prod(len(self.domains[i]) for i in used) <= SMALL_TABLE:
            return [
                Box(tuple((used[axis], values) for axis, values in sides), value)
                for sides, value in _split_table(*self._table(e, used))
            ]
        flags = [i for i in used if len(self.domains[i]) <= FEW]  # cheap to split on, and merging mends a bad order
        i, groups = min(((i, self._residuals(e, i)) for i in flags or used), key=lambda found: self._size(*found))
        return [Box(_with(i, values, box.sides), box.value) for rest, values in groups for box in self.boxes(rest)]

    def _residuals(self, e: Expr, i: int) -> list[tuple[Expr, frozenset[int]]]:
        """What `e` becomes for each value of argument i; values that leave the same expression together."""
        groups: dict[Expr, set[int]] = {}
        others = [arg(j) for j in range(len(self.domains))]
        self.tried += len(self.domains[i])
        if self.tried > MOST_SPLITS:
            raise TooManyBoxes(f"values too many to try, over {MOST_SPLITS:,}")
        for value in self.domains[i]:
            rest = substitute(e, [const(value) if j == i else other for j, other in enumerate(others)])
            groups.setdefault(rest, set()).add(value)
        return [(rest, frozenset(values)) for rest, values in groups.items()]

    def _size(self, i: int, groups: list[tuple[Expr, frozenset[int]]]) -> tuple[int, int]:
        combinations = sum(prod(len(self.domains[j]) for j in arguments(rest)) for rest, _ in groups)
        return combinations, len(self.domains[i])

    def _table(self, e: Expr, used: list[int]) -> tuple[np.ndarray, tuple[Set, ...]]:
        return at_all(e, used, self.domains), tuple(self.domains[i] for i in used)


def _with(i: int, values: frozenset[int], sides: Sides) -> Sides:
    return tuple(sorted((*sides, (i, values)), key=lambda side: side[0]))


# --- tables -----------------------------------------------------------------------------------------------------------

TableBox = tuple[tuple[tuple[int, frozenset[int]], ...], int]


def _split_table(table: np.ndarray, sets: tuple[Set, ...]) -> list[TableBox]:
    """Boxes of a table (sides by axis): split along the axis that leaves the fewest, rows that agree together."""
    return _TableSplitting(sets).boxes(table, tuple(range(table.ndim)))


class _TableSplitting:
    def __init__(self, sets: tuple[Set, ...]) -> None:
        self.sets = sets
        self.known: dict[tuple[tuple[int, ...], bytes], list[TableBox]] = {}

    def boxes(self, table: np.ndarray, axes: tuple[int, ...]) -> list[TableBox]:
        key = axes, table.tobytes()
        if key not in self.known:
            self.known[key] = self._boxes(table, axes)
        return self.known[key]

    def _boxes(self, table: np.ndarray, axes: tuple[int, ...]) -> list[TableBox]:
        if (table == table.flat[0]).all():
            return [((), int(table.flat[0]))]
        if table.ndim == 1:
            return self._by_value(table.tolist(), axes[0])
        splits = {place: _agreeing_rows(table, place) for place in range(table.ndim)}
        for place, rows in splits.items():
            if len(rows) == 1:  # this axis does not matter
                return self.boxes(table.take(0, axis=place), axes[:place] + axes[place + 1 :])
        if table.ndim > 3 and table.size > 64:  # too many orders to try them all
            best = min(splits, key=lambda place: (len(splits[place]) / table.shape[place], table.shape[place]))
            splits = {best: splits[best]}
        return min((self._along(table, axes, place, rows) for place, rows in splits.items()), key=len)

    def _by_value(self, row: list[int], axis: int) -> list[TableBox]:
        groups: dict[int, list[int]] = {}
        for given, value in zip(self.sets[axis], row, strict=True):
            groups.setdefault(value, []).append(given)
        return [(((axis, frozenset(given)),), value) for value, given in groups.items()]

    def _along(self, table: np.ndarray, axes: tuple[int, ...], place: int, rows: list[list[int]]) -> list[TableBox]:
        rest, own = axes[:place] + axes[place + 1 :], self.sets[axes[place]]
        found = []
        for group in rows:
            side = axes[place], frozenset(own[r] for r in group)
            found += [((side, *sides), value) for sides, value in self.boxes(table.take(group[0], axis=place), rest)]
        return found


def _agreeing_rows(table: np.ndarray, place: int) -> list[list[int]]:
    groups: dict[bytes, list[int]] = {}
    for r, row in enumerate(np.moveaxis(table, place, 0)):
        groups.setdefault(row.tobytes(), []).append(r)
    return list(groups.values())


# --- merging ----------------------------------------------------------------------------------------------------------


def merge(boxes: list[Box]) -> list[Box]:
    """Unite boxes that differ in one side only, until none do."""
    while True:
        before = len(boxes)
        for i in sorted({i for box in boxes for i, _ in box.sides}):
            boxes = _merge_along(boxes, i)
        if len(boxes) == before:
            return boxes


def _merge_along(boxes: list[Box], i: int) -> list[Box]:
    groups: dict[tuple[Sides, int], list[frozenset[int]]] = {}
    free: list[Box] = []
    for box in boxes:
        own = dict(box.sides).get(i)
        if own is None:
            free.append(box)
        else:
            groups.setdefault((tuple(s for s in box.sides if s[0] != i), box.value), []).append(own)
    united = (Box(_with(i, frozenset().union(*sets), sides), value) for (sides, value), sets in groups.items())
    return [*free, *united]
