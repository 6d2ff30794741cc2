"""RASP-L on numpy arrays, vectorised.

Functions are recorded once as expressions and evaluated on whole arrays.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import reduce
from operator import and_, eq
from types import BuiltinFunctionType
from typing import Any

import numpy as np

from rasp.arithmetic import COMPARISONS, array_kind, constant
from rasp.core import Function
from rasp.engines.attention import EQUAL, SHORT, Array, attend, causal_places, numbered, reduce_matrix, selector_matrix
from rasp.engines.numbers import INT64, NEAR, Numbers, counted_numbers, full_numbers, numbers
from rasp.engines.short_cuts import (
    best_so_far,
    delayed,
    first_places,
    first_so_far,
    last_so_far,
    same_so_far,
    scalar,
    value_at,
)
from rasp.errors import ProgramError
from rasp.predicates import Predicate, classify
from rasp.scalar import Expr, capture, truth, whole
from rasp.scalar.memory import remembered
from rasp.scalar.vectorised import vector_function

_COMPARING = frozenset(COMPARISONS.values())
_ARRAYS = (np.ndarray, Numbers)


class Eager:
    def full(self, x: Any, const: int) -> Array:
        return full_numbers(len(x), constant(const, "the constant of full"))

    def indices(self, x: Any) -> Array:
        return counted_numbers(len(x))

    def tok_map(self, x: Any, func: Function) -> Array:
        x = _given(x)
        return _map(func, (x.dtype.num,), x)

    def seq_map(self, x: Any, y: Any, func: Function) -> Array:
        if type(func) is BuiltinFunctionType and func in _COMPARING and _are_int64(x, y) and len(x) == len(y):
            chosen: Array = func(x.view(np.ndarray), y.view(np.ndarray))
            return chosen.astype(INT64).view(Numbers)
        x, y = _given(x), _given(y)
        if len(x) != len(y):
            length = min(len(x), len(y))  # as zip does
            x, y = x[:length], y[:length]
        return _map(func, (x.dtype.num, y.dtype.num), x, y)

    def where(self, condition: Any, x_if: Any, y_else: Any) -> Array | None:
        """The library's `where` on whole numbers, in one go (that it is the choice is a lemma of `prove`)."""
        if not (_are_int64(x_if, y_else) and type(condition) in _ARRAYS and condition.dtype.kind in "bi"):
            return None
        if not len(condition) == len(x_if) == len(y_else):
            return None
        return np.where(condition.view(np.ndarray), x_if.view(np.ndarray), y_else.view(np.ndarray)).view(Numbers)

    def select(self, k: Any, q: Any, pred: Function, causal: bool) -> Array:
        k, q = _aligned(k, q)
        return selector_matrix(_condition(pred, k, q), [k], [q], causal)

    def sel_width(self, A: Any) -> Array:
        return numbers(_matrix(A).sum(axis=1, dtype=np.int64))

    def aggr(self, A: Any, v: Any, default: int, reduction: str) -> Array:
        v = _given(v)
        return numbers(reduce_matrix(_matrix(A), v, _default(default, v, reduction), reduction))

    def kqv(self, k: Any, q: Any, v: Any, pred: Function, default: int, reduction: str) -> Array:
        found = _closed_form(k, q, v, default, reduction) if pred is eq else None
        if found is not None:
            return found.view(Numbers)
        k, q = _aligned(k, q)
        v = _given(v)
        if len(v) != len(k):
            raise ProgramError(f"keys and values differ in length: {len(k)} and {len(v)}")
        predicate = _classified(pred, k, q)
        return attend(predicate, [k], [q], v, _default(default, v, reduction), reduction).view(Numbers)

    def kqv_tuples(self, pairs: list[tuple[Any, Any]], v: Any, default: int, reduction: str) -> Array:
        """`kqv` by the equality of every pair of keys and queries at once."""
        aligned = [_aligned(k, q) for k, q in pairs]
        if any(x.dtype.kind == "f" for pair in aligned for x in pair):
            found = reduce(and_, (self.select(k, q, eq, True) for k, q in aligned))
            return self.aggr(found, v, default, reduction)
        return self.kqv(*numbered(aligned), v, eq, default, reduction)


EAGER = Eager()
Numbers.__rasp__ = EAGER


