"""What a token brings to a head: the parts and the level of its key or query, and what it carries."""

from __future__ import annotations

from compile.sparse.arrays import MOST_PARTS, NOISE, Plan, State, fast
from compile.sparse.weights import DROPPED

NO_PARTS, TOO_MANY_PARTS = -1, -2  # instead of a number of parts: entries between 0 and 1; more than are kept
NOTHING, SEVERAL = -1, -2  # instead of a dimension


@fast
def read_parts(plan: Plan, state: State, head: int, b: int, d_head: int, unit: float) -> int:
    """Sort the entries of bucket b that are not constant into part_dim; returns how many, or why they are none."""
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
            return NO_PARTS
        if count == MOST_PARTS:
            return TOO_MANY_PARTS
        code = 2 * d + (1 if value < 0 else 0)
        p = count
        while p > 0 and state.part_dim[p - 1] > code:
            state.part_dim[p] = state.part_dim[p - 1]
            p -= 1
        state.part_dim[p] = code
        count += 1
    return count


@fast
def read_level(plan: Plan, state: State, head: int, heads: int, h: int, d_head: int) -> float:
    """What the key scores whatever the query: constant query entries times key entries."""
    level = 0.0
    b = heads + h
    for i in range(state.bucket_size[b]):
        d = state.bucket[b, i]
        if plan.constant[plan.constant_at[head] + d]:
            level += state.acc[h * d_head + d] * state.acc[b * d_head + d]
    return level


@fast
def read_carried(state: State, b: int, d_head: int) -> tuple[int, float]:
    """The one entry that a token carries: its dimension (or NOTHING, or SEVERAL) and amount."""
    dim, amount = NOTHING, 0.0
    for i in range(state.bucket_size[b]):
        d = state.bucket[b, i]
        value = state.acc[b * d_head + d]
        if abs(value) > DROPPED:
            if dim != NOTHING:
                return SEVERAL, 0.0
            dim, amount = d, value
    return dim, amount
