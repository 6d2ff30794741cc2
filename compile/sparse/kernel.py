"""One token through compiled weights, at the cost of the nonzeros it touches.

Activations are sparse: only the columns of what is on are read. A window head adds up what its last tokens carry. An
unbounded head looks its query up: keys with the same entries are one class, held under the entries themselves (packed
into one number, so that nothing collides), with the best level among them, how many have it, and what they carry.

What is left out of a softmax, and why that cannot change a token:

    other classes     differ in at least one part, so they score at least `strength` less; the smallest gap between what
                      is kept and the most that anything left out could score is recorded per head (`gap`)
    lower levels      of the same class score at least LEVEL_GAP less
    small activations below DROPPED: registers hold 0 and 1, and are read as such up to NOISE

A head of which this does not hold stops the run with a code, and the model is decoded by torch instead.
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import numpy as np

from compile.sparse.weights import DROPPED
from rasp.machine_code import compiled

NOISE = 0.05  # how far an entry of a key or query may be from 0, 1 or -1
LEVEL_GAP = 12.0  # by which what is left out stays below what is kept, all of it together: exp(-12) is 6e-6
MOST_CARRIED = 32  # entries that one token carries in one head
MOST_PARTS = 24  # entries of a key that are not zero
BODY_BITS, INTERNED_BITS = 54, 24  # of a packed key, of which two more bits and the number of the head are a part
EMPTY = np.int64(-1)

# Without reference counts: every array belongs to the caller, and counting at each access takes four times as long.
fast = partial(compiled, _nrt=False)
inlined = partial(compiled, _nrt=False, inline="always")

OK, NOT_DISCRETE, TOO_MANY, MIXED_LEVELS, MIXED_VALUES, START_HAS_KEY, LEFT_OUT = range(7)
REASONS = {
    NOT_DISCRETE: "a key or query is not made of zeros and ones",
    TOO_MANY: "a key has more parts, or a token carries more, than is kept",
    MIXED_LEVELS: "the levels of keys that match alike are too close",
    MIXED_VALUES: "keys that match alike carry different things",
    START_HAS_KEY: "the start tokens can be matched",
    LEFT_OUT: "more than equality decides what is attended to",
}


class Plan(NamedTuple):
    """The weights. Stages are matrices by columns: 4 per layer (project, out, up, down), then unembed and embed."""

    layers: int
    d_model: int
    column: np.ndarray  # per stage: its first column in `start`
    start: np.ndarray  # per column: its first entry
    rows: np.ndarray  # per entry
    values: np.ndarray
    bias_at: np.ndarray  # per stage
    bias: np.ndarray
    always_at: np.ndarray  # per stage: rows that count even if nothing touches them
    always: np.ndarray
    head_at: np.ndarray  # per layer
    d_head: np.ndarray
    window: np.ndarray  # per head; 0: unbounded
    strength: np.ndarray
    constant_at: np.ndarray
    constant: np.ndarray  # per head and dimension: the query's entry is a constant
    sums: np.ndarray  # per head: amounts are added up
    bits: np.ndarray  # per head: that tell its dimensions apart
    number: np.ndarray  # per head, among the unbounded ones
    stair_at: np.ndarray  # per layer
    stair_share: np.ndarray  # per staircase
    gate_at: np.ndarray
    gate_dims: np.ndarray
    gate_values: np.ndarray
    gate_bias: np.ndarray
    edge_at: np.ndarray
    edges: np.ndarray
    first_at: np.ndarray
    first: np.ndarray
    stair_rows: np.ndarray
    stair_offset: np.ndarray
    stair_slope: np.ndarray


class State(NamedTuple):
    """One sequence. Vectors are sparse: a value, a stamp that says whether it counts, and a list of those that do."""

    numbers: np.ndarray
    x: np.ndarray  # the residual stream of this token
    x_stamp: np.ndarray
    x_list: np.ndarray
    acc: np.ndarray  # a product with it
    acc_stamp: np.ndarray
    acc_list: np.ndarray
    bucket: np.ndarray  # dimensions of each q, k and v that are not zero
    bucket_size: np.ndarray
    on_list: np.ndarray  # units of the MLP
    on_value: np.ndarray
    stair_gate: np.ndarray
    stair_w: np.ndarray
    ring_dim: np.ndarray  # per window head: what its last tokens carry
    ring_value: np.ndarray
    ring_size: np.ndarray
    start_count: np.ndarray  # per unbounded head: the start tokens, which every query sees
    start_level: np.ndarray
    start_size: np.ndarray
    start_dim: np.ndarray
    start_value: np.ndarray
    key_parts: np.ndarray  # the most parts, and the highest level, of any key so far
    key_level: np.ndarray
    gap: np.ndarray  # the smallest distance of what was left out from what was kept
    part_dim: np.ndarray
    table_key: np.ndarray  # classes of keys
    table_level: np.ndarray
    table_dim: np.ndarray
    table_count: np.ndarray
    table_sum: np.ndarray
    intern_key: np.ndarray  # beginnings of keys that are too long for one number
    intern_id: np.ndarray


# State.numbers
STAMP, ACC_STAMP, POSITION, USED, INTERNED, TOUCHED, FAILED_LAYER, FAILED_HEAD, STARTS, LISTED = range(10)


@inlined
def _add(state: State, dim: int, value: float) -> None:
    if state.x_stamp[dim] != state.numbers[STAMP]:
        state.x_stamp[dim] = state.numbers[STAMP]
        state.x[dim] = value
        state.x_list[state.numbers[LISTED]] = dim
        state.numbers[LISTED] += 1
    else:
        state.x[dim] += value


@fast
def _multiply(plan: Plan, state: State, stage: int) -> int:
    """acc = matrix @ x + bias, on the rows that anything touches; returns how many."""
    state.numbers[ACC_STAMP] += 1
    stamp = state.numbers[ACC_STAMP]
    size = 0
    bias_at = plan.bias_at[stage]
    for a in range(plan.always_at[stage], plan.always_at[stage + 1]):
        row = plan.always[a]
        state.acc_stamp[row] = stamp
        state.acc[row] = plan.bias[bias_at + row]
        state.acc_list[size] = row
        size += 1
    base = plan.column[stage]
    touched = 0
    for i in range(state.numbers[LISTED]):
        dim = state.x_list[i]
        value = state.x[dim]
        if abs(value) < DROPPED:
            continue
        first, last = plan.start[base + dim], plan.start[base + dim + 1]
        touched += last - first
        for e in range(first, last):
            row = plan.rows[e]
            if state.acc_stamp[row] != stamp:
                state.acc_stamp[row] = stamp
                state.acc[row] = plan.bias[bias_at + row] + plan.values[e] * value
                state.acc_list[size] = row
                size += 1
            else:
                state.acc[row] += plan.values[e] * value
    state.numbers[TOUCHED] += touched
    return size


@inlined
def _write(plan: Plan, state: State, stage: int, source: int, value: float) -> None:
    base = plan.column[stage]
    first, last = plan.start[base + source], plan.start[base + source + 1]
    for e in range(first, last):
        _add(state, plan.rows[e], plan.values[e] * value)
    state.numbers[TOUCHED] += last - first


@fast
def _find(keys: np.ndarray, key: np.int64) -> np.int64:
    """The slot that holds the key, or the empty one where it belongs."""
    mask = len(keys) - 1
    slot = ((key * np.int64(-7046029254386353131)) >> 20) & mask
    while keys[slot] != key and keys[slot] != EMPTY:
        slot = (slot + 1) & mask
    return slot


@fast
def _pack(state: State, number: int, bits: int, parts: int, insert: bool) -> np.int64:
    """The sorted parts (2 * dimension + sign) and the head's number as one key; nothing collides.

    What does not fit into BODY_BITS is numbered, and the number takes its place. EMPTY: a new one, without `insert`.
    """
    body, used, depth = np.int64(1), 1, 0  # a leading 1 tells short keys from long ones
    for p in range(parts):
        if used + bits > BODY_BITS:
            whole = (body << 2) | depth
            slot = _find(state.intern_key, whole)
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
def _parts(plan: Plan, state: State, head: int, b: int, d_head: int, unit: float) -> int:
    """Sort the entries of bucket b that are not constant into part_dim; returns how many, or -1 or -2."""
    count = 0
    constant = plan.constant_at[head]
    for i in range(state.bucket_size[b]):
        d = state.bucket[b, i]
        if plan.constant[constant + d]:
            continue
        value = state.acc[b * d_head + d] / unit
        size = abs(value)
        if size < NOISE:
            continue
        if abs(size - 1.0) > NOISE:
            return -1
        if count == MOST_PARTS:
            return -2
        code = 2 * d + (1 if value < 0 else 0)
        p = count
        while p > 0 and state.part_dim[p - 1] > code:
            state.part_dim[p] = state.part_dim[p - 1]
            p -= 1
        state.part_dim[p] = code
        count += 1
    return count


@fast
def _level(plan: Plan, state: State, head: int, heads: int, h: int, d_head: int) -> float:
    """What the key scores whatever the query: constant query entries times key entries."""
    level = 0.0
    b = heads + h
    for i in range(state.bucket_size[b]):
        d = state.bucket[b, i]
        if plan.constant[plan.constant_at[head] + d]:
            level += state.acc[h * d_head + d] * state.acc[b * d_head + d]
    return level


@fast
def _carried(state: State, b: int, d_head: int) -> tuple[int, float]:
    """The one entry that a token carries: its dimension (-1: nothing, -2: several) and amount."""
    dim, amount = -1, 0.0
    for i in range(state.bucket_size[b]):
        d = state.bucket[b, i]
        value = state.acc[b * d_head + d]
        if abs(value) > DROPPED:
            if dim != -1:
                return -2, 0.0
            dim, amount = d, value
    return dim, amount


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
def _remember(state: State, sums: bool, key: np.int64, level: float, dim: int, amount: float) -> int:
    slot = _find(state.table_key, key)
    if state.table_key[slot] == EMPTY:
        state.table_key[slot] = key
        state.table_count[slot] = 0
        state.numbers[USED] += 1
    elif level > state.table_level[slot] + 0.5:
        if level < state.table_level[slot] + LEVEL_GAP:
            return MIXED_LEVELS
        state.table_count[slot] = 0
    elif level < state.table_level[slot] - 0.5:
        return OK if level < state.table_level[slot] - LEVEL_GAP else MIXED_LEVELS
    if state.table_count[slot] == 0:
        state.table_level[slot] = level
        state.table_dim[slot] = dim
        if sums:
            state.table_sum[slot] = 0.0
    elif state.table_dim[slot] != dim:
        if not sums:
            return MIXED_VALUES
        if state.table_dim[slot] == -1:
            state.table_dim[slot] = dim
        elif dim != -1:
            return MIXED_VALUES
    state.table_count[slot] += 1
    if sums:
        state.table_sum[slot] += amount
    elif dim != -1 and abs(amount - 1.0) > NOISE:
        return MIXED_VALUES
    return OK


@fast
def _attend(plan: Plan, state: State, layer: int, head: int, heads: int, h: int, d_head: int, is_start: bool) -> int:
    """An unbounded head: remember this token's key, look up the query, write what is found."""
    strength, stage = plan.strength[head], 4 * layer + 1
    level = _level(plan, state, head, heads, h, d_head)
    parts = _parts(plan, state, head, heads + h, d_head, 1.0)
    if parts < 0:
        return NOT_DISCRETE if parts == -1 else TOO_MANY
    if is_start:
        if parts:
            return START_HAS_KEY
        code = _remember_start(state, head, level, 2 * heads + h, d_head)
        if code:
            return code
    else:
        dim, amount = _carried(state, 2 * heads + h, d_head)
        if dim == -2:
            return TOO_MANY
        key = _pack(state, plan.number[head], plan.bits[head], parts, True)
        code = _remember(state, plan.sums[head], key, level, dim, amount)
        if code:
            return code
        state.key_parts[head] = max(state.key_parts[head], parts)
        state.key_level[head] = max(state.key_level[head], level)
    slot, score = -1, -np.inf
    wanted = 0
    if strength > 0:
        wanted = _parts(plan, state, head, h, d_head, strength)
        if wanted < 0:
            return NOT_DISCRETE if wanted == -1 else TOO_MANY
    key = _pack(state, plan.number[head], plan.bits[head], wanted, False)
    if key != EMPTY:
        slot = _find(state.table_key, key)
        if state.table_key[slot] == EMPTY:
            slot = -1
        else:
            score = strength * wanted + state.table_level[slot]
    best = max(score, state.start_level[head])
    if not is_start and (wanted > 0 or state.key_parts[head] > 0):
        missed = wanted - 1 if wanted >= state.key_parts[head] else wanted
        gap = best - strength * missed - state.key_level[head] - np.log(state.numbers[POSITION] + 1.0)
        state.gap[head] = min(state.gap[head], gap)
        if gap < LEVEL_GAP:
            return LEFT_OUT
    start = state.start_count[head] * np.exp(state.start_level[head] - best)
    found = state.table_count[slot] * np.exp(score - best) if slot >= 0 else 0.0
    total = start + found
    if start / total > DROPPED:
        for i in range(state.start_size[head]):
            source = h * d_head + state.start_dim[head, i]
            _write(plan, state, stage, source, state.start_value[head, i] * start / total)
    if slot >= 0 and found / total > DROPPED and state.table_dim[slot] >= 0:
        amount = state.table_sum[slot] / state.table_count[slot] if plan.sums[head] else 1.0
        _write(plan, state, stage, h * d_head + state.table_dim[slot], amount * found / total)
    return OK


