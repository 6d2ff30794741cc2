"""RASP-L on numpy arrays, vectorised.

Functions are recorded once as expressions and evaluated on whole arrays. `kqv` never builds the selector matrix when
its predicate is an equality or looks at one side only: equal keys are grouped by sorting and reduced by running
sums and maxima inside each group.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache, reduce
from operator import and_, eq
from typing import Any

import numpy as np

from rasp.arithmetic import (
    BINARY,
    COMPARISONS,
    HIGHEST,
    LOWEST,
    apply_arrays,
    apply_unary_arrays,
    array_kind,
    constant,
    cut_array,
    not_a_number,
    number,
)
from rasp.core import Function
from rasp.engines.short_cuts import (
    REMEMBERED,
    best_so_far,
    delayed,
    first_places,
    positions,
    same_so_far,
    value_at,
)
from rasp.errors import NO_CHANGE, NO_TRUTH, ProgramError
from rasp.operators import Operators
from rasp.predicates import Predicate, classify
from rasp.scalar import Expr, arg, binary, capture, evaluate_arrays, opaque_calls, truth, whole
from rasp.scalar.memory import remembered
from rasp.scalar.vectorised import vector_function

Array = np.ndarray
INT64 = np.dtype(np.int64)
SHORT = REMEMBERED  # sequences up to this long are attended pair by pair
NEAR = 2**62  # numbers that count up from less than this do not wrap around
_EQUAL = binary("==", arg(0), arg(1))


class Numbers(Operators, np.ndarray):  # type: ignore[misc]
    """A numpy array of bool, int64 or float64 whose operators follow our rule of arithmetic.

    What `full` and `indices` give cannot be written to, and says what it is: attention to it has a closed form.
    """

    __rasp__: Eager
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
        with np.errstate(all="ignore"):
            return numbers(apply_unary_arrays(op, self.view(np.ndarray)))

    __iadd__, __isub__, __imul__ = Operators.__add__, Operators.__sub__, Operators.__mul__
    __ifloordiv__, __imod__, __itruediv__ = Operators.__floordiv__, Operators.__mod__, Operators.__truediv__
    __ipow__, __ilshift__, __irshift__ = Operators.__pow__, Operators.__lshift__, Operators.__rshift__
    __iand__, __ior__, __ixor__ = Operators.__and__, Operators.__or__, Operators.__xor__  # type: ignore[assignment]


def _quick(op: str) -> Callable[[Any, Any], Any]:
    """An operator that numpy has too: its own answer for int64, and quickly."""
    compute = BINARY[op]

    def method(self: Numbers, other: Any) -> Any:
        if self.dtype is INT64:
            if type(other) is int and LOWEST <= other <= HIGHEST:
                found = compute(self.view(np.ndarray), other).view(Numbers)
                if self.start is not None and op in ("+", "-"):
                    _count_from(found, self.start + (other if op == "+" else -other))
                return found
            if type(other) is Numbers and other.dtype is INT64:
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


def _given(x: Any) -> Array:
    """A sequence as it was handed in: whole numbers as int64, truth values and floats as they are."""
    if isinstance(x, np.ndarray) and x.dtype is INT64:
        return x if type(x) is np.ndarray else x.view(np.ndarray)
    x = np.asarray(x)
    if x.dtype == np.uint64 and x.size and x.max() > np.iinfo(np.int64).max or x.dtype.kind not in "biuf":
        raise ProgramError(f"a sequence holds 64-bit whole numbers, truth values or floats, not {x.dtype}")
    x = x.view(np.ndarray)
    return x.astype(np.int64, copy=False) if x.dtype.kind in "iu" else x


class Eager:
    def full(self, x: Any, const: int) -> Array:
        value, length = constant(const, "the constant of full"), len(x)
        return _short_full(length, value) if length <= SHORT else _full(length, value)

    def indices(self, x: Any) -> Array:
        return _short_indices(len(x)) if len(x) <= SHORT else _indices(len(x))

    def tok_map(self, x: Any, func: Function) -> Array:
        x = _given(x)
        return _map(func, (x.dtype.num,), x)

    def seq_map(self, x: Any, y: Any, func: Function) -> Array:
        x, y = _given(x), _given(y)
        if len(x) != len(y):
            length = min(len(x), len(y))  # as zip does
            x, y = x[:length], y[:length]
        return _map(func, (x.dtype.num, y.dtype.num), x, y)

    def select(self, k: Any, q: Any, pred: Function, causal: bool) -> Array:
        k, q = _aligned(k, q)
        return selector_matrix(_condition(pred, k, q), [k], [q], causal)

    def sel_width(self, A: Any) -> Array:
        return numbers(np.asarray(A).sum(axis=1, dtype=np.int64))

    def aggr(self, A: Any, v: Any, default: int, reduction: str) -> Array:
        v = _given(v)
        return numbers(reduce_matrix(np.asarray(A), v, _default(default, v, reduction), reduction))

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
        return self.kqv(*_numbered(aligned), v, eq, default, reduction)


EAGER = Eager()
Numbers.__rasp__ = EAGER


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


_short_full, _short_indices = lru_cache(maxsize=1024)(_full), lru_cache(maxsize=SHORT + 1)(_indices)


def _closed_form(k: Any, q: Any, v: Any, default: Any, reduction: str) -> Array | None:
    """Causal `kqv` by equality where keys, queries or values are known to count up, or to be the same everywhere."""
    if not (_is_int64(k) and _is_int64(q) and _is_int64(v) and 0 < len(k) == len(q) == len(v)):
        return None
    keys_from, here = getattr(k, "start", None), getattr(q, "start", None)
    if keys_from is None:
        return _one_sided(k.view(np.ndarray), q, v, default, reduction)
    otherwise = constant(default, "the default")
    if here is not None:
        return delayed(keys_from - here, v.view(np.ndarray), otherwise)
    return value_at(keys_from, q.view(np.ndarray), v.view(np.ndarray), otherwise)


def _one_sided(k: Array, q: Any, v: Any, default: Any, reduction: str) -> Array | None:
    same, value = getattr(q, "constant", None), getattr(v, "constant", None)
    if same is None:
        if reduction != "min" or getattr(v, "start", None) != 0 or len(k) > SHORT:
            return None
        q = q.view(np.ndarray)
        return first_places(k, q, (q[:, None] == k) & _causal(len(k)), constant(default, "the default"))
    if value is not None and abs(value) < NEAR // len(k):  # its mean is itself: no total wraps around
        return same_so_far(k == same, value, constant(default, "the default"))
    if reduction == "mean":
        return None
    best = np.maximum if reduction == "max" else np.minimum
    return best_so_far(k == same, v.view(np.ndarray), constant(default, "the default"), best)


def _is_int64(x: Any) -> bool:
    return isinstance(x, np.ndarray) and x.dtype is INT64


def _numbered(pairs: list[tuple[Array, Array]]) -> tuple[Array, Array]:
    """Tuples as numbers, keys and queries alike: equal tuples have the same."""
    length = len(pairs[0][0])
    found = np.zeros(2 * length, dtype=np.int64)
    for k, q in pairs:
        _, place = np.unique(np.concatenate([k, q]), return_inverse=True)
        _, found = np.unique(found * (2 * length) + place, return_inverse=True)
    return found[:length], found[length:]


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
    return replace(predicate, condition=_EQUAL) if predicate.condition == _EQUAL else predicate


def map_arrays(e: Expr, *arrays: Array) -> Array:
    """`e` at every position: whole numbers, fractions cut."""
    if not len(arrays[0]):
        return np.zeros(0, dtype=np.int64)
    return vector_function(e)(*arrays).astype(np.int64, copy=False)


@lru_cache(maxsize=256)
def _causal(length: int) -> Array:
    """Row i looks at positions 0 to i."""
    return np.tri(length, dtype=bool)


def selector_matrix(condition: Expr, k: list[Array], q: list[Array], causal: bool) -> Array:
    length = len(k[0])
    if opaque_calls(condition):
        return _asked_matrix(condition, k, q, causal)
    columns = [a[None, :] for a in k] + [a[:, None] for a in q]
    matrix = np.broadcast_to(vector_function(condition)(*columns), (length, length)).astype(bool)
    return matrix & (_causal(length) if length <= SHORT else np.tri(length, dtype=bool)) if causal else matrix


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
        return _attend_equal(*_numbered(pairs), v, default, reduction)
    if pred.kind in ("key", "query", "constant"):
        chosen = map_arrays(pred.condition, *args).astype(bool)
        keys = chosen if pred.kind == "key" else np.ones(length, dtype=bool)
        asks = np.ones(length, dtype=bool) if pred.kind == "key" else chosen
        return _attend_equal(np.where(keys, 1, 0), np.where(asks, 1, 2), v, default, reduction)
    return reduce_matrix(selector_matrix(pred.condition, k, q, causal=True), v, default, reduction)


def _short_matrix(pred: Predicate, k: list[Array], q: list[Array]) -> Array:
    """The selector of a short sequence, where sorting would cost more than comparing every pair."""
    if pred.condition is _EQUAL:
        return (q[0][:, None] == k[0]) & _causal(len(k[0]))
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
