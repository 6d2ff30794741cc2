"""Straight-line code for one token of a program: what `rasp.stream` and `rasp.jit` put inside their loops.

A delay is a chain of variables handed on at the end of each step, a counter is a variable, a `kqv` with an equality
is a memory from key to what its values reduce to. How a memory is spelled is the only thing the two targets do not
share (`Memory`).
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from functools import reduce
from typing import Any, Protocol

from rasp.graph import Graph, Node
from rasp.predicates import both
from rasp.scalar import MAX_DEPTH, Expr, Table, arg, binary, const, ite, rebuild, to_source, walk

LONG = 16  # delays beyond this many tokens are kept in a ring rather than in variables
DEEPEST = 190  # Python's parser takes 200 nested parentheses


class EngineError(ValueError):
    """A program that cannot be run in the way asked for; the message names the operation."""


class Memory(Protocol):
    """How a target spells the memory of an attention whose cost must not grow with the context."""

    index: str  # how a table is spelled, see `to_source`

    def ring(self, code: Code, name: str, source: str, default: int, offset: int) -> None: ...
    def equality(self, code: Code, name: str, k: str, q: str, v: str, default: int, reduction: str) -> None: ...
    def scan(self, code: Code, name: str, node: Node, operands: list[str], operation: str) -> None: ...


@dataclass
class Code:
    """The parts of a generated function."""

    setup: list[str] = field(default_factory=list)  # before the first token
    body: list[str] = field(default_factory=list)  # for each token
    handover: list[str] = field(default_factory=list)  # after the body: what the next token will find
    tables: list[Table] = field(default_factory=list)
    functions: list[Any] = field(default_factory=list)
    memories: list[str] = field(default_factory=list)
    limits: dict[int, int] = field(default_factory=dict)  # input: its tokens index tables unchecked, so must be below
    output: str = "0"

    def name_of(self, payload: Any) -> str:
        """The parameter through which a table or an opaque function reaches the code."""
        pool, prefix = (self.tables, "t") if isinstance(payload, Table) else (self.functions, "f")
        for i, known in enumerate(pool):
            if known is payload:
                return f"{prefix}{i}"
        pool.append(payload)
        return f"{prefix}{len(pool) - 1}"


def generate_code(graph: Graph, memory: Memory) -> Code:
    """Code for a simplified graph. Inputs are `x0, x1, ..`, the position is `i`."""
    return _Generator(graph, memory).generate()


class _Generator:
    def __init__(self, graph: Graph, memory: Memory) -> None:
        self.graph, self.memory, self.code = graph, memory, Code(tables=graph.tables())  # in the graph's order
        self.spelled: dict[int, str] = {}  # how the value of a node is written
        self.nesting: dict[int, int] = {}  # and how deep its parentheses go
        self.uses = Counter(j for node in graph.nodes for j in node.inputs)
        self.uses[graph.output] += 1

    def generate(self) -> Code:
        for i, node in enumerate(self.graph.nodes):
            self.spelled[i] = self._node(i, node)
        self._hand_over()
        self.code.output = f"int({self.spelled[self.graph.output]})"
        return self.code

    def _node(self, i: int, node: Node) -> str:
        match node.op:
            case "input":
                return f"x{node.offset}"
            case "full":
                return repr(node.default)
            case "indices":
                return "i"
            case "map":
                return self._map(i, node)
            case "delay":
                return self._delay(i, node)
            case "width" | "kqv":
                return self._attention(i, node)
        raise EngineError(f"{self.graph.describe(i)}: simplify the graph before generating code")

    def _map(self, i: int, node: Node) -> str:
        args = [self.spelled[j] for j in node.inputs]
        function = self._total(node.function, node)
        source = to_source(function, args, self.code.name_of, self.memory.index)
        nesting = function.depth + max((self.nesting.get(j, 0) for j in node.inputs), default=0)
        if self.uses[i] == 1 and nesting + MAX_DEPTH < DEEPEST and self._used_by_a_map(i):
            self.nesting[i] = nesting
            return source  # written where it is used, and then only computed on the branch that needs it
        self.code.body.append(f"v{i} = {source}")
        return f"v{i}"

    # --- functions made total: neither a division by 0 nor a table asked outside its range may happen -----------------

    def _total(self, e: Expr, node: Node) -> Expr:
        if not e.args:
            return e
        e = rebuild(e, [self._total(a, node) for a in e.args])
        if e.op in ("//", "%") and e.args[1].op != "const" and e.is_whole:
            return ite(binary("!=", e.args[1], const(0)), e, const(0))
        if e.op == "table" and e.payload.values is not None:
            sizes = zip(e.args, e.payload.values.shape, strict=True)
            unsure = [_inside(a, size) for a, size in sizes if not self._is_token(a, size, node)]
            return ite(reduce(both, unsure), e, const(0)) if unsure else e
        return e

    def _is_token(self, e: Expr, size: int, node: Node) -> bool:
        """Whether e, of the inputs of `node`, is surely in 0..size-1, given that the tokens themselves are."""
        if e.op == "const":
            return 0 <= e.payload < size
        if e.op == "ite":
            return self._is_token(e.args[1], size, node) and self._is_token(e.args[2], size, node)
        if e.op not in ("arg", "boolarg"):
            return False
        source = self.graph.nodes[node.inputs[e.payload]]
        match source.op:
            case "input":
                self.code.limits[source.offset] = min(size, self.code.limits.get(source.offset, size))
                return True
            case "delay":
                return 0 <= source.default < size and self._is_token(arg(0), size, source)
            case "map":
                return self._is_token(source.function, size, source)
        return False

    def _used_by_a_map(self, i: int) -> bool:
        user = next((node for node in self.graph.nodes if i in node.inputs), None)
        if user is None or user.op != "map":
            return False
        slot = user.inputs.index(i)
        return sum(e.op in ("arg", "boolarg") and e.payload == slot for e in walk(user.function)) == 1

    # --- delays -------------------------------------------------------------------------------------------------------

    def _line(self, node: Node) -> str:
        sign = "m" if node.default < 0 else ""
        return f"d{node.inputs[0]}_{sign}{abs(node.default)}"

    def _delay(self, i: int, node: Node) -> str:
        if node.offset <= LONG:
            return f"{self._line(node)}_{node.offset}"
        self.memory.ring(self.code, f"v{i}", self.spelled[node.inputs[0]], node.default, node.offset)
        return f"v{i}"

    def _hand_over(self) -> None:
        """What each delay line will hold at the next token, all assigned at once: lines may feed each other."""
        lines: dict[str, tuple[int, int, int]] = {}  # name: (source, default, longest)
        for node in self.graph.nodes:
            if node.op == "delay" and node.offset <= LONG:
                longest = lines.get(self._line(node), (0, 0, 0))[2]
                lines[self._line(node)] = (node.inputs[0], node.default, max(longest, node.offset))
        targets: list[str] = []
        sources: list[str] = []
        for name, (source, default, longest) in lines.items():
            chain = [f"{name}_{k}" for k in range(1, longest + 1)]
            self.code.setup += [f"{variable} = {default}" for variable in chain]
            targets += chain
            sources += [self.spelled[source], *chain[:-1]]
        if targets:
            self.code.handover.append(f"{', '.join(targets)} = {', '.join(sources)}")

    # --- attention ----------------------------------------------------------------------------------------------------

    def _attention(self, i: int, node: Node) -> str:
        operands = [self.spelled[j] for j in node.inputs]
        kind, name = node.predicate.kind, f"v{i}"
        value, reduction = (operands[-1], node.reduction) if node.op == "kqv" else ("1", "count")
        match kind:
            case "equality":
                self.memory.equality(self.code, name, operands[0], operands[1], value, node.default, reduction)
            case "key":
                self._running(name, value, node.default, reduction, when=operands[0])
            case "query":
                self._running(name, value, node.default if node.op == "kqv" else 0, reduction, asked=operands[0])
            case "constant":
                self._running(name, value, node.default, reduction)
            case _:
                self.memory.scan(self.code, name, node, operands, self.graph.describe(i))
        return name

    def _running(
        self, name: str, v: str, default: int, reduction: str, when: str | None = None, asked: str | None = None
    ) -> None:
        """A total over all positions so far (`when`: over those whose key says so; `asked`: given out when asked)."""
        add, given, start = _reduction(reduction, f"a{name}", v, default)
        self.code.setup += start
        self.code.body += [f"if {when}:", *(f"    {line}" for line in add)] if when else add
        self.code.body.append(f"{name} = {given} if {asked} else {default}" if asked else f"{name} = {given}")


def mean(total: str, count: str) -> str:
    """The mean of whole numbers, cut towards zero."""
    return f"({total} // {count} if {total} >= 0 else -(-{total} // {count}))"


def _inside(e: Expr, size: int) -> Expr:
    return both(binary(">=", e, const(0)), binary("<", e, const(size)))


def _reduction(reduction: str, a: str, v: str, default: int) -> tuple[list[str], str, list[str]]:
    """Lines that take in v, the expression of the result, and the lines that start the total `a`."""
    if reduction == "count":
        return [f"{a} += 1"], a, [f"{a} = 0"]
    if reduction == "mean":
        result = f"({mean(a, f'{a}_n')} if {a}_n else {default})"
        return [f"{a} += {v}", f"{a}_n += 1"], result, [f"{a} = 0", f"{a}_n = 0"]
    better = ">" if reduction == "max" else "<"
    lines = [f"if {a}_n == 0 or {v} {better} {a}:", f"    {a} = {v}", f"{a}_n = 1"]
    return lines, f"({a} if {a}_n else {default})", [f"{a} = 0", f"{a}_n = 0"]

