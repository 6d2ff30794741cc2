"""Large numbers compared digit by digit, so that a capacity of C costs about 2 sqrt(C) directions instead of C.

Two whole numbers are equal if and only if both digits are, `a // B` and `a % B`, also below zero. The digits of what is
made of a count are made of the count in its place, so that the whole number need not be kept: those of a map are maps
of the same inputs, those of a shift are shifts of digits.
"""

from __future__ import annotations

from dataclasses import replace
from math import isqrt

from compile.front.matches import EQUAL, Match, conjunction, matches
from compile.front.program import COUNTERS, FiniteProgram
from rasp.graph import Count, Delay, Graph, Kqv, Map
from rasp.rewrite import Builder, pruned
from rasp.scalar import Expr, arg, binary, const, evaluate_int, substitute

MOST_WHOLE = 32  # values of a count that is compared as a whole
MOST_DERIVED = 64  # values of what is made of counts and tokens
NEVER = 2**62  # what attention brought is there as a whole anyway


def split_counts(program: FiniteProgram) -> FiniteProgram:
    """Replace `a == b` between large numbers, in selectors, by `a // B == b // B` and `a % B == b % B`."""
    graph, domains = program.graph, program.domains
    builder = Builder(hoist=False)
    place: dict[int, int] = {}
    digits = _Digits(program, builder, place)
    for i, node in enumerate(graph.nodes):
        if isinstance(node, Count | Kqv) and matches(node):
            parts = [p for m in matches(node) for p in digits.parts(m)]
            inputs, expr = conjunction(parts)
            changed = replace(_as_best(graph, node), function=expr, keys=len(parts))
            value = (place[node.value],) if isinstance(node, Kqv) else ()
            place[i] = builder.add(replace(changed, inputs=(*inputs, *value)))
        else:
            place[i] = builder.build(graph, node, place)
        builder.name(place[i], graph.names.get(i))
    result, left = pruned(Graph(tuple(builder.nodes), place[graph.output], builder.names))
    places = {i: left[new] for i, new in place.items() if new in left}
    watched = {places[i]: spreads for i, spreads in program.watched.items() if i in places}
    return FiniteProgram(program.written, result, domains.moved(result, places), watched)


def _as_best(graph: Graph, node: Count | Kqv) -> Count | Kqv:
    """A mean of the one place whose position is asked for is its value: digits would hide that it is one."""
    by_position = any(m.is_equality and graph.nodes[m.key].op == "indices" for m in matches(node))
    if isinstance(node, Kqv) and node.reduction == "mean" and by_position:
        return replace(node, reduction="max")
    return node


class _Digits:
    """The digits of nodes of a graph, in a graph under construction where node i has become `place[i]`."""

    def __init__(self, program: FiniteProgram, builder: Builder, place: dict[int, int]) -> None:
        self.graph, self.domains, self.builder, self.place = program.graph, program.domains, builder, place

    def parts(self, match: Match) -> list[Match]:
        """The match itself, or one of each digit."""
        size = max(len(self.domains[j]) for j in (match.key, match.query))
        if not match.is_equality or size <= self.most_whole(match):
            return [Match(self.place[match.key], self.place[match.query], match.condition)]
        base = const(isqrt(size - 1) + 1)
        digits = binary("//", arg(0), base), binary("%", arg(0), base)
        return [Match(self.of(match.key, digit), self.of(match.query, digit), EQUAL) for digit in digits]

    def most_whole(self, match: Match) -> int:
        ops = {self.graph.nodes[j].op for j in (match.key, match.query)}
        if ops <= set(COUNTERS):
            return MOST_WHOLE
        derived = ops <= {*COUNTERS, "map", "delay"}
        return MOST_DERIVED if derived else NEVER

    def of(self, i: int, digit: Expr) -> int:
        node = self.graph.nodes[i]
        if isinstance(node, Map):
            return self.builder.map(substitute(digit, [node.function]), [self.place[j] for j in node.inputs])
        if isinstance(node, Delay):
            default = evaluate_int(digit, [node.default])
            return self.builder.delay(self.of(node.inputs[0], digit), node.distance, default)
        return self.builder.map(digit, [self.place[i]])
