"""Large counts compared digit by digit, so that a capacity of C costs about 2 sqrt(C) directions instead of C."""

from __future__ import annotations

from math import isqrt

from compile.domains import Domains, infer_domains
from compile.factor import EQUAL, Match, conjunction, matches
from compile.front import Prepared
from rasp.graph import Graph, Node
from rasp.rewrite import Builder, prune
from rasp.scalar import arg, binary, const

MOST_WHOLE = 32  # values of a count that is compared as a whole
COUNTERS = ("width", "indices")


def split_counts(prepared: Prepared) -> Prepared:
    """Replace `a == b` between large counts, in selectors, by `a // B == b // B` and `a % B == b % B`."""
    graph, domains = prepared.graph, prepared.domains
    builder = Builder(hoist=False)
    place: dict[int, int] = {}
    for i, node in enumerate(graph.nodes):
        if node.op in ("kqv", "width") and matches(node):
            parts = [p for m in matches(node) for p in _digits(m, graph, domains, builder, place)]
            inputs, expr = conjunction(parts)
            value = (place[node.inputs[-1]],) if node.op == "kqv" else ()
            changes = {"inputs": (*inputs, *value), "expr": expr, "keys": len(parts)}
            place[i] = builder.add(Node(**{**node.__dict__, **changes}))
        else:
            place[i] = builder.build(graph, node, place)
        builder.name(place[i], graph.names.get(i))
    result = prune(Graph(tuple(builder.nodes), place[graph.output], builder.names))
    return Prepared(prepared.written, result, infer_domains(result, domains.vocabulary, domains.capacity))


def _digits(match: Match, graph: Graph, domains: Domains, builder: Builder, place: dict[int, int]) -> list[Match]:
    key, query = place[match.key], place[match.query]
    size = max(len(domains[match.key]), len(domains[match.query]))
    counts = all(graph.nodes[j].op in COUNTERS for j in (match.key, match.query))
    if not (match.is_equality and counts and size > MOST_WHOLE):
        return [Match(key, query, match.condition)]
    base = const(isqrt(size - 1) + 1)
    high, low = binary("//", arg(0), base), binary("%", arg(0), base)
    return [Match(builder.map(digit, [key]), builder.map(digit, [query]), EQUAL) for digit in (high, low)]
