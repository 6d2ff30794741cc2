"""Equality of tuples: one meaning in every interpreter, at the cost of one equality."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rasp import (
    ENGINES,
    TuringMachine,
    aggr,
    aggr_max,
    aggr_min,
    equals,
    full,
    generate,
    indices,
    kqv,
    leq,
    next_tokens,
    run,
    sel_width,
    select,
    shift_right,
    simplify,
    tok_map,
    trace,
)
from rasp.engines.stream import Stream
from rasp.engines.turing import predict
from rasp.graph import AttentionNode

LARGE = 2**40


def pairs(x: Any) -> Any:
    return kqv((x, shift_right(x, 1)), (shift_right(x, 1), x), indices(x), equals, default=-3, reduction="max")


def joined(x: Any) -> Any:
    return aggr_max(select(x, shift_right(x, 1), equals) & select(shift_right(x, 1), x, equals), indices(x), -3)


def triples(x: Any) -> Any:
    far = x * LARGE - LARGE
    return kqv((x, far, shift_right(x, 2, default=7)), (x, far, shift_right(x, 1)), x - 5, equals, reduction="min")


def means(x: Any) -> Any:
    return kqv((x, tok_map(x, lambda z: z > 2)), (shift_right(x, 1), full(x, 1)), indices(x) - 4, equals, default=-1)


def widths(x: Any) -> Any:
    return sel_width(select((x, x % 2), (shift_right(x, 1), x % 2), equals))


def with_flags(x: Any) -> Any:
    """Some of the conditions speak of keys or queries alone."""
    found = select(x, shift_right(x, 2), equals) & select(x, x, lambda k, q: k > 1) & select(x, x, lambda k, q: q < 4)
    return aggr_min(found, indices(x), 50)


def same_twice(x: Any) -> Any:
    return kqv((x, x, x), (shift_right(x, 1),) * 3, indices(x), equals, reduction="max")


def of_one(x: Any) -> Any:
    return kqv((x,), (shift_right(x, 1),), indices(x), equals, reduction="max")


def to_a_distance(x: Any) -> Any:
    return kqv((indices(x) + 2, x), (indices(x), x), x + 1, equals, default=9)


PROGRAMS = [pairs, joined, triples, means, widths, with_flags, same_twice, of_one, to_a_distance]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)
@settings(max_examples=25, deadline=None)
@given(x=st.lists(st.integers(0, 5), min_size=1, max_size=25))
def test_one_meaning_in_every_interpreter(program: Callable[[Any], Any], x: list[int]) -> None:
    expected = run(program, x, engine="reference").tolist()
    for engine in ("eager", "graph", "stream"):
        assert run(program, x, engine=engine).tolist() == expected, engine


def test_jit_means_the_same() -> None:
    rng = np.random.default_rng(0)

    def everything(x: Any) -> Any:
        total = full(x, 0)
        for k, program in enumerate(PROGRAMS):
            total = total + program(x) * 7**k
        return total

    for length in (1, 7, 40):
        x = rng.integers(6, size=length)
        assert run(everything, x, engine="jit").tolist() == run(everything, x, engine="reference").tolist()


def kinds(program: Callable[..., Any]) -> list[str]:
    """Of the predicates of the rewritten program."""
    return [node.predicate.kind for node in simplify(trace(program)).nodes if isinstance(node, AttentionNode)]


def test_tuples_and_conjunctions_are_one_operation() -> None:
    assert simplify(trace(pairs)) == simplify(trace(joined))
    for program in (pairs, triples, means, widths, with_flags):
        assert {node.predicate.kind for node in simplify(trace(program)).nodes if isinstance(node, AttentionNode)} == {
            "tuple"
        }
    assert [node.predicate.kind for node in simplify(trace(same_twice)).nodes if isinstance(node, AttentionNode)] == [
        "equality"
    ]
    assert simplify(simplify(trace(with_flags))) == simplify(trace(with_flags))


def test_a_token_costs_the_same_however_many_keys_there_were() -> None:
    """Refused past 1,024 distinct keys, were it not an equality."""
    x = np.arange(3000)
    assert Stream(simplify(trace(pairs))).run(x)[-1] == -3


def test_what_is_no_equality_of_tuples() -> None:
    for k, q, pred, why in [
        (lambda x: (x, x), lambda x: x, equals, "a tuple of 2 and no tuple"),
        (lambda x: (x, x), lambda x: (x,), equals, "a tuple of 2 and a tuple of 1"),
        (lambda x: (), lambda x: (), equals, "a tuple of 0 and a tuple of 0"),
        (lambda x: (x, x), lambda x: (x, x), leq, "compared by equals"),
    ]:
        with pytest.raises(ValueError, match=why):
            run(lambda x, k=k, q=q, pred=pred: kqv(k(x), q(x), x, pred), [1, 2, 3])
    assert kqv((1, 2, 1), (1, 1, 1), np.array([5, 6, 7]), equals).tolist() == [5, 5, 6]  # a tuple of numbers


def test_disjunctions_are_none() -> None:
    def either(x: Any) -> Any:
        return aggr(select(x, shift_right(x, 1), equals) | select(shift_right(x, 1), x, equals), x, reduction="max")

    x = np.random.default_rng(1).integers(5, size=30)
    assert run(either, x, engine="stream").tolist() == run(either, x, engine="reference").tolist()
    assert set(kinds(either)) == {"other"}


# --- the machine's program --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [1, 3])
def test_packing_tuple_predicts_as_unbounded_does(n: int) -> None:
    rng = np.random.default_rng(n)
    machine = TuringMachine.random(symbols=3, states=2, seed=n)
    text = machine.trace(machine.encode(["a1", "a3", "a2", "a1", "a1"]), 6)
    for x in (text, rng.integers(machine.base, size=40)):
        expected = next_tokens(x, machine, n, "unbounded").tolist()
        for engine in ENGINES:
            assert predict(x, machine, n, "tuple", engine).tolist() == expected, engine


def test_packing_tuple_has_no_bound_on_n() -> None:
    machine = TuringMachine.random(symbols=2, states=2, seed=0)
    tape = machine.encode(["a1"] * 20)
    trace_ = machine.trace(tape, 3)
    for packing in ("paper", "unbounded"):
        with pytest.raises(OverflowError):
            next_tokens(trace_, machine, 23, packing)
    for engine in ("eager", "stream", "jit"):
        written = generate([*tape, 0], machine, 3 * (len(tape) + 1), 23, "tuple", engine)
        assert written.tolist() == trace_.tolist(), engine
