"""Make a traced program cheap, leaving what it computes unchanged.

Every rule is a constructor that looks at what it is about to build on:
- attention to a fixed distance (`kqv(indices + n, indices, v, equals)`) is a delay line;
- delays with the same default merge, and move outwards through maps (the default becomes the map of the defaults);
- constants move into the functions that use them, and a map absorbs its inputs when that makes it no larger;
- equal nodes are built once.
"""

from __future__ import annotations

from rasp.codegen import EngineError
from rasp.graph import Graph, Node, selector
from rasp.predicates import Predicate, classify
from rasp.scalar import (
    Expr,
    arg,
    arguments,
    as_int,
    binary,
    const,
    evaluate_int,
    split_on_shared_conditions,
    substitute,
    truth,
    whole,
)


def simplify(graph: Graph, hoist: bool = True) -> Graph:
    """Rewrite until nothing changes.

    Moving delays outwards shares the most work: fewest nodes, what runs one token at a time wants. Without it
    (`hoist=False`) delays stay where they were written, next to the input: least attention depth, what a transformer
    wants. Maps are merged before delays move, while the parts of one `where` still stand together.
    """
    settled = _settle(graph, hoist=False)
    return _settle(settled, hoist=True) if hoist else settled


def _settle(graph: Graph, hoist: bool) -> Graph:
    while (rewritten := _rebuild(graph, hoist)) != graph:
        graph = rewritten
    return rewritten


def _rebuild(graph: Graph, hoist: bool) -> Graph:
    builder = Builder(hoist)
    place: dict[int, int] = {}
    for i, node in enumerate(graph.nodes):
        if node.op != "select":
            place[i] = builder.build(graph, node, place)
            builder.name(place[i], graph.names.get(i))
    return prune(Graph(tuple(builder.nodes), place[graph.output], builder.names))


def prune(graph: Graph) -> Graph:
    """Only what the output depends on (and the inputs), in the same order."""
    needed, stack = {i for i, node in enumerate(graph.nodes) if node.op == "input"}, [graph.output]
    while stack:
        i = stack.pop()
        if i not in needed or i == graph.output:
            needed.add(i)
            stack.extend(j for j in graph.nodes[i].inputs if j not in needed)
    order = sorted(needed)
    place = {old: new for new, old in enumerate(order)}
    nodes = tuple(_moved(graph.nodes[i], place) for i in order)
    return Graph(nodes, place[graph.output], {place[i]: name for i, name in graph.names.items() if i in place})


def _moved(node: Node, place: dict[int, int]) -> Node:
    return Node(**{**node.__dict__, "inputs": tuple(place[j] for j in node.inputs)})


