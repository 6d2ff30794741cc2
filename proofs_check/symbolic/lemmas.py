"""What is claimed of the paper's program, each claim as formulas that must have no solution.

A lemma is built for a *program*, so that a wrong one can be put in its place: `mutants` does, and the
lemma must then be refuted. Local lemmas speak of one arbitrary position of an input of any length; end-to-end lemmas of
whole runs on tapes of given length. All of them hold for every machine at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any

import z3

from proofs_check.symbolic.sequences import POSITIONS, AnyLength, Local, Terms
from proofs_check.symbolic.terms import BITS, Value, choose, condition, every, known, number, same
from proofs_check.symbolic.unknown import Place, UnknownMachine, UnknownTape, Window, possible_ways, repeated_gram
from rasp.core import tok_map
from rasp.library import cumsum
from rasp.machines.machine import sep
from rasp.programs import turing

BASE = 32  # the paper's MAX_INT: token ids are below it
LOGIC = "QF_UFBV"
Watched = Mapping[str, Sequence[Value] | Value]


@dataclass(frozen=True)
class Program:
    """The functions of `rasp.programs.turing`, with some of its parts exchanged while they run."""

    name: str = "as printed"
    patches: Mapping[str, Any] = field(default_factory=dict)

    def call(self, function: str, *args: Any, **options: Any) -> Any:
        with _exchanged(self.patches):
            return getattr(turing, function)(*args, **options)


PRINTED = Program()


@contextmanager
def _exchanged(patches: Mapping[str, Any]) -> Iterator[None]:
    kept = {name: getattr(turing, name) for name in patches}
    try:
        for name, value in patches.items():
            setattr(turing, name, value)
        yield
    finally:
        for name, value in kept.items():
            setattr(turing, name, value)


@dataclass(frozen=True)
class Query:
    """Formulas that together must have no solution (or, where a claim says that something happens, must have one).

    `watch` names what a reader wants to see of a solution.
    """

    name: str
    formulas: tuple[z3.BoolRef, ...]
    expect: str = "unsat"
    watch: Watched = field(default_factory=dict)

    def solver(self) -> z3.Solver:
        solver = z3.SolverFor(LOGIC)
        solver.add(*self.formulas)
        return solver


def ask(machine: UnknownMachine, name: str, *formulas: z3.BoolRef, watch: Watched, expect: str = "unsat") -> Query:
    """A query about an unknown machine: what makes it a machine belongs to it."""
    return Query(name, (*formulas, *machine.facts(*formulas)), expect, watch)


@dataclass(frozen=True)
class Witness:
    """A solution that refutes a lemma, as numbers."""

    query: str
    values: Mapping[str, list[int]]

    def __str__(self) -> str:
        shown = "; ".join(f"{name} = {' '.join(map(str, numbers))}" for name, numbers in self.values.items())
        return f"{self.query}: {shown}" if shown else self.query


@dataclass(frozen=True)
class Lemma:
    name: str
    claim: str
    scope: str
    build: Callable[[Program], Iterator[Query]]


@dataclass(frozen=True)
class Outcome:
    """`result` is proved, refuted (then with a witness) or unknown (the solver gave up, or was asked nothing)."""

    lemma: Lemma
    result: str
    seconds: float
    queries: int
    witness: Witness | None = None


def check(lemma: Lemma, program: Program = PRINTED, timeout: float = 600.0) -> Outcome:
    """Build and solve a lemma's queries until one goes against it."""
    started = perf_counter()
    result, witness, asked = "proved", None, 0
    for query in lemma.build(program):
        asked += 1
        solver = query.solver()
        solver.set("timeout", int(timeout * 1000))
        answer = str(solver.check())
        if answer != query.expect:
            result = "unknown" if answer == "unknown" else "refuted"
            witness = read_witness(query, solver.model()) if answer == "sat" else Witness(query.name, {})
            break
    if not asked:
        result, witness = "unknown", Witness("no formula was built", {})
    return Outcome(lemma, result, perf_counter() - started, asked, witness)


