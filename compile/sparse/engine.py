"""Sequences through compiled weights: `SparseEngine` reads a model once, and each sequence has a memory of its own."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from compile.errors import REFUSED, CapacityError
from compile.sparse.bounds import check_bounds
from compile.sparse.check import check_plan
from compile.sparse.memory import Memory
from compile.sparse.plan import make_plan
from compile.sparse.weights import sparse_weights, weight_shapes
from compile.transformer.files import PLACES, VALUES, checked_weights, fill_nonzeros, read_config


class SparseEngine:
    """Decodes one compiled model; `predict` and `generate` say what the model says through torch."""

    def __init__(self, config: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> None:
        self.config = config
        self.weights = sparse_weights(config, arrays)
        self.plan = make_plan(self.weights)
        check_plan(self.plan, self.weights, arrays)
        starts = self.memory().state.start_level  # the same for every sequence
        self.bounds = check_bounds([layer.scores for layer in self.weights.layers], starts)

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
        return Memory(self.plan, self.weights)

    def predict(self, tokens: Sequence[int] | np.ndarray) -> np.ndarray:
        """The next token at every position of one sequence."""
        return self.need_answers(self.answers(tokens))

    def answers(self, tokens: Sequence[int] | np.ndarray) -> np.ndarray:
        """The same, with REFUSED where a capacity is exceeded."""
        return self.weights.outputs[self.memory().feed(self.checked(tokens))]

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
        self,
        prompt: Sequence[int] | np.ndarray,
        count: int,
        stops: Collection[int] = (),
        memory: Memory | None = None,
    ) -> Iterator[np.ndarray]:
        """Pieces of the continuation as they are written. A capacity reached raises after all that was written."""
        memory = memory or self.memory()
        ends = np.array(sorted(stops), dtype=np.int64) - self.weights.first
        yield from memory.write(self.checked(prompt), count, ends)

    def checked(self, tokens: Sequence[int] | np.ndarray) -> np.ndarray:
        """The columns of the embedding that belong to the tokens."""
        array = np.asarray(tokens)
        if array.ndim != 1 or (array.size and not np.issubdtype(array.dtype, np.integer)):
            raise ValueError(f"a sequence is a flat list of tokens, not {array.dtype} of shape {array.shape}")
        first, inputs = self.weights.first, self.weights.inputs
        columns = array.astype(np.int64) - first
        if columns.size and (columns.min() < 0 or columns.max() >= inputs):
            wrong = array[(columns < 0) | (columns >= inputs)][0]
            raise ValueError(f"token {wrong} is not one of {first}..{first + inputs - 1}")
        return columns

    def need_answers(self, tokens: np.ndarray) -> np.ndarray:
        if self.weights.refusal and (tokens == REFUSED).any():
            raise CapacityError(self.weights.refusal)
        return tokens
