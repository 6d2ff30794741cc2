"""A Turing machine of which nothing is known but that it is one, and its tapes.

States and symbols are unknown sets of tokens, transitions unknown functions; on the end markers the machine does what
the paper's listing prints. What makes it a machine (a next state is a state, ..) is said by `facts`, of exactly those
tokens that a formula mentions: so formulas stay free of quantifiers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import z3

from proofs_check.symbolic.terms import BITS, MARKERS, WORD, Token, Value, choose, condition, known, number, same
from rasp.machines.machine import bos, eos
from rasp.scalar import Table


class UnknownTable(Table):
    """A function of tokens that the program may call and that says what it means to z3."""

    def __init__(self, name: str, arity: int, meaning: Callable[..., Value]) -> None:
        super().__init__(name, None, arity)
        self.meaning = meaning


class UnknownMachine:
    """What the program needs of a machine, all of it unknown. Token ids are below `base`."""

    def __init__(self, base: int = 32) -> None:
        self.base = base
        self._state = z3.Function("is_state", WORD, z3.BoolSort())
        self._symbol = z3.Function("is_symbol", WORD, z3.BoolSort())
        self._bits = (base - 1).bit_length()  # a narrow token in a wide word spares solvers most of the arithmetic
        self._next_state = z3.Function("next_state", WORD, WORD, z3.BitVecSort(self._bits))
        self._next_symbol = z3.Function("next_symbol", WORD, WORD, z3.BitVecSort(self._bits))
        self._right = z3.Function("moves_right", WORD, WORD, z3.BoolSort())
        self._assumed: list[z3.BoolRef] = []
        self._directions: dict[tuple[int, int], bool] = {}
        self.is_state = UnknownTable("is_state", 1, lambda z: choose(self.state(z), 1, 0))
        self.next_state = UnknownTable("next_state", 2, self._state_after)
        self.next_symbol = UnknownTable("next_symbol", 2, self._symbol_after)
        self.move = UnknownTable("move", 2, self._move)

    def state(self, token: Value) -> Value:
        return self._is(self._state, token)

    def symbol(self, token: Value) -> Value:
        return self._is(self._symbol, token)

    def _is(self, kind: z3.FuncDeclRef, token: Value) -> Value:
        if known(token) and 0 <= token < MARKERS:
            return False
        if isinstance(token, Token):
            return bool(kind.name() == f"is_{token.role}")
        return kind(number(token))

    def _wide(self, t: z3.BitVecRef) -> z3.BitVecRef:
        return z3.ZeroExt(BITS - self._bits, t)

    def token(self, name: str, kind: str) -> Token:
        """An unknown symbol, or state."""
        t = self._wide(z3.BitVec(name, self._bits))
        self._assumed.append(condition(self.state(t) if kind == "state" else self.symbol(t)))
        return Token.of(t, kind)

    def goes(self, state: Value, token: Value, right: bool) -> None:
        """Assume which way the head goes there."""
        self._assumed.append(condition(same(self._move(state, token), int(right))))
        self._directions[number(state).get_id(), number(token).get_id()] = right

    def facts(self, *formulas: z3.BoolRef) -> list[z3.BoolRef]:
        """What was assumed, and what holds of every machine, said of the tokens that occur in these formulas."""
        found: list[z3.BoolRef] = list(self._assumed)
        new, seen = [*formulas, *found], set[int]()
        while new:
            new = [fact for a in _applications(new, seen) for fact in self._facts_of(a)]
            found.extend(new)
        return found

    def _facts_of(self, a: z3.ExprRef) -> list[z3.BoolRef]:
        """No marker is a state or a symbol, nothing is both, both are token ids; what a transition yields."""
        if a.decl() in (self._state, self._symbol):
            t = a.arg(0)
            state, symbol = self._state(t), self._symbol(t)
            in_range = z3.And(t >= MARKERS, t < self.base)
            return [z3.Not(z3.And(state, symbol)), z3.Implies(z3.Or(state, symbol), in_range)]
        if a.decl() == self._next_state:
            on = z3.Or(self._symbol(a.arg(1)), a.arg(1) == bos, a.arg(1) == eos)
            return [z3.Implies(z3.And(self._state(a.arg(0)), on), self._state(self._wide(a)))]
        if a.decl() == self._next_symbol:
            return [z3.Implies(z3.And(self._state(a.arg(0)), self._symbol(a.arg(1))), self._symbol(self._wide(a)))]
        return []

    def _applies(self, state: Value, token: Value) -> tuple[Value, Value, Value]:
        """Whether there is a transition on a symbol, and whether the token is bos, or eos."""
        is_state = self.state(state)
        on_symbol = choose(is_state, self.symbol(token), False) if is_state is not False else False
        return on_symbol, same(token, bos), same(token, eos)

    def _state_after(self, state: Value, token: Value) -> Value:
        on_symbol, on_bos, on_eos = self._applies(state, token)
        at_end = choose(self.state(state), choose(on_bos, True, on_eos), False)
        applies = choose(on_symbol, True, at_end)
        return self._entry(self._next_state, "state", state, token, applies)

    def _symbol_after(self, state: Value, token: Value) -> Value:
        on_symbol, on_bos, on_eos = self._applies(state, token)
        at_end = choose(on_bos, bos, choose(on_eos, eos, 0))
        return self._entry(self._next_symbol, "symbol", state, token, on_symbol, at_end)

    def _entry(
        self, table: z3.FuncDeclRef, kind: str, state: Value, token: Value, applies: Value, otherwise: Value = 0
    ) -> Value:
        """The table's value, which is of that kind, where it applies."""
        if applies is False:
            return otherwise
        value = self._wide(table(number(state), number(token)))
        return Token.of(value, kind) if applies is True else choose(applies, value, otherwise)

    def _move(self, state: Value, token: Value) -> Value:
        on_symbol, on_bos, _ = self._applies(state, token)
        decided = self._directions.get((number(state).get_id(), number(token).get_id()))
        if decided is not None:
            return int(decided)
        right = self._right(number(state), number(token))
        return choose(on_symbol, choose(right, 1, 0), choose(on_bos, 1, 0))

    def given(self, model: z3.ModelRef) -> GivenMachine:
        """The machine that a model describes, as tables that the other interpreters run."""
        ids = range(self.base)

        def table(f: Callable[..., Any], arity: int) -> np.ndarray:
            values = np.zeros((self.base,) * arity, dtype=np.int64)
            for place in np.ndindex(values.shape):
                value = model.eval(number(f(*map(int, place))), model_completion=True)
                values[place] = value.as_signed_long()
            return values

        is_state = np.array([z3.is_true(model.eval(self._state(number(t)), True)) for t in ids], dtype=np.int64)
        is_state[:MARKERS] = 0
        pairs = [(f.name, table(f.meaning, 2)) for f in (self.next_state, self.next_symbol, self.move)]
        return GivenMachine(self.base, Table("is_state", is_state), *(Table(*pair) for pair in pairs))


