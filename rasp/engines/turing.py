"""The paper's program on every engine: predictions for a trace, and traces generated token by token.

`stream` and `jit` take the machine's tables as arguments, so that what is generated or compiled serves every machine of
the same size.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

from rasp.engines.dispatch import check_engine, run
from rasp.engines.jit import Kernel
from rasp.engines.stream import Stream
from rasp.graph import Graph
from rasp.machines.machine import InvalidTape, TuringMachine
from rasp.programs.turing import check_packing, check_tokens, next_tokens
from rasp.rewrite import simplify
from rasp.tracing import trace


@lru_cache(maxsize=64)
def turing_graph(symbols: int, states: int, n: int = 1, packing: str = "paper") -> Graph:
    """The simplified program for every machine of this size.

    It is traced on one of them. Rewriting looks tables up only where the state argument is a separator (the default
    of a shift), and there all machines agree.
    """
    machine = TuringMachine.random(symbols=symbols, states=states, seed=0)
    return simplify(trace(lambda x: next_tokens(x, machine, n, packing)))


@lru_cache(maxsize=64)
def turing_kernel(symbols: int, states: int, n: int = 1, packing: str = "paper") -> Kernel:
    """The program compiled for every machine of this size: bring the machine's tables with each call."""
    return Kernel(turing_graph(symbols, states, n, packing))


def tables_of(machine: TuringMachine) -> list[np.ndarray]:
    """The machine's tables in the order the traced program takes them."""
    graph_tables = turing_graph(*_size(machine)).tables()
    return [getattr(machine, table.name).values for table in graph_tables]


def _size(machine: TuringMachine) -> tuple[int, int]:
    return len(machine.symbol_tokens), len(machine.state_tokens)


# --- predictions ------------------------------------------------------------------------------------------------------


def predict(x: Any, machine: TuringMachine, n: int = 1, packing: str = "paper", engine: str = "stream") -> np.ndarray:
    """The prediction at every position of x, by the given interpreter."""
    check_engine(engine)
    x = check_tokens(x, machine.base)
    check_packing(n, machine.base, packing, len(x))
    if engine in _PREDICT:
        return _PREDICT[engine](x, machine, n, packing)
    return run(lambda x: next_tokens(x, machine, n, packing), x, engine=engine)


@lru_cache(maxsize=64)
def _machine_graph(machine: TuringMachine, n: int, packing: str) -> Graph:
    """The simplified program of one machine."""
    return simplify(trace(lambda x: next_tokens(x, machine, n, packing)))


def _on_graph(x: np.ndarray, machine: TuringMachine, n: int, packing: str) -> np.ndarray:
    return _machine_graph(machine, n, packing).run(x)


@lru_cache(maxsize=64)
def _stream_of_size(symbols: int, states: int, n: int, packing: str) -> Stream:
    return Stream(turing_graph(symbols, states, n, packing))


def _stream_of(machine: TuringMachine, n: int, packing: str) -> Stream:
    return _stream_of_size(*_size(machine), n, packing).with_tables(tables_of(machine))


def _on_stream(x: np.ndarray, machine: TuringMachine, n: int, packing: str) -> np.ndarray:
    return _stream_of(machine, n, packing).run(x)


def _on_jit(x: np.ndarray, machine: TuringMachine, n: int, packing: str) -> np.ndarray:
    return turing_kernel(*_size(machine), n, packing).predict(x, tables=tables_of(machine))


_PREDICT: dict[str, Callable[[np.ndarray, TuringMachine, int, str], np.ndarray]] = {  # by what is kept between calls
    "graph": _on_graph,
    "stream": _on_stream,
    "jit": _on_jit,
}


# --- generation -------------------------------------------------------------------------------------------------------


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
    if engine in _GENERATE:
        return _GENERATE[engine](x, machine, count, n, packing)
    for _ in range(count):
        x = np.append(x, predict(x, machine, n, packing, engine)[-1])
    return x


def _by_jit(x: np.ndarray, machine: TuringMachine, count: int, n: int, packing: str) -> np.ndarray:
    return turing_kernel(*_size(machine), n, packing).generate(x, count, tables_of(machine))


def _by_stream(x: np.ndarray, machine: TuringMachine, count: int, n: int, packing: str) -> np.ndarray:
    running = _stream_of(machine, n, packing)
    tokens = x.tolist()
    token = int(running.run(x)[-1])
    for _ in range(count):
        tokens.append(token)
        token = running.step(token)
    return np.array(tokens, dtype=np.int64)


_GENERATE: dict[str, Callable[[np.ndarray, TuringMachine, int, int, str], np.ndarray]] = {  # without starting over
    "stream": _by_stream,
    "jit": _by_jit,
}
