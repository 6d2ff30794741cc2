"""Make a traced program cheap, leaving what it computes unchanged.

Every rule is a constructor that looks at what it is about to build on:
- attention to a fixed distance (`kqv(indices + n, indices, v, equals)`) is a delay line;
- delays with the same default merge, and move outwards through maps (the default becomes the map of the defaults);
- constants move into the functions that use them, and a map absorbs its inputs when that makes it no larger;
- equal nodes are built once.
"""

from __future__ import annotations

from dataclasses import replace

from rasp.arithmetic import wrap
from rasp.errors import EngineError, FunctionError
from rasp.graph import Aggregate, Count, Delay, Full, Graph, Indices, Input, Kqv, Map, Node, Select, Width, selector
from rasp.predicates import Predicate, classify, same_tuples
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
        if not isinstance(node, Select):
            place[i] = builder.build(graph, node, place)
            builder.name(place[i], graph.names.get(i))
    return prune(Graph(tuple(builder.nodes), place[graph.output], builder.names))


def prune(graph: Graph) -> Graph:
    """Only what the output depends on (and the inputs), in the same order."""
    return pruned(graph)[0]


def pruned(graph: Graph) -> tuple[Graph, dict[int, int]]:
    """The pruned graph, and the new number of every node that is left."""
    needed, stack = {i for i, node in enumerate(graph.nodes) if isinstance(node, Input)}, [graph.output]
    while stack:
        i = stack.pop()
        if i not in needed or i == graph.output:
            needed.add(i)
            stack.extend(j for j in graph.nodes[i].inputs if j not in needed)
    order = sorted(needed)
    place = {old: new for new, old in enumerate(order)}
    nodes = tuple(_moved(graph.nodes[i], place) for i in order)
    names = {place[i]: name for i, name in graph.names.items() if i in place}
    return Graph(nodes, place[graph.output], names), place