@fast
def _look_back(plan: Plan, state: State, layer: int, head: int, heads: int, h: int, d_head: int) -> int:
    """A window head: the mean of what the last tokens carry."""
    window, stage = plan.window[head], 4 * layer + 1
    position = state.numbers[POSITION] + state.numbers[STARTS]  # start tokens included
    place = position % window
    size, b = 0, 2 * heads + h
    for i in range(state.bucket_size[b]):
        d = state.bucket[b, i]
        value = state.acc[b * d_head + d]
        if abs(value) > DROPPED:
            if size == MOST_CARRIED:
                return TOO_MANY
            state.ring_dim[head, place, size] = d
            state.ring_value[head, place, size] = value
            size += 1
    state.ring_size[head, place] = size
    seen = min(position + 1, window)
    for w in range(seen):
        for i in range(state.ring_size[head, w]):
            _write(plan, state, stage, h * d_head + state.ring_dim[head, w, i], state.ring_value[head, w, i] / seen)
    return OK


@fast
def _attention(plan: Plan, state: State, layer: int, is_start: bool) -> int:
    first, last = plan.head_at[layer], plan.head_at[layer + 1]
    heads, d_head = last - first, plan.d_head[layer]
    if heads == 0:
        return OK
    touched = _multiply(plan, state, 4 * layer)
    for b in range(3 * heads):
        state.bucket_size[b] = 0
    for i in range(touched):
        row = state.acc_list[i]
        b = row // d_head
        state.bucket[b, state.bucket_size[b]] = row - b * d_head
        state.bucket_size[b] += 1
    for h in range(heads):
        if plan.window[first + h]:
            code = _look_back(plan, state, layer, first + h, heads, h, d_head)
        else:
            code = _attend(plan, state, layer, first + h, heads, h, d_head, is_start)
        if code:
            state.numbers[FAILED_LAYER], state.numbers[FAILED_HEAD] = layer, h
            return code
    return OK


