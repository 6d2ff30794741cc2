"""The RASP-L library: each function is a line or two on the core.

A comment gives the numpy equivalent where there is one. `argmax` and `argmin` are printed in the paper without a
predicate and raise; here they find the last position that holds the running maximum, as their names promise.
"""

from __future__ import annotations

import operator
from typing import Any

from rasp.core import full, indices, interpreter_of, kqv, sel_width, select, seq_map

equals, leq, lt, geq, gt = operator.eq, operator.le, operator.lt, operator.ge, operator.gt


def shift_right(x: Any, n: int, default: int = 0) -> Any:
    # out[i] = x[i-n], default before the start
    return kqv(indices(x) + n, indices(x), x, equals, default=default)


def cumsum(bool_array: Any) -> Any:
    # np.cumsum(bool_array)
    return sel_width(select(bool_array, bool_array, lambda k, q: k))


def where(condition: Any, x_if: Any, y_else: Any) -> Any:
    # np.where(condition, x_if, y_else)
    at_once = getattr(interpreter_of(x_if, condition), "where", None)
    if at_once and (found := at_once(condition, x_if, y_else)) is not None:
        return found
    x_masked = seq_map(x_if, condition, lambda x, m: x if m else 0)
    y_masked = seq_map(y_else, condition, lambda y, m: y if not m else 0)
    return seq_map(x_masked, y_masked, lambda x, y: x if y == 0 else y)


def mask(x: Any, bool_mask: Any, mask_val: int = 0) -> Any:
    # np.where(bool_mask, x, mask_val)
    return where(bool_mask, x, full(x, mask_val))


def maximum(x: Any) -> Any:
    # np.maximum.accumulate(x)
    return kqv(x, x, x, lambda k, q: True, reduction="max")


def minimum(x: Any) -> Any:
    # np.minimum.accumulate(x)
    return -maximum(-x)


def argmax(x: Any) -> Any:
    # the last index j <= i with x[j] == max(x[:i+1])
    return kqv(x, maximum(x), indices(x), equals, reduction="max")


def argmin(x: Any) -> Any:
    # the last index j <= i with x[j] == min(x[:i+1])
    return argmax(-x)


def num_prev(x: Any, queries: Any) -> Any:
    # out[i] = np.sum(x[:i+1] == queries[i])
    return sel_width(select(x, queries, equals))


def has_seen(x: Any, queries: Any) -> Any:
    # out[i] = queries[i] in x[:i+1]
    return kqv(x, queries, full(x, 1), equals, default=0)


def firsts(x: Any, queries: Any, default: int = -1) -> Any:
    # out[i] = np.flatnonzero(x[:i+1] == queries[i]).min()
    return kqv(x, queries, indices(x), equals, default=default, reduction="min")


def lasts(x: Any, queries: Any, default: int = -1) -> Any:
    # out[i] = np.flatnonzero(x[:i+1] == queries[i]).max()
    return kqv(x, queries, indices(x), equals, default=default, reduction="max")


def index_select(x: Any, idx: Any, default: int = 0) -> Any:
    # out[i] = x[idx[i]] if 0 <= idx[i] <= i else default
    return kqv(indices(x), idx, x, equals, default=default)


def first_true(x: Any, default: int = -1) -> Any:
    # the index of the first true value, at and after its position
    seen_true = kqv(x, full(x, 1), full(x, 1), equals, default=0)
    first_occ = seq_map(seen_true, shift_right(seen_true, 1), lambda curr, prev: curr and not prev)
    return kqv(first_occ, full(x, 1), indices(x), equals, default=default)


def mode(x: Any) -> Any:
    # the most frequent value so far; of equally frequent ones, the one that became so last
    return index_select(x, argmax(num_prev(x, x)))


def binary_mode(x: Any) -> Any:
    # 1 where there have been more ones than zeros
    ones, zeros = num_prev(x, full(x, 1)), num_prev(x, full(x, 0))
    return seq_map(ones, zeros, gt)


def induct_kqv(k: Any, q: Any, v: Any, offset: int, default: int = 0, null_val: int = -999) -> Any:
    # v at (first index where k equals q[i]) + offset; the last `offset` keys cannot match, null_val never does
    indices_to_copy = firsts(shift_right(k, offset, default=null_val), q, default=null_val)
    return index_select(v, indices_to_copy, default=default)


def induct(k: Any, q: Any, offset: int, default: int = 0, null_val: int = -999) -> Any:
    # what stood `offset` after the first occurrence of q[i] in k
    return induct_kqv(k, q, k, offset=offset, default=default, null_val=null_val)


def induct_prev(k: Any, q: Any, offset: int, default: int = 0, null_val: int = -999) -> Any:
    # induct for negative offsets
    indices_to_copy = firsts(k, q, default=null_val) + offset
    return index_select(k, indices_to_copy, default=default)


def prefix_fill(x: Any, n: int, value: int) -> Any:
    # out[:n] = value, out[n:] = x[n:]
    no_fill = shift_right(full(x, 1), n)
    return where(no_fill, x, full(x, value))


def where3(cond: Any, x: Any, y: Any, z: Any) -> Any:
    # np.choose(cond, [x, y, z])
    out = where(cond == 0, x, y)
    return where(cond == 2, z, out)
