"""One token through compiled weights, at the cost of the nonzeros it touches: the layers in order, and decoding.

Activations are sparse, and only the columns of what is on are read (`products`). A window head adds up what its last
tokens carry (`windows`); an unbounded head looks its query up (`matching`); units of an MLP that decode a count are one
table (`units`). A head of which the bounds do not hold stops the run with a code, and torch decodes the model instead.
"""

from __future__ import annotations

import numpy as np

from compile.sparse.arrays import (
    FAILED_HEAD,
    FAILED_LAYER,
    LISTED,
    OK,
    POSITION,
    STAMP,
    STARTS,
    Plan,
    State,
    fast,
)
from compile.sparse.matching import attend
from compile.sparse.products import add, multiply
from compile.sparse.units import run_units
from compile.sparse.windows import look_back


@fast
def _attention(plan: Plan, state: State, layer: int, is_start: bool) -> int:
    first, last = plan.head_at[layer], plan.head_at[layer + 1]
    heads, d_head = last - first, plan.d_head[layer]
    if heads == 0:
        return OK
    touched = multiply(plan, state, 4 * layer)
    for b in range(3 * heads):
        state.bucket_size[b] = 0
    for i in range(touched):
        row = state.acc_list[i]
        b = row // d_head
        state.bucket[b, state.bucket_size[b]] = row - b * d_head
        state.bucket_size[b] += 1
    for h in range(heads):
        if plan.window[first + h]:
            code = look_back(plan, state, layer, first + h, heads, h, d_head)
        else:
            code = attend(plan, state, layer, first + h, heads, h, d_head, is_start)
        if code:
            state.numbers[FAILED_LAYER], state.numbers[FAILED_HEAD] = layer, h
            return code
    return OK


@fast
def step(plan: Plan, state: State, token: int, is_start: bool) -> tuple[int, int]:
    """Feed one token; returns a code and the index of the largest logit."""
    state.numbers[STAMP] += 1
    state.numbers[LISTED] = 0
    base = plan.column[4 * plan.layers + 1]
    for e in range(plan.start[base + token], plan.start[base + token + 1]):
        add(state, plan.rows[e], plan.values[e])
    for layer in range(plan.layers):
        code = _attention(plan, state, layer, is_start)
        if code == OK:
            code = run_units(plan, state, layer)
        if code:
            return code, -1
    touched = multiply(plan, state, 4 * plan.layers)
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
