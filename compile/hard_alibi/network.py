"""What the paper's architecture can do (windows or NoPE, ReLU, no positions), in terms of readings.

A value is a one-hot vector; its view maps every possible value to the reading that is 1 where it holds. `copies` start
tokens precede every input, at least as many as any shift is long, so that a window never runs out of tokens and "before
the input" is simply the start mark.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from compile.errors import CompileError
from compile.front.cover import Box
from compile.hard_alibi.readings import INSIDE, START, DraftHead, DraftLayer, added, combine
from compile.readings import BIAS, Reading, View
from compile.transformer.annotations import Fact, Register

SHARP = 40.0  # exp(-40) is nothing beside 1: the score by which a missed part of a match falls behind
RANK = 24.0  # score between neighbouring values where the largest (smallest) must win over up to exp(20) others
MOST_SCORE = {"float32": 2.0**17, "float64": 2.0**40}  # beyond it, rounding of a score is no longer small beside RANK

# A count c is decoded from 1 / (1 + c). In float32 the steps stay apart, and the result within 0.02 of a one-hot
# vector, up to 4096 (tests/test_compile_hard_alibi.py::test_decoded_counts_are_clean_up_to_the_limit).
MOST_COUNT = {"float32": 4096, "float64": 2**20}
ROUNDING = {"float32": 2e-7, "float64": 4e-16}  # error of a value that one head or unit brings
MOST_MEAN = {"float32": 2.0**18, "float64": 2.0**45}  # of |value| * count, where the steps of a mean stay apart


@dataclass(frozen=True)
class Part:
    """One condition of a match: `truth[k, q]` for every key value and query value."""

    keys: View
    queries: View
    truth: np.ndarray


@dataclass(frozen=True)
class Shift:
    fact: Fact
    source: View
    values: tuple[int, ...]  # of the result: those of the source, and the default
    offset: int
    default: int


class Network:
    """Layers under construction, and the residual stream they share."""

    def __init__(
        self, tokens: Sequence[int], copies: int, layers: int, dtype: str = "float32", source: Fact | None = None
    ) -> None:
        self.tokens, self.copies, self.dtype = tuple(tokens), copies, dtype
        self.layers = [DraftLayer() for _ in range(layers)]
        self.registers = [Register("start", START, START + 1, ("start",), "start")]
        self.input = self.onehot(source or Fact("tokens", "x"), self.tokens)  # what the embedding writes
        self.answer: View = {}  # what the unembedding reads
        self.overflow: int | None = None  # dimension that is at least 1 where a count ran over
        self.refusal = ""

    @property
    def d_model(self) -> int:
        return self.registers[-1].stop

    def allocate(self, fact: Fact, values: Sequence[str]) -> int:
        start = self.d_model
        stop = start + len(values)
        self.registers.append(Register(fact.label, start, stop, tuple(values), fact.role, fact.nodes))
        return start

    def onehot(self, fact: Fact, values: Sequence[int]) -> View:
        """A direction per value."""
        start = self.allocate(fact, [str(v) for v in values])
        return {v: {start + k: 1.0} for k, v in enumerate(values)}

    # --- attention ----------------------------------------------------------------------------------------------------

    def shifts(self, layer: int, wanted: Sequence[Shift]) -> list[View]:
        """x[i-n] is (n+1) times the mean of the last n+1 minus n times the mean of the last n.

        Heads of one window attend alike whatever they move, so all shifts of a layer share them.
        """
        moves: dict[int, dict[tuple[tuple[int, float], ...], Reading]] = {}
        facts: dict[int, list[Fact]] = {}
        views = []
        for shift in wanted:
            written = self.onehot(shift.fact, shift.values)
            views.append(_without_start(written, shift.default))
            for window, factor in ((shift.offset + 1, shift.offset + 1.0), (shift.offset, -float(shift.offset))):
                facts.setdefault(window, []).append(shift.fact)
                _move_all(moves.setdefault(window, {}), shift, written, factor)
        for window, table in sorted(moves.items()):
            moved = [(dict(key), to) for key, to in table.items()]
            self.layers[layer].heads.append(DraftHead(window, _together("shift", facts[window]), moves=moved))
        return views

    def count(self, layer: int, parts: Sequence[Part], fact: Fact) -> int:
        """Attend alike to every match and to the start: of c matches, the start's share is 1 / (1 + c).

        A match scores 0 (small numbers, so that its weight is exact), anything else at least SHARP less. The start
        tokens together weigh as much as one match, hence the logarithm. Returns the dimension of the share.
        """
        pairs = [pair for part in parts for pair in pairs_of(part, SHARP)]
        level = combine((-SHARP * len(parts), INSIDE), (-math.log(self.copies), {START: 1.0}))
        share = self.allocate(Fact("share", f"share of the start, to {fact.label}", fact.nodes), ["share"])
        moves: list[tuple[Reading, Reading]] = [({START: 1.0}, {share: 1.0})]
        self.layers[layer].heads.append(DraftHead(None, fact, [*pairs, ({BIAS: 1.0}, level)], moves))
        return share

    def best(
        self,
        layer: int,
        fact: Fact,
        name: str,
        parts: Sequence[Part],
        values: View,
        written: Sequence[int],
        default: int,
        order: str | None,
    ) -> View:
        """Score a match by its parts, and among matches by the value; the start, half a part below, has the default.

        `order` is max, min, or None where all matches have the same value.
        """
        ranked = sorted(values, reverse=order == "min")
        step = RANK if order else 0.0
        strength = 2 * (step * (len(ranked) - 1) + SHARP)
        self._check_score(fact.label, strength * (len(parts) + 1))
        pairs = [pair for part in parts for pair in pairs_of(part, strength)]
        by_rank = combine(*((step * rank, values[v]) for rank, v in enumerate(ranked)))
        level = combine((1.0, by_rank), (strength * (len(parts) - 0.5), {START: 1.0}))
        out = self.onehot(Fact("value", name, fact.nodes), written)
        moves = [(reading, out[v]) for v, reading in values.items()] + [({START: 1.0}, out[default])]
        self.layers[layer].heads.append(DraftHead(None, fact, [*pairs, ({BIAS: 1.0}, level)], moves))
        return _without_start(out, default)

    def mean(self, layer: int, fact: Fact, parts: Sequence[Part], values: View, default: int) -> int:
        """Attend alike to every match, to the start only without any. Returns the dimension of the mean."""
        pairs = [pair for part in parts for pair in pairs_of(part, 2 * SHARP)]
        pairs.append(({BIAS: 1.0}, {START: 2 * SHARP * (len(parts) - 0.5)}))
        dim = self.allocate(Fact("mean", f"mean, {fact.label}", fact.nodes), ["mean"])
        moved = combine(*((float(v), reading) for v, reading in values.items()), (float(default), {START: 1.0}))
        self.layers[layer].heads.append(DraftHead(None, fact, pairs, [(moved, {dim: 1.0})]))
        return dim

    def _check_score(self, label: str, score: float) -> None:
        if score > MOST_SCORE[self.dtype]:
            raise CompileError(
                f"{label}: scores up to {score:.0f} are needed to rank its values, more than {self.dtype} tells apart "
                f"({MOST_SCORE[self.dtype]:.0f}); use fewer values{or_double(self.dtype)}"
            )

    # --- MLPs ---------------------------------------------------------------------------------------------------------

    def map(self, layer: int, boxes: Sequence[Box], inputs: Sequence[View], written: View, clean: bool = False) -> None:
        """Units that are on exactly where a box holds; the value with the most boxes is what is left over."""
        times = {v: sum(box.value == v for box in boxes) for v in written}
        rest = max(written, key=lambda v: times[v])
        self.layers[layer].unit(dict(INSIDE), written[rest])
        for box in boxes:
            if box.value != rest:
                writes = combine((1.0, written[box.value]), (-1.0, written[rest]))
                self.box(layer, inside(box, inputs), writes, clean)

    def box(self, layer: int, reads: Reading, writes: Reading, clean: bool = False) -> None:
        """`reads` is 0 in the box and at most -1 outside it: relu(2t + 1), where noise outside does not show. `clean`
        spends a second unit so that noise inside does not either: relu(4t + 2) - relu(4t + 1)."""
        into = self.layers[layer]
        if not clean:
            into.unit(combine((2.0, reads), (1.0, {BIAS: 1.0})), writes)
            return
        for bias, sign in ((2.0, 1.0), (1.0, -1.0)):
            into.unit(combine((4.0, reads), (bias, {BIAS: 1.0})), combine((sign, writes)))

    def decode(
        self, layer: int, share: int, places: Mapping[int, Reading], gate: Reading = INSIDE, beyond: bool = True
    ) -> None:
        """From the share w = 1 / (1 + c) to c, a staircase: up to j, w falls from 1/j to 1/(j+1), and a step rises in
        the middle third of that gap, so that neither side shows noise.

        `places[j]` is written at c = j. Where `gate` is 0 instead of 1, nothing is. Nor is beyond the last of them;
        without `beyond`, that is left open, because the answer is a refusal there and ever after.
        """
        first, last = min(places), max(places)
        self.layers[layer].unit(dict(gate), places[first])
        for j in range(first + 1, last + 2 if beyond else last + 1):
            self.step(layer, share, j, combine((1.0, places.get(j, {})), (-1.0, places[j - 1])), gate)

    def step(self, layer: int, share: int, j: int, writes: Reading, gate: Reading = INSIDE) -> None:
        """Write where the count is at least j: slope * relu(high - w) - slope * relu(low - w)."""
        gap = 1 / (j * (j + 1))
        for third, sign in ((2, 1.0), (1, -1.0)):
            edge = 1 / (j + 1) + gap * third / 3
            reads = combine((3 / gap * edge, gate), (-3 / gap, {share: 1.0}))
            self.layers[layer].unit(reads, combine((sign, writes)))

    def watch(self, layer: int, share: int, most: int) -> None:
        """1 where the count is above `most`."""
        if self.overflow is None:
            self.overflow = self.allocate(Fact("overflow", "overflow"), ["a count ran over"])
        self.step(layer, share, most + 1, {self.overflow: 1.0})

    def pass_on_overflow(self, layer: int) -> None:
        """Where a count ran over at an earlier position: it outweighs the start, which outweighs all others."""
        if self.overflow is None:
            return
        scores: Reading = {self.overflow: 2 * SHARP, START: SHARP}
        moves: list[tuple[Reading, Reading]] = [({self.overflow: 1.0}, {self.overflow: 1.0})]
        fact = Fact("overflow", "a count ran over before")
        self.layers[layer].heads.append(DraftHead(None, fact, [({BIAS: 1.0}, scores)], moves))

    def check_count(self, label: str, most: int) -> None:
        if most > MOST_COUNT[self.dtype]:
            raise CompileError(
                f"{label}: counts up to {most} were asked for, but {self.dtype} is good for {MOST_COUNT[self.dtype]}; "
                f"ask for less{or_double(self.dtype)}"
            )

    def threshold(self, layer: int, mean: int, written: View, most: int, label: str) -> None:
        """Cut the mean to a whole number, towards 0, with steps of slope 2C: means of at most C values that differ
        from a whole number do so by at least 1 / C."""
        slope = 2.0 * max(1, most)
        lowest, highest = min(written), max(written)
        if slope * max(abs(lowest), abs(highest)) > MOST_MEAN[self.dtype]:
            raise CompileError(
                f"{label}: the mean of up to {most} values as large as {max(abs(lowest), abs(highest))} "
                f"is too fine for {self.dtype}; ask for fewer{or_double(self.dtype)}"
            )
        silence = slope * (highest - lowest + 2) + 2  # no step rises on a start token

        def step(at: int, late: float, writes: Reading) -> None:
            for shift, sign in ((1.5 - late, 1.0), (0.5 - late, -1.0)):
                reads = {mean: slope, BIAS: shift - slope * at, START: -silence}
                self.layers[layer].unit(reads, combine((sign, writes)))

        _staircase(written, step)


def _together(role: str, facts: Sequence[Fact]) -> Fact:
    label = " and ".join(dict.fromkeys(fact.label for fact in facts))
    return Fact(role, label, tuple(sorted({node for fact in facts for node in fact.nodes})))


def or_double(dtype: str) -> str:
    return ", or use dtype='float64'" if dtype == "float32" else ""


def pairs_of(part: Part, strength: float) -> list[tuple[Reading, Reading]]:
    """Query and key readings whose products add up to `strength` where the condition holds, and elsewhere to 0 or less.

    Either keys that agree about every query share a dimension, or queries that agree about every key.
    """
    by_key = _grouped(part.truth, list(part.keys.values()), list(part.queries.values()))
    by_query = [(k, q) for q, k in _grouped(part.truth.T, list(part.queries.values()), list(part.keys.values()))]
    pairs = _folded(min(by_key, by_query, key=len), part.truth)
    return [(combine((strength, q)), k) for q, k in pairs]


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


def _folded(pairs: list[tuple[Reading, Reading]], truth: np.ndarray) -> list[tuple[Reading, Reading]]:
    """Two conditions in one dimension, with opposite signs: meeting the other one then scores -1 instead of 0.

    Only where no key and no query meets two of them, as in an equality.
    """
    if truth.sum(axis=0).max() > 1 or truth.sum(axis=1).max() > 1:
        return pairs
    halves = zip(pairs[::2], [*pairs[1::2], *([({}, {})] * (len(pairs) % 2))], strict=True)
    return [(combine((1.0, q), (-1.0, q2)), combine((1.0, k), (-1.0, k2))) for (q, k), (q2, k2) in halves]


def membership(view: View, members: frozenset[int]) -> Reading:
    """1 where the value is one of `members`, read from whichever side is shorter."""
    if 2 * len(members) <= len(view) + 2:
        return added(view[v] for v in members if v in view)
    return combine((1.0, INSIDE), (-1.0, added(reading for v, reading in view.items() if v not in members)))


def inside(box: Box, inputs: Sequence[View]) -> Reading:
    """0 where all sides of the box hold, and lower by 1 for each that does not."""
    sides = [membership(inputs[place], values) for place, values in box.sides]
    return combine((1.0, added(sides)), (-float(len(sides)), {BIAS: 1.0}))


def _move_all(table: dict[tuple[tuple[int, float], ...], Reading], shift: Shift, written: View, factor: float) -> None:
    for value, place in written.items():
        mark = {START: 1.0} if value == shift.default else {}
        key = tuple(sorted(combine((1.0, shift.source.get(value, {})), (1.0, mark)).items()))
        table[key] = combine((1.0, table.get(key, {})), (factor, place))


def _without_start(written: View, default: int) -> View:
    """Attention writes the default on start tokens too, where it looks at the start mark; readings undo that."""
    return {v: combine((1.0, place), (-1.0, {START: 1.0} if v == default else {})) for v, place in written.items()}


def _staircase(written: View, step: Callable[[int, float, Reading], None]) -> None:
    """Steps that walk from the lowest value to the highest: to v > 0 at v itself, to v <= 0 just above v - 1."""
    values = sorted(written)
    step(values[0] - 2, 0.0, written[values[0]])  # below everything: always taken
    for before, after in zip(values, values[1:], strict=False):
        at, late = (after, 0.0) if after > 0 else (after - 1, 2.0)
        step(at, late, combine((1.0, written[after]), (-1.0, written[before])))