def _applications(terms: list[z3.BoolRef], seen: set[int]) -> list[z3.ExprRef]:
    """Every application of an unknown function in the terms that was not seen before."""
    found, stack = [], list[z3.ExprRef](terms)
    while stack:
        t = stack.pop()
        if t.get_id() not in seen:
            seen.add(t.get_id())
            stack.extend(t.children())
            if t.num_args() and t.decl().kind() == z3.Z3_OP_UNINTERPRETED:
                found.append(t)
    return found


@dataclass(frozen=True)
class GivenMachine:
    """Tables of a machine whose tokens need not be in the paper's order: what a model is replayed on."""

    base: int
    is_state: Table
    next_state: Table
    next_symbol: Table
    move: Table


# --- tapes of known length --------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class UnknownTape:
    """`bos s .. q .. eos` with unknown symbols and state, whose state token stands at position `head`."""

    tokens: tuple[Value, ...]
    head: int

    @classmethod
    def any(cls, machine: UnknownMachine, symbols: int, head: int) -> UnknownTape:
        """Every tape of that many symbols with its head there: 1 is on bos, symbols + 2 is on eos."""
        cells = [machine.token(f"s{i + 1}", "symbol") for i in range(symbols)]
        tokens: list[Value] = [bos, *cells, eos]
        tokens.insert(head, machine.token("q", "state"))
        return cls(tuple(tokens), head)

    def step(self, machine: UnknownMachine, right: bool) -> UnknownTape:
        """The next tape where the head goes that way: the textbook step, independent of the program."""
        tokens, h = list(self.tokens), self.head
        state, under = tokens[h], tokens[h - 1]
        then, write = machine.next_state.meaning(state, under), machine.next_symbol.meaning(state, under)
        machine.goes(state, under, right)
        to = h + 1 if right else h - 1
        tokens[h - 1] = write
        tokens[h], tokens[to] = tokens[to], then
        return UnknownTape(tuple(tokens), to)

    def run(self, machine: UnknownMachine, ways: Sequence[bool]) -> list[UnknownTape]:
        """This tape and those after it, where the head goes these ways."""
        tapes = [self]
        for right in ways:
            tapes.append(tapes[-1].step(machine, right))
        return tapes


def possible_ways(symbols: int, head: int, steps: int) -> list[tuple[bool, ...]]:
    """Which ways (true: right) a head can go from there; off an end marker there is one only."""
    if steps == 0:
        return [()]
    ways = {1: (True,), symbols + 2: (False,)}.get(head, (True, False))
    return [(way, *rest) for way in ways for rest in possible_ways(symbols, head + (1 if way else -1), steps - 1)]


