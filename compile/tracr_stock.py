"""The baseline: a RASP-L program handed to tracr's own `compile_rasp_to_model`, as a user of tracr would.

tracr has no `max`, no defaults, no constant sequences and only maps of one or two arguments, so the translation says
what tracr can say: a mean for every reduction, nothing for every default, a map of the tokens for a constant, tuples
for further arguments. What then goes wrong, and what it costs, is written down in tests/test_tracr_stock.py.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from compile.tracr_stock_size import stock_size
from rasp.graph import Graph, Node
from rasp.scalar import Expr, evaluate, evaluate_int

COMPILER_BOS = "compiler_bos"


# --- translation ------------------------------------------------------------------------------------------------------


def to_tracr(graph: Graph) -> Any:
    """The program as a tracr `SOp`."""
    made: list[Any] = []
    for node in graph.nodes:
        made.append(_translate(node, [made[i] for i in node.inputs]))
    return made[graph.output]


def _translate(node: Node, args: list[Any]) -> Any:
    from tracr.rasp import rasp

    match node.op:
        case "input" if node.offset == 0:
            return rasp.tokens
        case "indices":
            return rasp.indices
        case "full":
            return rasp.Map(lambda _: node.default, rasp.tokens, simplify=False)
        case "map":
            return _map(node.function, args)
        case "select":
            return _select(node.function, args[: node.keys], args[node.keys :])
        case "aggr":
            return rasp.Aggregate(args[0], args[1])
        case "width":
            return rasp.SelectorWidth(args[0] if node.keys == 0 else _select_of(node, args))
        case "delay":
            return rasp.Aggregate(rasp.Select(rasp.indices, rasp.indices, lambda k, q: k + node.offset == q), args[0])
        case "kqv":
            return rasp.Aggregate(_select_of(node, args[:-1]), args[-1])
    raise NotImplementedError(f"{node.op} {node.offset} has no counterpart in tracr")


def _select_of(node: Node, args: list[Any]) -> Any:
    return _select(node.function, args[: node.keys], args[node.keys :])


def _map(expr: Expr, args: list[Any]) -> Any:
    from tracr.rasp import rasp

    distinct = list({id(a): a for a in args}.values())
    places = [next(i for i, d in enumerate(distinct) if d is a) for a in args]
    if len(distinct) == 1:
        return rasp.Map(lambda v: evaluate_int(expr, [v] * len(args)), distinct[0], simplify=False)
    left = _tuple(distinct[:-1])

    def function(a: Any, b: Any) -> int:
        values = [*_as_tuple(a, len(distinct) - 1), b]
        return evaluate_int(expr, [values[i] for i in places])

    return rasp.SequenceMap(function, left, distinct[-1])


def _select(condition: Expr, keys: list[Any], queries: list[Any]) -> Any:
    from tracr.rasp import rasp

    def predicate(k: Any, q: Any) -> bool:
        return bool(evaluate(condition, [*_as_tuple(k, len(keys)), *_as_tuple(q, len(queries))]))

    return rasp.Select(_tuple(keys), _tuple(queries), predicate)


def _tuple(args: Sequence[Any]) -> Any:
    """Several sequences as one of tuples, which is how a function of three arguments is said in tracr."""
    from tracr.rasp import rasp

    joined = args[0]
    for count, other in enumerate(args[1:], start=1):
        joined = rasp.SequenceMap(lambda a, b, c=count: (*_as_tuple(a, c), b), joined, other)
    return joined


def _as_tuple(value: Any, count: int) -> tuple[Any, ...]:
    return (value,) if count == 1 else value


# --- the compiled baseline --------------------------------------------------------------------------------------------


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
            f"program at {max_seq_len} positions; at most {most:.2g} are allowed. Use backend='tracr' without stock."
        )
    start = time.perf_counter()
    haiku = compiling.compile_rasp_to_model(
        to_tracr(graph), vocabulary, max_seq_len, causal=True, compiler_bos=COMPILER_BOS, mlp_exactness=mlp_exactness
    )
    return StockModel(haiku, max_seq_len, time.perf_counter() - start)
