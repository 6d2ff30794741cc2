"""Rewriting leaves every program's values alone, and makes the paper's program as small and as shallow as promised."""

from __future__ import annotations

import operator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from agreement import assert_agree
from fuzz.cases import make_case

from rasp import (
    TuringMachine,
    full,
    indices,
    kqv,
    next_tokens,
    sel_width,
    select,
    seq_map,
    shift_right,
    simplify,
    tok_map,
    trace,
    where,
)
from rasp.errors import EngineError, ProgramError
from rasp.graph import Full, Graph, Indices, Input
from rasp.programs.turing import next_tape
from rasp.rewrite import prune


@pytest.mark.parametrize("number", range(60))
def test_rewriting_settles_and_never_grows(number: int) -> None:
    case = make_case(2, number)
    try:
        raw = trace(case.program.run, len(case.program.inputs))
        rewritten = {hoist: simplify(raw, hoist=hoist) for hoist in (True, False)}
    except ProgramError as reason:
        pytest.skip(f"cannot be traced: {reason}")
    for hoist, graph in rewritten.items():
        assert simplify(graph, hoist=hoist) == graph
        assert not {"select", "aggr"} & set(graph.counts())
        assert graph.attention_depth() <= raw.attention_depth() or hoist


def test_programs_that_were_rewritten_wrongly() -> None:
    """Smallest ones of their kind, found by fuzzing."""
    assert_agree(lambda x: (y := tok_map(x, lambda a: a / 2)) + y, [3, 1, -3])
    assert_agree(lambda x: kqv(y := shift_right(x, 1, 3), x, y, operator.eq, -2), [3, 3, 3, 1])


# --- single rules -----------------------------------------------------------------------------------------------------


def ops(program: Any, arity: int = 1, hoist: bool = True) -> dict[str, int]:
    return {op: n for op, n in simplify(trace(program, arity), hoist).counts().items() if op != "input"}


def test_attention_to_a_fixed_distance_is_a_delay() -> None:
    assert ops(lambda x: shift_right(x, 3)) == {"delay": 1}
    assert ops(lambda x: kqv(indices(x), indices(x) - 2, x, operator.eq)) == {"delay": 1}
    assert ops(lambda x: kqv(indices(x) + 1, indices(x) + 5, x, operator.eq, 9)) == {"full": 1}, "it would be ahead"
    assert ops(lambda x: kqv(indices(x), indices(x), x, lambda k, q: q == k + 1)) == {"delay": 1}
    assert ops(lambda x: sel_width(select(indices(x), indices(x) - 2, operator.eq))) == {"full": 1, "delay": 1}


def test_delays_merge_only_with_equal_defaults() -> None:
    assert ops(lambda x: shift_right(shift_right(x, 1), 2)) == {"delay": 1}
    assert ops(lambda x: shift_right(shift_right(x, 1, 5), 2)) == {"delay": 2}
    assert ops(lambda x: shift_right(full(x, 4), 3, default=4)) == {"full": 1}


def test_delays_move_out_of_maps() -> None:
    def program(x: Any) -> Any:
        return seq_map(shift_right(x, 2), shift_right(x, 3), lambda a, b: a + 10 * b)

    graph = simplify(trace(program))
    assert graph.nodes[graph.output].op == "delay" and graph.counts()["delay"] == 2
    assert simplify(trace(program), hoist=False).nodes[-1].op == "map"


