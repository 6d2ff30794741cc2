"""RASP-L on numpy arrays, vectorised.

Functions are recorded once as expressions and evaluated on whole arrays. `kqv` never builds the selector matrix when
its predicate is an equality or looks at one side only: equal keys are grouped by sorting and reduced by running
sums and maxima inside each group.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from rasp.core import Function
from rasp.core import Predicate as PredicateFunction
from rasp.predicates import Predicate, classify
from rasp.scalar import Expr, capture, evaluate_arrays

Array = np.ndarray


class Eager:
    def full(self, x: Any, const: int) -> Array:
        return np.full(len(x), const, dtype=np.int64)

    def indices(self, x: Any) -> Array:
        return np.arange(len(x), dtype=np.int64)

    def tok_map(self, x: Any, func: Function) -> Array:
        return _map(func, np.asarray(x))

    def seq_map(self, x: Any, y: Any, func: Function) -> Array:
        x, y = np.asarray(x), np.asarray(y)
        length = min(len(x), len(y))  # as zip does
        return _map(func, x[:length], y[:length])

    def select(self, k: Any, q: Any, pred: PredicateFunction, causal: bool) -> Array:
        k, q = _aligned(k, q)
        return selector_matrix(_record(pred, k, q), [k], [q], causal)

    def sel_width(self, A: Any) -> Array:
        return np.asarray(A).sum(axis=1, dtype=np.int64)

    def aggr(self, A: Any, v: Any, default: int, reduction: str) -> Array:
        v = np.asarray(v)
        return reduce_matrix(np.asarray(A), v, _default(default, v, reduction), reduction)

    def kqv(self, k: Any, q: Any, v: Any, pred: PredicateFunction, default: int, reduction: str) -> Array:
        k, q = _aligned(k, q)
        v = np.asarray(v)
        if len(v) != len(k):
            raise ValueError(f"keys and values differ in length: {len(k)} and {len(v)}")
        return attend(classify(_record(pred, k, q)), [k], [q], v, _default(default, v, reduction), reduction)


EAGER = Eager()


def _aligned(k: Any, q: Any) -> tuple[Array, Array]:
    """Keys and queries; queries beyond the last key are ignored, as the listing does."""
    k, q = np.asarray(k), np.asarray(q)
    if len(q) < len(k):
        raise ValueError(f"there are fewer queries than keys: {len(q)} and {len(k)}")
    return k, q[: len(k)]


def _default(default: Any, v: Array, reduction: str) -> int:
    """What an empty selection gives: cut; and of truth values' type, where the listing makes its result like v."""
    return int(bool(default) if reduction == "max" and v.dtype == np.bool_ else default)


def _record(func: Function, *arrays: Array) -> Expr:
    return capture(func, len(arrays), [a.dtype == np.bool_ for a in arrays])


def _map(func: Function, *arrays: Array) -> Array:
    return map_arrays(_record(func, *arrays), *arrays)


def map_arrays(e: Expr, *arrays: Array) -> Array:
    """`e` at every position: whole numbers, fractions cut."""
    if not len(arrays[0]):
        return np.zeros(0, dtype=np.int64)
    with np.errstate(all="ignore"):  # both branches of an if-then-else are computed; the other one may divide by 0
        result = evaluate_arrays(e, arrays)
        return np.broadcast_to(np.asarray(result), arrays[0].shape).astype(np.int64)


def selector_matrix(condition: Expr, k: list[Array], q: list[Array], causal: bool) -> Array:
    length = len(k[0])
    columns = [a[None, :] for a in k] + [a[:, None] for a in q]
    with np.errstate(all="ignore"):
        matrix = np.broadcast_to(evaluate_arrays(condition, columns), (length, length)).astype(bool)
    return np.tril(matrix) if causal else matrix


def reduce_matrix(A: Array, v: Array, default: int, reduction: str) -> Array:
    width = A.sum(axis=1, dtype=np.int64)
    if reduction == "count":
        return width
    if reduction == "mean":
        return _mean(A @ v.astype(_exact(v)), width, default)
    lowest, highest = _bounds(v)
    if reduction == "max":
        best = np.where(A, v[None, :], lowest).max(axis=1, initial=lowest)
    else:
        best = np.where(A, v[None, :], highest).min(axis=1, initial=highest)
    return np.where(width > 0, best, default).astype(np.int64)


