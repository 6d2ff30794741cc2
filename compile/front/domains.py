"""Which values each operation of a program can take, given the tokens and how far it may count.

A transformer holds a value as a direction per possible value, so every value it touches must come from a finite set.
Sets are upper bounds: inputs of a map are taken to be independent. A map over too many combinations is left without a
set (a reason instead); that is no harm as long as nothing needs it, such as the number into which an n-gram is packed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from compile.errors import CompileError
from compile.front.bounds import MOST_COMBINATIONS, apply, values_taken
from rasp.graph import Count, Delay, Full, Graph, Indices, Input, Kqv, Map, Node
from rasp.scalar import Expr

MOST_COUNTED = 2**20  # the largest capacity that any float is good for
LARGEST_VALUE = 2**53  # beyond it a value is no longer a whole number of every float


@dataclass(frozen=True)
class Capacity:
    """How far a compiled program can count: the largest `sel_width`, and the number of positions `indices` runs to."""

    counts: int = 64
    positions: int | None = None

    def __post_init__(self) -> None:
        for name, value in (("counts", self.counts), ("positions", 1 if self.positions is None else self.positions)):
            if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= MOST_COUNTED:
                raise CompileError(f"{name} is {value!r}; give a whole number from 1 to {MOST_COUNTED}")


class Domains:
    """The sorted values of every node of a graph, or the reason why there is no finite set."""

    def __init__(self, vocabulary: Iterable[int], capacity: Capacity) -> None:
        self.vocabulary = tuple(sorted({int(v) for v in vocabulary}))
        self.capacity = capacity
        self.values: list[tuple[int, ...] | None] = []
        self.reasons: dict[int, str] = {}

    def __getitem__(self, i: int) -> tuple[int, ...]:
        found = self.values[i]
        if found is None:
            raise CompileError(self.reasons[i])
        return found

    def get(self, i: int) -> tuple[int, ...] | None:
        return self.values[i]

    def extend(self, graph: Graph, known: Domains | None = None, places: Mapping[int, int] | None = None) -> Domains:
        """Add the nodes of `graph` that have no entry yet; `places` says which are nodes of another graph, `known`."""
        origins = {new: old for old, new in (places or {}).items()}
        for i in range(len(self.values), len(graph)):
            found = known.get(origins[i]) if known is not None and i in origins else None
            if found is None:
                self._add(graph, i)
            else:
                self.values.append(found)
        return self

    def moved(self, graph: Graph, places: Mapping[int, int]) -> Domains:
        """The domains of a graph in which node i is called `places[i]`; nodes that are new to it are inferred."""
        return Domains(self.vocabulary, self.capacity).extend(graph, self, places)

    def _add(self, graph: Graph, i: int) -> None:
        try:
            self.values.append(_within_floats(self._infer(graph, graph.nodes[i])))
        except CompileError as error:
            self.values.append(None)
            self.reasons[i] = f"{graph.describe(i)}: {error}"

    def _infer(self, graph: Graph, node: Node) -> tuple[int, ...]:
        match node:
            case Input():
                return self.vocabulary
            case Full():
                return (node.value,)
            case Indices():
                return self._positions()
            case Map():
                return values_taken(node.function, [self._input(graph, j) for j in node.inputs])
            case Delay():
                return _sorted({*self._input(graph, node.inputs[0]), node.default})
            case Count():
                return tuple(range(self.capacity.counts + 1))
            case Kqv():
                return _reduced(node, self._input(graph, node.inputs[-1]))
        raise CompileError(f"{node.op} is not an operation of a rewritten program; simplify the graph first")

    def _input(self, graph: Graph, j: int) -> tuple[int, ...]:
        found = self.values[j]
        if found is None:
            raise CompileError(f"its input has no finite set of values ({self.reasons[j]})")
        return found

    def _positions(self) -> tuple[int, ...]:
        if self.capacity.positions is None:
            raise CompileError(
                "positions have no bound, and a transformer without absolute positions cannot name them; write the "
                "program with shifts and counts, or give positions=N for inputs of at most N tokens"
            )
        return tuple(range(self.capacity.positions))


def infer_domains(graph: Graph, vocabulary: Iterable[int], capacity: Capacity | None = None) -> Domains:
    """The values of every node of a rewritten graph whose input tokens are `vocabulary`."""
    return Domains(vocabulary, capacity or Capacity()).extend(graph)


def _within_floats(values: tuple[int, ...]) -> tuple[int, ...]:
    furthest = max(values[0], values[-1], key=abs)
    if abs(furthest) > LARGEST_VALUE:
        raise CompileError(f"it reaches {furthest}, beyond {LARGEST_VALUE}")
    return values


def values_of(function: Expr, values: Sequence[int]) -> list[int]:
    """A function of one argument at each of the values."""
    return apply(function, np.array(values, dtype=np.int64)).tolist()


def _reduced(node: Kqv, values: tuple[int, ...]) -> tuple[int, ...]:
    if node.reduction == "mean":
        if values[-1] - values[0] > MOST_COMBINATIONS:
            raise CompileError(
                f"a mean of values from {values[0]} to {values[-1]} may be any of them; at most "
                f"{MOST_COMBINATIONS} are told apart"
            )
        return _sorted({*range(values[0], values[-1] + 1), node.default})
    return _sorted({*values, node.default})


def _sorted(values: Iterable[int]) -> tuple[int, ...]:
    return tuple(sorted(values))
