"""Straight-line code for one token of a program: what `stream` and `jit` put inside their loops.

A delay is a chain of variables handed on at the end of each step, a counter is a variable, a `kqv` with an equality
is a memory from key to what its values reduce to. How a memory is spelled is the only thing the two targets do not
share (`Memory`).
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Protocol

from rasp.arithmetic import HIGHEST, LOWEST
from rasp.engines.ranges import ANY, POSITIONS, Range, fits, hull, of_number
from rasp.engines.spelling import Names, Speller, Term
from rasp.errors import EngineError
from rasp.graph import Count, Delay, Full, Graph, Indices, Input, Kqv, Map, Node
from rasp.scalar import ARGUMENTS, Expr, arg, walk

LONG = 16  # delays beyond this many tokens are kept in a ring rather than in variables
SHALLOW = 40  # nested parentheses up to which a function is written where it is used


class SpelledMemory(Protocol):
    """How a target spells the memory of an attention whose cost must not grow with the context."""

    native: bool  # whether integers wrap around by themselves

    def ring(self, code: Code, name: str, source: str, default: int, offset: int) -> None: ...
    def equality(self, code: Code, name: str, node: Count | Kqv, operands: list[Term], reduction: str) -> None:
        """Key, query and value; the first two are tuples where the node has several keys."""

    def scan(self, code: Code, name: str, node: Count | Kqv, operands: list[Term], operation: str) -> None: ...


@dataclass
class Code:
    """The parts of a generated function."""

    setup: list[str] = field(default_factory=list)  # before the first token
    body: list[str] = field(default_factory=list)  # for each token
    handover: list[str] = field(default_factory=list)  # after the body: what the next token will find
    names: Names = field(default_factory=Names)
    memories: list[str] = field(default_factory=list)
    limits: dict[int, int] = field(default_factory=dict)  # input: its tokens index tables unchecked, so must be below
    output: str = "0"


def generate_code(graph: Graph, memory: SpelledMemory) -> Code:
    """Code for a simplified graph. Inputs are `x0, x1, ..`, the position is `i`."""
    return _Generator(graph, memory).generate()


class _Generator:
    def __init__(self, graph: Graph, memory: SpelledMemory) -> None:
        self.graph, self.memory = graph, memory
        self.code = Code(names=Names(tables=graph.tables()))  # in the graph's order
        self.speller = Speller(self.code.names, memory.native, self.code.body.append)
        self.terms: dict[int, Term] = {}  # how the value of a node is written
        self.uses = Counter(j for node in graph.nodes for j in node.inputs)
        self.uses[graph.output] += 1
        self._find_limits()

    def generate(self) -> Code:
        for i, node in enumerate(self.graph.nodes):
            self.terms[i] = self._node(i, node)
        self._hand_over()
        self.code.output = f"int({self.terms[self.graph.output].source})"
        return self.code

    def _node(self, i: int, node: Node) -> Term:
        match node:
            case Input():
                return Term(f"x{node.number}", self._input_range(node))
            case Full():
                return Term(repr(node.value), of_number(node.value))
            case Indices():
                return Term("i", (0, POSITIONS - 1))
            case Map():
                return self._map(i, node)
            case Delay():
                return self._delay(i, node)
            case Count() | Kqv():
                return self._attention(i, node)
        raise EngineError(f"{self.graph.describe(i)}: simplify the graph before generating code")

    def _map(self, i: int, node: Map) -> Term:
        term = self.speller.spell(node.function, [self.terms[j] for j in node.inputs])
        if self.uses[i] == 1 and term.nesting < SHALLOW and self._used_by_a_map(i):
            return term  # written where it is used, and then only computed on the branch that needs it
        term = self.speller.settle(term)
        self.code.body.append(f"v{i} = {term.source}")
        return Term(f"v{i}", term.range)

    def _used_by_a_map(self, i: int) -> bool:
        user = next((node for node in self.graph.nodes if i in node.inputs), None)
        if not isinstance(user, Map):
            return False
        slot = user.inputs.index(i)
        return sum(e.op in ARGUMENTS and e.payload == slot for e in walk(user.function)) == 1

    # --- tokens that index tables -------------------------------------------------------------------------------------

    def _input_range(self, node: Input) -> Range:
        limit = self.code.limits.get(node.number)
        return ANY if limit is None else (0, limit - 1)

    def _find_limits(self) -> None:
        """Where a table is asked about a token itself, tokens must be inside: checked once, not at every look-up."""
        for node in self.graph.nodes:
            for e in walk(node.function) if isinstance(node, Map) else ():
                if e.op == "table" and e.payload.values is not None:
                    for a, size in zip(e.args, e.payload.values.shape, strict=True):
                        self._is_token(a, size, node)

    def _is_token(self, e: Expr, size: int, node: Node) -> bool:
        """Whether e, of the inputs of `node`, is surely in 0..size-1, given that the tokens themselves are."""
        if e.op == "const":
            return 0 <= e.payload < size
        if e.op == "ite":
            return self._is_token(e.args[1], size, node) and self._is_token(e.args[2], size, node)
        if e.op not in ARGUMENTS:
            return False
        source = self.graph.nodes[node.inputs[e.payload]]
        match source:
            case Input():
                self.code.limits[source.number] = min(size, self.code.limits.get(source.number, size))
                return True
            case Delay():
                return 0 <= source.default < size and self._is_token(arg(0), size, source)
            case Map():
                return self._is_token(source.function, size, source)
        return False

    # --- delays -------------------------------------------------------------------------------------------------------

    def _line(self, node: Delay) -> str:
        sign = "m" if node.default < 0 else ""
        return f"d{node.inputs[0]}_{sign}{abs(node.default)}"

    def _delay(self, i: int, node: Delay) -> Term:
        source = self.terms[node.inputs[0]]
        bounds = hull(source.range, of_number(node.default))
        if node.distance <= LONG:
            return Term(f"{self._line(node)}_{node.distance}", bounds)
        self.memory.ring(self.code, f"v{i}", source.source, node.default, node.distance)
        return Term(f"v{i}", bounds)

    def _hand_over(self) -> None:
        """What each delay line will hold at the next token, all assigned at once: lines may feed each other."""
        lines: dict[str, tuple[int, int, int]] = {}  # name: (source, default, longest)
        for node in self.graph.nodes:
            if isinstance(node, Delay) and node.distance <= LONG:
                longest = lines.get(self._line(node), (0, 0, 0))[2]
                lines[self._line(node)] = (node.inputs[0], node.default, max(longest, node.distance))
        targets: list[str] = []
        sources: list[str] = []
        for name, (source, default, longest) in lines.items():
            chain = [f"{name}_{k}" for k in range(1, longest + 1)]
            self.code.setup += [f"{variable} = {default}" for variable in chain]
            targets += chain
            sources += [self.terms[source].source, *chain[:-1]]
        if targets:
            self.code.handover.append(f"{', '.join(targets)} = {', '.join(sources)}")

    # --- attention ----------------------------------------------------------------------------------------------------

    def _attention(self, i: int, node: Count | Kqv) -> Term:
        operands = [self.terms[j] for j in node.inputs]
        kind, name = node.predicate.kind, f"v{i}"
        reduction, default = node.reduction, node.default
        value = operands[-1] if isinstance(node, Kqv) else Term("1", (1, 1))
        match kind:
            case "equality":
                self.memory.equality(self.code, name, node, [*operands[:2], value], reduction)
            case "tuple":
                pairs = [(operands[k.payload], operands[q.payload]) for k, q in node.predicate.pairs]
                k, q = (_tuple([pair[side] for pair in pairs]) for side in (0, 1))
                self.memory.equality(self.code, name, node, [k, q, value], reduction)
            case "key":
                self._running(name, value, default, reduction, when=operands[0].source)
            case "query":
                self._running(name, value, default, reduction, asked=operands[0].source)
            case "constant":
                self._running(name, value, default, reduction)
            case _:
                self.memory.scan(self.code, name, node, operands, self.graph.describe(i))
        return Term(name, _reduced_range(value.range, default, reduction))

    def _running(
        self, name: str, v: Term, default: int, reduction: str, when: str | None = None, asked: str | None = None
    ) -> None:
        """A total over all positions so far (`when`: over those whose key says so; `asked`: given out when asked)."""
        add, given, start = self._reduction(reduction, f"a{name}", v, default)
        self.code.setup += start
        self.code.body += [f"if {when}:", *(f"    {line}" for line in add)] if when else add
        self.code.body.append(f"{name} = {given} if {asked} else {default}" if asked else f"{name} = {given}")

    def _reduction(self, reduction: str, a: str, v: Term, default: int) -> tuple[list[str], str, list[str]]:
        """Lines that take in v, the expression of the result, and the lines that start the total `a`."""
        if reduction == "count":
            return [f"{a} += 1"], a, [f"{a} = 0"]
        if reduction == "mean":
            total = self.speller.settle(Term(a, total_range(v.range))).source
            result = f"(mean({total}, {a}_n) if {a}_n else {default})"
            taken = f"{a} += {v.source}" if not self.memory.native else f"{a} = add({a}, {v.source})"
            return [taken, f"{a}_n += 1"], result, [f"{a} = 0", f"{a}_n = 0"]
        better = ">" if reduction == "max" else "<"
        lines = [f"if {a}_n == 0 or {v.source} {better} {a}:", f"    {a} = {v.source}", f"{a}_n = 1"]
        return lines, f"({a} if {a}_n else {default})", [f"{a} = 0", f"{a}_n = 0"]


def _tuple(terms: list[Term]) -> Term:
    return Term(
        f"({', '.join(f'int({term.source})' for term in terms)})", ANY
    )  # numbers: truth values have other types


def total_range(v: Range) -> Range:
    """Of the sum of so many values."""
    return min(v[0], 0) * POSITIONS, max(v[1], 0) * POSITIONS


def _reduced_range(v: Range, default: int, reduction: str) -> Range:
    if reduction == "count":
        return 0, POSITIONS
    if reduction == "mean" and not fits(total_range(v)):  # a total that wraps around may have any mean
        return LOWEST, HIGHEST
    return hull(v, of_number(default))
