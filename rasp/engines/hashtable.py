"""The memory of a jitted `kqv`: open addressing from an int64 key to what its values reduce to.

Slot j holds a key in table[KEY, j] and what its values reduce to in table[TOTAL, j]; means keep a count as well. A slot
whose key is FREE is free. The key that is FREE itself has the last slot to its own, which holds 0 once it is taken.
Keys stand together so that emptying the table is one sweep.
"""

from __future__ import annotations

import numpy as np

from rasp.engines.native import add, mean
from rasp.machine_code import compiled

KEY, TOTAL, COUNT = range(3)
FREE = np.int64(-(2**63))  # a plain one would be taken for a uint64
_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)  # 2**64 / golden ratio: consecutive keys spread over the table


def new_table(tokens: int, rows: int) -> np.ndarray:
    """A table for at most `tokens` keys: a quarter full while it fits a cache (few collisions), else half full."""
    room = 4 * tokens if tokens < 1 << 14 else 2 * tokens
    return np.empty((rows, (1 << max(3, int(room - 1).bit_length())) + 1), dtype=np.int64)


@compiled
def clear(table: np.ndarray) -> None:
    table[KEY, :] = FREE


@compiled
def _find(table: np.ndarray, key: int) -> np.uint64:
    """The slot of the key, or the free slot where it belongs."""
    size = np.uint64(table.shape[1] - 1)  # unsigned throughout: numba then has no negative indices to look out for
    if key == FREE:
        return size
    high = (np.uint64(key) * _MULTIPLIER) >> np.uint64(32)  # the high bits are the well mixed ones
    slot = (high * size) >> np.uint64(32)
    while table[KEY, slot] != key and table[KEY, slot] != FREE:
        slot = (slot + np.uint64(1)) & (size - np.uint64(1))
    return slot


@compiled
def _take(table: np.ndarray, slot: np.uint64, key: int) -> None:
    table[KEY, slot] = 0 if key == FREE else key


@compiled
def put_max(table: np.ndarray, key: int, value: int) -> None:
    slot = _find(table, key)
    if table[KEY, slot] == FREE:
        _take(table, slot, key)
        table[TOTAL, slot] = value
    elif value > table[TOTAL, slot]:
        table[TOTAL, slot] = value


@compiled
def put_min(table: np.ndarray, key: int, value: int) -> None:
    slot = _find(table, key)
    if table[KEY, slot] == FREE:
        _take(table, slot, key)
        table[TOTAL, slot] = value
    elif value < table[TOTAL, slot]:
        table[TOTAL, slot] = value


@compiled
def put_count(table: np.ndarray, key: int) -> None:
    slot = _find(table, key)
    if table[KEY, slot] == FREE:
        _take(table, slot, key)
        table[TOTAL, slot] = 1
    else:
        table[TOTAL, slot] += 1


@compiled
def put_mean(table: np.ndarray, key: int, value: int) -> None:
    slot = _find(table, key)
    if table[KEY, slot] == FREE:
        _take(table, slot, key)
        table[TOTAL, slot], table[COUNT, slot] = value, 1
    else:
        table[TOTAL, slot] = add(table[TOTAL, slot], value)
        table[COUNT, slot] += 1


@compiled
def get_total(table: np.ndarray, key: int, default: int) -> int:
    slot = _find(table, key)
    return default if table[KEY, slot] == FREE else table[TOTAL, slot]


@compiled
def get_mean(table: np.ndarray, key: int, default: int) -> int:
    slot = _find(table, key)
    return default if table[KEY, slot] == FREE else mean(table[TOTAL, slot], table[COUNT, slot])
