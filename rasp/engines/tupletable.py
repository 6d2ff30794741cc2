"""The memory of a jitted `kqv` whose keys are tuples: an index by hash into rows that are written one after another.

A row is (count, total, key ..): how many values the key has had, what they reduce to, and the key, number by number;
row 0 counts the rows. A slot of the index holds the upper half of a key's hash and its row, or 0 if it is free. A
program mostly looks for what it wrote not long ago: such rows are still in the cache, and only the index is met at
random.
"""

from __future__ import annotations

import numpy as np

from rasp.engines.native import add, mean
from rasp.machine_code import compiled

COUNT, TOTAL, KEY = range(3)
_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)  # 2**64 / golden ratio
_HALF, _ONE = np.uint64(32), np.uint64(1)
_ROW = np.uint64(2**32 - 1)

TupleTable = tuple[np.ndarray, np.ndarray]
Key = tuple[int, ...]


def new_tuple_table(tokens: int, size: int) -> TupleTable:
    """An index and rows for at most `tokens` keys of this many numbers; the index is at most half full."""
    slots = 1 << max(3, int(2 * tokens - 1).bit_length())
    return np.empty(slots, dtype=np.uint64), np.empty((tokens + 1, KEY + size), dtype=np.int64)


@compiled
def clear_tuples(table: TupleTable) -> None:
    table[0][:] = 0
    table[1][0, COUNT] = 0


@compiled
def _hash(key: Key) -> np.uint64:
    mixed = np.uint64(0)
    for part in key:
        mixed = (mixed ^ np.uint64(part)) * _MULTIPLIER
        mixed ^= mixed >> _HALF
    return mixed


@compiled
def _find(table: TupleTable, key: Key, mixed: np.uint64) -> np.uint64:
    """The slot of the key, or the free slot where it belongs."""
    index, rows = table
    last = np.uint64(len(index) - 1)
    slot = mixed & last
    while index[slot] != 0 and not (index[slot] >> _HALF == mixed >> _HALF and _holds(rows, index[slot] & _ROW, key)):
        slot = (slot + _ONE) & last
    return slot


@compiled
def _holds(rows: np.ndarray, row: np.uint64, key: Key) -> bool:
    place = np.uint64(KEY)
    for part in key:
        if rows[row, place] != part:
            return False
        place += _ONE
    return True


@compiled
def _row(table: TupleTable, key: Key) -> np.uint64:
    """The row of the key; 0 if it has none."""
    return table[0][_find(table, key, _hash(key))] & _ROW


@compiled
def _own_row(table: TupleTable, key: Key) -> np.uint64:
    """The row of the key; a new one, with no values, if it had none."""
    index, rows = table
    mixed = _hash(key)
    slot = _find(table, key, mixed)
    row = index[slot] & _ROW
    if row == 0:
        rows[0, COUNT] += 1
        row = np.uint64(rows[0, COUNT])
        index[slot] = (mixed >> _HALF << _HALF) | row
        rows[row, COUNT] = 0
        place = np.uint64(KEY)
        for part in key:
            rows[row, place] = part
            place += _ONE
    return row


@compiled
def put_tuple_max(table: TupleTable, key: Key, value: int) -> None:
    row, rows = _own_row(table, key), table[1]
    if rows[row, COUNT] == 0 or value > rows[row, TOTAL]:
        rows[row, COUNT], rows[row, TOTAL] = 1, value


@compiled
def put_tuple_min(table: TupleTable, key: Key, value: int) -> None:
    row, rows = _own_row(table, key), table[1]
    if rows[row, COUNT] == 0 or value < rows[row, TOTAL]:
        rows[row, COUNT], rows[row, TOTAL] = 1, value


@compiled
def put_tuple_mean(table: TupleTable, key: Key, value: int) -> None:
    row, rows = _own_row(table, key), table[1]
    rows[row, TOTAL] = add(rows[row, TOTAL], value) if rows[row, COUNT] else value
    rows[row, COUNT] += 1


@compiled
def put_tuple_count(table: TupleTable, key: Key) -> None:
    put_tuple_mean(table, key, 1)


@compiled
def get_tuple_total(table: TupleTable, key: Key, default: int) -> int:
    row = _row(table, key)
    return table[1][row, TOTAL] if row else default


@compiled
def get_tuple_mean(table: TupleTable, key: Key, default: int) -> int:
    row = _row(table, key)
    return mean(table[1][row, TOTAL], table[1][row, COUNT]) if row else default
