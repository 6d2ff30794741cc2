"""Large maps in steps: the steps compute the whole, and what does not fall into steps is left as it is."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from compiled_programs import finite

from compile import CompileError, compile_program
from compile.front.bounds import values_taken
from compile.front.domains import Capacity
from compile.front.steps import in_steps, split_maps
from rasp import cumsum, seq_map, where
from rasp.scalar import Expr, arg, binary, const, evaluate_int, ite

LARGE = [tuple(range(40))] * 4


def equal(i: int, j: int) -> Expr:
    return binary("==", arg(i), arg(j))


def value(steps: list[Expr], given: list[int]) -> int:
    """What the last step says."""
    known = list(given)
    for step in steps:
        known.append(evaluate_int(step, known))
    return known[-1]


@pytest.mark.parametrize(
    "whole",
    [
        ite(equal(0, 1), arg(2), arg(3)),
        ite(binary("&", equal(0, 1), equal(2, 3)), const(7), arg(3)),
        binary("+", ite(equal(0, 1), const(1), const(0)), ite(equal(2, 3), const(1), arg(1))),
        ite(equal(0, 1), ite(equal(2, 3), arg(0), const(9)), binary("%", arg(2), const(5))),
    ],
    ids=str,
)
def test_the_steps_compute_the_whole(whole: Expr) -> None:
    steps = in_steps(whole, LARGE)
    assert len(steps) > 1 and steps[-1] != whole
    rng = np.random.default_rng(0)
    for given in [*rng.integers(40, size=(200, 4)).tolist(), *rng.integers(2, size=(50, 4)).tolist()]:
        assert value(steps, given) == evaluate_int(whole, given)


def test_a_step_left_out_is_noticed() -> None:
    whole = ite(equal(0, 1), arg(2), arg(3))
    steps = in_steps(whole, LARGE)
    wrong = [const(0), *steps[1:]]
    assert value(wrong, [1, 1, 5, 6]) != evaluate_int(whole, [1, 1, 5, 6])


def test_what_has_no_small_part_is_left_whole() -> None:
    packed = binary("+", binary("*", arg(0), const(10**6)), binary("+", binary("*", arg(1), const(10**3)), arg(2)))
    assert in_steps(packed, LARGE) == [packed]
    small = ite(equal(0, 1), arg(0), const(1))
    assert in_steps(small, [(0, 1), (0, 1)]) == [small]


def test_values_of_a_large_map_are_bounded_by_its_parts() -> None:
    taken = values_taken(ite(equal(0, 1), binary("+", arg(2), const(100)), arg(3)), LARGE)
    assert taken == (*range(40), *range(100, 140))
    assert values_taken(binary("+", equal_number(0, 1), equal_number(2, 3)), LARGE) == (0, 1, 2)
    with pytest.raises(CompileError, match="combinations"):
        values_taken(binary("+", arg(0), binary("*", arg(1), arg(2))), [tuple(range(0, 10**6, 997))] * 3)


def equal_number(i: int, j: int) -> Expr:
    return ite(equal(i, j), const(1), const(0))


def two_comparisons(x: Any) -> Any:
    """1 where as many 1 as 2, else 2 where as many 3 as 4, else the token."""
    one, two, three, four = (cumsum(x == token) for token in (1, 2, 3, 4))
    first, second = seq_map(one, two, lambda a, b: a == b), seq_map(three, four, lambda a, b: a == b)
    return where(first, x * 0 + 1, where(second, x * 0 + 2, x))


def test_a_program_with_a_large_map_is_exact() -> None:
    program = finite(two_comparisons, range(6), Capacity(60))
    assert split_maps(program).graph.output >= program.graph.output
    model = compile_program(two_comparisons, range(6), counts=60, check=True)
    rng = np.random.default_rng(1)
    for _ in range(20):
        x = rng.integers(6, size=50)
        assert model.predict(x).tolist() == two_comparisons(x).tolist()
