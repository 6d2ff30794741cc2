"""A schedule as tracr's architecture carries it out: positions are embedded, and every layer is as wide as the widest.

Because positions are there from the start, what waits for them can come earlier than in
`compile.front.schedule`; and because every layer gets as many heads as the fullest, heads that can wait are moved to
layers with fewer.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from compile.front.domains import values_of
from compile.front.schedule import EMBEDDING, Form, Placements, decodes
from rasp.graph import Delay, Graph

EMBEDDED = ("input", "full", "indices")


@dataclass(frozen=True)
class RegisterView:
    """A function of one register: the value it gives each of the register's values. `register` None: a constant."""

    register: int | None
    values: tuple[int, ...]


class TracrPlan:
    """When each register is written (half layers, as in `Schedule`), and how every node is read."""

    def __init__(self, schedule: Placements) -> None:
        self.schedule, self.program = schedule, schedule.program
        self.graph: Graph = schedule.graph
        self.times: dict[int, int] = {}

    @property
    def positions(self) -> int:
        count = self.program.domains.capacity.positions
        assert count is not None  # the backend sees to it
        return count

    @property
    def layers(self) -> int:
        return max(self.times.values(), default=EMBEDDING) // 2 + 1

    def domain(self, node: int) -> tuple[int, ...]:
        return self.program.domains[node]

    def form(self, i: int) -> Form | None:
        """How an MLP computes register i; None: it is embedded, or attention brings it."""
        return self.schedule[i].form

    def attention(self, layer: int) -> list[int]:
        """The registers that heads of the layer bring."""
        return [i for i, t in self.times.items() if t >= 0 and t // 2 == layer and self.form(i) is None]

    def maps(self, layer: int) -> list[int]:
        """The registers that the layer's MLP computes from others."""
        return [i for i, t in self.times.items() if t // 2 == layer and self.form(i) is not None]

    def view(self, node: int) -> RegisterView:
        """The node as a function of the register it is read from."""
        place = self.schedule[node]
        values = self.domain(place.register)
        if place.function is not None:
            values = tuple(values_of(place.function, values))
        return RegisterView(None if self.graph.nodes[place.register].op == "full" else place.register, values)

    def is_number(self, i: int) -> bool:
        """Whether the head brings a number, which the layer's MLP turns into one direction per value."""
        return self.form(i) is None and decodes(self.schedule, self.graph.nodes[i])

    def reads(self, i: int) -> set[int]:
        """The registers that register i is made of."""
        return {self.schedule[j].register for j in self.schedule.reads(i)}


def make_plan(schedule: Placements) -> TracrPlan:
    plan = TracrPlan(schedule)
    for i in schedule.kept:
        plan.times[i] = _earliest(plan, i)
    _level(plan)
    return plan


def _earliest(plan: TracrPlan, i: int) -> int:
    if plan.graph.nodes[i].op in EMBEDDED:
        return EMBEDDING
    ready = max((plan.times[j] for j in plan.reads(i)), default=EMBEDDING)
    if plan.form(i) is not None:
        return 2 * ((ready + 1) // 2) + 1
    return 2 * ((ready + 2) // 2) + plan.is_number(i)


# --- heads ------------------------------------------------------------------------------------------------------------


def heads_of(plan: TracrPlan, layer: int) -> list[list[int]]:
    """The nodes that each head of a layer computes: delays by the same distance share one."""
    groups: dict[tuple[str, int], list[int]] = {}
    for i in plan.attention(layer):
        node = plan.graph.nodes[i]
        groups.setdefault(("delay", node.distance) if isinstance(node, Delay) else ("one", i), []).append(i)
    return list(groups.values())


def _level(plan: TracrPlan) -> None:
    """Move heads out of the fullest layer while that makes it less full."""
    while (move := _helpful_move(plan)) is not None:
        node, layer = move
        plan.times[node] = 2 * layer + plan.times[node] % 2


def _helpful_move(plan: TracrPlan) -> tuple[int, int] | None:
    sizes = [len(heads_of(plan, layer)) for layer in range(plan.layers)]
    fullest = int(np.argmax(sizes)) if sizes else 0
    for group in heads_of(plan, fullest):
        places = range(fullest + 1, _last_layer(plan, group[0]) + 1)
        better = [layer for layer in places if sizes[layer] + 1 < sizes[fullest]]
        if len(group) == 1 and better:
            return group[0], min(better, key=lambda layer: sizes[layer])
    return None


def _last_layer(plan: TracrPlan, i: int) -> int:
    """The last layer that may bring register i: it must be there before anything reads it."""
    starts = [_starts(plan, j) for j in plan.times if i in plan.reads(j)]
    return min(((t - 1 - plan.times[i] % 2) // 2 for t in starts), default=plan.layers - 1)


def _starts(plan: TracrPlan, j: int) -> int:
    """When register j reads what it is made of: a head that brings a number does so before its MLP."""
    return plan.times[j] - plan.is_number(j)
