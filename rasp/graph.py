"""A traced RASP-L program: nodes in topological order, what they compute, and what they cost.

As traced, a program has `select`, `width` and `aggr` nodes; rewriting (`rasp.rewrite`) leaves `map`, `delay`,
`width` and `kqv`, where the last two hold their predicate themselves.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from rasp.engines.attention import attend, map_arrays, reduce_matrix, selector_matrix
from rasp.predicates import Predicate, classify
from rasp.scalar import Expr, Table, to_source, walk

if TYPE_CHECKING:
    import networkx as nx

ATTENTION = frozenset({"width", "aggr", "delay", "kqv"})


@dataclass(frozen=True)
class Node:
    """One operation. `inputs` are the numbers of the nodes it reads; `op` is what it is called."""

    op: ClassVar[str] = ""
    inputs: tuple[int, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Input(Node):
    """One of the sequences that the program is given."""

    op: ClassVar[str] = "input"
    number: int = 0


@dataclass(frozen=True, kw_only=True)
class Full(Node):
    """The same number everywhere."""

    op: ClassVar[str] = "full"
    value: int


@dataclass(frozen=True)
class Indices(Node):
    op: ClassVar[str] = "indices"


@dataclass(frozen=True, kw_only=True)
class Map(Node):
    """A function of the inputs, position by position."""

    op: ClassVar[str] = "map"
    function: Expr


@dataclass(frozen=True, kw_only=True)
class Select(Node):
    """A selector, as traced: the first `keys` inputs are keys, the rest queries."""

    op: ClassVar[str] = "select"
    function: Expr
    keys: int
    causal: bool = True


@dataclass(frozen=True)
class Width(Node):
    """How many positions the selector (the only input) chooses, as traced."""

    op: ClassVar[str] = "width"


@dataclass(frozen=True, kw_only=True)
class Aggregate(Node):
    """What the values (the second input) that the selector (the first) chooses reduce to, as traced."""

    op: ClassVar[str] = "aggr"
    default: int
    reduction: str


@dataclass(frozen=True, kw_only=True)
class Delay(Node):
    """Its input `distance` positions ago, and the default before there is one."""

    op: ClassVar[str] = "delay"
    distance: int
    default: int


@dataclass(frozen=True, kw_only=True)
class AttentionNode(Node):
    """An operation after rewriting that selects by itself: `keys` keys, as many queries, `function` the predicate."""

    function: Expr
    keys: int

    @property
    def predicate(self) -> Predicate:
        return classify(self.function, self.keys)


@dataclass(frozen=True, kw_only=True)
class Count(AttentionNode):
    """How many positions are selected."""

    op: ClassVar[str] = "width"
    default: ClassVar[int] = 0
    reduction: ClassVar[str] = "count"


@dataclass(frozen=True, kw_only=True)
class Kqv(AttentionNode):
    """What the selected values (the last input) reduce to."""

    op: ClassVar[str] = "kqv"
    default: int
    reduction: str

    @property
    def value(self) -> int:
        return self.inputs[-1]


@dataclass(frozen=True)
class Graph:
    nodes: tuple[Node, ...]
    output: int
    names: dict[int, str] = field(default_factory=dict, compare=False)

    def __len__(self) -> int:
        return len(self.nodes)

    @property
    def arity(self) -> int:
        return 1 + max((n.number for n in self.nodes if isinstance(n, Input)), default=0)

    def counts(self) -> dict[str, int]:
        """How many nodes there are of each operation."""
        return dict(sorted(Counter(node.op for node in self.nodes).items()))

    def attention_depth(self) -> int:
        """The most attention operations on any path to the output: the layers a transformer needs at least."""
        depth: list[int] = []
        for node in self.nodes:
            before = max((depth[i] for i in node.inputs), default=0)
            depth.append(before + (node.op in ATTENTION))
        return depth[self.output]

    def tables(self) -> list[Table]:
        """The tables looked up anywhere, each once, in order of appearance."""
        found: dict[int, Table] = {}
        for node in self.nodes:
            for e in walk(node.function) if isinstance(node, Map | Select | AttentionNode) else ():
                if e.op == "table":
                    found.setdefault(id(e.payload), e.payload)
        return list(found.values())

    def describe(self, i: int) -> str:
        """The node in words, with the names of its inputs."""
        return describe(self, i)

    def run(self, *inputs: Any) -> np.ndarray:
        """Evaluate node by node with numpy."""
        return evaluate(self, inputs)[self.output]

    def to_networkx(self) -> nx.DiGraph:
        import networkx as nx

        result: nx.DiGraph[int] = nx.DiGraph(output=self.output)
        for i, node in enumerate(self.nodes):
            result.add_node(i, op=node.op, label=describe(self, i), name=self.names.get(i, ""))
            result.add_edges_from((j, i, {"slot": slot}) for slot, j in enumerate(node.inputs))
        return result

    def draw(self, path: str) -> None:
        """Draw to SVG, PNG, PDF or DOT, by the file's suffix."""
        from rasp.draw import draw_graph

        draw_graph(self, path)