def test_constants_move_into_functions() -> None:
    assert ops(lambda x: seq_map(x, full(x, 3), lambda a, b: a * b)) == {"map": 1}
    assert ops(lambda x: seq_map(full(x, 2), full(x, 3), lambda a, b: a * b)) == {"full": 1}
    assert ops(lambda x: kqv(full(x, 1), full(x, 2), x, operator.eq)) == {"full": 1}
    assert ops(lambda x: sel_width(select(x, x, lambda k, q: True))) == {"indices": 1, "map": 1}
    assert ops(lambda x: tok_map(full(x, 0), lambda a: 7 // a if a else 1)) == {"full": 1}


def test_where_is_one_map() -> None:
    assert ops(lambda x: where(x == 1, shift_right(x, 1), x), hoist=False) == {"map": 1, "delay": 1}


def test_equal_parts_are_built_once() -> None:
    graph = simplify(trace(lambda x: kqv(x + 1, x + 1, x + 1, operator.eq) + kqv(x + 1, x + 1, x + 1, operator.eq)))
    assert graph.counts() == {"input": 1, "kqv": 1, "map": 2}


def test_looking_ahead_is_refused_by_name() -> None:
    graph = trace(lambda x: sel_width(select(x, x, operator.lt, causal=False)))
    with pytest.raises(EngineError, match=r"select\(x < x\) is not causal"):
        simplify(graph)
    assert graph.run([1, 2, 3]).tolist() == [0, 1, 2]


def test_prune_keeps_inputs_and_what_is_needed() -> None:
    graph = prune(Graph((Input(), Input(number=1), Indices(), Full(value=3)), 3))
    assert graph.counts() == {"full": 1, "input": 2} and graph.arity == 2


# --- the paper's program ----------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def traced() -> dict[int, Graph]:
    machine = TuringMachine.random(symbols=2, states=2, seed=1)
    return {n: trace(lambda x, n=n: next_tokens(x, machine, n)) for n in range(1, 7)}


def test_size_is_linear_in_n(traced: dict[int, Graph]) -> None:
    sizes = np.array([len(graph) for graph in traced.values()])
    assert len(set(np.diff(sizes))) == 1, "as traced, each n adds the same number of nodes"
    rewritten = np.array([len(simplify(graph)) for graph in traced.values()])
    assert np.diff(rewritten).max() <= 10 and rewritten.max() < sizes.min()


def test_depth_is_constant_in_n_after_rewriting(traced: dict[int, Graph]) -> None:
    assert [g.attention_depth() for g in traced.values()] == sorted({g.attention_depth() for g in traced.values()}), (
        "chained shifts: as traced, the depth grows with every n"
    )
    shallow = {n: simplify(g, hoist=False).attention_depth() for n, g in traced.items()}
    assert set(shallow.values()) == {4}
    hoisted = [simplify(g).attention_depth() for g in traced.values()]
    assert len(set(hoisted[1:])) == 1 and max(hoisted) <= hoisted[0] + 1


def test_one_attention_two_counters_and_delays_are_left(traced: dict[int, Graph]) -> None:
    counts = simplify(traced[1]).counts()
    assert counts["kqv"] == 1 and counts["width"] == 2 and len(simplify(traced[1])) <= 45


def structure(graph: Graph, i: int | None = None) -> Any:
    """What a node computes, whatever the order its parts were built in."""
    node = graph.nodes[graph.output if i is None else i]
    return replace(node, inputs=()), frozenset(structure(graph, j) for j in node.inputs)


def test_the_two_next_tapes_are_one_and_a_delay() -> None:
    """next_tape(., 3) is next_tape(., 2) one token later: the rewriting finds it."""
    machine = TuringMachine.random(symbols=2, states=2, seed=1)
    one = simplify(trace(lambda x: next_tape(x, 2, machine)))
    both = simplify(trace(lambda x: next_tape(x, 2, machine) + 100 * next_tape(x, 3, machine)))
    late = simplify(trace(lambda x: next_tape(x, 3, machine)))
    assert structure(late) == structure(simplify(trace(lambda x: shift_right(next_tape(x, 2, machine), 1))))
    assert late.nodes[late.output].op == "delay"
    assert structure(late, late.nodes[late.output].inputs[0]) == structure(one)
    assert both.counts()["map"] <= one.counts()["map"] + 2 and both.counts()["delay"] <= one.counts()["delay"] + 1
