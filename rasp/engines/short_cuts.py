"""Attention by equality where the answer has a closed form, without a selector and without sorting.

Keys that count up (`indices(x)`, `indices(x) + n`) match in one place, which the query names. A query that is the same
everywhere (`full(x, c)`) splits the keys in two, and what it has found only grows.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from rasp.arithmetic import HIGHEST, LOWEST

Array = np.ndarray
REMEMBERED = 96  # the arrays that short sequences need again and again are kept up to this length


@lru_cache(maxsize=1024)
def scalar(value: int) -> Array:
    """A number as numpy wants it: to convert one takes as long as to add it."""
    return np.array(value, dtype=np.int64)


def positions(length: int) -> Array:
    """0, 1, 2, .. : not to be written to."""
    return _positions(length) if length <= REMEMBERED else np.arange(length, dtype=np.int64)


@lru_cache(maxsize=REMEMBERED + 1)
def _positions(length: int) -> Array:
    found = np.arange(length, dtype=np.int64)
    found.flags.writeable = False
    return found


@lru_cache(maxsize=2)
def _unsigned_positions(length: int) -> Array:
    return positions(length).view(np.uint64)


def value_at(start: int, q: Array, v: Array, default: int) -> Array:
    """Keys `start`, `start + 1`, ..: the value `q - start` positions after the first, if that is no later."""
    place = q - start if start else q
    found = v.take(place, mode="clip")
    np.putmask(found, place.view(np.uint64) > _unsigned_positions(len(v)), scalar(default))  # negative, or too late
    return found


def delayed(distance: int, v: Array, default: int) -> Array:
    """Keys and queries that count up: the value `distance` positions ago."""
    if not 0 <= distance < len(v):
        distance = len(v)
    found = np.empty(len(v), dtype=np.int64)
    found[:distance] = default
    found[distance:] = v[: len(v) - distance]
    return found


def best_so_far(chosen: Array, v: Array, default: int, best: np.ufunc) -> Array:
    """The largest (`best` is np.maximum) or smallest of the chosen values so far."""
    found = v.copy()
    np.putmask(found, ~chosen, scalar(LOWEST if best is np.maximum else HIGHEST))
    best.accumulate(found, out=found)
    return _from_first(chosen, found, default)


def last_so_far(chosen: Array, v: Array, default: int) -> Array:
    """The value at the last place chosen so far, of values that only grow and are no less than the default."""
    found = np.where(chosen, v, scalar(default))
    return np.maximum.accumulate(found, out=found)


def first_so_far(chosen: Array, v: Array, default: int) -> Array:
    """The value at the first place chosen so far."""
    return same_so_far(chosen, int(v[chosen.argmax()]), default)


def same_so_far(chosen: Array, constant: int, default: int) -> Array:
    """The same number from the first that is chosen on."""
    found = np.empty(len(chosen), dtype=np.int64)
    found.fill(constant)
    return _from_first(chosen, found, default)


def _from_first(chosen: Array, found: Array, default: int) -> Array:
    first = int(chosen.argmax())
    found[: first if chosen[first] else None] = default
    return found


def first_places(k: Array, q: Array, matrix: Array, default: int) -> Array:
    """The first position that each row of the selector chooses. Where it chooses none, position 0 does not match."""
    first = matrix.argmax(axis=1)
    np.putmask(first, k.take(first) != q, scalar(default))
    return first