def _exact(v: Array) -> type:
    return np.float64 if np.issubdtype(v.dtype, np.floating) else np.int64


def _bounds(v: Array) -> tuple[float | int, float | int]:
    if np.issubdtype(v.dtype, np.floating):
        return -np.inf, np.inf
    return np.iinfo(np.int64).min, np.iinfo(np.int64).max


def _mean(total: Array, count: Array, default: int) -> Array:
    """Means cut towards zero; those of whole numbers without rounding (a float would lose what is beyond 2**53)."""
    some = np.maximum(count, 1)
    if np.issubdtype(total.dtype, np.floating):
        return np.where(count > 0, (total / some).astype(np.int64), default)
    mean = total // some
    mean += (total < 0) & (mean * some != total)
    return np.where(count > 0, mean, default)


def attend(pred: Predicate, k: list[Array], q: list[Array], v: Array, default: int, reduction: str) -> Array:
    """Causal `kqv`, by the cheapest way the predicate allows. The reduction `count` is `sel_width`."""
    length = len(v)
    if length == 0:
        return np.zeros(0, dtype=np.int64)
    args = [*k, *q]
    if reduction == "mean" and np.issubdtype(v.dtype, np.floating):  # differences of running sums would round
        return reduce_matrix(selector_matrix(pred.condition, k, q, causal=True), v, default, reduction)
    if pred.kind == "equality":
        assert pred.key is not None and pred.query is not None
        return _attend_equal(_side(pred.key, args), _side(pred.query, args), v, default, reduction)
    if pred.kind in ("key", "query", "constant"):
        chosen = map_arrays(pred.condition, *args).astype(bool)
        keys = chosen if pred.kind == "key" else np.ones(length, dtype=bool)
        asks = np.ones(length, dtype=bool) if pred.kind == "key" else chosen
        return _attend_equal(np.where(keys, 1, 0), np.where(asks, 1, 2), v, default, reduction)
    return reduce_matrix(selector_matrix(pred.condition, k, q, causal=True), v, default, reduction)


def _side(e: Expr, arrays: list[Array]) -> Array:
    """One side of an equality at every position, with its fraction if the given sequence has one."""
    with np.errstate(all="ignore"):
        result = np.broadcast_to(np.asarray(evaluate_arrays(e, arrays)), arrays[0].shape)
    return result if np.issubdtype(result.dtype, np.floating) else result.astype(np.int64)


def _attend_equal(k: Array, q: Array, v: Array, default: int, reduction: str) -> Array:
    """Reduce v over the earlier-or-same positions whose key equals the query.

    Keys and queries are laid out in one list sorted by (value, position, key before query); a running reduction
    restarted at each new value then stands, at every query, for exactly the keys it may see.
    """
    length = len(k)
    values = np.concatenate([k, q])
    is_key = np.repeat([True, False], length)
    positions = np.tile(np.arange(length), 2)
    order = np.lexsort((~is_key, positions, values))
    values, is_key, positions = values[order], is_key[order], positions[order]
    group = np.concatenate([[0], np.cumsum(values[1:] != values[:-1])])
    count = _running_sum(is_key.astype(np.int64), group)
    if reduction == "count":
        result = count
    elif reduction == "mean":
        total = _running_sum(np.where(is_key, v.astype(_exact(v))[positions], 0), group)
        result = _mean(total, count, default)
    else:
        result = np.where(count > 0, _running_best(v[positions], is_key, group, reduction), default)
    out = np.empty(length, dtype=np.int64)
    out[positions[~is_key]] = result[~is_key]
    return out


def _running_sum(x: Array, group: Array) -> Array:
    total = np.cumsum(x)
    starts = np.concatenate([[True], group[1:] != group[:-1]])
    return total - (total - x)[starts][group]


def _running_best(v: Array, is_key: Array, group: Array, reduction: str) -> Array:
    """Running max (min) inside each group: by rank, offset by group so that a later group always outranks."""
    distinct, rank = np.unique(v, return_inverse=True)
    top = len(distinct)
    rank = np.where(is_key, rank if reduction == "max" else top - 1 - rank, -1)
    best = np.maximum.accumulate(rank + group * (top + 1)) - group * (top + 1)
    best = np.maximum(best, 0)
    return distinct[best if reduction == "max" else top - 1 - best]