@fast
def _mlp(plan: Plan, state: State, layer: int) -> int:
    touched = _multiply(plan, state, 4 * layer + 2)
    on = 0
    for i in range(touched):
        unit = state.acc_list[i]
        if state.acc[unit] > DROPPED:
            state.on_list[on], state.on_value[on] = unit, state.acc[unit]
            on += 1
    # A staircase reads the residual stream before the units write to it.
    stairs = plan.stair_at[layer + 1] - plan.stair_at[layer]
    for s in range(stairs):
        stair = plan.stair_at[layer] + s
        gate = plan.gate_bias[stair]
        for g in range(plan.gate_at[stair], plan.gate_at[stair + 1]):
            dim = plan.gate_dims[g]
            if state.x_stamp[dim] == state.numbers[STAMP]:
                gate += plan.gate_values[g] * state.x[dim]
        share = plan.stair_share[stair]
        w = state.x[share] if state.x_stamp[share] == state.numbers[STAMP] else 0.0
        state.stair_gate[s], state.stair_w[s] = gate, w
    for i in range(on):
        _write(plan, state, 4 * layer + 3, state.on_list[i], state.on_value[i])
    for s in range(stairs):
        stair, gate, w = plan.stair_at[layer] + s, state.stair_gate[s], state.stair_w[s]
        if abs(gate) < NOISE:
            continue
        if abs(gate - 1.0) > NOISE:
            state.numbers[FAILED_LAYER], state.numbers[FAILED_HEAD] = layer, -1
            return NOT_DISCRETE
        low, high = plan.edge_at[stair], plan.edge_at[stair + 1]  # edges fall: count those above w
        base = low
        while low < high:
            middle = (low + high) // 2
            if plan.edges[middle] > w:
                low = middle + 1
            else:
                high = middle
        k = plan.first_at[stair] + low - base
        for e in range(plan.first[k], plan.first[k + 1]):
            _add(state, plan.stair_rows[e], plan.stair_offset[e] + plan.stair_slope[e] * w)
        state.numbers[TOUCHED] += 2 * (plan.first[k + 1] - plan.first[k])
    return OK


