"""The benchmark's examples are right and the same on np-rasp's primitives; and functions are remembered safely."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from experiments.benchmarks.np_rasp import (
    HINT,
    IS,
    START,
    STOP,
    addition,
    count_prompt,
    counting,
    generated,
    sum_prompt,
)
from rasp import full, indices, kqv, run, seq_map, tok_map, where
from rasp.library import equals, lt
from rasp.scalar.memory import forget, remembered

STEP = 1
TABLE = {1: 2}


@pytest.mark.parametrize(("a", "b"), [(48123, 91879), (99999, 1), (50494, 49506), (0, 0), (12345, 87654)])
def test_sums(a: int, b: int) -> None:
    tokens = generated(addition, sum_prompt(a, b), naive=False)
    assert tokens[26:] == [t for i, d in enumerate(f"{a + b:06d}") for t in (HINT + i, int(d))] + [STOP]
    assert generated(addition, sum_prompt(a, b), naive=True) == tokens


def test_counting() -> None:
    for naive in (True, False):
        assert generated(counting, count_prompt(2, 7), naive) == [START, 2, 7, IS, 2, 3, 4, 5, 6, 7, STOP]


def added(step: Any) -> Callable[[Any], Any]:
    return lambda a: a + step


def test_a_function_is_explored_once() -> None:
    calls = []

    def find(name: str) -> str:
        calls.append(name)
        return name

    forget()
    for _ in range(3):
        assert remembered(lambda a: a + 1, "x", lambda: find("alone")) == "alone"
        assert remembered(added(3), "x", lambda: find("closed over 3")) == "closed over 3"
        assert remembered(added(4), "x", lambda: find("closed over 4")) == "closed over 4"
        assert remembered(functools.partial(max, 3), "x", lambda: find("partial")) == "partial"
    assert calls == ["alone", "closed over 3", "closed over 4", "partial"]


def test_numbers_that_are_equal_are_not_the_same() -> None:
    for first, second in ((1, True), (1, 1.0), (0.0, -0.0)):
        forget()
        assert remembered(added(first), "", lambda: 1) == 1 and remembered(added(second), "", lambda: 2) == 2


def test_what_may_change_is_not_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    """A function sees the globals, closures and mutable things of the moment it is called."""
    x = np.array([1, 2])
    step = [1]
    closed: Callable[[Any], Any] = lambda a: a + step[0]  # noqa: E731
    stepped: Callable[[Any], Any] = lambda a: a + STEP  # noqa: E731
    looked_up: Callable[[Any], Any] = lambda a: TABLE.get(int(a), 0)  # noqa: E731
    assert tok_map(x, stepped).tolist() == tok_map(x, closed).tolist() == [2, 3]
    assert tok_map(x, looked_up).tolist() == [2, 0]
    monkeypatch.setitem(globals(), "STEP", 5)
    monkeypatch.setitem(TABLE, 2, 9)
    step[0] = 7
    assert tok_map(x, closed).tolist() == [8, 9]
    assert tok_map(x, stepped).tolist() == [6, 7] and tok_map(x, looked_up).tolist() == [2, 9]


VALUES = st.sampled_from([-(2**63), -2, -1, 0, 1, 2, 3, 2**62, 2**63 - 1])


@given(x=st.lists(VALUES, min_size=1, max_size=9), data=st.data())
def test_closed_forms_are_what_the_definition_says(x: list[int], data: st.DataObject) -> None:
    """Queries that are the same everywhere with values that count up; comparisons of whole numbers; `where`."""
    asked, default, start = (data.draw(VALUES) for _ in range(3))
    other = data.draw(st.lists(VALUES, min_size=len(x), max_size=len(x)))
    reduction = data.draw(st.sampled_from(["max", "min"]))

    def found(x: Any, y: Any) -> list[Any]:
        return [
            kqv(x, full(x, asked), indices(x) + start, equals, default=default, reduction=reduction),
            seq_map(x, y, lt),
            where(y, x, y),
            where(x == y, y, x),
            (x == y) & ~(x < y),
        ]

    for case in range(5):
        program: Callable[..., Any] = lambda x, y: tok_map(found(x, y)[case], lambda a: a)  # noqa: B023, E731
        assert run(program, x, other).tolist() == run(program, x, other, engine="reference").tolist()
