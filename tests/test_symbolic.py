"""The two symbolic interpreters say what numpy says, and the unknown machine is one."""

from __future__ import annotations

import operator

import numpy as np
import pytest
import z3
from hypothesis import given
from hypothesis import strategies as st

from proofs_check.symbolic import sequences
from proofs_check.symbolic.program import PRINTED
from proofs_check.symbolic.runs import run_query
from proofs_check.symbolic.sequences import AnyLength, Lookup, Terms
from proofs_check.symbolic.terms import BITS, NoMeaning, known, number, term
from proofs_check.symbolic.unknown import FAR, Place, UnknownMachine, UnknownTape, Window, possible_ways
from rasp import library
from rasp.core import aggr, full, indices, kqv, sel_width, select, seq_map, tok_map
from rasp.engines.reference import Plain
from rasp.machines.machine import TuringMachine
from rasp.programs.turing import hash_n_gram_iter, next_tape, next_tokens
from rasp.scalar import capture

INT64 = st.integers(-(2**63), 2**63 - 1)


def value(v: object) -> int:
    """A term without unknowns as a number."""
    return int(v) if known(v) else z3.simplify(number(v)).as_signed_long()  # type: ignore[arg-type, call-overload]


def hidden(items: list[int]) -> tuple[Terms, list[tuple[z3.BitVecRef, z3.BitVecRef]]]:
    """The items as unknowns, so that nothing folds, and what they stand for."""
    unknown = [z3.BitVec(f"x{i}", BITS) for i in range(len(items))]
    return Terms(unknown), [(u, number(i)) for u, i in zip(unknown, items, strict=True)]


FUNCTIONS = [
    lambda a, b: a + b,
    lambda a, b: a - b,
    lambda a, b: a * b,
    lambda a, b: a & b,
    lambda a, b: a | b,
    lambda a, b: a ^ b,
    lambda a, b: a if b else 0,
    lambda a, b: -a if a < b else ~b,
    lambda a, b: abs(a) == b,
    lambda a, b: (a == b) | (a > 3),
    lambda a, b: a * (1 - (b == 0)),
    lambda a, b: not a,
]


@pytest.mark.parametrize("function", FUNCTIONS)
@given(a=INT64, b=INT64)
def test_terms_are_int64_arithmetic(function: object, a: int, b: int) -> None:
    e = capture(function, 2)  # type: ignore[arg-type]
    x, y = z3.BitVecs("x y", BITS)
    substituted = z3.substitute(number(term(e, [x, y])), (x, number(a)), (y, number(b)))
    with np.errstate(all="ignore"):
        expected = int(np.int64(function(np.int64(a), np.int64(b))))  # type: ignore[operator]
    assert value(substituted) == expected == value(term(e, [a, b]))


@given(a=INT64, b=INT64.filter(bool))
def test_division_follows_python(a: int, b: int) -> None:
    x, y = z3.BitVecs("x y", BITS)
    for function in (operator.floordiv, operator.mod):
        found = z3.substitute(number(term(capture(function, 2), [x, y])), (x, number(a)), (y, number(b)))
        expected = function(a, b)
        if expected < 2**63:  # -2**63 // -1 is no int64
            assert value(found) == expected


def test_what_has_no_meaning_is_refused() -> None:
    x = z3.BitVec("x", BITS)
    with pytest.raises(NoMeaning, match="leaves the integers"):
        term(capture(lambda a: a / 2, 1), [x])
    with pytest.raises(NoMeaning, match="nothing can be proved"):
        term(capture(lambda a: [1, 2, 3][a], 1), [x])
    with pytest.raises(OverflowError, match="int64"):
        number(2**63)