def read_witness(query: Query, model: z3.ModelRef) -> Witness:
    def read(value: Value) -> int:
        return int(value) if known(value) else model.eval(number(value), model_completion=True).as_signed_long()

    lists = {name: v if isinstance(v, list | tuple) else [v] for name, v in query.watch.items()}
    return Witness(query.name, {name: [read(v) for v in values] for name, values in lists.items()})


START = 8  # positions below this are looked at one by one, so that all others are known to be far from the start


def position(name: str = "p") -> z3.BitVecRef:
    return z3.BitVec(name, BITS)


def every_position(*sequences: AnyLength) -> Iterator[tuple[str, Value, z3.BoolRef]]:
    """The cases of an arbitrary position: a name, the position, and what is known of it."""
    for p in range(START):
        yield f"p={p}", p, z3.BoolVal(True)
    far = position()
    for rasp in sequences:
        rasp.assume_at_least(far, START)
    yield f"p>={START}", far, z3.And(far >= START, far < POSITIONS - 64)


def back(p: Value, distance: int) -> Value:
    """The position `distance` before p."""
    return p - distance if known(p) else z3.simplify(number(p) - distance)


def around(rasp: AnyLength, name: str, here: Value, cell: Callable[[int], Value], limit: int = POSITIONS) -> Local:
    """An input known near a position: `cell(d)` stands d to the right of `here`."""
    anywhere = rasp.sequence(name)

    def at(p: Value) -> Value:
        d = z3.simplify(number(p) - number(here))
        return cell(d.as_signed_long()) if z3.is_bv_value(d) else anywhere.at(p)

    return Local(rasp, at, limit=limit)


# --- the library, and where the next tape looks -----------------------------------------------------------------------


def where_is_choice(program: Program) -> Iterator[Query]:
    c, x, y = (z3.BitVec(name, BITS) for name in ("condition", "x_if", "y_else"))
    out = program.call("where", Terms([c]), Terms([x]), Terms([y]))[0]
    wrong = z3.Not(condition(same(out, choose(c, x, y))))
    yield Query("every int64 triple", (wrong,), watch={"condition": c, "x_if": x, "y_else": y, "where": out})


@dataclass(frozen=True)
class NextTape:
    """The program's next tape of an unknown input of any length."""

    machine: UnknownMachine
    x: Local
    tape: Local

    @classmethod
    def of(cls, program: Program, name: str = "x", shift: int = 2, machine: UnknownMachine | None = None) -> NextTape:
        machine = machine or UnknownMachine(base=2**63 - 1)  # any alphabet
        x = AnyLength().sequence(name)
        return cls(machine, x, program.call("next_tape", x, shift, machine))

    def item(self, p: Value) -> Value:
        """The input at p; zero before the start."""
        return 0 if known(p) and int(p) < 0 else self.x.at(p)

    def window(self, p: Value) -> list[Value]:
        return [self.item(back(p, d)) for d in WINDOW]


WINDOW = (4, 3, 2, 1, 0)  # how far before its own position the next tape (of shift 2) looks: cells -2 to +2


def window_is_enough(program: Program) -> Iterator[Query]:
    x = NextTape.of(program, "x")
    y = NextTape.of(program, "y", machine=x.machine)
    for name, p, here in every_position(x.x.rasp, y.x.rasp):
        differ = z3.Not(condition(same(x.tape.at(p), y.tape.at(p))))
        agree = [same(a, b) for a, b in zip(x.window(p), y.window(p), strict=True)]
        shown = {"p": p, "x[p-4..p]": x.window(p), "y[p-4..p]": y.window(p), "next": [x.tape.at(p), y.tape.at(p)]}
        yield ask(x.machine, f"{name}: equal windows", here, every(agree), differ, watch=shown)
    for i, d in enumerate(WINDOW):
        others = every(agree[:i] + agree[i + 1 :])
        yield ask(x.machine, f"cell {2 - d:+d} matters", here, others, differ, watch=shown, expect="sat")


