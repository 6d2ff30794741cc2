"""Counts that run past their capacity: a compiled model says what the program says, or refuses, at every position."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch
from compiled_machines import SMALL, random_tape
from compiled_programs import finite

from compile import CapacityError, CompileError, Transformer, compile_machine, compile_program
from compile.front import factor as stage
from compile.front.domains import Capacity
from compile.hurting import hurting_inputs
from rasp import (
    cumsum,
    equals,
    full,
    index_select,
    kqv,
    next_tokens,
    num_prev,
    sel_width,
    select,
    seq_map,
    shift_right,
    tok_map,
)
from rasp.engines.reference import Plain
from rasp.graph import evaluate

torch.set_num_threads(1)


class Case(NamedTuple):
    run: Callable[[Any], Any]
    vocabulary: int
    options: dict[str, int]
    inputs: Callable[[np.random.Generator], np.ndarray]


def zeros_then_others(rng: np.random.Generator) -> np.ndarray:
    return np.concatenate([np.zeros(rng.integers(10, 22), dtype=int), rng.integers(1, 3, size=8)])


def short(rng: np.random.Generator) -> np.ndarray:
    return rng.integers(0, 3, size=int(rng.integers(1, 25)))


def count_as_key(x: Any) -> Any:
    """The key is a count, and the query a number beyond its capacity."""
    return kqv(cumsum(x == 0), x * 9, x, equals, default=-9, reduction="max")


def packed_count(x: Any) -> Any:
    """The count is the lower digit of a key: past 8 it runs into the digit above, where queries may equal it."""
    key = seq_map(cumsum(x == 0), x, lambda count, token: count + 8 * token)
    query = seq_map(cumsum(x == 1), shift_right(x, 1), lambda count, token: count + 8 * token)
    return kqv(key, query, x, equals, default=-9, reduction="max")


def largest_count(x: Any) -> Any:
    return kqv(x, x, num_prev(x, x), lambda k, q: True, reduction="max")


CASES = {
    "a key against larger queries": Case(count_as_key, 3, {"counts": 12}, zeros_then_others),
    "positions against larger queries": Case(
        lambda x: index_select(x, cumsum(x > 0), -999),
        2,
        {"counts": 64, "positions": 24},
        lambda rng: rng.integers(0, 2, size=int(rng.integers(20, 49))),
    ),
    "a lower digit of a key": Case(packed_count, 3, {"counts": 5}, short),
    "a count that falls, shifted": Case(lambda x: shift_right(num_prev(x, x), 1), 3, {"counts": 5}, short),
    "a count that falls, looked up": Case(largest_count, 3, {"counts": 5}, short),
    "a count of a count": Case(lambda x: sel_width(select(num_prev(x, x) % 2, x, equals)), 3, {"counts": 5}, short),
    "a mean, shifted": Case(lambda x: shift_right(kqv(x, x, x, lambda k, q: k <= q), 2), 3, {"counts": 5}, short),
}


def outcomes(model: Transformer, case: Case, count: int = 40) -> list[str]:
    rng, found = np.random.default_rng(0), []
    for _ in range(count):
        x = case.inputs(rng)
        try:
            found.append("right" if model.predict(x).tolist() == [int(v) for v in case.run(Plain(x))] else "wrong")
        except CapacityError:
            found.append("refused")
    return found


@pytest.mark.parametrize("name", CASES)
def test_never_wrong(name: str) -> None:
    case = CASES[name]
    found = outcomes(compile_program(case.run, range(case.vocabulary), **case.options), case)
    assert "wrong" not in found and {"right", "refused"} <= set(found)


@pytest.mark.parametrize("name", [name for name in CASES if "positions" not in name and "mean" not in name])
def test_never_wrong_with_tracr(name: str) -> None:
    """(There, an input longer than the positions is an error, and a mean of all of them is exact.)"""
    pytest.importorskip("tracr", reason="tracr is not installed")
    case = CASES[name]
    model = compile_program(case.run, range(case.vocabulary), backend="tracr", max_seq_len=32, **case.options)
    found = outcomes(model, case)
    assert "wrong" not in found and {"right", "refused"} <= set(found)


def test_a_key_that_equals_no_query_may_run_over() -> None:
    """The count goes to 40, is compared with at most 2, and is no other number of the program."""
    model = compile_program(
        lambda x: kqv(cumsum(x == 0), x, x, equals, default=-9, reduction="max"), range(3), counts=5
    )
    x = np.array([1, 2, *[0] * 40, 1, 2, 0])
    assert model.predict(x).tolist() == kqv(cumsum(x == 0), x, x, equals, default=-9, reduction="max").tolist()


# --- validation sees what is not watched ------------------------------------------------------------------------------


@pytest.mark.parametrize("name", CASES)
def test_validation_sees_a_count_that_is_not_watched(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stage, "watched_counts", lambda *_: {})
    with pytest.raises(CompileError, match="differs from the program"):
        compile_program(CASES[name].run, range(CASES[name].vocabulary), **CASES[name].options)


@pytest.mark.parametrize("name", [name for name in CASES if "falls" in name or "mean" in name])
def test_validation_sees_an_overrun_that_is_not_passed_on(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    right = stage.watched_counts
    monkeypatch.setattr(stage, "watched_counts", lambda *given: dict.fromkeys(right(*given), False))
    with pytest.raises(CompileError, match="differs from the program"):
        compile_program(CASES[name].run, range(CASES[name].vocabulary), **CASES[name].options)


def test_inputs_made_to_hurt() -> None:
    """Every token alone, lengths from 1 to past the positions, ties, and each count past its capacity."""

    def program(x: Any) -> Any:
        return seq_map(num_prev(x, x), cumsum(x == 3), lambda a, b: a % 2 + 2 * (b % 2))

    prepared = finite(program, range(5), Capacity(counts=20, positions=50))
    inputs = hurting_inputs(prepared)
    assert {int(x[0]) for x in inputs if len(x) == 1} == set(range(5))
    assert {1, 50} < {len(x) for x in inputs} and max(map(len, inputs)) > 50
    reached = [
        [
            v.max()
            for v, n in zip(evaluate(prepared.written, [x]), prepared.written.nodes, strict=True)
            if n.op == "width"
        ]
        for x in inputs
    ]
    assert len(reached[0]) == 2 and (np.max(reached, axis=0) > 20).all()
    assert max(len(x) for x in hurting_inputs(prepared, longest=30)) == 30


# --- lean and the paper's packing -------------------------------------------------------------------------------------


def test_lean_refuses_a_packing_that_it_would_not_follow() -> None:
    with pytest.raises(CompileError, match=r"below 8\*\*1 = 8, and 64 steps count to 66: give packing='unbounded'"):
        compile_machine(SMALL, backend="lean", packing="paper")


def test_the_packings_differ_past_the_papers_steps_and_lean_follows_the_one_it_was_given() -> None:
    """8 token ids and n = 1: the paper's packing is good for 8 steps. 20 steps of short tapes go past that."""
    rng = np.random.default_rng(0)
    traces = [SMALL.trace(random_tape(SMALL, 3, rng), 20) for _ in range(12)]
    assert any((next_tokens(x, SMALL, 1, "paper") != next_tokens(x, SMALL, 1, "unbounded")).any() for x in traces)
    model = compile_machine(SMALL, backend="lean", steps=20)
    assert model.config.extra["packing"] == "unbounded"
    assert all(model.predict(x).tolist() == next_tokens(x, SMALL, 1, "unbounded").tolist() for x in traces)


