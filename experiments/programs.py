"""RASP-L programs that a person names, and their graphs on request."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from experiments.files import need_output
from experiments.machines import read_machine
from rasp import next_tokens, simplify, trace
from rasp.graph import Graph

SETTINGS = ("n", "offset", "value", "const")  # parameters of library functions that are numbers, not sequences


@dataclass(frozen=True)
class NamedProgram:
    """A function of `arity` sequences."""

    name: str
    function: Callable[..., Any]
    arity: int

    def trace(self) -> Graph:
        with _own_errors(self.name):
            return trace(self.function, self.arity)


def read_program(name: str, machine: str = "random:12x16:0", n: int = 1, packing: str = "paper") -> NamedProgram:
    """next_token_turing (of a machine), a library function, FILE.py:FUNCTION or MODULE:FUNCTION.

    Parameters of library functions that are numbers are set to 1.
    """
    if name in ("next_token_turing", "next_tokens"):
        chosen = read_machine(machine)
        return NamedProgram(name, lambda x: next_tokens(x, chosen, n, packing), 1)
    function = _imported(name) if ":" in name else _from_library(name)
    required = [p for p in inspect.signature(function).parameters.values() if p.default is p.empty]
    sequences = [p for p in required if p.name not in SETTINGS]
    settings = {p.name: 1 for p in required if p not in sequences}
    return NamedProgram(name, lambda *xs: function(*xs, **settings), len(sequences))


def _from_library(name: str) -> Callable[..., Any]:
    import rasp.library

    function = getattr(rasp.library, name, None)
    if not inspect.isfunction(function) or function.__module__ != "rasp.library":
        raise ValueError(f"no program {name!r}: give next_token_turing, a library function, or FILE.py:FUNCTION")
    return function


def _imported(name: str) -> Callable[..., Any]:
    source, _, attribute = name.rpartition(":")
    if not source or not attribute:
        raise ValueError(f"{name!r} is not FILE.py:FUNCTION or MODULE:FUNCTION")
    with _own_errors(name):
        module = _load_file(Path(source)) if source.endswith(".py") else _load_module(source)
    function = getattr(module, attribute, None)
    if not callable(function):
        raise ValueError(f"{source} has no function {attribute!r}")
    return function  # type: ignore[no-any-return]


def _load_file(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None or not path.exists():
        raise ValueError(f"there is no file {str(path)!r}")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _load_module(name: str) -> ModuleType:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        raise ValueError(f"there is no module {name!r} ({error})") from None


@contextmanager
def _own_errors(name: str) -> Iterator[None]:
    """Whatever a person's own file does wrong when it is loaded or run, as one sentence."""
    try:
        yield
    except (ValueError, OverflowError, OSError):
        raise
    except (Exception, SystemExit) as error:
        if ":" not in name:
            raise
        raise ValueError(f"{name} cannot be traced: {type(error).__name__}: {error}") from error


# --- graphs on request


@dataclass(frozen=True, kw_only=True)
class GraphRequest:
    """Which program is traced, how it is rewritten, and where it is drawn."""

    program: str
    raw: bool = False  # as traced
    shallow: bool = False  # rewritten for least depth, not fewest nodes
    machine: str = "random:12x16:0"  # of next_token_turing
    n: int = 1
    packing: str = "paper"
    output: Path | None = None  # .svg, .png, .pdf or .dot


@dataclass(frozen=True)
class TracedProgram:
    """The graph that was asked for, and the one it was made from."""

    request: GraphRequest
    traced: Graph
    graph: Graph

    @property
    def report(self) -> dict[str, Any]:
        return {
            "program": self.request.program,
            "nodes": len(self.graph),
            "counts": self.graph.counts(),
            "attention_depth": self.graph.attention_depth(),
            "traced_nodes": len(self.traced),
            "output": str(self.request.output) if self.request.output else None,
        }


def make_graph(request: GraphRequest) -> TracedProgram:
    need_output(request.output)
    traced = read_program(request.program, request.machine, request.n, request.packing).trace()
    graph = traced if request.raw else simplify(traced, hoist=not request.shallow)
    if request.output is not None:
        graph.draw(str(request.output))
    return TracedProgram(request, traced, graph)
