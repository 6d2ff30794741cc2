"""Window heads: the mean of what the last tokens carry, kept in a ring."""

from __future__ import annotations

from compile.sparse.arrays import MOST_CARRIED, OK, POSITION, STARTS, TOO_MANY, Plan, State, fast
from compile.sparse.products import write_column
from compile.sparse.weights import DROPPED


@fast
def look_back(plan: Plan, state: State, layer: int, head: int, heads: int, h: int, d_head: int) -> int:
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
            write_column(
                plan, state, stage, h * d_head + state.ring_dim[head, w, i], state.ring_value[head, w, i] / seen
            )
    return OK