class Builder:
    """A graph under construction in which equal nodes are shared."""

    def __init__(self, hoist: bool = True) -> None:
        self.hoist = hoist
        self.nodes: list[Node] = []
        self.names: dict[int, str] = {}
        self._ids: dict[Node, int] = {}

    def add(self, node: Node) -> int:
        if node not in self._ids:
            self._ids[node] = len(self.nodes)
            self.nodes.append(node)
        return self._ids[node]

    def name(self, i: int, label: str | None) -> None:
        if label:
            self.names.setdefault(i, label)

    def build(self, graph: Graph, node: Node, place: dict[int, int]) -> int:
        """The counterpart of a node of another graph, whose inputs already have theirs."""
        match node.op:
            case "map":
                return self.map(node.function, [place[j] for j in node.inputs])
            case "delay":
                return self.delay(place[node.inputs[0]], node.offset, node.default)
            case "aggr" | "kqv" | "width":
                keys, queries, condition = selector(graph, node)
                if node.keys == 0 and not graph.nodes[node.inputs[0]].causal:
                    raise EngineError(f"{graph.describe(node.inputs[0])} is not causal: it looks at the future")
                k, q = [place[j] for j in keys], [place[j] for j in queries]
                if node.op == "width":
                    return self.width(k, q, condition)
                return self.attend(k, q, condition, place[node.inputs[-1]], node.default, node.reduction)
        return self.add(node)

    def full(self, value: int) -> int:
        return self.add(Node("full", default=int(value)))

    # --- maps ---------------------------------------------------------------------------------------------------------

    def map(self, expr: Expr, inputs: list[int]) -> int:
        expr, inputs = self._absorb(*self._tidy(whole(expr), inputs))
        if expr.op == "const":
            return self.full(expr.payload)
        if expr == arg(0):
            return inputs[0]
        sources = [self.nodes[i] for i in inputs]
        if self.hoist and sources and all(source.op == "delay" for source in sources):
            return self._hoist(expr, sources)
        return self.add(Node("map", tuple(inputs), expr))

    def _tidy(self, expr: Expr, inputs: list[int]) -> tuple[Expr, list[int]]:
        """Constants into the function; each remaining input once, in order of node; unused ones gone."""
        kept = sorted({j for i, j in enumerate(inputs) if i in arguments(expr) and self.nodes[j].op != "full"})
        values = [const(self.nodes[j].default) if j not in kept else arg(kept.index(j)) for j in inputs]
        expr = substitute(expr, values)
        if arguments(expr) != set(range(len(kept))):
            return self._tidy(expr, kept)
        return expr, kept

    def _absorb(self, expr: Expr, inputs: list[int]) -> tuple[Expr, list[int]]:
        """Take in the maps this one is made of, when the whole is no larger than the outer part was."""
        inner = [i for i in inputs if self.nodes[i].op == "map"]
        for group in [inner, *([i] for i in inner)]:
            merged, sources = self._merged(expr, inputs, group)
            if group and merged.size <= expr.size:
                return self._absorb(*self._tidy(merged, sources))
        return expr, inputs

    def _merged(self, expr: Expr, inputs: list[int], group: list[int]) -> tuple[Expr, list[int]]:
        sources: list[int] = []
        values: list[Expr] = []
        for i in inputs:
            node = self.nodes[i]
            if i in group:
                values.append(substitute(node.function, [arg(len(sources) + k) for k in range(len(node.inputs))]))
                sources.extend(node.inputs)
            else:
                values.append(arg(len(sources)))
                sources.append(i)
        merged, sources = self._tidy(substitute(expr, values), sources)
        return split_on_shared_conditions(merged), sources

    def _hoist(self, expr: Expr, delays: list[Node]) -> int:
        """f(a delayed, b delayed) = f(a, b) delayed: until then every input is its default."""
        common = min(d.offset for d in delays)
        inner = [self.delay(d.inputs[0], d.offset - common, d.default) for d in delays]
        return self.delay(self.map(expr, inner), common, evaluate_int(expr, [d.default for d in delays]))

    # --- attention ----------------------------------------------------------------------------------------------------

    def delay(self, x: int, offset: int, default: int) -> int:
        node = self.nodes[x]
        if offset == 0 or (node.op == "full" and node.default == default):
            return x
        if node.op == "delay" and node.default == default:
            return self.delay(node.inputs[0], offset + node.offset, default)
        return self.add(Node("delay", (x,), offset=offset, default=default))

    def attend(self, keys: list[int], queries: list[int], condition: Expr, v: int, default: int, reduction: str) -> int:
        keys, queries, predicate = self._selector(keys, queries, condition)
        if predicate.kind == "constant" and not predicate.condition.payload:
            return self.full(default)
        distance = self._distance(keys, queries) if predicate.kind == "equality" else None
        if distance is not None:
            return self.delay(v, distance, default) if distance >= 0 else self.full(default)
        inputs = (*keys, *queries, v)
        return self.add(Node("kqv", inputs, predicate.condition, len(keys), default, reduction))

    def width(self, keys: list[int], queries: list[int], condition: Expr) -> int:
        keys, queries, predicate = self._selector(keys, queries, condition)
        if predicate.kind == "constant":
            return self._position(1) if predicate.condition.payload else self.full(0)
        if self.hoist and predicate.kind == "key" and self._is_quiet_delay(keys[0]):
            late = self.nodes[keys[0]]
            return self.delay(self.width([late.inputs[0]], [late.inputs[0]], predicate.condition), late.offset, 0)
        if predicate.kind == "equality" and self._distance(keys, queries) is not None:
            distance = self._distance(keys, queries)
            return self.delay(self.full(1), distance, 0) if distance is not None and distance >= 0 else self.full(0)
        return self.add(Node("width", (*keys, *queries), predicate.condition, len(keys)))

    def _position(self, offset: int) -> int:
        return self.map(binary("+", arg(0), const(offset)), [self.add(Node("indices"))])

    def _is_quiet_delay(self, i: int) -> bool:
        return self.nodes[i].op == "delay" and self.nodes[i].default == 0

    def _selector(self, keys: list[int], queries: list[int], condition: Expr) -> tuple[list[int], list[int], Predicate]:
        """Fold constants, and compute each side of the predicate beforehand, so that it reads `k == q` or just `k`."""
        inputs = [*keys, *queries]
        values = [const(self.nodes[j].default) if self.nodes[j].op == "full" else arg(i) for i, j in enumerate(inputs)]
        predicate = classify(substitute(condition, values), len(keys))
        if predicate.kind in ("equality", "order"):
            assert predicate.key is not None and predicate.query is not None
            k, q = self.map(predicate.key, inputs), self.map(predicate.query, inputs)
            sides = {predicate.key: arg(0), predicate.query: arg(1)}
            left, right = (sides[as_int(a)] for a in predicate.condition.args)
            return [k], [q], classify(binary(predicate.condition.op, left, right))
        if predicate.kind in ("key", "query"):
            flag = self.map(as_int(predicate.condition), inputs)
            return [flag], [flag], classify(truth(arg(0 if predicate.kind == "key" else 1)))
        if predicate.kind == "constant":
            anchor = [self.full(0)]
            return anchor, anchor, predicate
        return keys, queries, classify(substitute(condition, values), len(keys))

    def _distance(self, keys: list[int], queries: list[int]) -> int | None:
        """How far back the match is, when keys and queries are both `indices` plus a constant."""
        k, q = self._index_offset(keys[0]), self._index_offset(queries[0])
        return None if k is None or q is None else k - q

    def _index_offset(self, i: int) -> int | None:
        node = self.nodes[i]
        if node.op == "indices":
            return 0
        if node.op != "map" or len(node.inputs) != 1 or self.nodes[node.inputs[0]].op != "indices":
            return None
        sign = {"+": 1, "-": -1}.get(node.function.op)
        if sign is None or node.function.args[0] != arg(0) or node.function.args[1].op != "const":
            return None
        return sign * int(node.function.args[1].payload)
