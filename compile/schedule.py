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

from compile.cover import Box, TooManyBoxes, cover
from compile.domains import Domains
from compile.errors import CompileError
from compile.factor import matches
from rasp.graph import Graph, Node
from rasp.scalar import Expr, arg, size, substitute

MOST_FUSED = 1500  # boxes of a map that has taken in others; beyond it, another layer is cheaper
MOST_BOXES = 20_000  # boxes of any one map
MOST_TEXT = 4_000  # size of the expression of a fused map

EMBEDDING = -1
COUNTERS = ("width", "indices")


@dataclass(frozen=True)
class Form:
    """A map as an MLP computes it: an expression of registers and views that are there in time, and its boxes."""

    expr: Expr
    inputs: tuple[int, ...]
    boxes: tuple[Box, ...]


@dataclass
class Schedule:
    """`base[i]` is the register node i is read from, `reading[i]` the function (None: the register itself).

    `time[r]` says when register r is there; `forms` has the maps computed by MLPs; `needed` are the registers kept.
    `counters[r]` is the count (or position) that register r is decoded from, and the function of it.
    """

    graph: Graph
    domains: Domains
    base: list[int] = field(default_factory=list)
    reading: list[Expr | None] = field(default_factory=list)
    time: dict[int, int] = field(default_factory=dict)
    forms: dict[int, Form] = field(default_factory=dict)
    trouble: dict[int, CompileError] = field(default_factory=dict)
    needed: set[int] = field(default_factory=set)
    counters: dict[int, tuple[int, Expr]] = field(default_factory=dict)

    @property
    def layers(self) -> int:
        return max((self.time[i] for i in self.needed), default=EMBEDDING) // 2 + 1

    def at(self, time: int) -> list[int]:
        """The registers that come to be at this time, in order of the program."""
        return sorted(i for i in self.needed if self.time[i] == time)

    def when(self, i: int) -> int:
        """When the value of node i can be read."""
        return self.time[self.base[i]]


def schedule(graph: Graph, domains: Domains, short_counts: bool = False) -> Schedule:
    """The plan; with `short_counts`, a function of a count with few values is decoded without the count itself."""
    plan = Schedule(graph, domains)
    for i, node in enumerate(graph.nodes):
        if short_counts and _is_short_count(plan, node, i):
            _place_short_count(plan, i, node)
        elif node.op == "map":
            _place_map(plan, i, node)
        else:
            _place_register(plan, i, node)
    _mark_needed(plan, graph.output)
    return plan


# --- registers that the embedding and attention bring -----------------------------------------------------------------


def decodes(plan: Schedule, node: Node) -> bool:
    """Whether attention brings only a number (a share, a mean) that the MLP of the same layer turns into a value."""
    return node.op in COUNTERS or (node.reduction == "mean" and not is_single(plan, node))


def is_single(plan: Schedule, node: Node) -> bool:
    """Whether all matches have one value: a constant, or there is at most one match because keys are positions."""
    by_position = any(plan.graph.nodes[m.key].op == "indices" and m.is_equality for m in matches(node))
    return by_position or len(plan.domains[node.inputs[-1]]) == 1


def _place_register(plan: Schedule, i: int, node: Node) -> None:
    plan.base.append(i)
    plan.reading.append(None)
    if node.op in ("input", "full"):
        plan.time[i] = EMBEDDING
        return
    if node.op in COUNTERS:
        plan.counters[i] = (i, arg(0))
    inputs = attended(node)
    layer = (max((plan.when(j) for j in inputs), default=EMBEDDING) + 1 + 1) // 2
    plan.time[i] = 2 * layer + decodes(plan, node)


def _is_short_count(plan: Schedule, node: Node, i: int) -> bool:
    if node.op != "map" or len(node.inputs) != 1:
        return False
    base = plan.base[node.inputs[0]]
    values = plan.domains.get(i)
    return plan.graph.nodes[base].op in COUNTERS and values is not None and 2 * len(values) < len(plan.domains[base])


def _place_short_count(plan: Schedule, i: int, node: Node) -> None:
    base = plan.base[node.inputs[0]]
    plan.base.append(i)
    plan.reading.append(None)
    plan.time[i] = plan.time[base]
    plan.counters[i] = (base, _reading(plan, node.inputs[0], node.function))


def attended(node: Node) -> tuple[int, ...]:
    """The nodes whose values an attention operation reads."""
    if node.op in ("kqv", "width"):
        parts = matches(node)
        value = node.inputs[-1:] if node.op == "kqv" else ()
        return (*(m.key for m in parts), *(m.query for m in parts), *value)
    return node.inputs


# --- maps -------------------------------------------------------------------------------------------------------------


