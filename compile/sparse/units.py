"""MLPs: the units that are on, and counts decoded from shares by staircases (`compile.sparse.weights.Staircase`)."""

from __future__ import annotations

from compile.sparse.arrays import (
    FAILED_HEAD,
    FAILED_LAYER,
    NOISE,
    NOT_DISCRETE,
    OK,
    STAMP,
    TOUCHED,
    Plan,
    State,
    fast,
)
from compile.sparse.products import add, multiply, write_column
from compile.sparse.weights import DROPPED


@fast
def run_units(plan: Plan, state: State, layer: int) -> int:
    """Read the residual stream, all of it before anything is written, then write."""
    touched = multiply(plan, state, 4 * layer + 2)
    on = 0
    for i in range(touched):
        unit = state.acc_list[i]
        if state.acc[unit] > DROPPED:
            state.on_list[on], state.on_value[on] = unit, state.acc[unit]
            on += 1
    _read_shares(plan, state, layer)
    for i in range(on):
        write_column(plan, state, 4 * layer + 3, state.on_list[i], state.on_value[i])
    return _write_counts(plan, state, layer)


@fast
def _read_shares(plan: Plan, state: State, layer: int) -> None:
    """The gate and the share of every staircase."""
    first = plan.stair_at[layer]
    for s in range(plan.stair_at[layer + 1] - first):
        stair = first + s
        gate = plan.gate_bias[stair]
        for g in range(plan.gate_at[stair], plan.gate_at[stair + 1]):
            dim = plan.gate_dims[g]
            if state.x_stamp[dim] == state.numbers[STAMP]:
                gate += plan.gate_values[g] * state.x[dim]
        share = plan.stair_share[stair]
        state.stair_gate[s] = gate
        state.stair_w[s] = state.x[share] if state.x_stamp[share] == state.numbers[STAMP] else 0.0


@fast
def _write_counts(plan: Plan, state: State, layer: int) -> int:
    """What every staircase whose gate is 1 says of its share."""
    first = plan.stair_at[layer]
    for s in range(plan.stair_at[layer + 1] - first):
        gate, share = state.stair_gate[s], state.stair_w[s]
        if abs(gate) < NOISE:
            continue
        if abs(gate - 1.0) > NOISE:
            state.numbers[FAILED_LAYER], state.numbers[FAILED_HEAD] = layer, -1
            return NOT_DISCRETE
        k = plan.first_at[first + s] + _edges_above(plan, first + s, share)
        for e in range(plan.first[k], plan.first[k + 1]):
            add(state, plan.stair_rows[e], plan.stair_offset[e] + plan.stair_slope[e] * share)
        state.numbers[TOUCHED] += 2 * (plan.first[k + 1] - plan.first[k])
    return OK


@fast
def _edges_above(plan: Plan, stair: int, share: float) -> int:
    """How many edges of the staircase, which fall, lie above the share."""
    base, high = plan.edge_at[stair], plan.edge_at[stair + 1]
    low = base
    while low < high:
        middle = (low + high) // 2
        if plan.edges[middle] > share:
            low = middle + 1
        else:
            high = middle
    return low - base
