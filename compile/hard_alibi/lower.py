"""Each scheduled operation as heads and units of a `Network`."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from compile.front.bounds import apply
from compile.front.domains import Capacity, values_of
from compile.front.matches import Match, matches
from compile.front.naming import NodeNames
from compile.front.schedule import Counted, Placements, decodes, is_single
from compile.hard_alibi.network import Network, Part, Shift
from compile.hard_alibi.noise import Noise
from compile.hard_alibi.readings import INSIDE, added
from compile.readings import Reading, View
from compile.transformer.annotations import Fact
from rasp.graph import AttentionNode, Delay, Full, Kqv, Node


@dataclass
class Lowered:
    """The network, and how every node that is kept can be read from its residual stream."""

    plan: Placements
    network: Network
    views: dict[int, View]


def lower(plan: Placements, dtype: str = "float32") -> Lowered:
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
    def __init__(self, plan: Placements, dtype: str) -> None:
        self.plan, self.graph, self.domains, self.watched = plan, plan.graph, plan.domains, plan.program.watched
        self.names = NodeNames(plan.graph)
        self.shares: dict[int, int] = {}  # counter -> dimension with the start's share of its attention
        self.means: dict[int, int] = {}  # node -> dimension with the mean
        self.views: dict[int, View] = {}
        self.noise = Noise(plan, dtype)
        kept = [self.graph.nodes[i] for i in plan.kept]
        copies = max((node.distance for node in kept if isinstance(node, Delay)), default=1)
        given = tuple(i for i, node in enumerate(self.graph.nodes) if node.op == "input")
        self.network = Network(plan.domains.vocabulary, copies, plan.layers, dtype, Fact("tokens", "x", given))
        for i in plan.at(-1):
            node = self.graph.nodes[i]
            self.views[i] = {node.value: dict(INSIDE)} if isinstance(node, Full) else self.network.input

    def fact(self, role: str, i: int, label: str = "") -> Fact:
        return Fact(role, label or self.names.of(i), (i,))

    def register(self, i: int, role: str = "value") -> View:
        return self.network.onehot(self.fact(role, i), self.domains[i])

    def view(self, i: int) -> View:
        """How to read node i: for each value, 1 where it has that value and 0 elsewhere."""
        if i not in self.views:
            place = self.plan[i]
            assert place.function is not None, "a register is read before it is written"
            groups: dict[int, list[Reading]] = {}
            base = self.view(place.register)
            for value, reading in zip(values_of(place.function, list(base)), base.values(), strict=True):
                groups.setdefault(value, []).append(reading)
            self.views[i] = {value: added(readings) for value, readings in groups.items()}
        return self.views[i]

    # --- attention ----------------------------------------------------------------------------------------------------

    def attend(self, layer: int) -> None:
        present = [i for t in (2 * layer, 2 * layer + 1) for i in self.plan.at(t)]
        counters = {self.plan.source(i) for i in present if self.plan[i].counted is not None}
        self.shift(layer, [i for i in present if self.graph.nodes[i].op == "delay"])
        for i in sorted({*present, *counters}):
            node = self.graph.nodes[i]
            if i in counters:
                self.count(layer, i)
            elif isinstance(node, Kqv) and decodes(self.plan, node):
                self.mean(layer, i, node)
            elif isinstance(node, Kqv):
                self.best(layer, i, node)
        if layer == self.plan.layers - 1 and any(self.watched.get(counter) for counter in self.shares):
            self.network.pass_on_overflow(layer)

    def shift(self, layer: int, nodes: list[int]) -> None:
        wanted = []
        for i in nodes:
            node = self.graph.nodes[i]
            assert isinstance(node, Delay), "as `attend` chose them"
            source = self.view(node.inputs[0])
            wanted.append(Shift(self.fact("value", i), source, self.domains[i], node.distance, node.default))
        self.views.update(zip(nodes, self.network.shifts(layer, wanted), strict=True))

    def parts(self, node: Node) -> list[Part]:
        return [self.part(match) for match in matches(node)] if isinstance(node, AttentionNode) else []

    def part(self, match: Match) -> Part:
        keys, queries = self.view(match.key), self.view(match.query)
        k, q = np.meshgrid(np.array(list(keys)), np.array(list(queries)), indexing="ij")
        return Part(keys, queries, apply(match.condition, k, q).astype(bool))

    def count(self, layer: int, i: int) -> None:
        node = self.graph.nodes[i]
        parts = matches(node) if isinstance(node, AttentionNode) else ()
        label = f"count {self.names.condition(parts)}" if isinstance(node, AttentionNode) else "count positions"
        self.network.check_count(label, self.most(i))
        self.noise.check_counter(label, node, self.most(i))
        self.shares[i] = self.network.count(layer, self.parts(node), self.fact("count", i, label))

    def most(self, i: int) -> int:
        capacity = self.domains.capacity
        most = capacity.positions if self.graph.nodes[i].op == "indices" else capacity.counts
        assert most is not None  # without it `indices` has no domain
        return most

    def best(self, layer: int, i: int, node: Kqv) -> None:
        order = None if is_single(self.plan, node) else node.reduction
        fact, name = self.fact("match", i, self.names.attention(i)), self.names.of(i)
        values = self.view(node.inputs[-1])
        self.views[i] = self.network.best(
            layer, fact, name, self.parts(node), values, self.domains[i], node.default, order
        )

    def mean(self, layer: int, i: int, node: Kqv) -> None:
        """A second head counts the values, for the sake of capacity."""
        fact, values = self.fact("mean", i, self.names.attention(i)), self.view(node.inputs[-1])
        self.noise.check_mean(fact.label, node, self.most(i))
        self.means[i] = self.network.mean(layer, fact, self.parts(node), values, node.default)
        self.count(layer, i)

    # --- MLPs ---------------------------------------------------------------------------------------------------------

    def compute(self, layer: int) -> None:
        for i in self.plan.at(2 * layer + 1):
            form, counted = self.plan[i].form, self.plan[i].counted
            if form is not None:
                inputs = [self.view(j) for j in form.inputs]
                self.views[i] = self.register(i)
                self.network.map(layer, form.boxes, inputs, self.views[i], self.noise.cleans(i))
            elif i in self.means:
                self.views[i] = self.register(i)
                self.network.threshold(layer, self.means[i], self.views[i], self.most(i), self.names.of(i))
            elif counted is not None:
                self.decode(layer, i, counted)
            else:
                continue
            self.network.layers[layer].made.append(self.fact("compute", i))
        self.watch(layer)

    def decode(self, layer: int, i: int, counted: Counted) -> None:
        written = self.views[i] = self.register(i, "count")
        extra = 1 if self.graph.nodes[counted.count].op == "indices" else 0  # position p has counted p + 1 tokens
        counts = self.domains[counted.count]
        places = {c + extra: written[v] for c, v in zip(counts, values_of(counted.function, counts), strict=True)}
        self.network.decode(layer, self.shares[counted.count], places)

    def watch(self, layer: int) -> None:
        for counter, share in self.shares.items():
            if self.plan[counter].time // 2 == layer and counter in self.watched:
                self.network.watch(layer, share, self.most(counter))
