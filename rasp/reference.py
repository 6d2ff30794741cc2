"""RASP-L word by word: lists and loops, quadratic in the length.

What every other interpreter is tested against, so it shares nothing with them: functions are called as they are, on
every element and every pair, and are given numpy's numbers, as in the paper's listing.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from rasp.core import Function, Predicate


class Plain:
    """A sequence of numbers (or truth values). Operators work elementwise, as on numpy arrays."""

    __hash__ = None  # type: ignore[assignment]
    __array_ufunc__ = None  # numpy leaves operators to us

    def __init__(self, items: Iterable[Any]) -> None:
        self.items: list[Any] = [np.bool_(x) if isinstance(x, bool | np.bool_) else np.int64(x) for x in items]

    @property
    def __rasp__(self) -> Reference:
        return REFERENCE

    def __len__(self) -> int:
        return len(self.items)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.items)

    def __getitem__(self, i: int) -> Any:
        return self.items[i]

    def __neg__(self) -> Plain:
        return Plain(-x for x in self.items)

    def __invert__(self) -> Plain:
        return Plain(~x for x in self.items)

    def __abs__(self) -> Plain:
        return Plain(abs(x) for x in self.items)


def _elementwise(function: Callable[[Any, Any], Any], swapped: bool) -> Callable[[Plain, Any], Plain]:
    def method(self: Plain, other: Any) -> Plain:
        others = other if isinstance(other, Plain | np.ndarray) else [other] * len(self)
        return Plain(function(b, a) if swapped else function(a, b) for a, b in zip(self, others, strict=True))

    return method


for _name in ("add", "sub", "mul", "floordiv", "mod", "pow", "lshift", "rshift", "and", "or", "xor"):
    _function = getattr(operator, f"__{_name}__")
    setattr(Plain, f"__{_name}__", _elementwise(_function, swapped=False))
    setattr(Plain, f"__r{_name}__", _elementwise(_function, swapped=True))
for _name in ("eq", "ne", "lt", "le", "gt", "ge"):
    setattr(Plain, f"__{_name}__", _elementwise(getattr(operator, _name), swapped=False))


class Matrix:
    """A selector: row i says which positions position i looks at."""

    def __init__(self, rows: list[list[bool]]) -> None:
        self.rows = rows

    @property
    def __rasp__(self) -> Reference:
        return REFERENCE

    def __and__(self, other: Matrix) -> Matrix:
        return self._combine(other, operator.and_)

    def __or__(self, other: Matrix) -> Matrix:
        return self._combine(other, operator.or_)

    def _combine(self, other: Matrix, function: Callable[[Any, Any], Any]) -> Matrix:
        pairs = zip(self.rows, other.rows, strict=True)
        return Matrix([[function(a, b) for a, b in zip(*rows, strict=True)] for rows in pairs])


class Reference:
    def full(self, x: Plain, const: int) -> Plain:
        return Plain([int(const)] * len(x))

    def indices(self, x: Plain) -> Plain:
        return Plain(range(len(x)))

    def tok_map(self, x: Plain, func: Function) -> Plain:
        return Plain(int(func(a)) for a in x)

    def seq_map(self, x: Plain, y: Plain, func: Function) -> Plain:
        return Plain(int(func(a, b)) for a, b in zip(x, y, strict=False))

    def select(self, k: Plain, q: Plain, pred: Predicate, causal: bool) -> Matrix:
        size = len(k)
        return Matrix([[(j <= i or not causal) and bool(pred(k[j], q[i])) for j in range(size)] for i in range(size)])

    def sel_width(self, A: Matrix) -> Plain:
        return Plain(sum(row) for row in A.rows)

    def aggr(self, A: Matrix, v: Plain, default: int, reduction: str) -> Plain:
        if reduction == "max" and v.items and all(isinstance(x, np.bool_) for x in v):
            default = bool(default)  # the listing's result has the type of v until its end
        seen = ([int(x) for x, chosen in zip(v, row, strict=True) if chosen] for row in A.rows)
        return Plain(self._reduce(values, int(default), reduction) for values in seen)

    def kqv(self, k: Plain, q: Plain, v: Plain, pred: Predicate, default: int, reduction: str) -> Plain:
        return self.aggr(self.select(k, q, pred, True), v, default, reduction)

    @staticmethod
    def _reduce(seen: list[int], default: int, reduction: str) -> int:
        if not seen:
            return default
        if reduction == "mean":
            total = sum(seen)
            return total // len(seen) if total >= 0 else -(-total // len(seen))  # towards zero
        return max(seen) if reduction == "max" else min(seen)


REFERENCE = Reference()