def test_lean_follows_the_papers_packing_as_far_as_it_goes() -> None:
    model = compile_machine(SMALL, backend="lean", steps=5, packing="paper")
    assert model.config.extra["packing"] == "paper"
    rng = np.random.default_rng(1)
    for trace in (SMALL.trace(random_tape(SMALL, 3, rng), 5) for _ in range(12)):
        assert model.predict(trace).tolist() == next_tokens(trace, SMALL, 1, "paper").tolist()
        with pytest.raises(CapacityError):
            model.predict(SMALL.trace(trace[: trace.tolist().index(0)], 20))


# --- no traceback -----------------------------------------------------------------------------------------------------

SENTENCES: dict[str, tuple[Callable[[], Any], str]] = {
    "a table that lacks a token": (
        lambda: compile_program(lambda x: tok_map(x, {0: 1, 1: 2}.__getitem__), range(5)),
        "fails on a value its inputs may have|cannot be recorded|fails when it is recorded",
    ),
    "a program that fails": (lambda: compile_program(lambda x: x.next, range(3)), "fails when it is recorded"),
    "no program": (lambda: compile_program(3, range(3)), "3 is no program; give a function"),  # type: ignore[arg-type]
    "endless tokens": (lambda: compile_program(lambda x: x, range(10**12)), "more than 1048576 tokens"),
    "no vocabulary": (lambda: compile_program(lambda x: x, 3), "the vocabulary is 3"),  # type: ignore[arg-type]
    "words": (lambda: compile_program(lambda x: x, ["a"]), "'a' is no token id"),  # type: ignore[list-item]
    "a huge token": (lambda: compile_program(lambda x: x, [10**12]), "is no token id"),
    "huge counts": (lambda: compile_program(lambda x: x, range(3), counts=10**9), "counts is 1000000000"),
    "beyond int64": (lambda: compile_program(lambda x: x * 2**62, range(5)), "beyond"),
    "a mean of far values": (
        lambda: compile_program(lambda x: kqv(x, x, x * 10**14, lambda k, q: True), range(3)),
        "a mean of values from 0 to 200000000000000",
    ),
    "an n too large": (lambda: compile_machine(SMALL, n=30), "n = 30 does not fit"),
    "an unknown packing": (lambda: compile_machine(SMALL, packing="odd"), "packing 'odd' is not one of"),
}


