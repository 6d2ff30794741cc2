"""RASP-L on z3 terms, in two ways: what a proof about the program is a proof about.

`Terms` is a sequence of known length whose items are unknown: for claims about whole runs. `Local` is a sequence of any
length, given by its item at an arbitrary position: for claims that hold at every position of every input. Both run the
program as it stands in `rasp.programs.turing`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import reduce
from typing import Any

import z3

from proofs_check.symbolic.terms import (
    BITS,
    WORD,
    NoMeaning,
    Value,
    choose,
    condition,
    every,
    known,
    number,
    same,
    term,
)
from rasp.arithmetic import Kind
from rasp.core import Function
from rasp.operators import Operators
from rasp.predicates import classify
from rasp.scalar import Expr, Scalar, arg, as_int, capture, const, operate, truth

POSITIONS = 2**62  # positions are below this, so that adding a shift to one never wraps around


class Elementwise(Operators):
    """Operators on sequences, recorded as expressions and applied position by position."""

    is_bool: bool = False

    @property
    def kind(self) -> Kind:
        return "bool" if self.is_bool else "int"

    def map(self, e: Expr, *others: Any) -> Any:
        raise NotImplementedError

    def _unary(self, op: str) -> Any:
        return self.map(Scalar(arg(0, self.kind))._unary(op).expr)

    def _binary(self, op: str, other: Any, swapped: bool) -> Any:
        is_sequence = isinstance(other, Elementwise)
        a, b = arg(0, self.kind), arg(1, other.kind) if is_sequence else const(other)
        e = operate(op, b, a) if swapped else operate(op, a, b)
        return self.map(e, other) if is_sequence else self.map(e)


class _Maps:
    """The two primitives that both interpreters share."""

    def tok_map(self, x: Any, func: Function) -> Any:
        return x.map(as_int(capture(func, 1, [x.kind])))

    def seq_map(self, x: Any, y: Any, func: Function) -> Any:
        return x.map(as_int(capture(func, 2, [x.kind, y.kind])), y)


# --- known length, unknown items --------------------------------------------------------------------------------------


class Terms(Elementwise):
    """A sequence of values, some of them z3 terms."""

    def __init__(self, items: Iterable[Value], is_bool: bool = False) -> None:
        self.items = list(items)
        self.is_bool = is_bool

    @property
    def __rasp__(self) -> Positional:
        return POSITIONAL

    def __len__(self) -> int:
        return len(self.items)

    def __iter__(self) -> Iterator[Value]:
        return iter(self.items)

    def __getitem__(self, i: int) -> Value:
        return self.items[i]

    def map(self, e: Expr, *others: Terms) -> Terms:
        return Terms((term(e, args) for args in zip(self, *others, strict=True)), e.is_bool)


class Positional(_Maps):
    """Every position is computed; a selector is a matrix of conditions, known or not."""

    def full(self, x: Terms, const: int) -> Terms:
        return Terms([int(const)] * len(x))

    def indices(self, x: Terms) -> Terms:
        return Terms(range(len(x)))

    def select(self, k: Terms, q: Terms, pred: Function, causal: bool) -> SelectorMatrix:
        e = truth(capture(pred, 2, [k.kind, q.kind], truth=True))
        size = len(k)
        return SelectorMatrix(
            [[term(e, [k[j], q[i]]) if j <= i or not causal else False for j in range(size)] for i in range(size)]
        )

    def sel_width(self, A: SelectorMatrix) -> Terms:
        return Terms(_total([(chosen, 1) for chosen in row]) for row in A.rows)

    def aggr(self, A: SelectorMatrix, v: Terms, default: int, reduction: str) -> Terms:
        seen = ([(chosen, x) for chosen, x in zip(row, v, strict=True) if chosen is not False] for row in A.rows)
        return Terms(_reduce(pairs, int(default), reduction) for pairs in seen)

    def kqv(self, k: Terms, q: Terms, v: Terms, pred: Function, default: int, reduction: str) -> Terms:
        return self.aggr(self.select(k, q, pred, True), v, default, reduction)


POSITIONAL = Positional()


class SelectorMatrix:
    """Row i says under which condition position i looks at each position."""

    def __init__(self, rows: list[list[Value]]) -> None:
        self.rows = rows

    @property
    def __rasp__(self) -> Positional:
        return POSITIONAL

    def __and__(self, other: SelectorMatrix) -> SelectorMatrix:
        pairs = (zip(mine, theirs, strict=True) for mine, theirs in zip(self.rows, other.rows, strict=True))
        return SelectorMatrix([[_both(a, b) for a, b in row] for row in pairs])


def _both(a: Value, b: Value) -> Value:
    """Known as soon as one of them decides."""
    if a is False or b is False:
        return False
    return b if a is True else a if b is True else every([a, b])


def _total(pairs: list[tuple[Value, Value]]) -> Value:
    """The sum of the values that are chosen."""
    certain = sum(int(x) for chosen, x in pairs if known(chosen, x) and chosen)
    unknown = [number(choose(chosen, x, 0)) for chosen, x in pairs if not known(chosen, x)]
    return z3.Sum([number(certain), *unknown]) if unknown else certain


def _reduce(pairs: list[tuple[Value, Value]], default: int, reduction: str) -> Value:
    if len(pairs) == 1 and pairs[0][0] is True:
        return pairs[0][1]
    if reduction == "mean":
        return _mean(pairs, default)
    found: Value = False
    best: Value = default
    for chosen, x in pairs:
        beats = number(x) > number(best) if reduction == "max" else number(x) < number(best)
        takes = z3.simplify(every([chosen, z3.Or(z3.Not(condition(found)), beats)]))
        best, found = choose(takes, x, best), z3.simplify(z3.Or(condition(chosen), condition(found)))
    return best


def _mean(pairs: list[tuple[Value, Value]], default: int) -> Value:
    """Cut towards 0. The divisor is one of few numbers, and dividing by each is easier than by an unknown one."""
    total, width = number(_total(pairs)), number(_total([(chosen, 1) for chosen, _ in pairs]))
    result: Value = default
    for size in range(1, len(pairs) + 1):
        result = choose(same(width, size), total / size, result)
    return result


# --- any length, one position -----------------------------------------------------------------------------------------


class Local(Elementwise):
    """A sequence of any length (up to `limit`), as its item at position p, which may be a z3 term."""

    def __init__(
        self, rasp: AnyLength, at: Callable[[Value], Value], is_bool: bool = False, limit: int = POSITIONS
    ) -> None:
        self.rasp, self._at, self.is_bool, self.limit = rasp, at, is_bool, limit
        self._known: dict[Any, tuple[Value, Value]] = {}

    @property
    def __rasp__(self) -> AnyLength:
        return self.rasp

    def __len__(self) -> int:
        return self.limit

    def at(self, p: Value) -> Value:
        key = p if known(p) else ("term", z3.simplify(p).get_id())
        if key not in self._known:
            p = p if known(p) else z3.simplify(p)
            self._known[key] = (self._at(p), p)  # keeps p alive: z3 reuses the ids of terms that are gone
        return self._known[key][0]

    def map(self, e: Expr, *others: Local) -> Local:
        xs = (self, *others)
        return Local(self.rasp, lambda p: term(e, [x.at(p) for x in xs]), e.is_bool, self.limit)


class Lookup:
    """Attention that is no fixed distance: what is looked for, where, and what is taken."""

    def __init__(self, selector: LocalSelector, v: Local, default: int, reduction: str) -> None:
        self.selector, self.v, self.default, self.reduction = selector, v, default, reduction

    def matches(self, j: Value, i: Value) -> Value:
        """Whether position i looks at position j (apart from j <= i)."""
        return self.selector.matches(j, i)


class LocalSelector:
    """One condition on key and query; or several, each on its own."""

    def __init__(self, *parts: tuple[Local, Local, Expr]) -> None:
        self.parts = parts

    @property
    def __rasp__(self) -> AnyLength:
        return self.parts[0][0].rasp

    def __and__(self, other: LocalSelector) -> LocalSelector:
        return LocalSelector(*self.parts, *other.parts)

    def matches(self, j: Value, i: Value) -> Value:
        """Whether position i looks at position j (apart from j <= i)."""
        return reduce(_both, (term(pred, [k.at(j), q.at(i)]) for k, q, pred in self.parts))


class Counter:
    """How many positions up to p satisfy a condition, as an unknown function that counts."""

    def __init__(self, flag: Local, name: str) -> None:
        self.flag = flag
        self.function = z3.Function(name, WORD, WORD)

    def at(self, p: Value) -> Value:
        return self.function(number(p))

    def bounds(self, p: Value) -> z3.BoolRef:
        """What holds of a count at position p >= 0, whatever is counted."""
        return z3.And(self.function(number(p)) >= 0, self.function(number(p)) <= number(p) + 1)

    def step(self, p: Value) -> z3.BoolRef:
        """Counting itself: the count at p is the one before it, and one more if the condition holds at p."""
        before = z3.If(number(p) >= 1, self.function(number(p) - 1), number(0))
        return self.function(number(p)) == before + number(self.flag.at(p))


class AnyLength(_Maps):
    """Attention must be to a fixed distance, which z3 is asked to prove; other attention becomes a `Lookup`."""

    def __init__(self, name: str = "count") -> None:
        self.name = name
        self._counters: dict[str, Counter] = {}
        self._lowest: dict[int, tuple[z3.BitVecRef, int]] = {}

    def assume_at_least(self, p: z3.BitVecRef, lowest: int) -> None:
        """Position p is known to be so far from the start: looking back no further needs no case for the start."""
        self._lowest[p.get_id()] = (p, lowest)

    def lowest(self, p: z3.BitVecRef) -> int:
        """A number that position p, a variable plus or minus a constant, is known not to be below."""
        offset, rest = 0, p
        if z3.is_app_of(p, z3.Z3_OP_BADD) and p.num_args() == 2 and z3.is_bv_value(p.arg(0)):
            offset, rest = p.arg(0).as_signed_long(), p.arg(1)
        return offset + self._lowest[rest.get_id()][1] if rest.get_id() in self._lowest else -POSITIONS

    def sequence(self, name: str, limit: int = POSITIONS) -> Local:
        """An unknown input: an unknown function from positions to items."""
        items = z3.Function(name, WORD, WORD)
        return Local(self, lambda p: items(number(p)), limit=limit)

    def full(self, x: Local, const: int) -> Local:
        return Local(self, lambda p: int(const), limit=x.limit)

    def indices(self, x: Local) -> Local:
        return Local(self, lambda p: p, limit=x.limit)

    def select(self, k: Local, q: Local, pred: Function, causal: bool) -> LocalSelector:
        if not causal:
            raise NoMeaning("a selector that is not causal looks at the future, which a position of any input has not")
        return LocalSelector((k, q, truth(capture(pred, 2, [k.kind, q.kind], truth=True))))

    def sel_width(self, A: LocalSelector) -> Local:
        for _, _, pred in A.parts:
            if classify(pred).kind != "key":
                raise NoMeaning(f"the width of the selector {pred} is no running count")
        flag = Local(self, lambda p: reduce(_both, (term(e, [k.at(p), 0]) for k, _, e in A.parts)), is_bool=True)
        counter = self.counter(flag)
        return Local(self, counter.at, limit=A.parts[0][0].limit)

    def counter(self, flag: Local) -> Counter:
        """One counter for each condition: two that read the same are the same."""
        spelled = z3.simplify(condition(flag.at(z3.BitVec("somewhere", BITS)))).sexpr()
        return self._counters.setdefault(spelled, Counter(flag, f"{self.name}_{len(self._counters)}"))

    @property
    def counters(self) -> list[Counter]:
        return list(self._counters.values())

    def aggr(self, A: LocalSelector, v: Local, default: int, reduction: str) -> Any:
        distance = self._distance(A)
        if distance is None:
            return Lookup(A, v, int(default), reduction)
        if distance < 0:
            return self.full(v, default)
        return Local(self, lambda p: _delayed(v, p, distance, int(default)), v.is_bool and default == 0, v.limit)

    def kqv(self, k: Local, q: Local, v: Local, pred: Function, default: int, reduction: str) -> Any:
        return self.aggr(self.select(k, q, pred, True), v, default, reduction)

    def _distance(self, A: LocalSelector) -> int | None:
        """The one d such that every position looks d back and nowhere else, if z3 can prove that there is one."""
        i, j = z3.BitVecs("query_position key_position", BITS)
        looks = condition(A.matches(j, i))
        spelled = looks.sexpr()
        if spelled not in _DISTANCES:
            _DISTANCES[spelled] = _fixed_distance(looks, i, j)
        return _DISTANCES[spelled]


_DISTANCES: dict[str, int | None] = {}  # what z3 said of each predicate: the same few shifts are asked for all the time


def _delayed(v: Local, p: Value, distance: int, default: int) -> Value:
    if known(p):
        return v.at(int(p) - distance) if int(p) >= distance else default
    place = number(p)
    if distance == 0 or v.rasp.lowest(place) >= distance:
        return v.at(place - distance)
    return choose(place < distance, default, v.at(place - distance))


def _fixed_distance(looks: z3.BoolRef, i: z3.BitVecRef, j: z3.BitVecRef) -> int | None:
    solver = z3.Solver()
    solver.add(i >= 0, i < POSITIONS, j >= 0, j < POSITIONS)
    answer = solver.check(looks)
    if answer == z3.unknown:
        raise NoMeaning(f"z3 does not find out where a selector looks ({solver.reason_unknown()})")
    if answer == z3.unsat:
        return -1  # nowhere at all: as if it were in the future
    model = solver.model()
    distance = model.eval(i, True).as_signed_long() - model.eval(j, True).as_signed_long()
    return distance if solver.check(looks != (i - j == distance)) == z3.unsat else None
