"""Attention on arrays, by the cheapest way that its predicate allows.

The selector matrix is not built where the predicate is an equality or looks at one side only: equal keys are grouped
by sorting and reduced by running sums and maxima inside each group. On short sequences the matrix is cheaper.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from rasp.arithmetic import HIGHEST, LOWEST, cut_array
from rasp.engines.numbers import INT64
from rasp.engines.short_cuts import REMEMBERED
from rasp.predicates import Predicate
from rasp.scalar import Expr, arg, binary, evaluate_arrays, opaque_calls
from rasp.scalar.vectorised import vector_function

Array = np.ndarray
SHORT = REMEMBERED  # sequences up to this long are attended pair by pair
EQUAL = binary("==", arg(0), arg(1))


def map_arrays(e: Expr, *arrays: Array) -> Array:
    """`e` at every position: whole numbers, fractions cut."""
    if not len(arrays[0]):
        return np.zeros(0, dtype=np.int64)
    return vector_function(e)(*arrays).astype(np.int64, copy=False)


@lru_cache(maxsize=256)
def causal_places(length: int) -> Array:
    """Row i looks at positions 0 to i."""
    return np.tri(length, dtype=bool)


def selector_matrix(condition: Expr, k: list[Array], q: list[Array], causal: bool) -> Array:
    length = len(k[0])
    if opaque_calls(condition):
        return _asked_matrix(condition, k, q, causal)
    columns = [a[None, :] for a in k] + [a[:, None] for a in q]
    matrix = np.broadcast_to(vector_function(condition)(*columns), (length, length)).astype(bool)
    return matrix & (causal_places(length) if length <= SHORT else np.tri(length, dtype=bool)) if causal else matrix


def _asked_matrix(condition: Expr, k: list[Array], q: list[Array], causal: bool) -> Array:
    """A predicate that has to be called is asked only about the pairs that count: it may fail on others."""
    length = len(k[0])
    matrix = np.zeros((length, length), dtype=bool)
    pairs = np.tril_indices(length) if causal else tuple(a.ravel() for a in np.indices((length, length)))
    with np.errstate(all="ignore"):
        matrix[pairs] = evaluate_arrays(condition, [a[pairs[1]] for a in k] + [a[pairs[0]] for a in q])
    return matrix


def reduce_matrix(A: Array, v: Array, default: int, reduction: str) -> Array:
    width = A @ _ones(A.shape[1])
    if reduction == "count":
        return width
    if reduction == "mean":
        return _mean(_totals(A, v), width, default)
    v = v if v.dtype is INT64 else cut_array(v)
    if reduction == "max":
        best = np.maximum.reduce(np.where(A, v, LOWEST), axis=1, initial=LOWEST)
    else:
        best = np.minimum.reduce(np.where(A, v, HIGHEST), axis=1, initial=HIGHEST)
    return np.where(width, best, default)


@lru_cache(maxsize=256)
def _ones(length: int) -> Array:
    return np.ones(length, dtype=np.int64)


def _totals(A: Array, v: Array) -> Array:
    """The sum of what each row selects: whole numbers wrap around, floats are added in order."""
    if v.dtype.kind != "f":
        return A @ (v if v.dtype is INT64 else v.astype(np.int64))
    with np.errstate(all="ignore"):
        return np.cumsum(np.where(A, v[None, :], 0.0), axis=1)[:, -1] if A.size else np.zeros(len(A))


def _mean(total: Array, count: Array, default: int) -> Array:
    """Means cut towards zero; those of whole numbers without rounding (a float would lose what is beyond 2**53)."""
    if total.dtype is INT64 and len(count) and np.maximum.reduce(count) <= 1:
        return np.where(count, total, default)
    some = np.maximum(count, 1)
    if total.dtype.kind == "f":
        return np.where(count > 0, cut_array(total / some), default)
    mean = total // some
    mean += (mean < 0) & (mean * some != total)
    return np.where(count > 0, mean, default)


def attend(pred: Predicate, k: list[Array], q: list[Array], v: Array, default: int, reduction: str) -> Array:
    """Causal `kqv`, by the cheapest way the predicate allows. The reduction `count` is `sel_width`."""
    length = len(v)
    if length == 0:
        return np.zeros(0, dtype=np.int64)
    args = [*k, *q]
    if length <= SHORT:
        return reduce_matrix(_short_matrix(pred, k, q), v, default, reduction)
    if reduction == "mean" and v.dtype.kind == "f":  # differences of running sums would round
        return reduce_matrix(selector_matrix(pred.condition, k, q, causal=True), v, default, reduction)
    v = v if reduction == "mean" or v.dtype is INT64 else cut_array(v)
    if pred.kind == "equality":
        assert pred.key is not None and pred.query is not None
        return _attend_equal(_side(pred.key, args), _side(pred.query, args), v, default, reduction)
    if pred.kind == "tuple":
        pairs = [(_side(key, args), _side(query, args)) for key, query in pred.pairs]
        return _attend_equal(*numbered(pairs), v, default, reduction)
    if pred.kind in ("key", "query", "constant"):
        chosen = map_arrays(pred.condition, *args).astype(bool)
        keys = chosen if pred.kind == "key" else np.ones(length, dtype=bool)
        asks = np.ones(length, dtype=bool) if pred.kind == "key" else chosen
        return _attend_equal(np.where(keys, 1, 0), np.where(asks, 1, 2), v, default, reduction)
    return reduce_matrix(selector_matrix(pred.condition, k, q, causal=True), v, default, reduction)


def _short_matrix(pred: Predicate, k: list[Array], q: list[Array]) -> Array:
    """The selector of a short sequence, where sorting would cost more than comparing every pair."""
    if pred.condition is EQUAL:
        return (q[0][:, None] == k[0]) & causal_places(len(k[0]))
    return selector_matrix(pred.condition, k, q, causal=True)


def _side(e: Expr, arrays: list[Array]) -> Array:
    """One side of an equality at every position."""
    return map_arrays(e, *arrays)


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
        total = _running_sum(np.where(is_key, v.astype(np.int64)[positions], 0), group)
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


def numbered(pairs: list[tuple[Array, Array]]) -> tuple[Array, Array]:
    """Tuples as numbers, keys and queries alike: equal tuples have the same."""
    length = len(pairs[0][0])
    found = np.zeros(2 * length, dtype=np.int64)
    for k, q in pairs:
        _, place = np.unique(np.concatenate([k, q]), return_inverse=True)
        _, found = np.unique(found * (2 * length) + place, return_inverse=True)
    return found[:length], found[length:]
