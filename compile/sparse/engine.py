"""Sequences through compiled weights: `SparseEngine` reads a model once, and each sequence has a memory of its own."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from compile.errors import REFUSED, CapacityError
from compile.sparse import kernel
from compile.sparse.kernel import Plan, State
from compile.sparse.weights import Columns, NotSparse, SparseWeights, sparse_weights, weight_shapes
from compile.transformer.files import PLACES, VALUES, checked_weights, fill_nonzeros, read_config

AT_ONCE = 1024  # tokens between two looks at Ctrl-C and at the size of the table
SMALLEST_TABLE = 1 << 10
FULLEST = 0.7  # share of a hash table's slots
GROWING = ("table", "intern")  # the parts of a state that grow with the context


class SparseEngine:
    """Decodes one compiled model; `predict` and `generate` say what the model says through torch."""

    def __init__(self, config: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> None:
        self.config = config
        self.weights = sparse_weights(config, arrays)
        self.plan = make_plan(self.weights)
        self.inputs = config["vocabulary"] - bool(config.get("refusal"))

    @classmethod
    def load(cls, folder: str | Path) -> SparseEngine:
        """A saved model, without torch."""
        from safetensors.numpy import load_file

        config = read_config(Path(folder))
        stored = load_file(checked_weights(Path(folder), config))
        shapes = weight_shapes(config)
        arrays = {
            name: fill_nonzeros(stored[name + PLACES], stored[name + VALUES], shape, name)
            if name + PLACES in stored
            else stored[name]
            for name, shape in shapes.items()
        }
        return cls(config, arrays)

    def memory(self) -> Memory:
        return Memory(self)

    def predict(self, tokens: Sequence[int] | np.ndarray) -> np.ndarray:
        """The next token at every position of one sequence."""
        memory = self.memory()
        return self.need_answers(self.weights.outputs[memory.feed(self.checked(tokens))])

    def generate(
        self,
        prompts: Sequence[Sequence[int]],
        count: int,
        stops: Collection[int] = (),
        workers: int = 1,
    ) -> list[np.ndarray]:
        """Each prompt with `count` greedily chosen tokens; fewer after a stop token, which is kept."""

        written = [[np.asarray(prompt, dtype=np.int64)] for prompt in prompts]

        def finish(pieces: list[np.ndarray]) -> None:
            pieces.extend(self.stream(pieces[0], count, stops))

        try:
            if workers == 1 or len(prompts) == 1:
                for pieces in written:
                    finish(pieces)
            else:
                with ThreadPoolExecutor(workers) as pool:
                    list(pool.map(finish, written))
        except CapacityError as error:
            error.written = [np.concatenate(pieces) for pieces in written]
            raise
        return [np.concatenate(pieces) for pieces in written]

    def stream(
        self, prompt: Sequence[int] | np.ndarray, count: int, stops: Collection[int] = ()
    ) -> Iterator[np.ndarray]:
        """Pieces of the continuation as they are written. A capacity reached raises after all that was written."""
        memory = self.memory()
        yield from memory.write(self.checked(prompt), count, np.array(sorted(stops), dtype=np.int64))

    def checked(self, tokens: Sequence[int] | np.ndarray) -> np.ndarray:
        array = np.asarray(tokens)
        if array.ndim != 1 or (array.size and not np.issubdtype(array.dtype, np.integer)):
            raise ValueError(f"a sequence is a flat list of tokens, not {array.dtype} of shape {array.shape}")
        if array.size and (array.min() < 0 or array.max() >= self.inputs):
            wrong = array[(array < 0) | (array >= self.inputs)][0]
            raise ValueError(f"token {wrong} is not one of 0..{self.inputs - 1}")
        return array.astype(np.int64)

    def need_answers(self, tokens: np.ndarray) -> np.ndarray:
        if self.config.get("refusal") and (tokens == REFUSED).any():
            raise CapacityError(self.config["refusal"])
        return tokens


class Memory:
    """One sequence: everything its heads have to remember, and how far what they left out was from mattering."""

    def __init__(self, engine: SparseEngine) -> None:
        self.engine = engine
        self.state = make_state(engine.plan, engine.weights)
        starts = np.full(engine.weights.copies, engine.weights.prepend, dtype=np.int64)
        answers = np.zeros(len(starts), dtype=np.int64)
        self._check(*kernel.feed(engine.plan, self.state, starts, answers, True))
        self.last = int(answers[-1])

    def feed(self, tokens: np.ndarray) -> np.ndarray:
        """The index of the largest logit after each token."""
        answers = np.zeros(len(tokens), dtype=np.int64)
        for first in range(0, len(tokens), AT_ONCE):
            piece = slice(first, first + AT_ONCE)
            self.state = with_room(self.state, min(AT_ONCE, len(tokens) - first), self.unbounded)
            self._check(*kernel.feed(self.engine.plan, self.state, tokens[piece], answers[piece], False))
        if len(tokens):
            self.last = int(answers[-1])
        return answers

    def write(self, prompt: np.ndarray, count: int, stops: np.ndarray) -> Iterator[np.ndarray]:
        self.feed(prompt)
        outputs, inputs = self.engine.weights.outputs, self.engine.inputs
        while count > 0:
            tokens = np.empty(min(count, AT_ONCE), dtype=np.int64)
            self.state = with_room(self.state, len(tokens), self.unbounded)
            code, size, self.last = kernel.write(
                self.engine.plan, self.state, outputs, stops, inputs, self.last, tokens
            )
            yield tokens[:size]
            self._check(code, size)
            if size < len(tokens) or (size and tokens[size - 1] in stops):
                if size < len(tokens) and not (size and tokens[size - 1] in stops):
                    self._refuse(int(tokens[size]))
                return
            count -= size

    @property
    def position(self) -> int:
        """How many tokens it has seen."""
        return int(self.state.numbers[kernel.POSITION])

    @property
    def unbounded(self) -> int:
        return int((self.engine.plan.window == 0).sum())

    @property
    def bytes(self) -> int:
        """What the heads remember (it grows with the context)."""
        return sum(
            getattr(self.state, name).nbytes for name in self.state._fields if name.startswith(("table", "intern"))
        )

    @property
    def left_out(self) -> float:
        """The largest share of attention, of any head at any token, that was left out: an upper bound."""
        gaps = self.state.gap[np.isfinite(self.state.gap)]
        return float(np.exp(-gaps.min())) if len(gaps) else 0.0

    @property
    def touched(self) -> int:
        """Products taken so far."""
        return int(self.state.numbers[kernel.TOUCHED])

    def _check(self, code: int, done: int) -> None:
        if code:
            layer, head = self.state.numbers[[kernel.FAILED_LAYER, kernel.FAILED_HEAD]]
            where = f"layer {layer} head {head}" if head >= 0 else f"the MLP of layer {layer}"
            raise NotSparse(f"{where}, token {self.state.numbers[kernel.POSITION]}: {kernel.REASONS[code]}")

    def _refuse(self, token: int) -> None:
        if token == REFUSED:
            raise CapacityError(self.engine.config["refusal"])
        raise ValueError(f"the model writes {token}, which is not one of its inputs 0..{self.engine.inputs - 1}")


# --- arrays -----------------------------------------------------------------------------------------------------------


def make_plan(weights: SparseWeights) -> Plan:
    stages: list[tuple[Columns, np.ndarray, bool]] = []
    for layer in weights.layers:
        if np.any(layer.out_bias) or np.any(layer.down_bias):
            raise NotSparse("a layer adds a constant to the residual stream")
        stages += [
            (layer.project, layer.project_bias, False),
            (layer.out, np.zeros(weights.d_model), False),
            (layer.up, layer.up_bias, True),
            (layer.down, np.zeros(weights.d_model), False),
        ]
    stages += [(weights.unembed, weights.unembed_bias, False), (weights.embed, np.zeros(weights.d_model), False)]
    entries = _offsets([len(c.rows) for c, _, _ in stages])
    always = [np.flatnonzero(bias > 0) if relu else np.flatnonzero(bias) for _, bias, relu in stages]
    windows = [layer.windows for layer in weights.layers]
    unbounded = np.concatenate([*windows, np.zeros(0)]) == 0
    sizes = [layer.d_head for layer in weights.layers for _ in layer.windows]
    stairs = [s for layer in weights.layers for s in layer.staircases]
    rows_at = _offsets([len(s.rows) for s in stairs])
    if unbounded.sum() >= 1 << (62 - kernel.BODY_BITS - 2):
        raise NotSparse(f"it has {unbounded.sum()} unbounded heads")
    return Plan(
        layers=len(weights.layers),
        d_model=weights.d_model,
        column=_offsets([len(c.start) for c, _, _ in stages]),
        start=_joined([c.start + at for (c, _, _), at in zip(stages, entries, strict=False)], np.int64),
        rows=_joined([c.rows for c, _, _ in stages], np.int32),
        values=_joined([c.values for c, _, _ in stages], np.float64),
        bias_at=_offsets([len(bias) for _, bias, _ in stages]),
        bias=_joined([bias for _, bias, _ in stages], np.float64),
        always_at=_offsets([len(rows) for rows in always]),
        always=_joined(always, np.int32),
        head_at=_offsets([len(w) for w in windows]),
        d_head=np.array([layer.d_head for layer in weights.layers], dtype=np.int64),
        window=_joined(windows, np.int64),
        strength=_joined([layer.strength for layer in weights.layers], np.float64),
        constant_at=_offsets(sizes),
        constant=_joined([layer.constant.ravel() for layer in weights.layers], np.int8),
        sums=_joined([layer.sums for layer in weights.layers], np.int8),
        bits=np.array([(2 * size).bit_length() for size in sizes], dtype=np.int64),
        number=np.cumsum(unbounded).astype(np.int64),
        stair_at=_offsets([len(layer.staircases) for layer in weights.layers]),
        stair_share=np.array([s.share for s in stairs], dtype=np.int64),
        gate_at=_offsets([len(s.gate_dims) for s in stairs]),
        gate_dims=_joined([s.gate_dims for s in stairs], np.int64),
        gate_values=_joined([s.gate_values for s in stairs], np.float64),
        gate_bias=np.array([s.gate_bias for s in stairs], dtype=np.float64),
        edge_at=_offsets([len(s.edges) for s in stairs]),
        edges=_joined([s.edges for s in stairs], np.float64),
        first_at=_offsets([len(s.first) for s in stairs]),
        first=_joined([s.first + at for s, at in zip(stairs, rows_at, strict=False)], np.int64),
        stair_rows=_joined([s.rows for s in stairs], np.int32),
        stair_offset=_joined([s.offset for s in stairs], np.float64),
        stair_slope=_joined([s.slope for s in stairs], np.float64),
    )


def _offsets(sizes: Sequence[int]) -> np.ndarray:
    return np.concatenate(([0], np.cumsum(sizes, dtype=np.int64))).astype(np.int64)


def _joined(parts: Sequence[np.ndarray], dtype: Any) -> np.ndarray:
    return np.concatenate([*parts, np.zeros(0)]).astype(dtype)


def make_state(plan: Plan, weights: SparseWeights) -> State:
    heads = len(plan.window)
    most_rows = int(np.diff(plan.bias_at).max())
    most_heads, most_size = int(np.diff(plan.head_at).max(initial=0)), int(plan.d_head.max(initial=1))
    most_window = int(plan.window.max(initial=1)) or 1
    carried, stairs = kernel.MOST_CARRIED, int(np.diff(plan.stair_at).max(initial=0))
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
        part_dim=wholes(kernel.MOST_PARTS + 1),
        **_table(SMALLEST_TABLE, bool(plan.sums.any())),
        **_interned(SMALLEST_TABLE),
    )


def _table(slots: int, sums: bool) -> dict[str, np.ndarray]:
    return {
        "table_key": np.full(slots, kernel.EMPTY, dtype=np.int64),
        "table_level": np.zeros(slots, dtype=np.float32),
        "table_dim": np.zeros(slots, dtype=np.int32),
        "table_count": np.zeros(slots, dtype=np.int32),
        "table_sum": np.zeros(slots if sums else 1),
    }


def _interned(slots: int) -> dict[str, np.ndarray]:
    return {
        "intern_key": np.full(slots, kernel.EMPTY, dtype=np.int64),
        "intern_id": np.zeros(slots, dtype=np.int32),
    }


def with_room(state: State, tokens: int, heads: int) -> State:
    """The same memory, with room for this many more tokens in its tables."""
    used, interned = state.numbers[kernel.USED], state.numbers[kernel.INTERNED]
    slots = _slots_for(int(used) + tokens * heads, len(state.table_key))
    if slots > len(state.table_key):
        table = _table(slots, len(state.table_sum) > 1)
        kernel.grow(state, *table.values())
        state = state._replace(**table)
    slots = _slots_for(int(interned) + 2 * tokens * heads, len(state.intern_key))
    if slots > len(state.intern_key):
        table = _interned(slots)
        kernel.grow_interned(state, *table.values())
        state = state._replace(**table)
    return state


def _slots_for(entries: int, slots: int) -> int:
    while entries > FULLEST * slots:
        slots *= 2
    return slots
