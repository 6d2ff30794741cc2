"""How far rounding may carry a register from a one-hot vector, and where it has to be stopped.

Every operation passes on the errors of what it reads: a shift by n multiplies them by 2n + 1, a map adds those of its
sides and doubles the sum. Attention that looks for the best match does not care (its scores have wide margins) and
brings clean values. A count does: an error e in a key or query changes a weight by 40 e, and of c equal weights the
share is off by a part of c * 40 e, while the steps that decode it stand 1/3 apart. So maps that lead into a count are
computed with twice the units, which cuts their noise off; so is any map that has become too noisy.
"""

from __future__ import annotations

from typing import NoReturn

from compile.errors import CompileError
from compile.front.matches import matches
from compile.front.program import COUNTERS
from compile.front.schedule import Placements, attended, decodes
from compile.hard_alibi.network import ROUNDING, SHARP
from rasp.graph import AttentionNode, Delay, Node

LOUD = 1e-3  # noise that no map hands on


class Noise:
    """Estimated total error of every register of a plan."""

    def __init__(self, plan: Placements, dtype: str) -> None:
        self.plan, self.dtype = plan, dtype
        self.counted = _lead_into_counts(plan)
        self.of: dict[int, float] = {}
        for i in plan.kept:
            self.of[i] = self._estimate(i)

    def at(self, node: int) -> float:
        return self.of[self.plan[node].register]

    def cleans(self, i: int) -> bool:
        """Whether the map i cuts its noise off."""
        return i in self.counted or self._passed_on(i) > LOUD

    def _passed_on(self, i: int) -> float:
        return 4 * sum(self.at(j) + ROUNDING[self.dtype] for j in self.plan.reads(i))

    def _estimate(self, i: int) -> float:
        unit, node, place = ROUNDING[self.dtype], self.plan.graph.nodes[i], self.plan[i]
        if place.form is not None:
            return 4 * unit if self.cleans(i) else self._passed_on(i)
        if place.counted is not None:
            return unit * len(self.plan.domains[place.counted.count])
        if isinstance(node, Delay):
            return (2 * node.distance + 1) * (self.at(node.inputs[0]) + unit)
        return 0.0 if node.op in ("input", "full") else 4 * unit

    def check_counter(self, label: str, node: Node, most: int) -> None:
        """Refuse a count whose keys or queries are too noisy to count as far as asked."""
        noise = SHARP * most * self._of_parts(node)
        if noise > 1 / 3:
            self._refuse(label, most)

    def check_mean(self, label: str, node: Node, most: int) -> None:
        """A mean is off by its weights' errors times the values, and by the values' own; its steps are 1 / C apart."""
        largest = max(abs(v) for v in self.plan.domains[node.inputs[-1]])
        error = largest * (2 * SHARP * self._of_parts(node) + self.at(node.inputs[-1]))
        if 2 * most * error > 0.4:
            self._refuse(label, most)

    def _of_parts(self, node: Node) -> float:
        parts = matches(node) if isinstance(node, AttentionNode) else ()
        return sum(self.at(m.key) + self.at(m.query) for m in parts)

    def _refuse(self, label: str, most: int) -> NoReturn:
        better = "dtype='float64' or a smaller capacity" if self.dtype == "float32" else "a smaller capacity"
        raise CompileError(f"{label}: rounding in {self.dtype} blurs what is counted (to {most}); use {better}")


def _lead_into_counts(plan: Placements) -> set[int]:
    """The maps whose values are counted, directly or shifted."""
    found: set[int] = set()
    stack: list[int] = []
    for i in plan.kept:
        node = plan.graph.nodes[plan.source(i)]
        if node.op in COUNTERS or (node.op == "kqv" and decodes(plan, node)):
            stack.extend(plan[j].register for j in attended(node))
    while stack:
        i = stack.pop()
        if plan[i].form is not None:
            found.add(i)
        elif plan.graph.nodes[i].op == "delay":
            stack.extend(plan[j].register for j in plan.graph.nodes[i].inputs)
    return found