PRIMITIVES = {
    "mean": lambda x: aggr(select(x, x, operator.lt), x, 7, "mean"),
    "max": lambda x: kqv(x, x, indices(x), operator.gt, 5, "max"),
    "min": lambda x: kqv(x, tok_map(x, lambda a: a // 2), x, operator.eq, -1, "min"),
    "width": lambda x: sel_width(select(x, x, operator.ge)),
    "cumsum": lambda x: library.cumsum(tok_map(x, lambda a: a > 1)),
    "where": lambda x: library.where(x == 2, full(x, 9), -x),
    "shift": lambda x: library.shift_right(x, 2, default=4) + 1,
    "maximum": library.maximum,
    "argmin": library.argmin,
    "mask": lambda x: seq_map(x, ~(x == 1) & (x < 3), lambda a, m: a * m),
}


@pytest.mark.parametrize("name", PRIMITIVES)
@pytest.mark.parametrize("items", [[0], [3, 1, 2], [2, 2, 0, 3, 1]])
def test_positional_is_the_reference(name: str, items: list[int]) -> None:
    program = PRIMITIVES[name]
    expected = [int(v) for v in program(Plain(items))]
    x, values = hidden(items)
    found = [value(z3.substitute(number(v), *values)) for v in program(x)]
    assert found == expected == [value(v) for v in program(Terms(items))]


@pytest.mark.parametrize("n, packing", [(1, "paper"), (2, "paper"), (1, "unbounded")])
def test_the_program_on_terms_is_the_program(n: int, packing: str) -> None:
    machine = TuringMachine.random(symbols=2, states=2, seed=5)
    trace = machine.trace(machine.encode(["a1", "a2", "a1"], head=1), 2).tolist()
    expected = [int(v) for v in next_tokens(Plain(trace), machine, n, packing)]
    assert [value(v) for v in next_tokens(Terms(trace), machine, n, packing)] == expected


# --- any length -------------------------------------------------------------------------------------------------------


def test_a_local_sequence_is_the_program_at_a_position() -> None:
    machine = TuringMachine.random(symbols=3, states=2, seed=1)
    trace = machine.trace(machine.encode(["a1", "a2", "a3"], head=2), 2).tolist()
    x = AnyLength().sequence("x")
    p = z3.BitVec("p", BITS)
    items = z3.Function("x", p.sort(), p.sort())
    out = number(next_tape(x, 2, machine).at(p))
    solver = z3.Solver()
    solver.add(*(items(number(i)) == token for i, token in enumerate(trace)))
    for i, expected in enumerate(next_tape(Plain(trace), 2, machine)):
        assert solver.check(p == i, out != expected) == z3.unsat


def test_a_solver_that_does_not_know_where_attention_looks_is_not_taken_for_nowhere(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sequences, "_DISTANCES", {})
    monkeypatch.setattr(z3.Solver, "check", lambda *_: z3.unknown)
    monkeypatch.setattr(z3.Solver, "reason_unknown", lambda _: "gave up")
    x = AnyLength().sequence("x")
    with pytest.raises(NoMeaning, match="does not find out where a selector looks .gave up"):
        library.shift_right(x, 3).at(9)


def test_attention_to_a_distance_is_recognised_and_other_attention_is_kept() -> None:
    x = AnyLength().sequence("x")
    assert value(library.shift_right(x, 3, default=8).at(2)) == 8
    assert value(kqv(indices(x), indices(x) + 1, x, operator.eq, default=6).at(5)) == 6  # only ever the future
    assert isinstance(kqv(x, x, x, operator.eq), Lookup)
    with pytest.raises(NoMeaning, match="not causal"):
        select(x, x, operator.eq, causal=False)
    with pytest.raises(NoMeaning, match="no running count"):
        sel_width(select(x, x, operator.eq))


def test_counts_count() -> None:
    rasp = AnyLength()
    x = rasp.sequence("x")
    count = hash_n_gram_iter(x, 1, 32, "paper")
    assert isinstance(count.at(z3.BitVec("p", BITS)), z3.BitVecRef)
    (counter,) = rasp.counters
    solver = z3.Solver()
    solver.add(*(counter.step(i) for i in range(4)), *(number(x.at(i)) == i % 2 for i in range(4)))
    assert solver.check(number(counter.at(3)) != 2) == z3.unsat  # zeros at 0 and 2
    assert solver.check(z3.Not(counter.bounds(3))) == z3.unsat


# --- the unknown machine ----------------------------------------------------------------------------------------------


def test_every_tape_shape_of_a_real_machine_is_a_place() -> None:
    """The kinds of `Place` are those of real tapes, seen from each of their cells."""
    machine = TuringMachine.random(symbols=2, states=2, seed=0)
    places = set(Place.all())
    seen = set()
    for length in range(7):
        for head in range(-1, length + 1):
            tape = [*machine.encode(["a1"] * length, head), 0]
            at, end = head + 2, len(tape) - 1
            for cell in range(len(tape)):
                near = Place(
                    cell if cell <= 2 else FAR,
                    end - cell if end - cell <= 4 else FAR,
                    at - cell if -2 <= at - cell <= 3 else FAR,
                )
                seen.add(near)
                assert near in places
                for d in range(max(-cell, -2), min(end - cell, 2) + 1):
                    assert near.kind(d) == kind_of(machine, tape[cell + d])
    assert seen == places  # and none is invented


def kind_of(machine: TuringMachine, token: int) -> str:
    if token < 4:
        return ("sep", "bos", "eos")[token]
    return "state" if machine.is_state(token) else "symbol"


def test_the_true_step_of_the_lemmas_is_the_machines() -> None:
    machine = TuringMachine.random(symbols=3, states=2, seed=2)
    for head in range(-1, 4):
        tape = machine.encode(["a1", "a2", "a3"], head)
        after = machine.step(tape)
        at = next(i for i, t in enumerate(tape) if machine.is_state(t))
        state, under = tape[at], tape[at - 1]
        right = bool(machine.move(state, under))
        assert (right,) in possible_ways(3, at, 1)
        unknown = UnknownMachine()
        start = UnknownTape.any(unknown, 3, at)
        found = start.step(unknown, right).tokens
        given = [(a.arg(0), z3.BitVecVal(b, 5)) for a, b in zip(start.tokens, tape, strict=True) if not known(a)]
        here = number(state), number(under)
        given += [
            (f(*here), z3.BitVecVal(getattr(machine, f.name())(state, under), 5))
            for f in (unknown._next_state, unknown._next_symbol)
        ]
        once = [z3.simplify(z3.substitute(number(t), *given)) for t in found]
        assert [value(z3.substitute(t, *given)) for t in once] == after


def test_a_window_and_a_tape_step_alike() -> None:
    """The two ways of saying "one true step" are one: seen from each cell of a tape of three symbols."""
    for head, ways in ((h, w) for h in range(1, 6) for w in possible_ways(3, h, 1)):
        machine = UnknownMachine()
        before, after = UnknownTape.any(machine, 3, head).run(machine, ways)
        cells = [*before.tokens, 0]
        for cell, expected in enumerate([*after.tokens, 0]):
            place = Place(
                cell if cell <= 2 else FAR,
                6 - cell if 6 - cell <= 4 else FAR,
                head - cell if -2 <= head - cell <= 3 else FAR,
            )
            window = Window(machine, place)
            window._cells = {i - cell: token for i, token in enumerate(cells)}
            wrong = number(window.after()) != number(expected)
            solver = z3.Solver()
            solver.add(wrong, *machine.facts(wrong))
            assert solver.check() == z3.unsat


def test_a_solution_is_a_machine_on_which_the_program_does_what_the_solution_says() -> None:
    """Where the program errs for lack of room for a gram, the reference interpreter errs at the same tokens."""
    query = run_query(PRINTED, 1, 3, 2, (False,))
    machine = UnknownMachine()
    UnknownTape.any(machine, 3, 2).run(machine, (False,))
    solver = z3.Solver()
    solver.add(*query.formulas[1:])  # without the claim's negation: any run
    trace, out = query.watch["trace"], query.watch["program"]
    wrong = z3.Or(*(number(a) != number(b) for a, b in zip(out, trace[6:], strict=False)))  # type: ignore
    assert solver.check(wrong) == z3.sat
    model = solver.model()
    tokens = [model.eval(number(t), True).as_signed_long() for t in trace]  # type: ignore[union-attr]
    expected = [model.eval(number(t), True).as_signed_long() for t in out]  # type: ignore[union-attr]
    found = next_tokens(Plain(tokens[:-1]), machine.given(model), 1)
    assert [int(v) for v in found][5:] == expected