def _place_map(plan: Schedule, i: int, node: Node) -> None:
    if len(node.inputs) == 1:
        _view(plan, i, plan.base[node.inputs[0]], _reading(plan, node.inputs[0], node.function))
        return
    time = max(_earliest(plan, j) for j in node.inputs)
    form: Form | None
    try:
        expr, inputs = _gather(plan, node, time)
        if len(inputs) == 1:
            _view(plan, i, plan.base[inputs[0]], _reading(plan, inputs[0], expr))
            return
        fused = any(plan.when(j) >= time for j in node.inputs)
        form = _form(plan, expr, inputs, MOST_FUSED if fused else MOST_BOXES)
    except CompileError:
        time, form = _unfused(plan, i, node)
    plan.base.append(i)
    plan.reading.append(None)
    plan.time[i] = time
    if form is not None:
        plan.forms[i] = form


def _unfused(plan: Schedule, i: int, node: Node) -> tuple[int, Form | None]:
    """The map one MLP later, with all its inputs kept as registers."""
    time = max(_next_mlp(plan.when(j)) for j in node.inputs)
    try:
        expr, inputs = _gather(plan, node, time)
        return time, _form(plan, expr, inputs, MOST_BOXES)
    except TooManyBoxes as found:
        text = f"{plan.graph.describe(i)}: a map with {found}; {MOST_BOXES} are the most a layer is made for"
        plan.trouble[i] = CompileError(text)
    except CompileError as found:
        plan.trouble[i] = found
    return time, None


def _view(plan: Schedule, i: int, base: int, reading: Expr) -> None:
    plan.base.append(base)
    plan.reading.append(reading)


def _reading(plan: Schedule, j: int, function: Expr) -> Expr:
    """`function` of node j, as a function of the register j is read from."""
    inner = plan.reading[j]
    return function if inner is None else substitute(function, [inner])


def _earliest(plan: Schedule, j: int) -> int:
    """The first MLP that can compute something of node j, if need be by taking j in."""
    base = plan.base[j]
    return plan.time[base] if base in plan.forms else _next_mlp(plan.time[base])


def _next_mlp(time: int) -> int:
    return time + 2 if time % 2 else time + 1


def _gather(plan: Schedule, node: Node, time: int) -> tuple[Expr, tuple[int, ...]]:
    """The map as an expression of nodes that can be read before `time`."""
    inputs: list[int] = []
    values = [_opened(plan, j, time, inputs) for j in node.inputs]
    expr = substitute(node.function, values)
    if size(expr) > MOST_TEXT:
        raise TooManyBoxes("too long an expression")
    return _joined(plan, expr, inputs)


def _opened(plan: Schedule, j: int, time: int, inputs: list[int]) -> Expr:
    if plan.when(j) < time:
        inputs.append(j)
        return arg(len(inputs) - 1)
    base, reading = plan.base[j], plan.reading[j]
    if base not in plan.forms:
        raise plan.trouble.get(base) or TooManyBoxes("an input that comes too late to be taken in")
    form = plan.forms[base]
    places = []
    for k in form.inputs:
        inputs.append(k)
        places.append(arg(len(inputs) - 1))
    inner = substitute(form.expr, places)
    return inner if reading is None else substitute(reading, [inner])


def _joined(plan: Schedule, expr: Expr, inputs: list[int]) -> tuple[Expr, tuple[int, ...]]:
    """Each input once; several views of one register become that register, unless it has far more values."""
    groups: dict[int, list[int]] = {}
    for j in dict.fromkeys(inputs):
        groups.setdefault(plan.base[j], []).append(j)
    kept: list[int] = []
    for base, members in groups.items():
        together = len(members) > 1 and _worth_joining(plan, base, members)
        kept.extend([base] if together else members)
    values = []
    for j in inputs:
        reading = plan.reading[j]
        own = arg(kept.index(j)) if j in kept else None
        values.append(own if own is not None else _as_reading(reading, kept.index(plan.base[j])))
    expr = substitute(expr, values)
    return expr, tuple(kept)


def _as_reading(reading: Expr | None, place: int) -> Expr:
    assert reading is not None
    return substitute(reading, [arg(place)])


def _worth_joining(plan: Schedule, base: int, members: list[int]) -> bool:
    return base in members or len(plan.domains[base]) <= prod(len(plan.domains[j]) for j in members)


def _form(plan: Schedule, expr: Expr, inputs: tuple[int, ...], most: int) -> Form:
    sets = [plan.domains[j] for j in inputs]
    boxes = cover(expr, sets, most)
    if len(boxes) > most:
        raise TooManyBoxes(f"{len(boxes)} cases")
    return Form(expr, inputs, tuple(boxes))


# --- what is kept -----------------------------------------------------------------------------------------------------


def _mark_needed(plan: Schedule, i: int) -> None:
    stack = [i]
    while stack:
        base = plan.base[stack.pop()]
        if base in plan.needed:
            continue
        if base in plan.trouble:
            raise plan.trouble[base]
        plan.domains[base]  # an error that says why, if it has no finite set of values
        plan.needed.add(base)
        source = plan.counters[base][0] if base in plan.counters else base
        stack.extend(plan.forms[base].inputs if base in plan.forms else attended(plan.graph.nodes[source]))
