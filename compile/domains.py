"""Which values each operation of a program can take, given the tokens and how far it may count.

A transformer holds a value as a direction per possible value, so every value it touches must come from a finite set.
Sets are upper bounds: inputs of a map are taken to be independent. A map over too many combinations is left without a
set (a reason instead); that is no harm as long as nothing needs it, such as the number into which an n-gram is packed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

from compile.errors import CompileError
from rasp.eager import map_arrays
from rasp.graph import Graph, Node

MOST_COMBINATIONS = 2**18  # of a map's inputs that are tried one by one
LARGEST_VALUE = 2**53  # beyond it a value is no longer a whole number of every float


@dataclass(frozen=True)
class Capacity:
    """How far a compiled program can count: the largest `sel_width`, and the number of positions `indices` runs to."""

    counts: int = 64
    positions: int | None = None

    def __post_init__(self) -> None:
        for name, value in (("counts", self.counts), ("positions", 1 if self.positions is None else self.positions)):
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise CompileError(f"{name} is {value!r}; give a whole number from 1 on")


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

    def extend(self, graph: Graph) -> Domains:
        """Add the nodes of `graph` that have no entry yet."""
        for i in range(len(self.values), len(graph)):
            self._add(graph, i)
        return self

    def _add(self, graph: Graph, i: int) -> None:
        try:
            self.values.append(self._infer(graph, graph.nodes[i]))
        except CompileError as error:
            self.values.append(None)
            self.reasons[i] = f"{graph.describe(i)}: {error}"

    def _infer(self, graph: Graph, node: Node) -> tuple[int, ...]:
        match node.op:
            case "input":
                return self.vocabulary
            case "full":
                return (node.default,)
            case "indices":
                return self._positions()
            case "map":
                return image(node, [self._input(graph, j) for j in node.inputs])
            case "delay":
                return _sorted({*self._input(graph, node.inputs[0]), node.default})
            case "width":
                return tuple(range(self.capacity.counts + 1))
            case "kqv":
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


def image(node: Node, inputs: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
    """Every value a map takes on the product of its inputs' sets."""
    combinations = prod(len(values) for values in inputs)
    if combinations > MOST_COMBINATIONS:
        raise CompileError(f"its inputs have {combinations} combinations; at most {MOST_COMBINATIONS} are tried")
    found = np.unique(tabulate(node, inputs))
    if len(found) and max(abs(int(found[0])), abs(int(found[-1]))) > LARGEST_VALUE:
        raise CompileError(f"it reaches {found[-1]}, beyond {LARGEST_VALUE}")
    return tuple(found.tolist())


def tabulate(node: Node, inputs: Sequence[tuple[int, ...]]) -> np.ndarray:
    """The values of a map as an array with one axis per input."""
    grids = np.meshgrid(*(np.array(values, dtype=np.int64) for values in inputs), indexing="ij")
    try:
        flat = map_arrays(node.function, *(grid.ravel() for grid in grids))
    except Exception as error:
        raise CompileError(f"it fails on a value its inputs may have ({type(error).__name__}: {error})") from error
    return flat.reshape(grids[0].shape)


def _reduced(node: Node, values: tuple[int, ...]) -> tuple[int, ...]:
    if node.reduction == "mean":
        return _sorted({*range(values[0], values[-1] + 1), node.default})
    return _sorted({*values, node.default})


def _sorted(values: Iterable[int]) -> tuple[int, ...]:
    return tuple(sorted(values))
