"""The program under test: the paper's, by any engine, or one put in its place to see that a wrong one is caught."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from rasp.engines.dispatch import check_engine
from rasp.engines.turing import predict, turing_graph
from rasp.machines.machine import TuringMachine
from rasp.machines.simulate import Tables, machine_from_tables
from rasp.rewrite import simplify
from rasp.tracing import trace

if TYPE_CHECKING:
    from rasp.engines.jit import Kernel

Predictions = Callable[..., Any]  # (x, machine, n, packing) -> the prediction at every position, as `next_tokens`


class MachineShape(Protocol):
    """What must be known of the machines to compile the program for them."""

    @property
    def symbols(self) -> int: ...
    @property
    def states(self) -> int: ...
    @property
    def n(self) -> int: ...
    @property
    def packing(self) -> str: ...


def name_of(program: str | Predictions | None) -> str:
    """The name under which results are kept; empty is the paper's program."""
    if program is None or isinstance(program, str):
        return program or ""
    return f"{getattr(program, '__module__', '?')}:{getattr(program, '__qualname__', repr(program))}"


def resolve(program: str | Predictions | None) -> Predictions | None:
    """The function itself, if it was given as "module:function", or as "mutant:" and a name from `mutants.py`."""
    if not isinstance(program, str):
        return program
    module, _, function = program.partition(":")
    if module == "mutant":
        return _mutant(function)
    try:
        found = getattr(import_module(module), function)
    except (ImportError, AttributeError, ValueError, TypeError):  # TypeError: a name that begins with a dot
        raise ValueError(f"program {program!r} cannot be found: give module:function") from None
    if not callable(found):
        raise ValueError(f"program {program!r} is not a function of (x, machine, n, packing)")
    return found  # type: ignore[no-any-return]


def _mutant(name: str) -> Predictions:
    from proofs_check.symbolic.mutants import MUTANTS

    if name not in MUTANTS:
        raise ValueError(f"program 'mutant:{name}' cannot be found: the mutants are {', '.join(map(repr, MUTANTS))}")
    return MUTANTS[name].functions["next_tokens"]  # type: ignore[no-any-return]


def first_errors(
    shape: MachineShape, engine: str, program: str | Predictions | None, traces: np.ndarray, tables: Tables, start: int
) -> np.ndarray:
    """For each trace, the first position from `start` on where the program predicts a wrong token, or -1."""
    check_engine(engine)
    if engine == "jit":
        kernel, names = _kernel(shape.symbols, shape.states, shape.n, shape.packing, program)
        return kernel.first_errors(traces, [getattr(tables, name) for name in names], start)
    found = np.full(len(traces), -1, dtype=np.int64)
    for b, row in enumerate(traces):
        one = (tables.next_state[b], tables.next_symbol[b], tables.move[b])
        machine = machine_from_tables(*one, shape.symbols, shape.states)
        wrong = predictions(row[:-1], machine, shape.n, shape.packing, program, engine)[start:] != row[start + 1 :]
        if wrong.any():
            found[b] = start + int(wrong.argmax())
    return found


def predictions(
    x: Any,
    machine: TuringMachine,
    n: int,
    packing: str,
    program: str | Predictions | None = None,
    engine: str = "eager",
) -> np.ndarray:
    """The program's prediction at every position; another program than the paper's is run with numpy."""
    given = resolve(program)
    if given is None:
        return predict(x, machine, n, packing, engine)
    return np.asarray(given(np.asarray(x), machine, n, packing))


_here = threading.local()  # a kernel writes to its memory: a Dask worker's threads need one each


def _kernel(
    symbols: int, states: int, n: int, packing: str, program: str | Predictions | None
) -> tuple[Kernel, Sequence[str]]:
    """The program compiled for all machines of a size, and the names of the tables it wants."""
    from rasp.engines.jit import Kernel

    known: dict[Any, tuple[Kernel, Sequence[str]]] = _here.__dict__.setdefault("kernels", {})
    key = (symbols, states, n, packing, program)
    if key not in known:
        given = resolve(program)
        graph = turing_graph(symbols, states, n, packing)
        if given is not None:
            machine = TuringMachine.random(symbols, states, seed=0)
            graph = simplify(trace(lambda x: given(x, machine, n, packing)))
        known[key] = Kernel(graph), [table.name for table in graph.tables()]
    return known[key]