@fast
def step(plan: Plan, state: State, token: int, is_start: bool) -> tuple[int, int]:
    """Feed one token; returns a code and the index of the largest logit."""
    state.numbers[STAMP] += 1
    state.numbers[LISTED] = 0
    base = plan.column[4 * plan.layers + 1]
    for e in range(plan.start[base + token], plan.start[base + token + 1]):
        _add(state, plan.rows[e], plan.values[e])
    for layer in range(plan.layers):
        code = _attention(plan, state, layer, is_start)
        if code == OK:
            code = _mlp(plan, state, layer)
        if code:
            return code, -1
    touched = _multiply(plan, state, 4 * plan.layers)
    best, answer = 0.0, 0
    for i in range(touched):
        row = state.acc_list[i]
        if state.acc[row] > best:
            best, answer = state.acc[row], row
    state.numbers[STARTS if is_start else POSITION] += 1
    return OK, answer


@fast
def feed(plan: Plan, state: State, tokens: np.ndarray, answers: np.ndarray, is_start: bool) -> tuple[int, int]:
    """Feed given tokens; `answers` gets the index of the largest logit after each. Returns (code, how many)."""
    for t in range(len(tokens)):
        code, answer = step(plan, state, tokens[t], is_start)
        if code:
            return code, t
        answers[t] = answer
    return OK, len(tokens)