def start_is_padding(program: Program) -> Iterator[Query]:
    x = NextTape.of(program, "x")
    y = NextTape.of(program, "y", machine=x.machine)
    for p in range(START):
        later = p + START  # y is x after so many zeros
        zeros_first = every([same(a, b) for a, b in zip(x.window(p), y.window(later), strict=True)])
        a, b = x.tape.at(p), y.tape.at(later)
        wrong = z3.Not(condition(same(a, b)))
        shown = {"x[p-4..p]": x.window(p), "next tape": a, "after zeros": b}
        yield ask(x.machine, f"p={p}", zeros_first, wrong, watch=shown)


def third_is_second_delayed(program: Program) -> Iterator[Query]:
    late = NextTape.of(program, "x", 3)
    early = NextTape.of(program, "x", 2, late.machine)
    for name, p, here in every_position(late.x.rasp, early.x.rasp):
        a, b = late.tape.at(p), 0 if known(p) and p == 0 else early.tape.at(back(p, 1))
        wrong = z3.Not(condition(same(a, b)))
        shown = {"x[p-5..p-1]": early.window(back(p, 1)), "next_tape(x, 3)[p]": a, "next_tape(x, 2)[p-1]": b}
        yield ask(late.machine, name, here, wrong, watch=shown)


# --- one step ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class OneStep:
    """A place on a tape of any length, anywhere in an input, and what the program says stands there next."""

    window: Window
    out: Value

    @classmethod
    def of(cls, program: Program, place: Place) -> OneStep:
        window = Window(UnknownMachine(base=2**63 - 1), place)  # any alphabet
        here, rasp = position(), AnyLength()
        rasp.assume_at_least(here, START)  # nearer to the start of the input, `start_is_padding` says the same
        x = around(rasp, "x", here, window.cell)
        return cls(window, program.call("next_tape", x, 2, window.machine).at(here + 2))

    def query(self, wrong: z3.BoolRef) -> Query:
        shown = {
            "cells -2..2": [self.window.cell(d) for d in range(-2, 3)],
            "next tape": self.out,
            "true": self.window.after(),
        }
        return ask(self.window.machine, str(self.window.place), wrong, *self.window.assumed, watch=shown)


def next_tape_is_step(program: Program) -> Iterator[Query]:
    for place in Place.all():
        step = OneStep.of(program, place)
        yield step.query(z3.Not(condition(same(step.out, step.window.after()))))


def next_tape_is_well_formed(program: Program) -> Iterator[Query]:
    for place in Place.all():
        step = OneStep.of(program, place)
        right = step.window.right() if place.head is not None else True
        ways = {1: right, -1: z3.Not(condition(right))}
        wrong = [every([way, z3.Not(condition(_keeps_shape(step, place.moved(by))))]) for by, way in ways.items()]
        yield step.query(z3.Or(*wrong))


def _keeps_shape(step: OneStep, after: Place) -> Value:
    """The head is still on the tape, and the token is what stands in this place then."""
    return after.exists() and step.window.is_kind(step.out, after.kind(0))


def separator_is_only_zero(program: Program) -> Iterator[Query]:
    for place in Place.all():
        step = OneStep.of(program, place)
        yield step.query(condition(same(step.out, sep)) != (place.end == 0))


# --- keys -------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Keyed:
    """The program's key at some position of a sequence of any length, and what it is made of."""

    key: Value
    count: z3.BitVecRef
    tokens: tuple[Value, ...]  # newest first
    p: Value

    @classmethod
    def of(cls, program: Program, name: str, n: int, packing: str, tokens: Sequence[Value], p: Value) -> Keyed:
        """At position p, where these tokens end."""
        rasp = AnyLength(f"count_{name}")
        if not known(p):
            rasp.assume_at_least(number(p), START)
        x = around(rasp, name, p, lambda d: tokens[-d], longest(n, packing))
        key = program.call("hash_n_gram_iter", x, n, BASE, packing).at(p)
        count = number(cumsum(tok_map(x, lambda z: z == sep)).at(p))
        return cls(key, count, tuple(tokens[: n + 1]), p)

    def given(self, limit: int) -> z3.BoolRef:
        """A count of separators is at most the number of tokens."""
        p = number(self.p)
        return z3.And(p >= 0, p < limit - START, self.count >= 0, self.count <= p + 1)


