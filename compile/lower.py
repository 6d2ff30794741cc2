"""Each scheduled operation as heads and ReLU units of the paper's architecture (windows or NoPE, no positions).

A register holds its value as a one-hot vector. `copies` start tokens precede every input, at least as many as any shift
is long, so that a window never runs out of tokens and "before the input" is simply the start mark.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from compile.cover import Box
from compile.errors import CompileError
from compile.factor import Match, matches
from compile.naming import Names
from compile.schedule import Schedule, attended, decodes, is_single
from compile.stream import BIAS, INSIDE, START, Head, Layer, Reading, Register, added, combine
from rasp.eager import map_arrays
from rasp.graph import Node
from rasp.scalar import evaluate_int

SHARP = 40.0  # exp(-40) is nothing beside 1: the score by which a missed part of a match falls behind
RANK = 24.0  # score between neighbouring values where the largest (smallest) must win over up to exp(20) others
MOST_SCORE = {"float32": 2.0**17, "float64": 2.0**40}  # beyond it, rounding of a score is no longer small beside RANK


@dataclass
class Lowered:
    """Layers in terms of readings, and how every node that is kept can be read from the residual stream."""

    plan: Schedule
    layers: list[Layer]
    registers: list[Register]
    views: dict[int, dict[int, Reading]]
    copies: int
    overflow: int | None = None  # dimension that is at least 1 where a count ran over

    @property
    def d_model(self) -> int:
        return self.registers[-1].stop


def lower(plan: Schedule, dtype: str = "float32") -> Lowered:
    lowering = _Lowering(plan, dtype)
    for layer in range(plan.layers):
        lowering.attend(layer)
        lowering.compute(layer)
    lowering.view(plan.graph.output)
    return lowering.result


@dataclass
class _Lowering:
    plan: Schedule
    dtype: str
    result: Lowered = field(init=False)

    def __post_init__(self) -> None:
        graph = self.plan.graph
        copies = max([graph.nodes[i].offset for i in self.plan.needed if graph.nodes[i].op == "delay"], default=1)
        layers = [Layer() for _ in range(self.plan.layers)]
        self.names = Names(graph)
        self.counted: dict[int, int] = {}  # node -> dimension with the share of attention on the start mark
        self.means: dict[int, int] = {}  # node -> dimension with the mean
        self.result = Lowered(self.plan, layers, [Register("start", START, ("start",))], {}, copies)
        for i in self.plan.at(-1):
            node = graph.nodes[i]
            self.result.views[i] = self.register(i) if node.op == "input" else {node.default: dict(INSIDE)}

    # --- the residual stream ------------------------------------------------------------------------------------------

    def allocate(self, name: str, values: Sequence[str]) -> int:
        start = self.result.d_model
        self.result.registers.append(Register(name, start, tuple(values)))
        return start

    def register(self, i: int) -> dict[int, Reading]:
        """A direction per value of node i."""
        values = self.plan.domains[i]
        start = self.allocate(self.names.of(i), [str(v) for v in values])
        return {v: {start + k: 1.0} for k, v in enumerate(values)}

    def view(self, i: int) -> dict[int, Reading]:
        """How to read node i: for each value, 1 where it has that value and 0 elsewhere."""
        if i not in self.result.views:
            function = self.plan.reading[i]
            assert function is not None, "a register is read before it is written"
            base = self.view(self.plan.base[i])
            groups: dict[int, list[Reading]] = {}
            for value, reading in base.items():
                groups.setdefault(evaluate_int(function, [value]), []).append(reading)
            self.result.views[i] = {value: added(readings) for value, readings in groups.items()}
        return self.result.views[i]

    # --- attention ----------------------------------------------------------------------------------------------------

    def attend(self, layer: int) -> None:
        present = [i for t in (2 * layer, 2 * layer + 1) for i in self.plan.at(t)]
        counters = {self.plan.counters[i][0] for i in present if i in self.plan.counters}
        nodes = [(i, self.plan.graph.nodes[i]) for i in sorted({*present, *counters})]
        heads = self.result.layers[layer].heads
        heads.extend(self.shifts([i for i, node in nodes if node.op == "delay"]))
        for i, node in nodes:
            if i in counters:
                heads.append(self.count(i, node))
            elif node.op == "kqv" and decodes(self.plan, node):
                heads.extend(self.mean(i, node))
            elif node.op == "kqv":
                heads.append(self.best(i, node))

    def shifts(self, nodes: list[int]) -> list[Head]:
        """x[i-n] is (n+1) times the mean of the last n+1 minus n times the mean of the last n.

        Heads of one window attend alike whatever they move, so all shifts of a layer share them.
        """
        moves: dict[int, dict[tuple[tuple[int, float], ...], Reading]] = {}
        labels: dict[int, list[str]] = {}
        for i in nodes:
            node = self.plan.graph.nodes[i]
            written = self.register(i)
            source = self.view(node.inputs[0])
            self.result.views[i] = _without_start(written, node.default)
            for window, factor in ((node.offset + 1, node.offset + 1.0), (node.offset, -float(node.offset))):
                labels.setdefault(window, []).append(self.names.of(i))
                table = moves.setdefault(window, {})
                for value, place in written.items():
                    mark = {START: 1.0} if value == node.default else {}
                    key = tuple(sorted(combine((1.0, source.get(value, {})), (1.0, mark)).items()))
                    table[key] = combine((1.0, table.get(key, {})), (factor, place))
        return [
            Head(window, " and ".join(labels[window]), moves=[(dict(key), to) for key, to in table.items()])
            for window, table in sorted(moves.items())
        ]

    def pairs(self, match: Match, strength: float) -> list[tuple[Reading, Reading]]:
        """Query and key readings whose products add up to `strength` where the match holds and to 0 elsewhere."""
        keys, queries = self.view(match.key), self.view(match.query)
        truth = _truth_table(match, tuple(keys), tuple(queries))
        pairs = [_grouped(truth, list(keys.values()), list(queries.values())),
                 [(k, q) for q, k in _grouped(truth.T, list(queries.values()), list(keys.values()))]]  # fmt: skip
        return [(combine((strength, q)), k) for q, k in min(pairs, key=len)]

    def count(self, i: int, node: Node) -> Head:
        """Attend alike to every match and to the start: of c matches, the start's share is 1 / (1 + c).

        The `copies` start tokens together weigh as much as one match, hence the logarithm.
        """
        parts = () if node.op == "indices" else matches(node)
        pairs = [pair for match in parts for pair in self.pairs(match, SHARP)]
        level = combine((-SHARP * len(parts), INSIDE), (-math.log(self.result.copies), {START: 1.0}))
        pairs.append(({BIAS: 1.0}, level))  # a match scores 0: small numbers, so that its weight is exact
        dim = self.counted[i] = self.allocate(f"share of {self.names.of(i)}", ["share"])
        label = f"count {self.names.condition(parts)}" if parts else "count positions"
        return Head(None, label, pairs, [({START: 1.0}, {dim: 1.0})])

    def best(self, i: int, node: Node) -> Head:
        """Score a match by its parts, and among matches by the value; the start, half a part below, has the default."""
        values = self.view(node.inputs[-1])
        ranked = sorted(values, reverse=node.reduction == "min")
        step = 0.0 if is_single(self.plan, node) else RANK
        strength = 2 * (step * (len(ranked) - 1) + SHARP)
        parts = matches(node)
        self.check_score(i, strength * (len(parts) + 1))
        pairs = [pair for match in parts for pair in self.pairs(match, strength)]
        by_rank = combine(*((step * rank, values[v]) for rank, v in enumerate(ranked)))
        pairs.append(({BIAS: 1.0}, combine((1.0, by_rank), (1.0, {START: strength * (len(parts) - 0.5)}))))
        written = self.register(i)
        self.result.views[i] = _without_start(written, node.default)
        moves = [(reading, written[v]) for v, reading in values.items()] + [({START: 1.0}, written[node.default])]
        return Head(None, self.names.attention(i), pairs, moves)

    def mean(self, i: int, node: Node) -> list[Head]:
        """Attend alike to every match: brings the mean, as a number. A second head counts, for the sake of capacity."""
        values, parts = self.view(node.inputs[-1]), matches(node)
        pairs = [pair for match in parts for pair in self.pairs(match, 2 * SHARP)]
        pairs.append(({BIAS: 1.0}, {START: 2 * SHARP * (len(parts) - 0.5)}))
        dim = self.means[i] = self.allocate(f"mean for {self.names.of(i)}", ["mean"])
        moved = combine(*((float(v), reading) for v, reading in values.items()), (float(node.default), {START: 1.0}))
        return [Head(None, self.names.attention(i), pairs, [(moved, {dim: 1.0})]), self.count(i, node)]

    def check_score(self, i: int, score: float) -> None:
        if score > MOST_SCORE[self.dtype]:
            raise CompileError(
                f"{self.names.attention(i)}: scores up to {score:.0f} are needed to rank its values, more than "
                f"{self.dtype} tells apart ({MOST_SCORE[self.dtype]:.0f}); use dtype='float64' or fewer values"
            )

    # --- MLPs ---------------------------------------------------------------------------------------------------------

    def compute(self, layer: int) -> None:
        into = self.result.layers[layer]
        for i in self.plan.at(2 * layer + 1):
            if i in self.plan.forms:
                self.map(i, into)
            elif i in self.means:
                self.threshold(i, into)
            elif i in self.plan.counters:
                self.decode(i, into)
        for counter in self.counted:
            if self.plan.time[counter] // 2 == layer and (counter in self.means or must_watch(self.plan, counter)):
                self.watch(counter, into)

    def map(self, i: int, into: Layer) -> None:
        """One unit per box, on exactly where all its sides hold; the value with the most boxes is what is left over."""
        form = self.plan.forms[i]
        written = self.result.views[i] = self.register(i)
        count = {v: sum(box.value == v for box in form.boxes) for v in written}
        rest = max(written, key=lambda v: count[v])
        into.unit(dict(INSIDE), written[rest])
        for box in form.boxes:
            if box.value != rest:
                writes = combine((1.0, written[box.value]), (-1.0, written[rest]))
                into.unit(self.inside(box, form.inputs), writes)
        into.labels.append(self.names.of(i))

    def inside(self, box: Box, inputs: tuple[int, ...]) -> Reading:
        sides = [self.membership(inputs[place], values) for place, values in box.sides]
        return combine((1.0, added(sides)), (1.0 - len(sides), {BIAS: 1.0}))

    def membership(self, i: int, members: frozenset[int]) -> Reading:
        view = self.view(i)
        if 2 * len(members) <= len(view) + 2:
            return added(view[v] for v in members)
        return combine((1.0, INSIDE), (-1.0, added(reading for v, reading in view.items() if v not in members)))

    def decode(self, i: int, into: Layer) -> None:
        """From the share w = 1 / (1 + c) to c: with r_k = relu(1 - k w), (1 + c) r_k = relu(1 + c - k) is a ramp in c,
        and (1 + j)(r_j - 2 r_{j+1} + r_{j+2}) is 1 at c = j and 0 at every other whole number."""
        written = self.result.views[i] = self.register(i)
        counter, function = self.plan.counters[i]
        offset = 1 if self.plan.graph.nodes[counter].op == "indices" else 0  # position p has counted p + 1 tokens
        for value in self.plan.domains[counter]:
            place, c = written[evaluate_int(function, [value])], value + offset
            for k, factor in ((c, 1.0), (c + 1, -2.0), (c + 2, 1.0)):
                into.unit(self.ramp(counter, k), combine((factor * (1 + c), place)))
        into.labels.append(self.names.of(i))

    def ramp(self, i: int, k: int) -> Reading:
        return combine((1.0, INSIDE), (-float(k), {self.counted[i]: 1.0}))

    def watch(self, i: int, into: Layer) -> None:
        """(C + 2) r_{C+1} is 0 while the count is at most C and at least 1 from C + 1 on."""
        capacity = self.plan.domains.capacity
        most = capacity.positions if self.plan.graph.nodes[i].op == "indices" else capacity.counts
        assert most is not None
        if self.result.overflow is None:
            self.result.overflow = self.allocate("overflow", ["a count ran over"])
        into.unit(self.ramp(i, most + 1), {self.result.overflow: most + 2.0})

    def threshold(self, i: int, into: Layer) -> None:
        """Cut the mean to a whole number, towards 0, with steps of slope 2C: means of at most C values that differ
        from a whole number do so by at least 1 / C."""
        written = self.result.views[i] = self.register(i)
        slope = 2.0 * max(1, self.plan.domains.capacity.counts)
        lowest, highest = min(written), max(written)
        silence = slope * (highest - lowest + 2) + 2  # no step rises on a start token

        def step(at: int, late: float, writes: Reading) -> None:
            for shift, sign in ((1.5 - late, 1.0), (0.5 - late, -1.0)):
                reads = {self.means[i]: slope, BIAS: shift - slope * at, START: -silence}
                into.unit(reads, combine((sign, writes)))

        _staircase(written, step)
        into.labels.append(self.names.of(i))


def must_watch(plan: Schedule, counter: int) -> bool:
    """A count that ran over has no direction and matches nothing. That is right for a key that is compared as a whole,
    as long as the query it is compared with is watched; every other use needs the count itself."""
    if plan.base[plan.graph.output] in plan.counters and plan.counters[plan.base[plan.graph.output]][0] == counter:
        return True
    return any(_needs_count(plan, j, counter) for j in plan.needed)


def _needs_count(plan: Schedule, j: int, counter: int) -> bool:
    def reads(nodes: Iterable[int]) -> list[int]:
        return [k for k in nodes if plan.counters.get(plan.base[k], (None,))[0] == counter]

    node = plan.graph.nodes[j]
    if j in plan.forms:
        return bool(reads(plan.forms[j].inputs))
    if node.op not in ("kqv", "width"):
        return j not in plan.counters and bool(reads(attended(node)))
    whole = [m.key for m in matches(node) if m.is_equality]
    others = [m.query for m in matches(node)] + [m.key for m in matches(node) if not m.is_equality]
    others += node.inputs[-1:] if node.op == "kqv" else ()
    return bool(reads(others)) or not _tells_apart(plan, counter, reads(whole))


def _tells_apart(plan: Schedule, counter: int, keys: list[int]) -> bool:
    """Whether these functions of a count, taken together, are different for different counts (also past the last)."""
    if not keys:
        return True
    functions = [plan.counters[k][1] if k in plan.counters else None for k in keys]
    if any(f is None for f in functions):
        return False  # a view of a function; rare, and watching is always safe
    beyond = range(2 * (len(plan.domains[counter]) + 1))
    return len({tuple(evaluate_int(f, [c]) for f in functions if f) for c in beyond}) == len(beyond)


def _staircase(written: dict[int, Reading], step: Callable[[int, float, Reading], None]) -> None:
    """Steps that walk from the lowest value to the highest: to v > 0 at v itself, to v <= 0 just above v - 1."""
    values = sorted(written)
    step(values[0] - 2, 0.0, written[values[0]])  # below everything: always taken
    for before, after in zip(values, values[1:], strict=False):
        at, late = (after, 0.0) if after > 0 else (after - 1, 2.0)
        step(at, late, combine((1.0, written[after]), (-1.0, written[before])))


def _without_start(written: dict[int, Reading], default: int) -> dict[int, Reading]:
    """Attention writes the default on start tokens too, where it looks at the start mark; readings undo that."""
    return {v: combine((1.0, place), (-1.0, {START: 1.0} if v == default else {})) for v, place in written.items()}


def _truth_table(match: Match, keys: tuple[int, ...], queries: tuple[int, ...]) -> np.ndarray:
    k, q = np.meshgrid(np.array(keys), np.array(queries), indexing="ij")
    return map_arrays(match.condition, k.ravel(), q.ravel()).reshape(k.shape).astype(bool)


def _grouped(truth: np.ndarray, rows: list[Reading], columns: list[Reading]) -> list[tuple[Reading, Reading]]:
    """(column reading, row reading) for each set of rows that agree, so that the products add up to the table."""
    groups: dict[bytes, list[int]] = {}
    for r, row in enumerate(truth):
        if row.any():
            groups.setdefault(row.tobytes(), []).append(r)
    return [
        (added(columns[c] for c in np.flatnonzero(truth[members[0]])), added(rows[r] for r in members))
        for members in groups.values()
    ]
