"""One sequence: what its heads remember, and tables that grow with it."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from compile.errors import REFUSED, CapacityError
from compile.sparse import arrays, kernel, table
from compile.sparse.arrays import Plan, State
from compile.sparse.bounds import NotSparse
from compile.sparse.weights import SparseWeights

AT_ONCE = 1024  # tokens between two looks at Ctrl-C and at the size of the table
SMALLEST_TABLE = 1 << 10
FULLEST = 0.7  # share of a hash table's slots
GROWING = ("table", "intern")  # the parts of a state that grow with the context


class Memory:
    """One sequence: everything its heads have to remember, and how far what they left out was from mattering."""

    def __init__(self, plan: Plan, weights: SparseWeights) -> None:
        self.plan, self.weights = plan, weights
        self.state = make_state(plan)
        starts = np.full(weights.copies, weights.prepend, dtype=np.int64)
        answers = np.zeros(len(starts), dtype=np.int64)
        self._check(*kernel.feed(plan, self.state, starts, answers, True))
        self.last = int(answers[-1])

    def feed(self, tokens: np.ndarray) -> np.ndarray:
        """The index of the largest logit after each token."""
        answers = np.zeros(len(tokens), dtype=np.int64)
        for first in range(0, len(tokens), AT_ONCE):
            piece = slice(first, first + AT_ONCE)
            self.state = with_room(self.state, min(AT_ONCE, len(tokens) - first), self.unbounded)
            self._check(*kernel.feed(self.plan, self.state, tokens[piece], answers[piece], False))
        if len(tokens):
            self.last = int(answers[-1])
        return answers

    def write(self, prompt: np.ndarray, count: int, stops: np.ndarray) -> Iterator[np.ndarray]:
        """Tokens after the prompt; prompt and stops are given as columns of the embedding."""
        self.feed(prompt)
        first, inputs = self.weights.first, self.weights.inputs
        outputs = self.weights.outputs - first
        while count > 0:
            tokens = np.empty(min(count, AT_ONCE), dtype=np.int64)
            self.state = with_room(self.state, len(tokens), self.unbounded)
            code, size, self.last = kernel.write(self.plan, self.state, outputs, stops, inputs, self.last, tokens)
            yield tokens[:size] + first
            self._check(code, size)
            if size < len(tokens) or (size and tokens[size - 1] in stops):
                if size < len(tokens) and not (size and tokens[size - 1] in stops):
                    self._refuse(int(tokens[size]) + first)
                return
            count -= size

    @property
    def position(self) -> int:
        """How many tokens it has seen."""
        return int(self.state.numbers[arrays.POSITION])

    @property
    def unbounded(self) -> int:
        return int((self.plan.window == 0).sum())

    @property
    def bytes(self) -> int:
        """What the heads remember (it grows with the context)."""
        return sum(getattr(self.state, name).nbytes for name in self.state._fields if name.startswith(GROWING))

    @property
    def left_out(self) -> float:
        """The largest share of attention, of any head at any token, that was left out: an upper bound."""
        return float((np.exp(-self.state.gap) + np.exp(-self.state.lower_gap)).max(initial=0.0))

    @property
    def touched(self) -> int:
        """Products taken so far."""
        return int(self.state.numbers[arrays.TOUCHED])

    def _check(self, code: int, done: int) -> None:
        if code:
            layer, head = self.state.numbers[[arrays.FAILED_LAYER, arrays.FAILED_HEAD]]
            where = f"layer {layer} head {head}" if head >= 0 else f"the MLP of layer {layer}"
            raise NotSparse(f"{where}, token {self.state.numbers[arrays.POSITION]}: {arrays.REASONS[code]}")

    def _refuse(self, token: int) -> None:
        if token == REFUSED:
            raise CapacityError(self.weights.refusal)
        raise ValueError(f"the model writes {token}, which is not one of its {self.weights.inputs} inputs")


# --- arrays -----------------------------------------------------------------------------------------------------------


def make_state(plan: Plan) -> State:
    heads = len(plan.window)
    most_rows = int(np.diff(plan.bias_at).max())
    most_heads, most_size = int(np.diff(plan.head_at).max(initial=0)), int(plan.d_head.max(initial=1))
    most_window = int(plan.window.max(initial=1)) or 1
    carried, stairs = arrays.MOST_CARRIED, int(np.diff(plan.stair_at).max(initial=0))
    reals, wholes = np.zeros, lambda *shape: np.zeros(shape, dtype=np.int64)
    return State(
        numbers=wholes(10),
        x=reals(plan.d_model),
        x_stamp=wholes(plan.d_model),
        x_list=wholes(plan.d_model),
        acc=reals(most_rows),
        acc_stamp=wholes(most_rows),
        acc_list=wholes(most_rows),
        bucket=np.zeros((3 * most_heads, most_size), dtype=np.int32),
        bucket_size=wholes(3 * most_heads),
        on_list=wholes(most_rows),
        on_value=reals(most_rows),
        stair_gate=reals(stairs),
        stair_w=reals(stairs),
        ring_dim=np.zeros((heads, most_window, carried), dtype=np.int32),
        ring_value=reals((heads, most_window, carried)),
        ring_size=wholes(heads, most_window),
        start_count=wholes(heads),
        start_level=reals(heads),
        start_size=wholes(heads),
        start_dim=wholes(heads, carried),
        start_value=reals((heads, carried)),
        key_parts=wholes(heads),
        key_level=np.full(heads, -np.inf),
        gap=np.full(heads, np.inf),
        lower_gap=np.full(heads, np.inf),
        part_dim=wholes(arrays.MOST_PARTS + 1),
        **_table(SMALLEST_TABLE, bool(plan.sums.any())),
        **_interned(SMALLEST_TABLE),
    )


def _table(slots: int, sums: bool) -> dict[str, np.ndarray]:
    return {
        "table_key": np.full(slots, arrays.EMPTY, dtype=np.int64),
        "table_level": np.zeros(slots, dtype=np.float32),
        "table_dim": np.zeros(slots, dtype=np.int32),
        "table_count": np.zeros(slots, dtype=np.int32),
        "table_sum": np.zeros(slots if sums else 1),
    }


def _interned(slots: int) -> dict[str, np.ndarray]:
    return {
        "intern_key": np.full(slots, arrays.EMPTY, dtype=np.int64),
        "intern_id": np.zeros(slots, dtype=np.int32),
    }


def with_room(state: State, tokens: int, heads: int) -> State:
    """The same memory, with room for this many more tokens in its tables."""
    used, interned = state.numbers[arrays.USED], state.numbers[arrays.INTERNED]
    slots = _slots_for(int(used) + tokens * heads, len(state.table_key))
    if slots > len(state.table_key):
        larger = _table(slots, len(state.table_sum) > 1)
        table.grow(state, *larger.values())
        state = state._replace(**larger)
    slots = _slots_for(int(interned) + 2 * tokens * heads, len(state.intern_key))
    if slots > len(state.intern_key):
        larger = _interned(slots)
        table.grow_interned(state, *larger.values())
        state = state._replace(**larger)
    return state


def _slots_for(entries: int, slots: int) -> int:
    while entries > FULLEST * slots:
        slots *= 2
    return slots