def any_tokens(name: str, size: int) -> list[Value]:
    """Unknown numbers below 32."""
    return [z3.ZeroExt(BITS - 5, z3.BitVec(f"{name}_{i}", 5)) for i in range(size)]


def longest(n: int, packing: str) -> int:
    """Positions up to which the key is an int64."""
    return POSITIONS if packing == "paper" else 2**62 // BASE ** (n + 1)


def masked(tokens: Sequence[Value]) -> tuple[Value, ...]:
    """Tokens, newest first, up to the first separator; zeros from there on."""
    out: list[Value] = []
    alive: Value = True
    for token in tokens:
        alive = choose(alive, choose(same(token, sep), False, True), False)
        out.append(choose(alive, token, 0))
    return tuple(out)


def keys_are_injective(packing: str, ns: Sequence[int]) -> Callable[[Program], Iterator[Query]]:
    def build(program: Program) -> Iterator[Query]:
        for n in ns:
            yield from (_key_near_start(program, n, packing, p) for p in range(n))
            yield from _keys_and_grams(program, n, packing)

    return build


def _key_near_start(program: Program, n: int, packing: str, p: int) -> Query:
    """Before the start of the input a key reads zeros, so that the other positions speak for the first ones too."""
    tokens = any_tokens("x", p + 1)
    near = Keyed.of(program, "x", n, packing, tokens, p)
    far = Keyed.of(program, "y", n, packing, [*tokens, *[0] * START], position())
    wrong = z3.Not(condition(same(near.key, far.key)))
    shown = {"x": tokens[::-1], "key": near.key, "key after zeros": far.key}
    return Query(f"n={n}, p={p}", (near.count == far.count, wrong), watch=shown)


def _keys_and_grams(program: Program, n: int, packing: str) -> Iterator[Query]:
    """Equal count and gram give equal keys; equal keys come from equal count and gram, or from counts far apart."""
    limit = longest(n, packing)
    a, b = (Keyed.of(program, x, n, packing, any_tokens(x, START), position(f"p_{x}")) for x in "xy")
    grams = [masked(a.tokens), masked(b.tokens)]
    equal = every([same(a.count, b.count), *(same(s, t) for s, t in zip(*grams, strict=True))])
    far = z3.Or(a.count - b.count >= BASE**n, b.count - a.count >= BASE**n)
    excused = z3.Or(equal, far) if packing == "paper" else equal
    shown = {"counts": [a.count, b.count], "gram x": grams[0], "gram y": grams[1], "keys": [a.key, b.key]}
    given, same_key = (a.given(limit), b.given(limit)), condition(same(a.key, b.key))
    yield Query(f"n={n}, same key", (*given, same_key, z3.Not(excused)), watch=shown)
    yield Query(f"n={n}, same gram", (*given, equal, z3.Not(same_key)), watch=shown)


# --- end to end -------------------------------------------------------------------------------------------------------


def correct_iff_no_repeat(
    n: int, lengths: Sequence[int], steps: int, packing: str = "paper"
) -> Callable[[Program], Iterator[Query]]:
    def build(program: Program) -> Iterator[Query]:
        for symbols in lengths:
            for head in range(1, symbols + 3):
                for ways in possible_ways(symbols, head, steps):
                    yield run_query(program, n, symbols, head, ways, packing)

    return build


