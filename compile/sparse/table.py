"""Keys with equal entries are one class, held under the entries themselves: a hash table in which nothing collides."""

from __future__ import annotations

import numpy as np

from compile.sparse.arrays import BODY_BITS, EMPTY, INTERNED, INTERNED_BITS, State, fast


@fast
def find(keys: np.ndarray, key: np.int64) -> np.int64:
    """The slot that holds the key, or the empty one where it belongs."""
    mask = len(keys) - 1
    slot = ((key * np.int64(-7046029254386353131)) >> 20) & mask
    while keys[slot] != key and keys[slot] != EMPTY:
        slot = (slot + 1) & mask
    return slot


@fast
def pack(state: State, number: int, bits: int, parts: int, insert: bool) -> np.int64:
    """The sorted parts (2 * dimension + sign) and the head's number as one key; nothing collides.

    What does not fit into BODY_BITS is numbered, and the number takes its place. EMPTY: a new one, without `insert`.
    """
    body, used, depth = np.int64(1), 1, 0  # a leading 1 tells short keys from long ones
    for p in range(parts):
        if used + bits > BODY_BITS:
            whole = (body << 2) | depth
            slot = find(state.intern_key, whole)
            if state.intern_key[slot] == EMPTY:
                if not insert:
                    return EMPTY
                state.intern_key[slot] = whole
                state.intern_id[slot] = state.numbers[INTERNED]
                state.numbers[INTERNED] += 1
            body, used, depth = (np.int64(1) << INTERNED_BITS) | state.intern_id[slot], INTERNED_BITS + 1, depth + 1
        body = (body << bits) | state.part_dim[p]
        used += bits
    return (np.int64(number) << (BODY_BITS + 2)) | (body << 2) | depth


@fast
def grow(
    state: State, keys: np.ndarray, levels: np.ndarray, dims: np.ndarray, counts: np.ndarray, sums: np.ndarray
) -> None:
    """Move the table into larger arrays."""
    for old in range(len(state.table_key)):
        key = state.table_key[old]
        if key != EMPTY:
            slot = find(keys, key)
            keys[slot], levels[slot] = key, state.table_level[old]
            dims[slot], counts[slot] = state.table_dim[old], state.table_count[old]
            if len(sums) > 1:
                sums[slot] = state.table_sum[old]


@fast
def grow_interned(state: State, keys: np.ndarray, ids: np.ndarray) -> None:
    for old in range(len(state.intern_key)):
        if state.intern_key[old] != EMPTY:
            slot = find(keys, state.intern_key[old])
            keys[slot], ids[slot] = state.intern_key[old], state.intern_id[old]
