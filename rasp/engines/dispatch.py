"""Run a program in the way asked for: one table from the name of an engine to what it does."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from rasp.arithmetic import array_kind, cut, cut_array
from rasp.core import Program
from rasp.engines.numbers import numbers
from rasp.engines.reference import Plain
from rasp.errors import EngineError, ProgramError, place_of
from rasp.graph import Graph, Select
from rasp.rewrite import simplify
from rasp.sequences import sequence
from rasp.tracing import trace

Inputs = Sequence[np.ndarray]


def run(program: Program, *sequences: Any, engine: str = "eager") -> np.ndarray:
    """The program's value at every position, by the given interpreter."""
    check_engine(engine)
    if not callable(program):
        raise ProgramError(f"{program!r} is no program; give a function from a sequence to a sequence")
    arrays = [sequence(s) for s in sequences]
    if len({len(a) for a in arrays}) != 1:
        raise ProgramError(f"the sequences differ in length: {', '.join(str(len(a)) for a in arrays)}")
    return ENGINES[engine](_guarded(program), arrays)


def _guarded(program: Program) -> Program:
    """The program; what it raises itself becomes an error that says so."""

    def called(*xs: Any) -> Any:
        try:
            return program(*xs)
        except ProgramError:
            raise
        except Exception as error:
            raise ProgramError(f"{place_of(program)} failed: {type(error).__name__}: {error}") from error

    return called


def check_engine(engine: str) -> None:
    if engine not in ENGINES:
        raise EngineError(f"engine {engine!r} is not one of {', '.join(ENGINES)}")


def _reference(program: Program, arrays: Inputs) -> np.ndarray:
    with np.errstate(all="ignore"):
        return _whole_numbers(program(*(Plain(a.tolist()) for a in arrays)))


def _eager(program: Program, arrays: Inputs) -> np.ndarray:
    return _whole_numbers(program(*(numbers(a) for a in arrays)))


def _graph(program: Program, arrays: Inputs) -> np.ndarray:
    graph = _traced(program, arrays)
    looks_ahead = any(isinstance(node, Select) and not node.causal for node in graph.nodes)
    return (graph if looks_ahead else simplify(graph)).run(*arrays)


def _stream(program: Program, arrays: Inputs) -> np.ndarray:
    from rasp.engines.stream import Stream

    return Stream(simplify(_traced(program, arrays))).run(*arrays)


def _jit(program: Program, arrays: Inputs) -> np.ndarray:
    from rasp.engines.jit import Kernel

    return Kernel(simplify(_traced(program, arrays))).predict(*arrays)


ENGINES: dict[str, Callable[[Program, Inputs], np.ndarray]] = {
    "reference": _reference,
    "eager": _eager,
    "graph": _graph,
    "stream": _stream,
    "jit": _jit,
}


def _traced(program: Program, arrays: Inputs) -> Graph:
    return trace(program, len(arrays), [array_kind(a) for a in arrays])


def _whole_numbers(output: Any) -> np.ndarray:
    """What a program returned, as a plain array."""
    if isinstance(output, Plain):
        return np.array([cut(v) for v in output], dtype=np.int64)
    if isinstance(output, np.ndarray) and output.ndim == 1:
        return cut_array(output.view(np.ndarray))
    raise ProgramError(f"the program returned {type(output).__name__}, not a sequence")