def selector(graph: Graph, node: Width | Aggregate | AttentionNode) -> tuple[list[int], list[int], Expr]:
    """Keys, queries and predicate of a node that attends, whether it holds them itself or in a `select`."""
    source = node if isinstance(node, AttentionNode) else graph.nodes[node.inputs[0]]
    assert isinstance(source, Select | AttentionNode), "as the program was traced"
    inputs = source.inputs[:-1] if isinstance(source, Kqv) else source.inputs
    return list(inputs[: source.keys]), list(inputs[source.keys :]), source.function


def evaluate(graph: Graph, inputs: Sequence[Any]) -> list[np.ndarray]:
    """The value of every node (a selector's is its matrix)."""
    given = [np.asarray(x) for x in inputs]
    if len(given) != graph.arity:
        raise ValueError(f"the program takes {graph.arity} sequence(s), {len(given)} given")
    if len({len(a) for a in given}) != 1:
        raise ValueError(f"the sequences differ in length: {', '.join(str(len(a)) for a in given)}")
    values: list[np.ndarray] = []
    for node in graph.nodes:
        values.append(evaluate_node(node, values, given))
    return values


def evaluate_node(node: Node, values: list[np.ndarray], given: list[np.ndarray]) -> np.ndarray:
    """One node, from the values of those before it and the program's inputs."""
    args = [values[i] for i in node.inputs]
    length = len(given[0])
    match node:
        case Input():
            return given[node.number].astype(np.int64)
        case Full():
            return np.full(length, node.value, dtype=np.int64)
        case Indices():
            return np.arange(length, dtype=np.int64)
        case Map() if not args:
            return map_arrays(node.function, np.zeros(length, dtype=np.int64))
        case Map():
            return map_arrays(node.function, *args)
        case Select():
            return selector_matrix(node.function, args[: node.keys], args[node.keys :], node.causal)
        case Aggregate():
            return reduce_matrix(args[0], args[1], node.default, node.reduction)
        case Width():
            return args[0].sum(axis=1, dtype=np.int64)
        case Count():
            return attend(node.predicate, args[: node.keys], args[node.keys :], args[0], 0, "count")
        case Delay():
            filler = np.full(min(node.distance, length), node.default, dtype=np.int64)
            return np.concatenate([filler, args[0][: max(length - node.distance, 0)]])
        case Kqv():
            keys, queries = args[: node.keys], args[node.keys : -1]
            return attend(node.predicate, keys, queries, args[-1], node.default, node.reduction)
    raise AssertionError(f"unknown operation {node.op}")


def describe(graph: Graph, i: int) -> str:
    node = graph.nodes[i]
    args = [graph.names.get(j, f"n{j}") for j in node.inputs]
    match node:
        case Input():
            return graph.names.get(i, f"input {node.number}" if graph.arity > 1 else "x")
        case Full():
            return f"full({node.value})"
        case Indices():
            return "indices"
        case Map():
            return _spell(node.function, args)
        case Delay():
            return f"shift_right({args[0]}, {node.distance}{f', default={node.default}' if node.default else ''})"
        case Select():
            return f"select({_spell(node.function, args)})"
        case Aggregate():
            return f"aggr_{node.reduction}({args[-1]})"
        case Width():
            return f"sel_width({args[0]})"
        case Count():
            return f"sel_width({_spell(node.function, args)})"
        case Kqv():
            return f"kqv({_spell(node.function, args)}, v={args[-1]}, {node.reduction})"
    raise AssertionError(f"unknown operation {node.op}")


def _spell(e: Expr, args: list[str], most: int = 60) -> str:
    """A function in short: without outer brackets, and truth values as they are."""
    while e.op == "int" and e.args[0].is_bool:
        e = e.args[0]
    text = to_source(e, args)
    text = text[1:-1] if text.startswith("(") and _closes(text) == len(text) - 1 else text
    return text if len(text) <= most else text[: most - 3] + "..."


def _closes(text: str) -> int:
    """Where the bracket at the start is closed."""
    depth = 0
    for i, letter in enumerate(text):
        depth += {"(": 1, ")": -1}.get(letter, 0)
        if depth == 0:
            return i
    return -1