def _given(x: Any) -> Array:
    """A sequence as it was handed in: whole numbers as int64, truth values and floats as they are."""
    if isinstance(x, np.ndarray) and x.dtype is INT64:
        return x if type(x) is np.ndarray else x.view(np.ndarray)
    x = np.asarray(x)
    if x.dtype == np.uint64 and x.size and x.max() > np.iinfo(np.int64).max or x.dtype.kind not in "biuf":
        raise ProgramError(f"a sequence holds 64-bit whole numbers, truth values or floats, not {x.dtype}")
    x = x.view(np.ndarray)
    return x.astype(np.int64, copy=False) if x.dtype.kind in "iu" else x


def _matrix(A: Any) -> Array:
    """What `select` made: a row of truth values for each position."""
    A = np.asarray(A)
    if A.ndim != 2 or A.dtype.kind not in "bi":
        raise ProgramError("this takes a selector, which select(k, q, predicate) makes, not a sequence")
    return A


def _closed_form(k: Any, q: Any, v: Any, default: Any, reduction: str) -> Array | None:
    """Causal `kqv` by equality where keys, queries or values are known to count up, or to be the same everywhere."""
    if not (_are_int64(k, q) and _are_int64(k, v) and 0 < len(k) == len(q) == len(v)):
        return None
    keys_from = k.start if type(k) is Numbers else None
    if keys_from is None:
        return _one_sided(k, q, v, default, reduction)
    otherwise = constant(default, "the default")
    here = q.start if type(q) is Numbers else None
    if here is not None:
        return delayed(keys_from - here, v.view(np.ndarray), otherwise)
    return value_at(keys_from, q.view(np.ndarray), v.view(np.ndarray), otherwise)


def _one_sided(k: Array, q: Array, v: Array, default: Any, reduction: str) -> Array | None:
    """Queries that are the same everywhere; or the first place of each."""
    same = q.constant if type(q) is Numbers else None
    counts_from, value = (v.start, v.constant) if type(v) is Numbers else (None, None)
    k, v = k.view(np.ndarray), v.view(np.ndarray)
    if same is None:
        if reduction != "min" or counts_from != 0 or len(k) > SHORT:
            return None
        q = q.view(np.ndarray)
        return first_places(k, q, (q[:, None] == k) & causal_places(len(k)), constant(default, "the default"))
    if value is not None and abs(value) < NEAR // len(k):  # its mean is itself: no total wraps around
        return same_so_far(k == scalar(same), value, constant(default, "the default"))
    if reduction == "mean":
        return None
    otherwise = constant(default, "the default")
    if counts_from is not None and reduction == "min":
        return first_so_far(k == scalar(same), v, otherwise)
    if counts_from is not None and otherwise <= counts_from:
        return last_so_far(k == scalar(same), v, otherwise)
    return best_so_far(k == scalar(same), v, otherwise, np.maximum if reduction == "max" else np.minimum)


def _are_int64(x: Any, y: Any) -> bool:
    return type(x) in _ARRAYS and type(y) in _ARRAYS and x.dtype is y.dtype is INT64


def _aligned(k: Any, q: Any) -> tuple[Array, Array]:
    """Keys and queries; queries beyond the last key are ignored, as the listing does."""
    k, q = _given(k), _given(q)
    if len(q) < len(k):
        raise ProgramError(f"there are fewer queries than keys: {len(q)} and {len(k)}")
    return k, q if len(q) == len(k) else q[: len(k)]


def _default(default: Any, v: Array, reduction: str) -> int:
    """What an empty selection gives: cut; and of truth values' type, where the listing makes its result like v."""
    return int(bool(default)) if reduction == "max" and v.dtype == np.bool_ else constant(default, "the default")


def _map(func: Function, types: tuple[int, ...], *arrays: Array) -> Array:
    if not len(arrays[0]):
        return np.zeros(0, dtype=np.int64).view(Numbers)
    function = remembered(func, types, _vectorised, func, arrays)
    return function(*arrays).view(Numbers)  # type: ignore[no-any-return]


def _vectorised(func: Function, arrays: tuple[Array, ...]) -> Callable[..., Array]:
    return vector_function(whole(capture(func, len(arrays), [array_kind(a) for a in arrays])))


def _condition(pred: Function, k: Array, q: Array) -> Expr:
    return truth(capture(pred, 2, [array_kind(k), array_kind(q)], truth=True))


def _classified(pred: Function, k: Array, q: Array) -> Predicate:
    return remembered(pred, ("kqv", k.dtype.num, q.dtype.num), _found_kind, pred, k, q)  # type: ignore[no-any-return]


def _found_kind(pred: Function, k: Array, q: Array) -> Predicate:
    predicate = classify(_condition(pred, k, q))
    return replace(predicate, condition=EQUAL) if predicate.condition == EQUAL else predicate
