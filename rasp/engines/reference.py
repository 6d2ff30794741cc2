"""RASP-L word by word: lists and loops, quadratic in the length.

The definition that every other engine is tested against. It shares nothing with them but the rule of arithmetic
(`rasp.arithmetic`): functions are called as they are, on every element and every pair. A sequence holds whole numbers,
truth values or, between primitives, floats; what a primitive gives is whole numbers again.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from rasp.arithmetic import COMPARISONS, Number, apply, apply_unary, constant, cut, mean, not_a_number, number, wrap
from rasp.core import Function
from rasp.errors import NO_CHANGE, NO_TRUTH, NO_TRUTH_OF_SELECTORS, ProgramError
from rasp.operators import Operators
from rasp.values import ask, call, value


class Plain(Operators):
    """A sequence of numbers. Operators work elementwise."""

    __array_ufunc__ = None  # numpy leaves operators to us

    def __init__(self, items: Iterable[Any]) -> None:
        self.items: list[Number] = [number(x) for x in items]

    @property
    def __rasp__(self) -> Reference:
        return REFERENCE

    def __len__(self) -> int:
        return len(self.items)

    def __bool__(self) -> bool:
        raise ProgramError(NO_TRUTH)

    def __setitem__(self, place: Any, value: Any) -> None:
        raise ProgramError(NO_CHANGE)

    def __iter__(self) -> Iterator[Number]:
        return iter(self.items)

    def __getitem__(self, i: int) -> Number:
        return self.items[i]

    def _binary(self, op: str, other: Any, swapped: bool) -> Any:
        others = other if isinstance(other, Plain | np.ndarray) else [_scalar(other)] * len(self)
        pairs = zip(others, self, strict=True) if swapped else zip(self, others, strict=True)
        return Plain(apply(op, number(a), number(b)) for a, b in pairs)

    def _unary(self, op: str) -> Plain:
        return Plain(apply_unary(op, a) for a in self)


def _scalar(other: Any) -> Number:
    try:
        return number(other)
    except TypeError:
        raise ProgramError(not_a_number(other)) from None
    except OverflowError as error:
        raise ProgramError(str(error)) from None


class Matrix:
    """A selector: row i says which positions position i looks at."""

    def __init__(self, rows: list[list[bool]]) -> None:
        self.rows = rows

    @property
    def __rasp__(self) -> Reference:
        return REFERENCE

    def __bool__(self) -> bool:
        raise ProgramError(NO_TRUTH_OF_SELECTORS)

    def __and__(self, other: Matrix) -> Matrix:
        pairs = zip(self.rows, other.rows, strict=True)
        return Matrix([[a and b for a, b in zip(*rows, strict=True)] for rows in pairs])

    def __or__(self, other: Matrix) -> Matrix:
        pairs = zip(self.rows, other.rows, strict=True)
        return Matrix([[a or b for a, b in zip(*rows, strict=True)] for rows in pairs])

    def __invert__(self) -> Matrix:
        return Matrix([[not chosen for chosen in row] for row in self.rows])


class Reference:
    def full(self, x: Plain, const: int) -> Plain:
        return Plain([constant(const, "the constant of full")] * len(x))

    def indices(self, x: Plain) -> Plain:
        return Plain(range(len(x)))

    def tok_map(self, x: Plain, func: Function) -> Plain:
        return Plain(cut(call(func, a)) for a in x)

    def seq_map(self, x: Plain, y: Plain, func: Function) -> Plain:
        return Plain(cut(call(func, a, b)) for a, b in zip(x, y, strict=False))

    def select(self, k: Plain, q: Plain, pred: Function, causal: bool) -> Matrix:
        size = len(k)
        keys, queries, asked = k.items, q.items, pred
        if not (_is_comparison(pred) and _all_whole(keys) and _all_whole(queries)):  # Python compares those as we do
            keys, queries = [value(a) for a in k], [value(a) for a in q]  # type: ignore[misc]
            asked = functools.partial(ask, pred)
        rows = []
        for i in range(size):
            reach = i + 1 if causal else size
            rows.append([bool(asked(keys[j], queries[i])) for j in range(reach)] + [False] * (size - reach))
        return Matrix(rows)

    def sel_width(self, A: Matrix) -> Plain:
        return Plain(sum(row) for row in A.rows)

    def aggr(self, A: Matrix, v: Plain, default: int, reduction: str) -> Plain:
        otherwise = constant(default, "the default")
        if reduction == "max" and v.items and all(isinstance(x, bool) for x in v):
            otherwise = int(bool(default))  # the listing's result has the type of v until its end
        seen = ([x for x, chosen in zip(v, row, strict=True) if chosen] for row in A.rows)
        return Plain(self._reduce(values, otherwise, reduction) for values in seen)

    def kqv(self, k: Plain, q: Plain, v: Plain, pred: Function, default: int, reduction: str) -> Plain:
        return self.aggr(self.select(k, q, pred, True), v, default, reduction)

    @staticmethod
    def _reduce(seen: list[Number], default: int, reduction: str) -> int:
        """The mean is the sum (of int64, wrapping around) divided by the count, cut towards zero."""
        if not seen:
            return default
        if reduction == "mean" and any(isinstance(x, float) for x in seen):
            total: float = 0.0
            for x in seen:  # in order: floats round
                total += float(x)
            return cut(total / len(seen))
        whole = [cut(x) for x in seen]
        if reduction == "mean":
            return mean(wrap(sum(whole)), len(whole))
        return max(whole) if reduction == "max" else min(whole)


def _is_comparison(pred: Function) -> bool:
    return any(pred is compare for compare in COMPARISONS.values())


def _all_whole(items: list[Number]) -> bool:
    return not any(isinstance(x, float) for x in items)


REFERENCE = Reference()
