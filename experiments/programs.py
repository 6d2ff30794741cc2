"""RASP-L programs that a person names, and their graphs on request."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from experiments.files import need_output
from experiments.imports import imported, is_import, own_errors
from experiments.machines import read_machine
from rasp import next_tokens, simplify, trace
from rasp.graph import Graph
from rasp.programs.tasks import is_task, task_program
from rasp.programs.universal import Size, next_tokens_universal

OF_A_MACHINE = ("next_token_turing", "next_tokens")
UNIVERSAL = (15, 5)  # symbols and states of the machines that `universal` takes
VARIADIC = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
SETTINGS = ("n", "offset", "value", "const")  # parameters of library functions that are numbers, not sequences


@dataclass(frozen=True)
class NamedProgram:
    """A function of `arity` sequences; `tokens` are the names of its tokens, if it has any."""

    name: str
    function: Callable[..., Any]
    arity: int
    tokens: tuple[str, ...] = ()

    def trace(self) -> Graph:
        with own_errors(f"{self.name} is not a RASP-L program") if is_import(self.name) else nullcontext():
            return trace(self.function, self.arity)

    def need_one_sequence(self) -> None:
        if self.arity != 1:
            raise ValueError(f"{self.name} takes {self.arity} sequences; one of tokens is expected here")


def read_program(name: str, machine: str = "random:12x16:0", n: int = 1, packing: str = "paper") -> NamedProgram:
    """next_token_turing (of a machine), a task, universal, a library function, FILE.py:FUNCTION or MODULE:FUNCTION.

    Parameters of library functions that are numbers are set to 1.
    """
    if name in OF_A_MACHINE:
        chosen = read_machine(machine)
        return NamedProgram(name, lambda x: next_tokens(x, chosen, n, packing), 1, chosen.vocabulary)
    if is_task(name):
        task = task_program(name)
        return NamedProgram(name, lambda x: task.program(x, n), 1, task.vocabulary.names)
    if name == "universal":
        names = Size(*UNIVERSAL).vocabulary.names
        return NamedProgram(name, lambda x: next_tokens_universal(x, *UNIVERSAL, n), 1, names)
    function = imported(name) if ":" in name else _from_library(name)
    required = [p for p in parameters_of(name, function) if p.default is p.empty and p.kind not in VARIADIC]
    sequences = [p for p in required if p.name not in SETTINGS]
    settings = {p.name: 1 for p in required if p not in sequences}
    if not sequences:
        raise ValueError(f"{name} takes no sequence; a program is a function of one or more, such as def f(x)")
    return NamedProgram(name, lambda *xs: function(*xs, **settings), len(sequences))


def is_program(name: str) -> bool:
    """Whether this names a program that is not a machine's."""
    return is_task(name) or name == "universal" or is_import(name) or _in_library(name)


def parameters_of(name: str, function: Callable[..., Any]) -> list[inspect.Parameter]:
    try:
        return list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        raise ValueError(f"{name} does not say what it takes; give a function written in Python") from None


def _in_library(name: str) -> bool:
    import rasp.library

    function = getattr(rasp.library, name, None)
    return inspect.isfunction(function) and function.__module__ == "rasp.library"


def _from_library(name: str) -> Callable[..., Any]:
    import rasp.library

    if not _in_library(name):
        raise ValueError(
            f"no program {name!r}: give next_token_turing, a task such as addition, universal, a library function, or "
            "FILE.py:FUNCTION"
        )
    function: Callable[..., Any] = getattr(rasp.library, name)
    return function


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