def _moved(node: Node, place: dict[int, int]) -> Node:
    return replace(node, inputs=tuple(place[j] for j in node.inputs))


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
        match node:
            case Map():
                return self.map(node.function, [place[j] for j in node.inputs])
            case Delay():
                return self.delay(place[node.inputs[0]], node.distance, node.default)
            case Width() | Count():
                return self.width(*self._placed(graph, node, place))
            case Aggregate() | Kqv():
                selected = self._placed(graph, node, place)
                return self.attend(*selected, place[node.inputs[-1]], node.default, node.reduction)
        return self.add(node)

    def _placed(
        self, graph: Graph, node: Width | Aggregate | Count | Kqv, place: dict[int, int]
    ) -> tuple[list[int], list[int], Expr]:
        """Keys and queries that already have their place, and the predicate."""
        source = graph.nodes[node.inputs[0]]
        if isinstance(node, Width | Aggregate) and isinstance(source, Select) and not source.causal:
            raise EngineError(f"{graph.describe(node.inputs[0])} is not causal: it looks at the future")
        keys, queries, condition = selector(graph, node)
        return [place[j] for j in keys], [place[j] for j in queries], condition

    def full(self, value: int) -> int:
        return self.add(Full(value=int(value)))

    # --- maps ---------------------------------------------------------------------------------------------------------

    def map(self, expr: Expr, inputs: list[int]) -> int:
        expr, inputs = self._absorb(*self._tidy(whole(expr), inputs))
        if expr.op == "const":
            return self.full(expr.payload)
        if expr == arg(0):
            return inputs[0]
        sources = [self.nodes[i] for i in inputs]
        delays = [source for source in sources if isinstance(source, Delay)]
        if self.hoist and sources and len(delays) == len(sources):
            try:
                return self._hoist(expr, delays)
            except FunctionError:  # at the defaults, which a short input may never meet
                pass
        return self.add(Map(tuple(inputs), function=expr))

    def _tidy(self, expr: Expr, inputs: list[int]) -> tuple[Expr, list[int]]:
        """Constants into the function; each remaining input once, in order of node; unused ones gone."""
        used = arguments(expr)
        kept = sorted({j for i, j in enumerate(inputs) if i in used and not isinstance(self.nodes[j], Full)})
        values = [arg(kept.index(j)) if j in kept else self._constant(j) or const(0) for j in inputs]
        expr = substitute(expr, values)
        if arguments(expr) != set(range(len(kept))):
            return self._tidy(expr, kept)
        return expr, kept

    def _constant(self, i: int) -> Expr | None:
        """The number that node i is everywhere."""
        node = self.nodes[i]
        return const(node.value) if isinstance(node, Full) else None

    def _absorb(self, expr: Expr, inputs: list[int]) -> tuple[Expr, list[int]]:
        """Take in the maps this one is made of, when the whole is no larger than the outer part was."""
        inner = [i for i in inputs if isinstance(self.nodes[i], Map)]
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
            if i in group and isinstance(node, Map):
                values.append(substitute(node.function, [arg(len(sources) + k) for k in range(len(node.inputs))]))
                sources.extend(node.inputs)
            else:
                values.append(arg(len(sources)))
                sources.append(i)
        merged, sources = self._tidy(substitute(expr, values), sources)
        return split_on_shared_conditions(merged), sources

    def _hoist(self, expr: Expr, delays: list[Delay]) -> int:
        """f(a delayed, b delayed) = f(a, b) delayed: until then every input is its default."""
        common = min(d.distance for d in delays)
        inner = [self.delay(d.inputs[0], d.distance - common, d.default) for d in delays]
        return self.delay(self.map(expr, inner), common, evaluate_int(expr, [d.default for d in delays]))

    # --- attention ----------------------------------------------------------------------------------------------------

    def delay(self, x: int, distance: int, default: int) -> int:
        node = self.nodes[x]
        if distance == 0 or (isinstance(node, Full) and node.value == default):
            return x
        if isinstance(node, Delay) and node.default == default:
            return self.delay(node.inputs[0], distance + node.distance, default)
        return self.add(Delay((x,), distance=distance, default=default))

    def attend(self, keys: list[int], queries: list[int], condition: Expr, v: int, default: int, reduction: str) -> int:
        keys, queries, predicate = self._selector(keys, queries, condition)
        if predicate.kind == "constant" and not predicate.condition.payload:
            return self.full(default)
        distance = self._distance(keys, queries) if predicate.kind == "equality" else None
        if distance is not None:
            return self.delay(v, distance, default) if distance >= 0 else self.full(default)
        inputs = (*keys, *queries, v)
        node = Kqv(inputs, function=predicate.condition, keys=len(keys), default=default, reduction=reduction)
        return self.add(node)

    def width(self, keys: list[int], queries: list[int], condition: Expr) -> int:
        keys, queries, predicate = self._selector(keys, queries, condition)
        if predicate.kind == "constant":
            return self._position(1) if predicate.condition.payload else self.full(0)
        late = self.nodes[keys[0]]
        if self.hoist and predicate.kind == "key" and isinstance(late, Delay) and late.default == 0:
            return self.delay(self.width([late.inputs[0]], [late.inputs[0]], predicate.condition), late.distance, 0)
        if predicate.kind == "equality" and self._distance(keys, queries) is not None:
            distance = self._distance(keys, queries)
            return self.delay(self.full(1), distance, 0) if distance is not None and distance >= 0 else self.full(0)
        return self.add(Count((*keys, *queries), function=predicate.condition, keys=len(keys)))

    def _position(self, offset: int) -> int:
        return self.map(binary("+", arg(0), const(offset)), [self.add(Indices())])

    def _selector(self, keys: list[int], queries: list[int], condition: Expr) -> tuple[list[int], list[int], Predicate]:
        """Fold constants, and compute each side of the predicate beforehand, so that it reads `k == q` or just `k`."""
        inputs = [*keys, *queries]
        distinct = len(set(zip(keys, queries, strict=False)))
        if len(keys) == distinct > 1 and condition == same_tuples(distinct):
            return keys, queries, classify(condition, distinct)  # as below; a constant would be folded again and again
        values = [self._constant(j) or arg(i) for i, j in enumerate(inputs)]
        predicate = classify(substitute(condition, values), len(keys))
        if predicate.kind in ("equality", "order"):
            assert predicate.key is not None and predicate.query is not None
            k, q = self.map(predicate.key, inputs), self.map(predicate.query, inputs)
            sides = {predicate.key: arg(0), predicate.query: arg(1)}
            left, right = (sides[as_int(a)] for a in predicate.condition.args)
            return [k], [q], classify(binary(predicate.condition.op, left, right))
        if predicate.kind == "tuple":
            pairs = list(dict.fromkeys((self.map(k, inputs), self.map(q, inputs)) for k, q in predicate.pairs))
            return [k for k, _ in pairs], [q for _, q in pairs], classify(same_tuples(len(pairs)), len(pairs))
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
        return None if k is None or q is None else wrap(k - q)

    def _index_offset(self, i: int) -> int | None:
        node = self.nodes[i]
        if isinstance(node, Indices):
            return 0
        if not isinstance(node, Map) or [type(self.nodes[j]) for j in node.inputs] != [Indices]:
            return None
        sign = {"+": 1, "-": -1}.get(node.function.op)
        if sign is None or node.function.args[0] != arg(0) or node.function.args[1].op != "const":
            return None
        return sign * int(node.function.args[1].payload)