@pytest.mark.parametrize("name", SENTENCES)
def test_refused_in_a_sentence(name: str) -> None:
    attempt, sentence = SENTENCES[name]
    with pytest.raises(CompileError, match=sentence):
        attempt()


def test_a_comparison_of_two_constants() -> None:
    """Both sides of the selector are sums that cancel out, which only their domains tell."""

    def program(x: Any) -> Any:
        zero = seq_map(x, x, lambda a, b: a - b)
        return kqv(zero, zero, x, equals, default=1, reduction="max")

    assert compile_program(program, [0]).predict([0, 0, 0]).tolist() == [0, 0, 0]
    assert compile_program(program, range(3)).predict([0, 2, 1]).tolist() == [0, 2, 2]


def test_packed_keys_that_leave_int64_are_compared_as_int64() -> None:
    """4 * 2**62 is 0: tokens that differ have the same key."""

    def program(x: Any) -> Any:
        return kqv(x * 2**62, shift_right(x, 1) * 2**62, x, equals, default=9, reduction="max")

    model = compile_program(program, (0, 4, 8))
    x = np.array([4, 0, 8, 4])
    assert model.predict(x).tolist() == program(x).tolist() == [4, 4, 8, 8]


@pytest.mark.parametrize(
    "program",
    [
        lambda x: full(x, -(2**63)),
        lambda x: shift_right(x, 1, default=2**62),
        lambda x: kqv(x, x + 1, x, equals, default=2**60, reduction="max"),
    ],
)
def test_numbers_too_large_for_a_logit_to_stand_for(program: Callable[[Any], Any]) -> None:
    with pytest.raises(CompileError, match="it reaches .* beyond"):
        compile_program(program, range(2))
