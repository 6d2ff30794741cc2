"""Sequences of numbers: numpy arrays whose operators follow our rule of arithmetic."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

from rasp.arithmetic import (
    BINARY,
    COMPARISONS,
    HIGHEST,
    LOWEST,
    apply_arrays,
    apply_unary_arrays,
    not_a_number,
    number,
)
from rasp.core import Interpreter
from rasp.engines.short_cuts import REMEMBERED, positions, scalar
from rasp.errors import NO_CHANGE, NO_TRUTH, ProgramError
from rasp.operators import Operators

INT64, BOOL = np.dtype(np.int64), np.dtype(np.bool_)
NEAR = 2**62  # numbers that count up from less than this do not wrap around


class Numbers(Operators, np.ndarray):  # type: ignore[misc]
    """A numpy array of bool, int64 or float64 whose operators follow our rule of arithmetic.

    What `full` and `indices` give cannot be written to, and says what it is: attention to it has a closed form.
    """

    __rasp__: Interpreter
    constant: int | None = None  # the number that stands everywhere
    start: int | None = None  # the first of numbers that count up

    def __bool__(self) -> bool:
        if self.ndim:
            raise ProgramError(NO_TRUTH)
        return bool(self.view(np.ndarray))

    def __setitem__(self, place: Any, value: Any) -> None:
        raise ProgramError(NO_CHANGE)

    def _binary(self, op: str, other: Any, swapped: bool) -> Any:
        if not isinstance(other, np.ndarray):
            try:
                other = number(other)
            except TypeError:
                raise ProgramError(not_a_number(other)) from None
            except OverflowError as error:
                raise ProgramError(str(error)) from None
        mine = self.view(np.ndarray)
        theirs = other.view(np.ndarray) if isinstance(other, np.ndarray) else other
        with np.errstate(all="ignore"):
            return numbers(apply_arrays(op, theirs, mine) if swapped else apply_arrays(op, mine, theirs))

    def _unary(self, op: str) -> Any:
        return numbers(apply_unary_arrays(op, self.view(np.ndarray)))  # none of these can warn

    __iadd__, __isub__, __imul__ = Operators.__add__, Operators.__sub__, Operators.__mul__
    __ifloordiv__, __imod__, __itruediv__ = Operators.__floordiv__, Operators.__mod__, Operators.__truediv__
    __ipow__, __ilshift__, __irshift__ = Operators.__pow__, Operators.__lshift__, Operators.__rshift__
    __iand__, __ior__, __ixor__ = Operators.__and__, Operators.__or__, Operators.__xor__  # type: ignore[assignment]


def _quick(op: str) -> Callable[[Any, Any], Any]:
    """An operator that numpy has too: its own answer for int64, and quickly."""
    compute, both_truths = BINARY[op], op in "&|^"

    def method(self: Numbers, other: Any) -> Any:
        if self.dtype is INT64:
            if type(other) is int and LOWEST <= other <= HIGHEST:
                found = compute(self.view(np.ndarray), scalar(other)).view(Numbers)
                if self.start is not None and op in ("+", "-"):
                    _count_from(found, self.start + (other if op == "+" else -other))
                return found
            if type(other) is Numbers and other.dtype is INT64:
                return compute(self.view(np.ndarray), other.view(np.ndarray)).view(Numbers)
        elif both_truths and self.dtype is BOOL and type(other) is Numbers and other.dtype is BOOL:
            return compute(self.view(np.ndarray), other.view(np.ndarray)).view(Numbers)
        return self._binary(op, other, False)

    return method


def _count_from(x: Numbers, start: int) -> None:
    if abs(start) < NEAR:
        x.start = start
        x.flags.writeable = False


for _op, _name in {"+": "add", "-": "sub", "*": "mul", "&": "and", "|": "or", "^": "xor"}.items():
    setattr(Numbers, f"__{_name}__", _quick(_op))
for _op, _compare in COMPARISONS.items():
    setattr(Numbers, f"__{_compare.__name__}__", _quick(_op))


def numbers(x: Any) -> Numbers:
    """An array, seen as a sequence."""
    return np.asarray(x).view(Numbers)


def full_numbers(length: int, value: int) -> Numbers:
    """The same number everywhere; short ones are kept."""
    return _short_full(length, value) if length <= REMEMBERED else _full(length, value)


def counted_numbers(length: int) -> Numbers:
    """0, 1, 2, ..; short ones are kept."""
    return _short_indices(length) if length <= REMEMBERED else _indices(length)


def _full(length: int, value: int) -> Numbers:
    found = np.empty(length, dtype=INT64)
    found.fill(value)
    found.flags.writeable = False
    result: Numbers = found.view(Numbers)
    result.constant = value
    return result


def _indices(length: int) -> Numbers:
    result: Numbers = positions(length).view(Numbers)
    _count_from(result, 0)
    return result


_short_full, _short_indices = lru_cache(maxsize=1024)(_full), lru_cache(maxsize=REMEMBERED + 1)(_indices)
