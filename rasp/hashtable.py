"""The memory of a jitted `kqv`: open addressing from an int64 key to what its values reduce to.

A row is (key, total) and, for means, also a count. A row whose total is EMPTY is free.
"""

from __future__ import annotations

import numba
import numpy as np

KEY, TOTAL, COUNT = range(3)
EMPTY = -(2**63)  # no total: a sum or a best value this low would have overflowed on its way
_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)  # 2**64 / golden ratio: consecutive keys spread over the table


def new_table(tokens: int, columns: int) -> np.ndarray:
    """A table for at most `tokens` keys, at most half full."""
    return np.empty((1 << max(3, int(2 * tokens - 1).bit_length()), columns), dtype=np.int64)


@numba.njit(cache=True)
def clear(table: np.ndarray) -> None:
    for row in range(table.shape[0]):
        table[row, TOTAL] = EMPTY


@numba.njit(cache=True)
def _find(table: np.ndarray, key: int) -> int:
    """The row of the key, or the free row where it belongs."""
    last = table.shape[0] - 1
    row = np.int64((np.uint64(key) * _MULTIPLIER) >> np.uint64(33)) & last
    while table[row, KEY] != key and table[row, TOTAL] != EMPTY:
        row = (row + 1) & last
    return row


@numba.njit(cache=True)
def put_max(table: np.ndarray, key: int, value: int) -> None:
    row = _find(table, key)
    table[row, KEY] = key
    table[row, TOTAL] = max(value, table[row, TOTAL])


@numba.njit(cache=True)
def put_min(table: np.ndarray, key: int, value: int) -> None:
    row = _find(table, key)
    table[row, KEY] = key
    if table[row, TOTAL] == EMPTY or value < table[row, TOTAL]:
        table[row, TOTAL] = value


@numba.njit(cache=True)
def put_count(table: np.ndarray, key: int) -> None:
    row = _find(table, key)
    table[row, KEY] = key
    table[row, TOTAL] = 1 if table[row, TOTAL] == EMPTY else table[row, TOTAL] + 1


@numba.njit(cache=True)
def put_mean(table: np.ndarray, key: int, value: int) -> None:
    row = _find(table, key)
    if table[row, TOTAL] == EMPTY:
        table[row, KEY], table[row, TOTAL], table[row, COUNT] = key, value, 1
    else:
        table[row, TOTAL] += value
        table[row, COUNT] += 1


@numba.njit(cache=True)
def get_total(table: np.ndarray, key: int, default: int) -> int:
    row = _find(table, key)
    return default if table[row, TOTAL] == EMPTY else table[row, TOTAL]


@numba.njit(cache=True)
def get_mean(table: np.ndarray, key: int, default: int) -> int:
    row = _find(table, key)
    total, count = table[row, TOTAL], table[row, COUNT]
    if total == EMPTY:
        return default
    return total // count if total >= 0 else -(-total // count)  # towards zero
