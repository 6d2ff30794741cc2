"""Run a program in the way asked for: one name for each interpreter."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

from rasp.codegen import EngineError
from rasp.graph import Graph
from rasp.machine import InvalidTape, TuringMachine
from rasp.reference import Plain
from rasp.rewrite import simplify
from rasp.tracing import trace
from rasp.turing import check_packing, check_tokens, next_tokens

ENGINES = ("reference", "eager", "graph", "stream", "jit")


def run(program: Callable[..., Any], *sequences: Any, engine: str = "eager") -> np.ndarray:
    """The program's value at every position, by the given interpreter."""
    check_engine(engine)
    arrays = [_checked(np.asarray(s)) for s in sequences]
    if len({len(a) for a in arrays}) != 1:
        raise ValueError(f"the sequences differ in length: {', '.join(str(len(a)) for a in arrays)}")
    if engine == "reference":
        with np.errstate(all="ignore"):
            return np.array(list(program(*(Plain(a) for a in arrays))), dtype=np.int64)
    if engine == "eager":
        return np.asarray(program(*arrays)).astype(np.int64)
    graph = trace(program, len(arrays), [a.dtype == np.bool_ for a in arrays])
    if engine == "graph":
        looks_ahead = any(node.op == "select" and not node.causal for node in graph.nodes)
        return (graph if looks_ahead else simplify(graph)).run(*arrays)
    return _runner(simplify(graph), engine)(*arrays)


def _checked(x: np.ndarray) -> np.ndarray:
    """Whole numbers as int64, truth values as they are."""
    if x.ndim != 1 or (x.size and not np.issubdtype(x.dtype, np.integer) and x.dtype != np.bool_):
        raise ValueError(f"a sequence is a flat list of whole numbers, not {x.dtype} of shape {x.shape}")
    return x if x.dtype == np.bool_ else x.astype(np.int64)


def _runner(graph: Graph, engine: str) -> Callable[..., np.ndarray]:
    if engine == "stream":
        from rasp.stream import Stream

        return Stream(graph).run
    from rasp.jit import Kernel

    return Kernel(graph).predict


def check_engine(engine: str) -> None:
    if engine not in ENGINES:
        raise EngineError(f"engine {engine!r} is not one of {', '.join(ENGINES)}")


# --- the Turing program -----------------------------------------------------------------------------------------------


@lru_cache(maxsize=64)
def turing_graph(symbols: int, states: int, n: int = 1, packing: str = "paper") -> Graph:
    """The simplified program for every machine of this size.

    It is traced on one of them. Rewriting looks tables up only where the state argument is a separator (the default
    of a shift), and there all machines agree.
    """
    machine = TuringMachine.random(symbols=symbols, states=states, seed=0)
    return simplify(trace(lambda x: next_tokens(x, machine, n, packing)))


@lru_cache(maxsize=64)
def _machine_graph(machine: TuringMachine, n: int, packing: str) -> Graph:
    """The simplified program of one machine."""
    return simplify(trace(lambda x: next_tokens(x, machine, n, packing)))


def tables_of(machine: TuringMachine) -> list[np.ndarray]:
    """The machine's tables in the order the traced program takes them."""
    graph_tables = turing_graph(len(machine.symbol_tokens), len(machine.state_tokens)).tables()
    return [getattr(machine, table.name).values for table in graph_tables]


def predict(x: Any, machine: TuringMachine, n: int = 1, packing: str = "paper", engine: str = "stream") -> np.ndarray:
    """The prediction at every position of x, by the given interpreter."""
    check_engine(engine)
    x = check_tokens(x, machine.base)
    check_packing(n, machine.base, packing, len(x))
    if engine == "reference":
        return np.array(list(next_tokens(Plain(x.tolist()), machine, n, packing)), dtype=np.int64)
    if engine == "eager":
        return np.asarray(next_tokens(x, machine, n, packing))
    if engine == "graph":
        return _machine_graph(machine, n, packing).run(x)
    size = (len(machine.symbol_tokens), len(machine.state_tokens))
    if engine == "stream":
        from rasp.stream import Stream

        return Stream(turing_graph(*size, n, packing), tables_of(machine)).run(x)
    from rasp.jit import turing_kernel

    return turing_kernel(*size, n, packing).predict(x, tables=tables_of(machine))


def generate(
    prompt: Any, machine: TuringMachine, count: int, n: int = 1, packing: str = "paper", engine: str = "jit"
) -> np.ndarray:
    """The prompt followed by `count` tokens, each predicted from all before it."""
    check_engine(engine)
    if count < 0:
        raise ValueError(f"count must not be negative, got {count}")
    x = check_tokens(prompt, machine.base)
    if not len(x):
        raise InvalidTape("the prompt is empty; give at least one tape, `bos .. eos`")
    check_packing(n, machine.base, packing, len(x) + count)
    if engine == "jit":
        from rasp.jit import turing_kernel

        kernel = turing_kernel(len(machine.symbol_tokens), len(machine.state_tokens), n, packing)
        return kernel.generate(x, count, tables_of(machine))
    if engine == "stream":
        return _generate_stream(x, machine, count, n, packing)
    for _ in range(count):
        x = np.append(x, predict(x, machine, n, packing, engine)[-1])
    return x


def _generate_stream(x: np.ndarray, machine: TuringMachine, count: int, n: int, packing: str) -> np.ndarray:
    from rasp.stream import Stream

    graph = turing_graph(len(machine.symbol_tokens), len(machine.state_tokens), n, packing)
    running = Stream(graph, tables_of(machine))
    tokens = x.tolist()
    token = int(running.run(x)[-1])
    for _ in range(count):
        tokens.append(token)
        token = running.step(token)
    return np.array(tokens, dtype=np.int64)
