"""The baseline: a RASP-L program handed to tracr's own `compile_rasp_to_model`, as a user of tracr would.

What then goes wrong, and what it costs, is written down in tests/test_tracr_stock.py.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from experiments.benchmarks.stock_tracr_program import to_tracr
from experiments.benchmarks.stock_tracr_size import stock_size
from rasp.graph import Graph

COMPILER_BOS = "compiler_bos"


@dataclass(frozen=True)
class StockModel:
    """What tracr made of the program, with the interface of the other backends."""

    haiku: Any
    max_seq_len: int
    seconds: float

    def predict(self, tokens: Sequence[int] | np.ndarray) -> np.ndarray:
        """The output at every position, as tracr decodes it."""
        given = [int(t) for t in tokens]
        if len(given) > self.max_seq_len:
            raise ValueError(f"{len(given)} tokens do not fit: the model was compiled for {self.max_seq_len}")
        return np.array(self.haiku.apply([COMPILER_BOS, *given]).decoded[1:], dtype=np.int64)

    def generate(self, prompt: Sequence[int] | np.ndarray, count: int) -> np.ndarray:
        """`prompt` followed by `count` tokens, each predicted from what stands before it."""
        tokens = [int(t) for t in prompt]
        for _ in range(count):
            tokens.append(int(self.predict(tokens)[-1]))
        return np.array(tokens, dtype=np.int64)

    @property
    def layers(self) -> int:
        return int(self.haiku.model_config.num_layers)

    @property
    def heads(self) -> int:
        return int(self.haiku.model_config.num_heads)

    @property
    def d_model(self) -> int:
        return len(self.haiku.residual_labels)

    @property
    def parameters(self) -> int:
        return sum(int(w.size) for module in self.haiku.params.values() for w in module.values())

    @property
    def nonzero(self) -> int:
        return sum(int(np.count_nonzero(w)) for module in self.haiku.params.values() for w in module.values())


def compile_stock(
    graph: Graph, vocabulary: Iterable[int], max_seq_len: int, mlp_exactness: int = 100, most: int = 2 * 10**9
) -> StockModel:
    """tracr's own compilation, refused when the computed size is beyond `most` parameters."""
    from tracr.compiler import compiling

    vocabulary = set(vocabulary)
    size = stock_size(graph, vocabulary, max_seq_len)
    if size.parameters > most:
        raise MemoryError(
            f"stock tracr would need {size.parameters:.2g} parameters ({4 * size.parameters / 1e9:.3g} GB) for this "
            f"program at {max_seq_len} positions; at most {most:.2g} are allowed. Use our backend='tracr'."
        )
    start = time.perf_counter()
    haiku = compiling.compile_rasp_to_model(
        to_tracr(graph), vocabulary, max_seq_len, causal=True, compiler_bos=COMPILER_BOS, mlp_exactness=mlp_exactness
    )
    return StockModel(haiku, max_seq_len, time.perf_counter() - start)