def repeated_gram(tape: Sequence[Value], size: int) -> z3.BoolRef:
    """Whether some `size` consecutive tokens occur twice on the tape."""
    grams = [tape[i : i + size] for i in range(len(tape) - size + 1)]
    pairs = [(a, b) for i, b in enumerate(grams) for a in grams[:i]]
    equal = [z3.And(*(condition(same(s, t)) for s, t in zip(a, b, strict=True))) for a, b in pairs]
    return z3.Or(*equal) if equal else z3.BoolVal(False)


# --- tapes of any length ----------------------------------------------------------------------------------------------

FAR = None  # further away than any window reaches


@dataclass(frozen=True)
class Place:
    """A cell of a well-formed tape of any length, by what is near it: cell d is d positions to the right.

    bos stands at cell -start (0 to 2, or further left), sep at cell end (0 to 4, or further right), the state token at
    cell head (-2 to 3, or elsewhere). Before bos comes a separator, or the start of the input, which reads the same;
    after sep comes anything but a state; beyond these anything at all.
    """

    start: int | None
    end: int | None
    head: int | None

    @classmethod
    def all(cls) -> list[Place]:
        """Every place there is on any tape."""
        return [
            place
            for start in (0, 1, 2, FAR)
            for end in (0, 1, 2, 3, 4, FAR)
            for head in (-2, -1, 0, 1, 2, 3, FAR)
            if (place := cls(start, end, head)).exists()
        ]

    def exists(self) -> bool:
        """The head is right of bos and left of sep, and eos has room too."""
        starts = [-self.start] if self.start is not FAR else [-3, -4, -5]
        ends = [self.end] if self.end is not FAR else [5, 6, 7]
        return any(
            e - s >= 3 and (s < self.head < e if self.head is not FAR else s < -3 or e > 5)
            for s in starts
            for e in ends
        )

    def kind(self, d: int) -> str:
        """What stands at cell d."""
        start = -self.start if self.start is not FAR else -99
        end = self.end if self.end is not FAR else 99
        if d < start or d > end:
            return {start - 1: "sep", end + 1: "no state"}.get(d, "anything")
        if d == self.head:
            return "state"
        last = end - 2 if self.head == end - 1 else end - 1
        return {start: "bos", last: "eos", end: "sep"}.get(d, "symbol")

    def moved(self, by: int) -> Place:
        """The same place after the head has moved."""
        return self if self.head is FAR else Place(self.start, self.end, self.head + by)

    def __str__(self) -> str:
        return " ".join(f"[{self.kind(d)}]" if d == 0 else self.kind(d) for d in range(-2, 3))


class Window:
    """The tokens around a place, each of its kind, and what one true step makes of the middle one."""

    def __init__(self, machine: UnknownMachine, place: Place) -> None:
        self.machine, self.place = machine, place
        self.assumed: list[z3.BoolRef] = []
        self._cells: dict[int, Value] = {}

    def cell(self, d: int) -> Value:
        if d not in self._cells:
            self._cells[d] = self._make(d, self.place.kind(d))
        return self._cells[d]

    def _make(self, d: int, kind: str) -> Value:
        if kind in ("sep", "bos", "eos"):
            return ("sep", "bos", "eos").index(kind)
        name = f"cell_{d}".replace("-", "m")
        if kind in ("state", "symbol"):
            return self.machine.token(name, kind)
        token = z3.BitVec(name, BITS)
        if kind == "no state":
            self.assumed.append(z3.Not(condition(self.machine.state(token))))
        return token

    def right(self) -> Value:
        """Whether the head, which is near, goes right."""
        assert self.place.head is not None
        return condition(self.machine.move.meaning(self.cell(self.place.head), self.cell(self.place.head - 1)))

    def after(self) -> Value:
        """What stands in the middle after one true step."""
        head = self.place.head
        if head not in (-1, 0, 1):
            return self.cell(0)
        state, under = self.cell(head), self.cell(head - 1)
        then, write = self.machine.next_state.meaning(state, under), self.machine.next_symbol.meaning(state, under)
        went_right = {1: write, 0: self.cell(1), -1: then}
        went_left = {1: then, 0: write, -1: self.cell(0)}
        return choose(self.right(), went_right[head], went_left[head])

    def is_kind(self, value: Value, kind: str) -> Value:
        """Whether the value is of that kind."""
        if kind in ("state", "symbol"):
            return self.machine.state(value) if kind == "state" else self.machine.symbol(value)
        return same(value, ("sep", "bos", "eos").index(kind))