@fast
def write(
    plan: Plan, state: State, outputs: np.ndarray, stops: np.ndarray, inputs: int, last: int, tokens: np.ndarray
) -> tuple[int, int, int]:
    """Greedy decoding from the last answer on: fills `tokens`. Returns (code, how many, answer after the last).

    Stops before a token that cannot be an input, and after one of `stops`.
    """
    for t in range(len(tokens)):
        token = outputs[last]
        tokens[t] = token
        if token < 0 or token >= inputs:
            return OK, t, last
        for stop in stops:
            if token == stop:
                return OK, t + 1, last
        code, last = step(plan, state, token, False)
        if code:
            return code, t + 1, -1
    return OK, len(tokens), last


@fast
def grow(
    state: State, keys: np.ndarray, levels: np.ndarray, dims: np.ndarray, counts: np.ndarray, sums: np.ndarray
) -> None:
    """Move the table into larger arrays."""
    for old in range(len(state.table_key)):
        key = state.table_key[old]
        if key != EMPTY:
            slot = _find(keys, key)
            keys[slot], levels[slot] = key, state.table_level[old]
            dims[slot], counts[slot] = state.table_dim[old], state.table_count[old]
            if len(sums) > 1:
                sums[slot] = state.table_sum[old]


@fast
def grow_interned(state: State, keys: np.ndarray, ids: np.ndarray) -> None:
    for old in range(len(state.intern_key)):
        if state.intern_key[old] != EMPTY:
            slot = _find(keys, state.intern_key[old])
            keys[slot], ids[slot] = state.intern_key[old], state.intern_id[old]
