"""The front half of every backend: a program becomes a rewritten, factored graph whose values are finite sets."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from compile.domains import Capacity, Domains, infer_domains
from compile.errors import CompileError
from compile.factor import factor
from rasp.graph import Graph
from rasp.rewrite import simplify
from rasp.tracing import TraceError, trace


@dataclass(frozen=True)
class Prepared:
    """What a backend lowers: the factored `graph`, the values of its nodes, and the program as it was `written`."""

    written: Graph
    graph: Graph
    domains: Domains


def prepare(program: Callable[[Any], Any], vocabulary: Iterable[int], capacity: Capacity | None = None) -> Prepared:
    """Trace, rewrite (delays next to the input: least attention depth), infer domains, factor packed keys."""
    tokens = check_vocabulary(vocabulary)
    written = rewritten(program)
    graph = factor(written, infer_domains(written, tokens, capacity))
    return Prepared(written, graph, infer_domains(graph, tokens, capacity))


def rewritten(program: Callable[[Any], Any]) -> Graph:
    try:
        return simplify(trace(program), hoist=False)
    except TraceError as error:
        raise CompileError(f"the program cannot be recorded: {error}") from error
    except ValueError as error:  # a selector that looks at the future
        raise CompileError(str(error)) from error


def check_vocabulary(vocabulary: Iterable[int]) -> tuple[int, ...]:
    tokens = tuple(sorted(set(vocabulary)))
    if not tokens:
        raise CompileError("the vocabulary is empty; give the token ids that inputs are made of, such as range(10)")
    wrong = [t for t in tokens if isinstance(t, bool) or not hasattr(t, "__index__") or t < 0]
    if wrong:
        raise CompileError(f"{wrong[0]!r} is no token id; give whole numbers from 0 on, such as range(10)")
    return tuple(int(t) for t in tokens)
