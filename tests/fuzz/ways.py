"""Every way to run a program. Each takes a program and gives a function from sequences to its values."""

from __future__ import annotations

import builtins
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from types import ModuleType
from typing import Any, NamedTuple
from unittest.mock import patch

import numpy as np

from rasp import run, simplify, trace
from rasp.arithmetic import Kind
from rasp.engines.jit import Kernel
from rasp.engines.stream import Stream
from rasp.graph import Graph

Array = np.ndarray
Runner = Callable[..., Array]
REFERENCE = "reference"


@dataclass(frozen=True)
class Subject:
    """A program to be run; what several ways share is made once."""

    program: Callable[..., Any]
    arity: int = 1
    kinds: tuple[Kind, ...] = ()

    @cached_property
    def traced(self) -> Graph:
        return trace(self.program, self.arity, self.kinds)

    @cached_property
    def least_depth(self) -> Graph:
        return simplify(self.traced, hoist=False)

    @cached_property
    def fewest_nodes(self) -> Graph:
        return simplify(self.least_depth)  # as of the traced one, whose first half that is


def _engine(name: str) -> Callable[[Subject], Runner]:
    return lambda subject: lambda *arrays: run(subject.program, *arrays, engine=name)


def _streamed(graph: Graph) -> Runner:
    """Half of the sequence, then the rest: a stream goes on where it was."""
    running = Stream(graph)

    def run_in_two(*arrays: Array) -> Array:
        running.reset()
        half = len(arrays[0]) // 2
        return np.concatenate([running.run(*(a[:half] for a in arrays)), running.run(*(a[half:] for a in arrays))])

    return run_in_two


def uncompiled(graph: Graph) -> Kernel:
    """A kernel whose loop runs in Python (the hash tables it calls are machine code)."""
    with patch("rasp.engines.jit.load_module", run_as_python):
        return Kernel(graph)


def run_as_python(source: str) -> ModuleType:
    """Generated code without numba. Numbers are numpy's, which wrap around as machine code does."""
    module = ModuleType("uncompiled")
    module.__dict__["int"] = _whole
    exec(source.replace("@compiled", ""), module.__dict__)
    for name in ("get_total", "get_mean"):
        if name in module.__dict__:
            module.__dict__[name] = _numpy_number(module.__dict__[name])
    return module


def _whole(value: Any) -> Any:
    return np.int64(value) if isinstance(value, builtins.int | np.integer) else np.int64(np.float64(value))


def _numpy_number(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *args: np.int64(function(*args))


def _kernel(graph: Graph) -> Runner:
    predict = uncompiled(graph).predict

    def quietly(*arrays: Array) -> Array:
        with np.errstate(all="ignore"):
            return predict(*arrays)

    return quietly


class Way(NamedTuple):
    make: Callable[[Subject], Runner]
    spelled: str  # how one calls it, {given} for the sequences and {traced} for what `trace` is given


ENGINES: dict[str, Way] = {
    REFERENCE: Way(_engine("reference"), 'run(program, {given}, engine="reference")'),
    "eager": Way(_engine("eager"), 'run(program, {given}, engine="eager")'),
    "graph": Way(lambda s: s.traced.run, "trace({traced}).run({given})"),
    "graph, fewest nodes": Way(lambda s: s.fewest_nodes.run, "simplify(trace({traced})).run({given})"),
    "graph, least depth": Way(lambda s: s.least_depth.run, "simplify(trace({traced}), hoist=False).run({given})"),
    "stream": Way(lambda s: _streamed(s.fewest_nodes), 'run(program, {given}, engine="stream")'),
    "stream, least depth": Way(
        lambda s: _streamed(s.least_depth), "Stream(simplify(trace({traced}), hoist=False)).run({given})"
    ),
    "jit as Python": Way(lambda s: _kernel(s.fewest_nodes), 'run(program, {given}, engine="jit")'),
}
MACHINE_CODE = {"jit": Way(lambda s: Kernel(s.fewest_nodes).predict, 'run(program, {given}, engine="jit")')}


@dataclass(frozen=True)
class Model:
    """How a program is compiled into a transformer and its weights are run."""

    backend: str
    vocabulary: tuple[int, ...]
    options: tuple[tuple[str, Any], ...] = ()
    engine: str = "torch"

    @property
    def way(self) -> str:
        return self.backend if self.engine == "torch" else f"{self.backend}, {self.engine}"

    @property
    def spelled(self) -> str:
        """How one calls it, {given} for the tokens."""
        options = "".join(f", {name}={value!r}" for name, value in self.options)
        engine = f', engine="{self.engine}"' if self.engine != "torch" else ""
        compiled = f'compile_program(program, {list(self.vocabulary)}, backend="{self.backend}"{options})'
        return f"{compiled}.predict({{given}}{engine})"

    def compiled(self, program: Callable[..., Any], check: bool = False) -> Any:
        from compile import compile_program

        return compile_program(program, self.vocabulary, self.backend, check=check, **dict(self.options))
