"""The memory of a jitted `kqv`: open addressing from an int64 key to what its values reduce to.

Slot j holds a key in table[KEY, j] and what its values reduce to in table[TOTAL, j]; means keep a count as well. A slot
whose total is EMPTY is free. Totals stand together so that emptying the table is one sweep.
"""

from __future__ import annotations

import numba
import numpy as np

KEY, TOTAL, COUNT = range(3)
EMPTY = -(2**63)  # no total: a sum or a best value this low would have overflowed on its way
_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)  # 2**64 / golden ratio: consecutive keys spread over the table


def new_table(tokens: int, rows: int) -> np.ndarray:
    """A table for at most `tokens` keys: a quarter full while it fits a cache (few collisions), else half full."""
    room = 4 * tokens if tokens < 1 << 14 else 2 * tokens
    return np.empty((rows, 1 << max(3, int(room - 1).bit_length())), dtype=np.int64)


@numba.njit(cache=True)
def clear(table: np.ndarray) -> None:
    table[TOTAL, :] = EMPTY


@numba.njit(cache=True)
def _find(table: np.ndarray, key: int) -> np.uint64:
    """The slot of the key, or the free slot where it belongs."""
    size = np.uint64(table.shape[1])  # unsigned throughout: numba then has no negative indices to look out for
    high = (np.uint64(key) * _MULTIPLIER) >> np.uint64(32)  # the high bits are the well mixed ones
    slot = (high * size) >> np.uint64(32)
    while table[KEY, slot] != key and table[TOTAL, slot] != EMPTY:
        slot = (slot + np.uint64(1)) & (size - np.uint64(1))
    return slot


@numba.njit(cache=True)
def put_max(table: np.ndarray, key: int, value: int) -> None:
    slot = _find(table, key)
    table[KEY, slot] = key
    table[TOTAL, slot] = max(value, table[TOTAL, slot])


@numba.njit(cache=True)
def put_min(table: np.ndarray, key: int, value: int) -> None:
    slot = _find(table, key)
    table[KEY, slot] = key
    if table[TOTAL, slot] == EMPTY or value < table[TOTAL, slot]:
        table[TOTAL, slot] = value


@numba.njit(cache=True)
def put_count(table: np.ndarray, key: int) -> None:
    slot = _find(table, key)
    table[KEY, slot] = key
    table[TOTAL, slot] = 1 if table[TOTAL, slot] == EMPTY else table[TOTAL, slot] + 1


@numba.njit(cache=True)
def put_mean(table: np.ndarray, key: int, value: int) -> None:
    slot = _find(table, key)
    if table[TOTAL, slot] == EMPTY:
        table[KEY, slot], table[TOTAL, slot], table[COUNT, slot] = key, value, 1
    else:
        table[TOTAL, slot] += value
        table[COUNT, slot] += 1


@numba.njit(cache=True)
def get_total(table: np.ndarray, key: int, default: int) -> int:
    slot = _find(table, key)
    return default if table[TOTAL, slot] == EMPTY else table[TOTAL, slot]


@numba.njit(cache=True)
def get_mean(table: np.ndarray, key: int, default: int) -> int:
    slot = _find(table, key)
    total, count = table[TOTAL, slot], table[COUNT, slot]
    if total == EMPTY:
        return default
    return total // count if total >= 0 else -(-total // count)  # towards zero
