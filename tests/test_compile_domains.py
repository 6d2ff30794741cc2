"""The compiler's front half: finite domains, packed keys taken apart, functions as boxes."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from compiled_programs import LENGTH, PROGRAMS, finite
from hypothesis import given
from hypothesis import strategies as st

from compile import CompileError, compile_program
from compile.front.cover import Box, TooManyBoxes, cover
from compile.front.digits import split_counts
from compile.front.domains import Capacity, infer_domains
from compile.front.factor import affine, factor
from compile.front.matches import matches
from rasp import cumsum, equals, full, indices, kqv, next_tokens, seq_map, shift_right, simplify, tok_map, trace
from rasp.graph import evaluate
from rasp.machines.machine import TuringMachine
from rasp.scalar import Expr, Table, arg, arguments, binary, const, evaluate_int

SMALL = TuringMachine.random(symbols=2, states=2, seed=1)
PAPER = TuringMachine.random(symbols=12, states=16, seed=1)


def turing(machine: TuringMachine, n: int, packing: str) -> Any:
    return lambda x: next_tokens(x, machine, n, packing)


def random_inputs(vocabulary: range, seed: int, count: int = 12, longest: int = LENGTH) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    return [rng.choice(np.array(vocabulary), size=int(rng.integers(1, longest + 1))) for _ in range(count)]


# --- domains ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", PROGRAMS)
def test_every_value_lies_in_its_domain(name: str) -> None:
    program = PROGRAMS[name]
    prepared = finite(program.run, program.vocabulary, Capacity(**program.options))
    for x in random_inputs(program.vocabulary, seed=3):
        for i, values in enumerate(evaluate(prepared.graph, [x])):
            assert set(values.tolist()) <= set(prepared.domains[i]), prepared.graph.describe(i)


def test_domains_of_single_operations() -> None:
    graph = simplify(trace(lambda x: shift_right(x, 2, default=9) + full(x, 1)), hoist=False)
    domains = infer_domains(graph, range(3))
    assert domains[graph.output] == (1, 2, 3, 10)
    mean = simplify(trace(lambda x: kqv(x, x, x, lambda k, q: True, default=-4)), hoist=False)
    assert infer_domains(mean, (2, 5))[mean.output] == (-4, 2, 3, 4, 5)
    count = simplify(trace(lambda x: cumsum(x == 1)), hoist=False)
    assert infer_domains(count, range(3), Capacity(counts=5))[count.output] == (0, 1, 2, 3, 4, 5)


def test_a_large_product_has_a_reason_instead_of_a_domain() -> None:
    graph = simplify(trace(lambda x: seq_map(x, shift_right(x, 1), lambda a, b: a + 1000 * b)), hoist=False)
    domains = infer_domains(graph, range(1000))
    assert domains.get(graph.output) is None
    with pytest.raises(CompileError, match="1000000 combinations"):
        domains[graph.output]


def test_positions_have_no_domain_without_a_bound() -> None:
    graph = simplify(trace(lambda x: indices(x) % 2), hoist=False)
    with pytest.raises(CompileError, match="positions have no bound"):
        infer_domains(graph, range(3))[graph.output]
    assert infer_domains(graph, range(3), Capacity(positions=7))[graph.output] == (0, 1)


@pytest.mark.parametrize("given_", [{"counts": 0}, {"counts": 2.5}, {"positions": -1}, {"counts": True}])
def test_capacity_is_a_whole_number(given_: dict[str, Any]) -> None:
    with pytest.raises(CompileError, match="whole number"):
        Capacity(**given_)


# --- packed keys ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("n", "packing"), itertools.product((1, 2, 3), ("paper", "unbounded")))
def test_the_turing_key_is_matched_digit_by_digit(n: int, packing: str) -> None:
    prepared = finite(turing(PAPER, n, packing), range(PAPER.base), Capacity(counts=31))
    parts = matches(prepared.graph.nodes[prepared.graph.output])
    assert len(parts) == n + 2 and all(part.is_equality for part in parts)
    assert max(len(prepared.domains[i]) for i in range(len(prepared.graph))) <= 32
    for x in random_inputs(range(PAPER.base), seed=n, longest=120):
        assert prepared.graph.run(x).tolist() == prepared.written.run(x).tolist()


def test_the_papers_packing_is_refused_where_counts_run_into_the_gram() -> None:
    """Counts up to base ** n - 1 fit below the gram; one more and two keys may collide."""
    finite(turing(PAPER, 1, "paper"), range(PAPER.base), Capacity(counts=PAPER.base - 1))
    with pytest.raises(CompileError, match="the lower digits reach 32 and run into the one counted in units of 32"):
        finite(turing(PAPER, 1, "paper"), range(PAPER.base), Capacity(counts=PAPER.base))
    finite(turing(PAPER, 2, "paper"), range(PAPER.base), Capacity(counts=PAPER.base**2 - 1))


def test_a_sum_that_is_no_packing_is_matched_as_a_whole() -> None:
    def program(x: Any) -> Any:
        total = seq_map(x, shift_right(x, 1), lambda a, b: a + b)
        return kqv(total, total, x, equals, reduction="max")

    prepared = finite(program, range(4))
    assert len(matches(prepared.graph.nodes[prepared.graph.output])) == 1
    for x in random_inputs(range(4), seed=5):
        assert prepared.graph.run(x).tolist() == prepared.written.run(x).tolist()


def test_equal_coefficients_are_not_confused() -> None:
    graph = simplify(trace(lambda x: 3 * x - 2 * shift_right(x, 1) + 7), hoist=False)
    found = affine(graph.nodes, graph.output)
    assert {c: graph.nodes[j].op for c, j in found.terms.items()} == {3: "input", -2: "delay"} and found.constant == 7


@given(st.integers(1, 9), st.integers(1, 40), st.integers(0, 5))
def test_factoring_never_changes_the_program(low: int, high: int, seed: int) -> None:
    """Packings with any two units: injective ones are split, others are not, and the result is the same."""

    def program(x: Any) -> Any:
        previous = shift_right(x, 1)
        key = seq_map(x, previous, lambda a, b: low * a + high * b)
        return kqv(key, seq_map(previous, x, lambda a, b: low * a + high * b), x, equals, reduction="max")

    graph = simplify(trace(program), hoist=False)
    factored = factor(graph, infer_domains(graph, range(5))).graph
    for x in random_inputs(range(5), seed, count=3):
        assert factored.run(x).tolist() == graph.run(x).tolist()


def test_large_counts_are_compared_as_two_digits() -> None:
    prepared = split_counts(finite(turing(SMALL, 1, "unbounded"), range(SMALL.base), Capacity(counts=200)))
    assert len(matches(prepared.graph.nodes[prepared.graph.output])) == 4
    for x in random_inputs(range(SMALL.base), seed=8):
        assert prepared.graph.run(x).tolist() == prepared.written.run(x).tolist()


def test_what_is_made_of_a_large_count_is_compared_as_two_digits() -> None:
    """A count plus one, masked and shifted: its digits are made of the count, and the whole number is not kept."""

    def program(x: Any) -> Any:
        count = cumsum(x == 1)
        key = shift_right(seq_map(count, x, lambda c, t: c + 1 if t else -1), 1, default=-1)
        return kqv(key, count, x, equals, default=5, reduction="max")

    whole = finite(program, range(3), Capacity(counts=100))
    split = split_counts(whole)
    before, after = (matches(p.graph.nodes[p.graph.output]) for p in (whole, split))
    assert len(before) == 1 and len(after) == 2
    assert max(len(split.domains[j]) for m in after for j in (m.key, m.query)) < 14
    for x in random_inputs(range(3), seed=9):
        assert split.graph.run(x).tolist() == split.written.run(x).tolist()
    model = compile_program(program, range(3), counts=100)
    large = [register for register in model.config.annotations.registers if len(register.values) > 14]
    assert [register.role for register in large] == ["count"]  # what is masked


# --- boxes ------------------------------------------------------------------------------------------------------------


def assert_covers(boxes: list[Box], e: Expr, domains: list[tuple[int, ...]]) -> None:
    for values in itertools.product(*domains):
        inside = [box for box in boxes if all(values[i] in allowed for i, allowed in box.sides)]
        assert len(inside) == 1, f"{len(inside)} boxes hold {values}"
        assert inside[0].value == evaluate_int(e, values)


@given(st.integers(0, 10**6), st.lists(st.integers(1, 4), min_size=1, max_size=4))
def test_boxes_of_a_random_table(seed: int, sizes: list[int]) -> None:
    values = np.random.default_rng(seed).integers(0, 3, size=sizes)
    e = Expr("table", tuple(arg(i) for i in range(len(sizes))), Table("t", values))
    domains = [tuple(range(size)) for size in sizes]
    assert_covers(cover(e, domains, most=1000), e, domains)


def test_boxes_of_an_expression_too_large_for_a_table() -> None:
    chosen = Expr("ite", (binary("==", arg(0), const(1)), arg(1), Expr("ite", (arg(3), arg(2), const(5)))))
    domains = [(0, 1, 2), tuple(range(30)), tuple(range(30)), (0, 1)]
    boxes = cover(chosen, domains, most=1000)
    assert arguments(chosen) == {0, 1, 2, 3} and len(boxes) == 30 + 30 + 1
    small = [(0, 1, 2), (0, 7), (0, 5), (0, 1)]
    assert_covers(cover(chosen, small, most=100), chosen, small)


def test_the_checker_of_boxes_sees_a_hole_and_an_overlap() -> None:
    e, domains = binary("+", arg(0), arg(1)), [(0, 1), (0, 1)]
    boxes = cover(e, domains, most=10)
    with pytest.raises(AssertionError, match="0 boxes"):
        assert_covers(boxes[1:], e, domains)
    with pytest.raises(AssertionError, match="2 boxes"):
        assert_covers([*boxes, boxes[0]], e, domains)


def test_too_many_boxes_are_refused() -> None:
    values = np.random.default_rng(0).integers(0, 1000, size=(70, 70))
    e = Expr("table", (arg(0), arg(1)), Table("t", values))
    with pytest.raises(TooManyBoxes):
        cover(e, [tuple(range(70))] * 2, most=10)


def test_tok_map_of_an_undefined_value_is_refused() -> None:
    with pytest.raises(CompileError, match="fails on a value"):
        finite(lambda x: kqv(tok_map(x, {0: 1}.__getitem__), x, x, equals), range(2)).domains[1]
