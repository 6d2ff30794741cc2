"""When each operation of a program happens inside a transformer, and which values it keeps.

Layer l first attends (time 2l) and then runs its MLP (time 2l + 1); the embedding is time -1. Every operation happens
as early as its inputs allow. Kinds of node:

- a *register* is kept in the residual stream, one direction per value: the input, everything attention brings, and
  maps of several registers, which an MLP computes;
- a count is decoded from one number, so a function of it with few values (a digit) can be a register without the count;
- a *view* is a function of one register. One-hot vectors make it linear, so it costs nothing and is never computed;
- a map that only another map at the same time needs is *taken into* that map: a chain of maps is one MLP layer as long
  as the whole has few enough cases (`cover`), and only otherwise two.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import prod

from compile.errors import CompileError
from compile.front.cover import MOST_BOXES, Box, TooManyBoxes, cover
from compile.front.domains import Domains
from compile.front.matches import matches
from compile.front.program import COUNTERS, FiniteProgram
from rasp.graph import AttentionNode, Graph, Kqv, Map, Node
from rasp.scalar import Expr, arg, size, substitute

MOST_FUSED = 1500  # boxes of a map that has taken in others; beyond it, another layer is cheaper
MOST_TEXT = 4_000  # size of the expression of a fused map

EMBEDDING = -1


@dataclass(frozen=True)
class Form:
    """A map as an MLP computes it: an expression of registers and views that are there in time, and its boxes."""

    expr: Expr
    inputs: tuple[int, ...]
    boxes: tuple[Box, ...]


@dataclass(frozen=True)
class Counted:
    """What a register is decoded from: a count (or position, or the number of a mean's values), and the function."""

    count: int
    function: Expr


@dataclass
class Placement:
    """Where the value of one node is read: a `function` of a `register` (None: the register itself), from `time` on.

    A register has a `form` if an MLP computes it, and is `counted` if it is decoded from a count. `error` is why it
    cannot be computed, an error only if it is `kept`: something needs it.
    """

    register: int
    function: Expr | None
    time: int
    form: Form | None = None
    counted: Counted | None = None
    error: CompileError | None = None
    kept: bool = False


@dataclass
class Placements:
    """One placement per node of a program's graph."""

    program: FiniteProgram
    places: list[Placement] = field(default_factory=list)

    @property
    def graph(self) -> Graph:
        return self.program.graph

    @property
    def domains(self) -> Domains:
        return self.program.domains

    def __getitem__(self, i: int) -> Placement:
        return self.places[i]

    def home(self, i: int) -> Placement:
        """The placement of the register that node i is read from."""
        return self.places[self.places[i].register]

    @property
    def kept(self) -> list[int]:
        """The registers that are needed, in order of the program."""
        return [i for i, place in enumerate(self.places) if place.kept]

    @property
    def layers(self) -> int:
        return max((self.places[i].time for i in self.kept), default=EMBEDDING) // 2 + 1

    def at(self, time: int) -> list[int]:
        """The registers that come to be at this time, in order of the program."""
        return [i for i in self.kept if self.places[i].time == time]

    def source(self, i: int) -> int:
        """The node whose operation brings register i: the count it is decoded from, or itself."""
        counted = self.places[i].counted
        return i if counted is None else counted.count

    def reads(self, i: int) -> tuple[int, ...]:
        """The nodes that register i is made of."""
        form = self.places[i].form
        return attended(self.graph.nodes[self.source(i)]) if form is None else form.inputs


def schedule(program: FiniteProgram, short_counts: bool = False) -> Placements:
    """The plan; with `short_counts`, a function of a count with few values is decoded without the count itself."""
    plan = Placements(program)
    for i, node in enumerate(program.graph.nodes):
        if short_counts and isinstance(node, Map) and _is_short_count(plan, node, i):
            plan.places.append(_short_count(plan, i, node))
        elif isinstance(node, Map):
            plan.places.append(_map(plan, i, node))
        else:
            plan.places.append(_register(plan, i, node))
    _mark_kept(plan, program.graph.output)
    return plan


# --- registers that the embedding and attention bring -----------------------------------------------------------------


def decodes(plan: Placements, node: Node) -> bool:
    """Whether attention brings only a number (a share, a mean) that the MLP of the same layer turns into a value."""
    return node.op in COUNTERS or (isinstance(node, Kqv) and node.reduction == "mean" and not is_single(plan, node))


def is_single(plan: Placements, node: Kqv) -> bool:
    """Whether all matches have one value: a constant, or there is at most one match because keys are positions."""
    by_position = any(plan.graph.nodes[m.key].op == "indices" and m.is_equality for m in matches(node))
    return by_position or len(plan.domains[node.value]) == 1


def _register(plan: Placements, i: int, node: Node) -> Placement:
    if node.op in ("input", "full"):
        return Placement(i, None, EMBEDDING)
    ready = max((plan[j].time for j in attended(node)), default=EMBEDDING)
    counted = Counted(i, arg(0)) if node.op in COUNTERS else None
    return Placement(i, None, 2 * ((ready + 2) // 2) + decodes(plan, node), counted=counted)


def _is_short_count(plan: Placements, node: Map, i: int) -> bool:
    if len(node.inputs) != 1:
        return False
    base = plan[node.inputs[0]].register
    values = plan.domains.get(i)
    return plan.graph.nodes[base].op in COUNTERS and values is not None and 2 * len(values) < len(plan.domains[base])


def _short_count(plan: Placements, i: int, node: Map) -> Placement:
    base = plan[node.inputs[0]].register
    counted = Counted(base, _composed(plan, node.inputs[0], node.function))
    return Placement(i, None, plan[base].time, counted=counted)


def attended(node: Node) -> tuple[int, ...]:
    """The nodes whose values an attention operation reads."""
    if isinstance(node, AttentionNode):
        parts = matches(node)
        value = (node.value,) if isinstance(node, Kqv) else ()
        return (*(m.key for m in parts), *(m.query for m in parts), *value)
    return node.inputs


# --- maps -------------------------------------------------------------------------------------------------------------


def _map(plan: Placements, i: int, node: Map) -> Placement:
    if len(node.inputs) == 1:
        return _view(plan, node.inputs[0], node.function)
    time = max(_earliest(plan, j) for j in node.inputs)
    try:
        expr, inputs = _gather(plan, node, time)
        if len(inputs) == 1:
            return _view(plan, inputs[0], expr)
        fused = any(plan[j].time >= time for j in node.inputs)
        return Placement(i, None, time, form=_form(plan, expr, inputs, MOST_FUSED if fused else MOST_BOXES))
    except CompileError:
        return _unfused(plan, i, node)


def _unfused(plan: Placements, i: int, node: Map) -> Placement:
    """The map one MLP later, with all its inputs kept as registers."""
    time = max(_next_mlp(plan[j].time) for j in node.inputs)
    try:
        expr, inputs = _gather(plan, node, time)
        return Placement(i, None, time, form=_form(plan, expr, inputs, MOST_BOXES))
    except TooManyBoxes as found:
        text = f"{plan.graph.describe(i)}: a map with {found}; {MOST_BOXES} are the most a layer is made for"
        return Placement(i, None, time, error=CompileError(text))
    except CompileError as found:
        return Placement(i, None, time, error=found)


def _view(plan: Placements, j: int, function: Expr) -> Placement:
    """A function of node j, which is itself read from one register."""
    base = plan[j].register
    return Placement(base, _composed(plan, j, function), plan[base].time)


def _composed(plan: Placements, j: int, function: Expr) -> Expr:
    """`function` of node j, as a function of the register j is read from."""
    inner = plan[j].function
    return function if inner is None else substitute(function, [inner])


def _earliest(plan: Placements, j: int) -> int:
    """The first MLP that can compute something of node j, if need be by taking j in."""
    home = plan.home(j)
    return home.time if home.form is not None else _next_mlp(home.time)


def _next_mlp(time: int) -> int:
    return time + 2 if time % 2 else time + 1


def _gather(plan: Placements, node: Map, time: int) -> tuple[Expr, tuple[int, ...]]:
    """The map as an expression of nodes that can be read before `time`."""
    inputs: list[int] = []
    values = [_opened(plan, j, time, inputs) for j in node.inputs]
    expr = substitute(node.function, values)
    if size(expr) > MOST_TEXT:
        raise TooManyBoxes("too long an expression")
    return _joined(plan, expr, inputs)


def _opened(plan: Placements, j: int, time: int, inputs: list[int]) -> Expr:
    if plan[j].time < time:
        inputs.append(j)
        return arg(len(inputs) - 1)
    home, function = plan.home(j), plan[j].function
    if home.form is None:
        raise home.error or TooManyBoxes("an input that comes too late to be taken in")
    places = []
    for k in home.form.inputs:
        inputs.append(k)
        places.append(arg(len(inputs) - 1))
    inner = substitute(home.form.expr, places)
    return inner if function is None else substitute(function, [inner])


def _joined(plan: Placements, expr: Expr, inputs: list[int]) -> tuple[Expr, tuple[int, ...]]:
    """Each input once; several views of one register become that register, unless it has far more values."""
    groups: dict[int, list[int]] = {}
    for j in dict.fromkeys(inputs):
        groups.setdefault(plan[j].register, []).append(j)
    kept: list[int] = []
    for base, members in groups.items():
        together = len(members) > 1 and _worth_joining(plan, base, members)
        kept.extend([base] if together else members)
    values = []
    for j in inputs:
        place = plan[j]
        if j in kept:
            values.append(arg(kept.index(j)))
            continue
        assert place.function is not None, "a register that is an input is kept"
        values.append(substitute(place.function, [arg(kept.index(place.register))]))
    return substitute(expr, values), tuple(kept)


def _worth_joining(plan: Placements, base: int, members: list[int]) -> bool:
    return base in members or len(plan.domains[base]) <= prod(len(plan.domains[j]) for j in members)


def _form(plan: Placements, expr: Expr, inputs: tuple[int, ...], most: int) -> Form:
    sets = [plan.domains[j] for j in inputs]
    boxes = cover(expr, sets, most)
    if len(boxes) > most:
        raise TooManyBoxes(f"{len(boxes)} cases")
    return Form(expr, inputs, tuple(boxes))


# --- what is kept -----------------------------------------------------------------------------------------------------


def _mark_kept(plan: Placements, output: int) -> None:
    """Keep the registers that the output is made of; an error that says why, if one cannot be."""
    stack = [output]
    while stack:
        read = stack.pop()
        home = plan.home(read)
        if home.error is not None:
            raise home.error
        plan.domains[read]  # an error if it has no finite set of values
        if not home.kept:
            home.kept = True
            stack.extend(plan.reads(home.register))
