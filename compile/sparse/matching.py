"""Unbounded heads, which match or count: look the query up among the classes of keys.

A class holds the best level of its keys, how many have it, and what they carry. What is attended to is that and the
start tokens; `compile.sparse.bounds` says how much attention is left out, and this checks it at every token.
"""

from __future__ import annotations

import numpy as np

from compile.sparse.arrays import (
    EMPTY,
    LEFT_OUT,
    MIXED_LEVELS,
    MIXED_VALUES,
    MOST_CARRIED,
    NOISE,
    NOT_DISCRETE,
    OK,
    POSITION,
    START_HAS_KEY,
    TOO_MANY,
    USED,
    Plan,
    State,
    fast,
)
from compile.sparse.bounds import LEAST_GAP, LEAST_LOWER_GAP, SAME_LEVEL
from compile.sparse.keys import NO_PARTS, NOTHING, SEVERAL, read_carried, read_level, read_parts
from compile.sparse.products import write_column
from compile.sparse.table import find, pack
from compile.sparse.weights import DROPPED


@fast
def attend(plan: Plan, state: State, layer: int, head: int, heads: int, h: int, d_head: int, is_start: bool) -> int:
    """Remember this token's key, look up its query, write what is found."""
    code = _enter(plan, state, head, heads, h, d_head, is_start)
    if code:
        return code
    wanted = 0
    if plan.strength[head] > 0:
        wanted = read_parts(plan, state, head, h, d_head, plan.strength[head])
        if wanted < 0:
            return NOT_DISCRETE if wanted == NO_PARTS else TOO_MANY
    slot = _look_up(plan, state, head, wanted)
    score = plan.strength[head] * wanted + state.table_level[slot] if slot >= 0 else -np.inf
    best = max(score, state.start_level[head])
    if not is_start and (wanted > 0 or state.key_parts[head] > 0):
        missed = wanted - 1 if wanted >= state.key_parts[head] else wanted
        most = plan.strength[head] * missed + state.key_level[head]  # that any other class could score
        gap = best - most - np.log(state.numbers[POSITION] + 1.0)
        state.gap[head] = min(state.gap[head], gap)
        if gap < LEAST_GAP:
            return LEFT_OUT
    _write_found(plan, state, layer, head, h * d_head, slot, score - best, state.start_level[head] - best)
    return OK


@fast
def _look_up(plan: Plan, state: State, head: int, wanted: int) -> int:
    """The slot of the class that the query meets in full, or -1."""
    key = pack(state, plan.number[head], plan.bits[head], wanted, False)
    if key == EMPTY:
        return -1
    slot = find(state.table_key, key)
    return -1 if state.table_key[slot] == EMPTY else slot


@fast
def _write_found(
    plan: Plan, state: State, layer: int, head: int, first: int, slot: int, score: float, start_score: float
) -> None:
    """The softmax over the start tokens and the class in this slot, and what they carry, by their shares."""
    start = state.start_count[head] * np.exp(start_score)
    found = state.table_count[slot] * np.exp(score) if slot >= 0 else 0.0
    total = start + found
    if start / total > DROPPED:
        for i in range(state.start_size[head]):
            value = state.start_value[head, i] * start / total
            write_column(plan, state, 4 * layer + 1, first + state.start_dim[head, i], value)
    if slot >= 0 and found / total > DROPPED and state.table_dim[slot] >= 0:
        amount = state.table_sum[slot] / state.table_count[slot] if plan.sums[head] else 1.0
        write_column(plan, state, 4 * layer + 1, first + state.table_dim[slot], amount * found / total)


@fast
def _enter(plan: Plan, state: State, head: int, heads: int, h: int, d_head: int, is_start: bool) -> int:
    """This token's key, level and what it carries, among the start tokens or into the table."""
    level = read_level(plan, state, head, heads, h, d_head)
    parts = read_parts(plan, state, head, heads + h, d_head, 1.0)
    if parts < 0:
        return NOT_DISCRETE if parts == NO_PARTS else TOO_MANY
    if is_start:
        return START_HAS_KEY if parts else _remember_start(state, head, level, 2 * heads + h, d_head)
    dim, amount = read_carried(state, 2 * heads + h, d_head)
    if dim == SEVERAL:
        return TOO_MANY
    key = pack(state, plan.number[head], plan.bits[head], parts, True)
    state.key_parts[head] = max(state.key_parts[head], parts)
    state.key_level[head] = max(state.key_level[head], level)
    return _remember(state, head, plan.sums[head], key, level, dim, amount)


@fast
def _remember_start(state: State, head: int, level: float, b: int, d_head: int) -> int:
    if state.start_count[head] and abs(level - state.start_level[head]) > NOISE:
        return MIXED_LEVELS
    state.start_count[head] += 1
    state.start_level[head] = level
    state.start_size[head] = 0
    for i in range(state.bucket_size[b]):
        d = state.bucket[b, i]
        value = state.acc[b * d_head + d]
        if abs(value) > DROPPED:
            if state.start_size[head] == MOST_CARRIED:
                return TOO_MANY
            state.start_dim[head, state.start_size[head]] = d
            state.start_value[head, state.start_size[head]] = value
            state.start_size[head] += 1
    return OK


@fast
def _remember(state: State, head: int, sums: bool, key: np.int64, level: float, dim: int, amount: float) -> int:
    slot = find(state.table_key, key)
    if state.table_key[slot] == EMPTY:
        state.table_key[slot] = key
        state.table_count[slot] = 0
        state.numbers[USED] += 1
    elif abs(level - state.table_level[slot]) > SAME_LEVEL:  # of two levels the lower one is left out
        gap = abs(level - state.table_level[slot]) - np.log(state.numbers[POSITION] + 1.0)
        state.lower_gap[head] = min(state.lower_gap[head], gap)
        if gap < LEAST_LOWER_GAP:
            return MIXED_LEVELS
        if level < state.table_level[slot]:
            return OK
        state.table_count[slot] = 0
    if state.table_count[slot] == 0:
        state.table_level[slot] = level
        state.table_dim[slot] = dim
        if sums:
            state.table_sum[slot] = 0.0
    elif state.table_dim[slot] != dim:
        if not sums:
            return MIXED_VALUES
        if state.table_dim[slot] == NOTHING:
            state.table_dim[slot] = dim
        elif dim != NOTHING:
            return MIXED_VALUES
    state.table_count[slot] += 1
    if sums:
        state.table_sum[slot] += amount
    elif dim != NOTHING and abs(amount - 1.0) > NOISE:
        return MIXED_VALUES
    return OK
