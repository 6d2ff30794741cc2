"""Products of sparse matrices with sparse vectors: only the columns of what is on are read."""

from __future__ import annotations

from compile.sparse.arrays import ACC_STAMP, LISTED, STAMP, TOUCHED, Plan, State, fast, inlined
from compile.sparse.weights import DROPPED


@inlined
def add(state: State, dim: int, value: float) -> None:
    if state.x_stamp[dim] != state.numbers[STAMP]:
        state.x_stamp[dim] = state.numbers[STAMP]
        state.x[dim] = value
        state.x_list[state.numbers[LISTED]] = dim
        state.numbers[LISTED] += 1
    else:
        state.x[dim] += value


@fast
def multiply(plan: Plan, state: State, stage: int) -> int:
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
def write_column(plan: Plan, state: State, stage: int, source: int, value: float) -> None:
    base = plan.column[stage]
    first, last = plan.start[base + source], plan.start[base + source + 1]
    for e in range(first, last):
        add(state, plan.rows[e], plan.values[e] * value)
    state.numbers[TOUCHED] += last - first
