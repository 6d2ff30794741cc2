"""Each scheduled operation as heads and units of a `Network`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from compile.domains import Capacity
from compile.factor import Match, matches
from compile.naming import Names
from compile.network import Network, Part, Shift, View
from compile.noise import Noise
from compile.schedule import Schedule, attended, decodes, is_single
from compile.stream import INSIDE, Reading, added
from rasp.eager import map_arrays
from rasp.graph import Node
from rasp.scalar import evaluate_int


@dataclass
class Lowered:
    """The network, and how every node that is kept can be read from its residual stream."""

    plan: Schedule
    network: Network
    views: dict[int, View]


def lower(plan: Schedule, dtype: str = "float32") -> Lowered:
    lowering = _Lowering(plan, dtype)
    for layer in range(plan.layers):
        lowering.attend(layer)
        lowering.compute(layer)
    network = lowering.network
    network.answer = lowering.view(plan.graph.output)
    network.refusal = refusal(plan.domains.capacity)
    return Lowered(plan, network, lowering.views)


def refusal(capacity: Capacity) -> str:
    positions = f" and {capacity.positions} positions" if capacity.positions else ""
    return (
        f"a count ran over: this model was compiled to count to {capacity.counts}{positions}; shorten the input or "
        "compile with a larger capacity"
    )


class _Lowering:
    def __init__(self, plan: Schedule, dtype: str) -> None:
        self.plan, self.graph, self.domains = plan, plan.graph, plan.domains
        self.names = Names(plan.graph)
        self.shares: dict[int, int] = {}  # counter -> dimension with the start's share of its attention
        self.means: dict[int, int] = {}  # node -> dimension with the mean
        self.views: dict[int, View] = {}
        self.noise = Noise(plan, dtype)
        copies = max((self.graph.nodes[i].offset for i in plan.needed if self.graph.nodes[i].op == "delay"), default=1)
        self.network = Network(plan.domains.vocabulary, copies, plan.layers, dtype)
        for i in plan.at(-1):
            node = self.graph.nodes[i]
            self.views[i] = self.network.input if node.op == "input" else {node.default: dict(INSIDE)}

    def register(self, i: int) -> View:
        return self.network.onehot(self.names.of(i), self.domains[i])

    def view(self, i: int) -> View:
        """How to read node i: for each value, 1 where it has that value and 0 elsewhere."""
        if i not in self.views:
            function = self.plan.reading[i]
            assert function is not None, "a register is read before it is written"
            groups: dict[int, list[Reading]] = {}
            for value, reading in self.view(self.plan.base[i]).items():
                groups.setdefault(evaluate_int(function, [value]), []).append(reading)
            self.views[i] = {value: added(readings) for value, readings in groups.items()}
        return self.views[i]

    # --- attention ----------------------------------------------------------------------------------------------------

    def attend(self, layer: int) -> None:
        present = [i for t in (2 * layer, 2 * layer + 1) for i in self.plan.at(t)]
        counters = {self.plan.counters[i][0] for i in present if i in self.plan.counters}
        self.shift(layer, [i for i in present if self.graph.nodes[i].op == "delay"])
        for i in sorted({*present, *counters}):
            node = self.graph.nodes[i]
            if i in counters:
                self.count(layer, i)
            elif node.op == "kqv" and decodes(self.plan, node):
                self.mean(layer, i, node)
            elif node.op == "kqv":
                self.best(layer, i, node)

    def shift(self, layer: int, nodes: list[int]) -> None:
        wanted = []
        for i in nodes:
            node = self.graph.nodes[i]
            source = self.view(node.inputs[0])
            wanted.append(Shift(self.names.of(i), source, self.domains[i], node.offset, node.default))
        self.views.update(zip(nodes, self.network.shifts(layer, wanted), strict=True))

    def parts(self, node: Node) -> list[Part]:
        return [] if node.op == "indices" else [self.part(match) for match in matches(node)]

    def part(self, match: Match) -> Part:
        keys, queries = self.view(match.key), self.view(match.query)
        k, q = np.meshgrid(np.array(list(keys)), np.array(list(queries)), indexing="ij")
        truth = map_arrays(match.condition, k.ravel(), q.ravel()).reshape(k.shape).astype(bool)
        return Part(keys, queries, truth)

    def count(self, layer: int, i: int) -> None:
        node = self.graph.nodes[i]
        label = "count positions" if node.op == "indices" else f"count {self.names.condition(matches(node))}"
        self.network.check_count(label, self.most(i))
        self.noise.check_counter(label, node, self.most(i))
        self.shares[i] = self.network.count(layer, self.parts(node), label)

    def most(self, i: int) -> int:
        capacity = self.domains.capacity
        most = capacity.positions if self.graph.nodes[i].op == "indices" else capacity.counts
        assert most is not None  # without it `indices` has no domain
        return most

    def best(self, layer: int, i: int, node: Node) -> None:
        order = None if is_single(self.plan, node) else node.reduction
        label, name, values = self.names.attention(i), self.names.of(i), self.view(node.inputs[-1])
        self.views[i] = self.network.best(
            layer, label, name, self.parts(node), values, self.domains[i], node.default, order
        )

    def mean(self, layer: int, i: int, node: Node) -> None:
        """A second head counts the values, for the sake of capacity."""
        label, values = self.names.attention(i), self.view(node.inputs[-1])
        self.noise.check_mean(label, node, self.most(i))
        self.means[i] = self.network.mean(layer, label, self.parts(node), values, node.default)
        self.count(layer, i)

    # --- MLPs ---------------------------------------------------------------------------------------------------------

    def compute(self, layer: int) -> None:
        for i in self.plan.at(2 * layer + 1):
            if i in self.plan.forms:
                form = self.plan.forms[i]
                inputs = [self.view(j) for j in form.inputs]
                self.views[i] = self.register(i)
                self.network.map(layer, form.boxes, inputs, self.views[i], self.noise.cleans(i))
            elif i in self.means:
                self.views[i] = self.register(i)
                self.network.threshold(layer, self.means[i], self.views[i], self.most(i), self.names.of(i))
            elif i in self.plan.counters:
                self.decode(layer, i)
            else:
                continue
            self.network.layers[layer].labels.append(self.names.of(i))
        self.watch(layer)

    def decode(self, layer: int, i: int) -> None:
        written = self.views[i] = self.register(i)
        counter, function = self.plan.counters[i]
        extra = 1 if self.graph.nodes[counter].op == "indices" else 0  # position p has counted p + 1 tokens
        places = {c + extra: written[evaluate_int(function, [c])] for c in self.domains[counter]}
        self.network.decode(layer, self.shares[counter], places)

    def watch(self, layer: int) -> None:
        for counter, share in self.shares.items():
            here = self.plan.time[counter] // 2 == layer
            if here and (counter in self.means or must_watch(self.plan, counter)):
                self.network.watch(layer, share, self.most(counter))


# --- capacity ---------------------------------------------------------------------------------------------------------


def must_watch(plan: Schedule, counter: int) -> bool:
    """A count that ran over has no direction and matches nothing. That is right for a key that is compared as a whole,
    as long as the query it is compared with is watched; every other use needs the count itself."""
    output = plan.base[plan.graph.output]
    if output in plan.counters and plan.counters[output][0] == counter:
        return True
    return any(_needs_count(plan, j, counter) for j in plan.needed)


def _needs_count(plan: Schedule, j: int, counter: int) -> bool:
    def reads(nodes: Iterable[int]) -> list[int]:
        return [k for k in nodes if plan.counters.get(plan.base[k], (None,))[0] == counter]

    node = plan.graph.nodes[plan.counters[j][0] if j in plan.counters else j]
    if j in plan.forms:
        return bool(reads(plan.forms[j].inputs))
    if node.op not in ("kqv", "width"):
        return bool(reads(attended(node)))
    whole = [m.key for m in matches(node) if m.is_equality]
    others = [m.query for m in matches(node)] + [m.key for m in matches(node) if not m.is_equality]
    others += node.inputs[-1:] if node.op == "kqv" else ()
    return bool(reads(others)) or not _tells_apart(plan, counter, reads(whole))


def _tells_apart(plan: Schedule, counter: int, keys: list[int]) -> bool:
    """Whether these functions of a count, taken together, are different for different counts (also past the last)."""
    functions = [plan.counters[k][1] for k in keys if k in plan.counters]
    if len(functions) < len(keys):
        return False  # a view of a function; rare, and watching is always safe
    beyond = range(2 * (len(plan.domains[counter]) + 1))
    return not keys or len({tuple(evaluate_int(f, [c]) for f in functions) for c in beyond}) == len(beyond)
