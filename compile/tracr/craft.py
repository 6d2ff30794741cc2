"""The weights of a planned program, in tracr's `craft` terms: heads and MLPs over named directions.

A register has one direction per value and holds 1 in the one that applies. Position 0 holds tracr's own bos token,
whose contents are the same for every input; they are tracked here, so that every head can be told exactly what bos
must score (the default's share) and carry (the default) whatever else earlier layers have left there.

Scores are whole numbers until attention divides by sqrt(key_size): equal matches score exactly equal.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from compile.errors import CompileError
from compile.front.bounds import apply
from compile.front.matches import Match, matches
from compile.front.naming import NodeNames
from compile.tracr.plan import RegisterView, TracrPlan, heads_of
from compile.transformer.annotations import Fact
from rasp.graph import Count, Delay, Kqv

COMPILER_BOS = "compiler_bos"
COLDNESS = 100  # a match scores this much above none, and at least a quarter of it above bos: e**-25 is lost
MARGIN = 24  # between the largest value and the next one, on top of log(positions), where the largest must win
LARGEST_SCORE = 2**24  # whole numbers are exact in float32 up to here
ALARM = 100.0  # logit of "a count ran over", far above the 1 of an answer
SHARPEST = 2**17  # slope times range of a step that reads a mean: beyond it float32 blurs the step

Direction = Any  # tracr's BasisDirection
SparseMatrix = dict[tuple[Direction, Direction], float]


@dataclass
class CraftHead:
    """A head before the size of keys is known: `scores` in units of a match, `ranks` in units of `finest`."""

    fact: Fact
    coldness: float = COLDNESS
    scores: SparseMatrix = field(default_factory=lambda: defaultdict(float))
    ranks: SparseMatrix = field(default_factory=dict)
    finest: int = 1  # how many ranks share half a match
    bos_score: float = 0.5
    moves: SparseMatrix = field(default_factory=lambda: defaultdict(float))
    bos_moves: dict[Direction, float] = field(default_factory=dict)

    def key_size(self) -> int:
        """The dimensions tracr gives this head; the bos direction is always among the keys and the values."""
        pairs = [*self.scores, *self.ranks]
        return max(len({q for q, _ in pairs}) + 1, len({k for _, k in pairs}) + 1, len(self.outputs()))

    def outputs(self) -> set[Direction]:
        return {out for _, out in self.moves} | set(self.bos_moves)


@dataclass
class Unit:
    """A hidden unit: what it sums up and what it adds to the residual stream."""

    reads: dict[Direction, float]
    writes: dict[Direction, float]


class Directions:
    """The directions of the residual stream."""

    def __init__(self, plan: TracrPlan) -> None:
        from tracr.craft.bases import BasisDirection

        self.plan = plan
        self.make = BasisDirection
        self.words = NodeNames(plan.graph)
        self.one = BasisDirection("one")
        self.bos = BasisDirection("tokens", COMPILER_BOS)
        self.overflow = BasisDirection("overflow")

    def register(self, i: int) -> list[Direction]:
        return [self.make(self.name(i), v) for v in self.plan.domain(i)]

    def value(self, i: int, v: int) -> Direction:
        return self.make(self.name(i), v)

    def number(self, i: int) -> Direction:
        return self.make(f"{self.name(i)} as a number")

    def name(self, i: int) -> str:
        op = self.plan.graph.nodes[i].op
        return {"input": "tokens", "indices": "indices"}.get(op, f"{i} {self.title(i)}")

    def title(self, i: int) -> str:
        return self.words.of(i)

    def directions(self, view: RegisterView) -> list[Direction]:
        """One for each value of the view; a constant stands where there is always a one."""
        return [self.one] if view.register is None else self.register(view.register)

    def positions(self) -> list[Direction]:
        return [self.make("indices", p) for p in range(self.plan.positions)]


# --- heads ------------------------------------------------------------------------------------------------------------


def make_heads(names: Directions, layer: int) -> list[CraftHead]:
    heads = [_make_head(names, group) for group in heads_of(names.plan, layer)]
    watched, nodes = names.plan.program.watched, names.plan.graph.nodes
    spreads = any(watched.get(i) and nodes[i].op == "width" for i in names.plan.times)
    return [*heads, _pass_on_overflow(names)] if spreads and layer == names.plan.layers - 1 else heads


def _pass_on_overflow(names: Directions) -> CraftHead:
    """Look where a count ran over earlier, if it did anywhere (there `overflow` is at least ALARM), else at bos."""
    head = CraftHead(Fact("overflow", "a count ran over before"))
    head.scores[names.one, names.overflow] = 1
    head.moves[names.overflow, names.overflow] = 1
    return head


def _make_head(names: Directions, group: list[int]) -> CraftHead:
    node = names.plan.graph.nodes[group[0]]
    match node:
        case Delay():
            return _delay(names, group, node.distance)
        case Count():
            return _width(names, group[0], node)
        case Kqv():
            return _kqv(names, group[0], node)
    raise AssertionError(f"{node.op} is no head's")


def _delay(names: Directions, group: list[int], offset: int) -> CraftHead:
    """Position p looks at p - offset, and at bos when there is none: bos scores half a match."""
    head = CraftHead(Fact("shift", "; ".join(map(names.title, group)), tuple(group)))
    places = names.positions()
    for query, key in zip(places[offset:], places, strict=False):
        head.scores[query, key] = 1
    if len(places) <= offset:  # nothing is that far back: every position takes the default
        head.scores[names.one, names.one] = 0
    for i in group:
        node = names.plan.graph.nodes[i]
        assert isinstance(node, Delay), "a group is of one kind"
        _move(names, head, i, node.inputs[0])
        head.bos_moves[names.value(i, node.default)] = 1
    return head


def _move(names: Directions, head: CraftHead, i: int, source: int) -> None:
    """Copy `source`, a function of one register, into register i."""
    view = names.plan.view(source)
    for direction, v in zip(names.directions(view), view.values, strict=True):
        head.moves[direction, names.value(i, v)] += 1


def _width(names: Directions, i: int, node: Count) -> CraftHead:
    """Attend equally to bos and to all matches: bos then has weight 1 / (1 + count), which is what is written."""
    parts = matches(node)
    head = CraftHead(Fact("count", names.title(i), (i,)), bos_score=float(len(parts)))
    for part in parts:
        _score(names, head, part)
    head.bos_moves[names.number(i)] = 1
    return head


def _kqv(names: Directions, i: int, node: Kqv) -> CraftHead:
    """All parts of a match add up; bos, which carries the default, scores a quarter less than a full match.

    One part missing costs a whole match, and the rank of the value adds less than half of one: with `max` the largest
    value among full matches wins, and no value lifts a partial match above the default.
    """
    parts = matches(node)
    role = "mean" if names.plan.is_number(i) else "match"
    head = CraftHead(Fact(role, names.words.attention(i), (i,)), bos_score=len(parts) - 0.25)
    for part in parts:
        _score(names, head, part)
    if names.plan.is_number(i):
        _move_numbers(names, head, i, node)
        return head
    _move(names, head, i, node.inputs[-1])
    head.bos_moves[names.value(i, node.default)] = 1
    if node.reduction != "mean":
        _rank(names, head, node)
    return head


def _score(names: Directions, head: CraftHead, part: Match) -> None:
    """One unit for every pair of a query's and a key's value that the condition accepts."""
    query, key = names.plan.view(part.query), names.plan.view(part.key)
    q, k = np.meshgrid(np.array(query.values), np.array(key.values), indexing="ij")
    accepted = apply(part.condition, k, q).astype(bool)
    queries, keys = names.directions(query), names.directions(key)
    if (accepted == accepted[:1]).all():  # the query does not matter
        queries, accepted = [names.one], accepted[:1]
    elif (accepted == accepted[:, :1]).all():
        keys, accepted = [names.one], accepted[:, :1]
    for row, column in zip(*np.nonzero(accepted), strict=True):
        head.scores[queries[row], keys[column]] += 1
    if not accepted.any():
        head.scores[names.one, names.one] += 0


def _move_numbers(names: Directions, head: CraftHead, i: int, node: Kqv) -> None:
    """The mean as a number: each value weighted by its share of the attention."""
    view = names.plan.view(node.inputs[-1])
    for direction, v in zip(names.directions(view), view.values, strict=True):
        head.moves[direction, names.number(i)] += v
    head.bos_moves[names.number(i)] = node.default


def _rank(names: Directions, head: CraftHead, node: Kqv) -> None:
    """Prefer the largest (smallest) value: its rank is added to the score, far enough apart to win outright."""
    view = names.plan.view(node.inputs[-1])
    order = sorted(set(view.values), reverse=node.reduction == "min")
    for direction, v in zip(names.directions(view), view.values, strict=True):
        head.ranks[names.one, direction] = order.index(v)
    head.finest = len(order)
    head.coldness = max(2000.0, 2 * len(order) * (math.log(names.plan.positions) + MARGIN))


# --- hidden units -----------------------------------------------------------------------------------------------------


def make_units(names: Directions, layer: int) -> list[Unit]:
    """The MLP of a layer: numbers written by its heads are read off first, then come the maps."""
    numeric = [i for i in names.plan.attention(layer) if names.plan.is_number(i)]
    units = [unit for i in numeric for unit in _read_off(names, i)]
    return units + _map_units(names, layer)


def _read_off(names: Directions, i: int) -> list[Unit]:
    return _count_units(names, i) if names.plan.graph.nodes[i].op == "width" else _mean_units(names, i)


def _count_units(names: Directions, i: int) -> list[Unit]:
    """One direction per count c, from w = 1 / (1 + c).

    r_k = relu(1 - k w) is (c + 1 - k) / (c + 1) for k <= c and 0 beyond, so that
    (j + 1) (r_j - 2 r_{j+1} + r_{j+2}) is 1 at c = j and 0 at every other count. The first r beyond the capacity is
    above 0 where a count runs over; if that must be seen, it drowns every answer.
    """
    counts = names.plan.domain(i)
    units = [Unit({names.one: 1, names.number(i): -k}, {}) for k in range(counts[-1] + 3)]
    if i in names.plan.program.watched:
        units[counts[-1] + 1].writes[names.overflow] = ALARM * (counts[-1] + 2)
    for j in counts:
        for k, share in ((j, 1), (j + 1, -2), (j + 2, 1)):
            units[k].writes[names.value(i, j)] = share * (j + 1)
    return units


def _mean_units(names: Directions, i: int) -> list[Unit]:
    """Steps at the means where the result, cut to a whole number, reaches the next value.

    Means of at most P numbers are at least 1/P apart from any whole number they are not. A step is two units,
    relu(s (x - t) + 1) - relu(s (x - t)): 0 up to t - 1/s, 1 from t on.
    """
    values = names.plan.domain(i)
    positions = names.plan.positions
    slope = 2.0 * positions
    if slope * (values[-1] - values[0]) > SHARPEST:
        raise CompileError(
            f"{names.plan.graph.describe(i)}: a mean of values from {values[0]} to {values[-1]} over {positions} "
            f"positions is finer than float32 can tell apart; shorten max_seq_len or use max or min"
        )
    units = [Unit({names.one: 1}, {names.value(i, values[0]): 1})]
    for below, v in zip(values, values[1:], strict=False):
        start = (v if v > 0 else v - 1 + 1 / positions) - 1 / (4 * positions)
        step = {names.value(i, v): 1.0, names.value(i, below): -1.0}
        units.append(Unit({names.number(i): slope, names.one: 1 - slope * start}, step))
        units.append(Unit({names.number(i): slope, names.one: -slope * start}, {d: -w for d, w in step.items()}))
    return units


def _map_units(names: Directions, layer: int) -> list[Unit]:
    """One unit per box of a map's values; units that read the same are one."""
    units: dict[Any, Unit] = {}
    for i in names.plan.maps(layer):
        form = names.plan.form(i)
        assert form is not None
        for box in form.boxes:
            reads = _membership(names, [(form.inputs[side], values) for side, values in box.sides])
            unit = units.setdefault(frozenset(reads.items()), Unit(reads, {}))
            unit.writes[names.value(i, box.value)] = 1.0
    return [unit for unit in units.values() if unit.reads]  # a box that cannot be met reads nothing


def _membership(names: Directions, sides: Iterable[tuple[int, frozenset[int]]]) -> dict[Direction, float]:
    """[x_1 in S_1] + .. + [x_k in S_k] - (k - 1); a set larger than half is said by what it lacks."""
    reads: dict[Direction, float] = defaultdict(float, {names.one: 1.0})
    for node, values in sides:
        view = names.plan.view(node)
        inside = [v in values for v in view.values]
        lacking = sum(inside) > len(inside) / 2
        reads[names.one] -= 0.0 if lacking else 1.0
        for direction, member in zip(names.directions(view), inside, strict=True):
            if member != lacking:
                reads[direction] += -1.0 if lacking else 1.0
    return {direction: weight for direction, weight in reads.items() if weight}