def run_query(program: Program, n: int, symbols: int, head: int, ways: Sequence[bool], packing: str = "paper") -> Query:
    """All runs from a tape of so many symbols whose head starts there and goes these ways."""
    machine = UnknownMachine(BASE)
    tapes = UnknownTape.any(machine, symbols, head).run(machine, ways)
    trace = [token for tape in tapes for token in (*tape.tokens, sep)]
    out = program.call("next_tokens", Terms(trace[:-1]), machine, n, packing)
    first = symbols + 2  # the prompt's last token: after it comes the separator, then the first tape
    correct = every([same(out[i], trace[i + 1]) for i in range(first, len(trace) - 1)])
    repeat = z3.Or(*(repeated_gram(tape.tokens, n + 1) for tape in tapes[1:]))
    name = f"L={symbols} head={head} {''.join('LR'[way] for way in ways)}"
    return ask(machine, name, correct == repeat, watch={"trace": trace, "program": out.items[first:]})


def end_to_end(n: int, steps: int, lengths: Sequence[int], packing: str) -> Lemma:
    """Clause 1 of the sharp theorem, for tapes of these lengths (of symbols) that are long enough to repeat a gram."""
    words = ("one step", "two steps", "three steps")[steps - 1]
    name = f"{words.replace(' ', '-')}{f'-{packing}' * (packing != 'paper')}-n{n}"
    cells = f"{min(lengths)} to {max(lengths)}" if len(lengths) > 1 else str(lengths[0])
    tapes = "the next tape repeats no" if steps == 1 else "none of the next tapes repeats a"
    claim = f"{words} {'is' if steps == 1 else 'are'} right if and only if {tapes} {n + 1}-gram"
    scope = f"packing {packing}, every machine with token ids < {BASE}, n = {n}, {cells} symbols, {words}"
    return Lemma(name, claim, scope, correct_iff_no_repeat(n, lengths, steps, packing))


# --- the list ---------------------------------------------------------------------------------------------------------

ANYWHERE = "every machine and alphabet, any length, any head position"
LEMMAS: tuple[Lemma, ...] = (
    Lemma("where", "where(c, x, y) is x if c else y", "every int64 triple", where_is_choice),
    Lemma(
        "locality",
        "next_tape at a cell is a function of exactly the five cells -2 .. +2",
        "every machine and alphabet, every input of any length, any position",
        window_is_enough,
    ),
    Lemma(
        "padding",
        "before the start of the input next_tape reads zeros",
        "every machine and alphabet, every input of any length",
        start_is_padding,
    ),
    Lemma(
        "delay",
        "next_tape(x, 3) is next_tape(x, 2) one position later",
        "every machine and alphabet, every input of any length, any position",
        third_is_second_delayed,
    ),
    Lemma("step", "next_tape is the machine's step at every position from bos to sep", ANYWHERE, next_tape_is_step),
    Lemma("shape", "the next tape is well formed and as long as the tape", ANYWHERE, next_tape_is_well_formed),
    Lemma("separator", "next_tape is 0 at sep and nowhere else on the tape", ANYWHERE, separator_is_only_zero),
    Lemma(
        "keys",
        "equal count and (n+1)-gram mean equal keys; equal keys mean that, or counts at least 32**n apart",
        "packing paper, n = 1..5, token ids < 32, any length",
        keys_are_injective("paper", range(1, 6)),
    ),
    Lemma(
        "keys-unbounded",
        "keys are equal if and only if count and (n+1)-gram are",
        "packing unbounded, n = 1..5, token ids < 32, lengths up to 2**62 / 32**(n+1)",
        keys_are_injective("unbounded", range(1, 6)),
    ),
    *(
        end_to_end(n, steps, lengths, packing)
        for n, steps, lengths, packing in (
            (1, 1, range(8), "paper"),
            (2, 1, range(6), "paper"),
            (3, 1, (5, 6), "paper"),
            (1, 2, range(5), "paper"),
            (2, 2, (4,), "paper"),
            (1, 3, (3,), "paper"),
            (1, 2, range(4), "unbounded"),
            (1, 2, range(4), "tuple"),
            (7, 1, (9,), "tuple"),
        )
    ),
)


def lemma(name: str) -> Lemma:
    for candidate in LEMMAS:
        if candidate.name == name:
            return candidate
    raise ValueError(f"there is no lemma {name!r}: choose from {', '.join(known.name for known in LEMMAS)}")
