"""The memory of a jitted `kqv`: open addressing from an int64 key to what its values reduce to.

A row is (stamp, key, total, count). Rows of an older stamp are free, so that a new sequence starts by raising the
stamp instead of clearing the table.
"""

from __future__ import annotations

import numba
import numpy as np

STAMP, KEY, TOTAL, COUNT = range(4)
_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)  # 2**64 / golden ratio: consecutive keys spread over the table


def new_table(tokens: int) -> np.ndarray:
    """An empty table for at most `tokens` keys, at most half full."""
    return np.zeros((1 << max(3, int(2 * tokens - 1).bit_length()), 4), dtype=np.int64)


@numba.njit(cache=True)
def _find(table: np.ndarray, stamp: int, key: int) -> int:
    """The row of the key, or the free row where it belongs."""
    last = table.shape[0] - 1
    row = np.int64((np.uint64(key) * _MULTIPLIER) >> np.uint64(33)) & last
    while table[row, STAMP] == stamp and table[row, KEY] != key:
        row = (row + 1) & last
    return row


@numba.njit(cache=True)
def put_max(table: np.ndarray, stamp: int, key: int, value: int) -> None:
    row = _find(table, stamp, key)
    if table[row, STAMP] != stamp:
        table[row, STAMP], table[row, KEY], table[row, TOTAL] = stamp, key, value
    elif value > table[row, TOTAL]:
        table[row, TOTAL] = value


@numba.njit(cache=True)
def put_min(table: np.ndarray, stamp: int, key: int, value: int) -> None:
    row = _find(table, stamp, key)
    if table[row, STAMP] != stamp:
        table[row, STAMP], table[row, KEY], table[row, TOTAL] = stamp, key, value
    elif value < table[row, TOTAL]:
        table[row, TOTAL] = value


@numba.njit(cache=True)
def put_sum(table: np.ndarray, stamp: int, key: int, value: int) -> None:
    row = _find(table, stamp, key)
    if table[row, STAMP] != stamp:
        table[row, STAMP], table[row, KEY], table[row, TOTAL], table[row, COUNT] = stamp, key, value, 1
    else:
        table[row, TOTAL] += value
        table[row, COUNT] += 1


@numba.njit(cache=True)
def get_total(table: np.ndarray, stamp: int, key: int, default: int) -> int:
    row = _find(table, stamp, key)
    return table[row, TOTAL] if table[row, STAMP] == stamp else default


@numba.njit(cache=True)
def get_mean(table: np.ndarray, stamp: int, key: int, default: int) -> int:
    row = _find(table, stamp, key)
    return int(table[row, TOTAL] / table[row, COUNT]) if table[row, STAMP] == stamp else default
