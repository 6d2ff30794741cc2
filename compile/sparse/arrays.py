"""The arrays that machine code works on: `Plan`, the weights of a model, and `State`, one sequence of tokens.

Both are plain tuples of numpy arrays. Heads, stages and staircases of all layers lie one behind the other; an array
whose name ends in `_at` says where each begins.
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import numpy as np

from rasp.machine_code import compiled

NOISE = 0.05  # how far an entry of a key or query may be from 0, 1 or -1
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
    gap: np.ndarray  # the smallest distance of other classes, all together, from what was kept
    lower_gap: np.ndarray  # the same of lower levels in the class that was kept
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
