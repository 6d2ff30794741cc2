"""Attention on packed keys, taken apart into its digits.

RASP-L compares one number with one number, so a program that must match several things packs them:
`count + 32 * (previous + 32 * current)`. As one direction per value that would be a million directions; as three
matches, added up in one attention score, it is about a hundred. `factor` rewrites

    kqv(c_0 k_0 + .. + c_m k_m  ==  c_0 q_0 + .. + c_m q_m)     into     kqv(k_0 == q_0  &  ..  &  k_m == q_m)

whenever the packing is injective: sorted by coefficient, |c_i| > sum over j < i of |c_j| * span_j, where span_j is the
widest difference k_j - q_j can have. (Then the largest digit's difference must be 0, and so on down.) Spans come from
the domains, so a count enters with its capacity.

The result is a graph of the same language: every selector is a conjunction in which each part speaks of one key and
one query. `matches` reads it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from math import prod

from compile.errors import CompileError
from compile.front.domains import Domains
from compile.front.matches import EQUAL, Match, conjunction
from compile.front.program import FiniteProgram
from compile.front.watch import watched_counts
from rasp.graph import Count, Full, Graph, Kqv, Map, Node, selector
from rasp.predicates import classify, conjuncts
from rasp.rewrite import Builder, pruned
from rasp.scalar import Expr, arg, arguments, binary, const, substitute

MOST_VALUES = 512  # of a number that has to be matched as a whole
LARGEST = 2**63 - 1  # int64
MOST_TOKENS = 2**32  # of any input: how far a count goes that nothing bounds


def factor(graph: Graph, domains: Domains) -> FiniteProgram:
    """The graph with every selector a conjunction of parts about one key and one query each."""
    return _Factoring(graph, domains).run()


class _Factoring:
    def __init__(self, graph: Graph, domains: Domains) -> None:
        self.graph, self.written_domains = graph, domains
        self.builder = Builder(hoist=False)
        self.domains = Domains(domains.vocabulary, domains.capacity)
        self.place: dict[int, int] = {}
        self.packed: set[int] = set()  # lower digits of keys: only within their domains do they stay apart

    def run(self) -> FiniteProgram:
        for i, node in enumerate(self.graph.nodes):
            if isinstance(node, Count | Kqv):
                self.place[i] = self.attention(i, node)
            else:
                self.place[i] = self.builder.build(self.graph, node, self.place)
            self.builder.name(self.place[i], self.graph.names.get(i))
        built = Graph(tuple(self.builder.nodes), self.place[self.graph.output], self.builder.names)
        graph, place = pruned(built)
        domains = self.known().moved(graph, place)
        packed = frozenset(place[i] for i in self.packed if i in place)
        return FiniteProgram(self.graph, graph, domains, watched_counts(graph, domains, packed))

    def values(self, i: int) -> tuple[int, ...] | None:
        return self.known().get(i)

    def known(self) -> Domains:
        """Of everything built so far; only what the program as written does not have is inferred."""
        return self.domains.extend(self.so_far(), self.written_domains, self.place)

    def so_far(self) -> Graph:
        return Graph(tuple(self.builder.nodes), 0, self.builder.names)

    def attention(self, i: int, node: Count | Kqv) -> int:
        keys, queries, condition = selector(self.graph, node)
        inputs = [self.place[j] for j in (*keys, *queries)]
        parts = [m for part in conjuncts(condition) for m in self.parts(part, inputs, len(keys), i)]
        new_inputs, expr = conjunction(parts)
        value = (self.place[node.value],) if isinstance(node, Kqv) else ()
        changed = replace(node, inputs=(*new_inputs, *value), function=expr, keys=len(new_inputs) // 2)
        return self.builder.add(changed)

    def parts(self, condition: Expr, inputs: list[int], keys: int, i: int) -> Iterable[Match]:
        predicate = classify(condition, keys)
        if predicate.kind == "constant":
            return [Match(inputs[0], inputs[0], predicate.condition)]
        if predicate.kind == "equality":
            assert predicate.key is not None and predicate.query is not None
            k, q = (self.builder.map(side, inputs) for side in (predicate.key, predicate.query))
            return self.equality(k, q, i)
        return [self.joint(predicate.condition, inputs, keys, i)]

    def equality(self, k: int, q: int, i: int) -> list[Match]:
        left, right = affine(self.builder.nodes, k), affine(self.builder.nodes, q)
        obstacle = self.obstacle(left, right)
        if obstacle is None:
            units = sorted(left.terms, key=abs)
            highest_may_grow = abs(units[-1]) <= LARGEST // MOST_TOKENS
            self.packed.update(left.terms[c] for c in (units[:-1] if highest_may_grow else units))
            return [Match(left.terms[c], right.terms[c], EQUAL) for c in units]
        for side in (k, q):
            values = self.values(side)
            if values is None or (self.builder.nodes[side].op == "map" and len(values) > MOST_VALUES):
                size = "no finite set of values" if values is None else f"{len(values)} values"
                reason = f": {self.domains.reasons[side]}" if values is None else ""
                raise CompileError(
                    f"{self.graph.describe(i)}: {self.so_far().describe(side)} has {size}, too many to match as a "
                    f"whole, and it cannot be matched digit by digit because {obstacle}{reason}"
                )
        return [Match(k, q, EQUAL)]

    def obstacle(self, left: Affine, right: Affine) -> str | None:
        """Why equality of two sums is not equality of their terms; None if it is."""
        if not left.terms:
            return "one side is always the same number"
        if set(left.terms) != set(right.terms) or left.constant != right.constant:
            return "the two sides are not sums with the same coefficients"
        if len(left.terms) == 1 and next(iter(left.terms)) % 2:
            return None  # also in int64: multiplication by an odd number loses nothing
        reach, largest = 0, abs(left.constant)
        for c in sorted(left.terms, key=abs):
            pair = (left.terms[c], right.terms[c])
            known = [v for v in (self.values(j) for j in pair) if v is not None]
            if len(known) < 2:
                return f"{self.so_far().describe(pair[0])} has no finite set of values"
            if abs(c) <= reach:
                return f"the lower digits reach {reach} and run into the one counted in units of {abs(c)}"
            low, high = min(v[0] for v in known), max(v[-1] for v in known)
            reach += abs(c) * (high - low)
            largest += abs(c) * max(abs(low), abs(high))
        return f"it reaches {largest}, which is no int64" if largest > LARGEST else None

    def joint(self, condition: Expr, inputs: list[int], keys: int, i: int) -> Match:
        """Any other condition: several keys (queries) it looks at become one, a number with a digit for each."""
        used = arguments(condition)
        values: list[Expr] = [arg(j) for j in range(len(inputs))]
        sides = []
        for side, members in enumerate(([j for j in used if j < keys], [j for j in used if j >= keys])):
            node, digits = self.pack([inputs[j] for j in sorted(members)], side, i)
            values = [digits[sorted(members).index(j)] if j in members else v for j, v in enumerate(values)]
            sides.append(node)
        key, query = (s if s is not None else next(t for t in sides if t is not None) for s in sides)
        return Match(key, query, substitute(condition, values))

    def pack(self, nodes: list[int], side: int, i: int) -> tuple[int | None, list[Expr]]:
        if len(nodes) < 2:
            return (nodes[0] if nodes else None), [arg(side)]
        sets = [self.known()[j] for j in nodes]
        if prod(v[-1] - v[0] + 1 for v in sets) > MOST_VALUES:
            raise CompileError(
                f"{self.graph.describe(i)}: the condition looks at {len(nodes)} sequences at once, with "
                f"more than {MOST_VALUES} combinations of values"
            )
        total, digits, unit = const(0), [], 1
        for place, v in enumerate(sets):
            span = v[-1] - v[0] + 1
            total = binary("+", total, binary("*", const(unit), binary("-", arg(place), const(v[0]))))
            digit = binary("%", binary("//", arg(side), const(unit)), const(span))
            digits.append(binary("+", digit, const(v[0])))
            unit *= span
        return self.builder.map(total, nodes), digits


# --- sums with whole coefficients -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Affine:
    """`constant` + the sum of coefficient * node; each coefficient stands for one node."""

    terms: dict[int, int]
    constant: int


def affine(nodes: Sequence[Node], i: int) -> Affine:
    """The node as a sum, opened down to what is no sum (or to where two terms share a coefficient)."""
    by_node = _open(nodes, i)
    constant = by_node.pop(-1, 0)
    terms = {c: j for j, c in by_node.items() if c}
    return Affine(terms, constant) if len(terms) == len([c for c in by_node.values() if c]) else Affine({1: i}, 0)


def _open(nodes: Sequence[Node], i: int) -> dict[int, int]:
    """Coefficient of every node in the sum; -1 stands for the constant."""
    node = nodes[i]
    if isinstance(node, Full):
        return {-1: node.value}
    found = _sum(node.function, [(nodes, j) for j in node.inputs]) if isinstance(node, Map) else None
    return {i: 1} if found is None else found


def _sum(e: Expr, inputs: list[tuple[Sequence[Node], int]]) -> dict[int, int] | None:
    if e.op == "arg":
        return _open(*inputs[e.payload])
    if e.op == "const" and isinstance(e.payload, int):
        return {-1: int(e.payload)}
    parts = [_sum(a, inputs) for a in e.args] if e.op in ("+", "-", "*", "neg") else [None]
    if any(p is None for p in parts):
        return None
    known = [p for p in parts if p is not None]
    if e.op == "neg":
        return _scaled(known[0], -1)
    if e.op == "*":
        number, other = known if set(known[0]) <= {-1} else known[::-1]
        return _scaled(other, number.get(-1, 0)) if set(number) <= {-1} else None
    return _added(known[0], known[1] if e.op == "+" else _scaled(known[1], -1))


def _scaled(terms: dict[int, int], by: int) -> dict[int, int]:
    return {j: c * by for j, c in terms.items()}


def _added(a: dict[int, int], b: dict[int, int]) -> dict[int, int]:
    return {j: a.get(j, 0) + b.get(j, 0) for j in {*a, *b}}
