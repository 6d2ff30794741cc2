"""A program as backends take it: every selector factored, every value from a finite set."""

from __future__ import annotations

from dataclasses import dataclass

from compile.front.domains import Domains
from compile.front.watch import Watched
from rasp.graph import Graph

COUNTERS = ("width", "indices")  # operations whose values count, without an end


@dataclass(frozen=True)
class FiniteProgram:
    """The factored `graph`, the values of its nodes, which counts of it must be watched, and the program as it was
    `written`."""

    written: Graph
    graph: Graph
    domains: Domains
    watched: Watched
