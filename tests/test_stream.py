"""A streamed program keeps little, costs the same at every token, and refuses what it cannot do in that way."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from agreement import assert_agree, refusal, uncompiled
from hypothesis import given, settings
from hypothesis import strategies as st

from rasp import (
    TuringMachine,
    cumsum,
    full,
    kqv,
    named,
    run,
    sel_width,
    select,
    seq_map,
    shift_right,
    simplify,
    tok_map,
    trace,
)
from rasp.engines.codegen import LONG
from rasp.engines.stream import MAX_DISTINCT, Stream, stream
from rasp.engines.turing import predict, tables_of, turing_graph
from rasp.scalar import Table

TABLE = Table("favourite", np.array([5, 3, 9, 1]))
GRID = Table("pair", np.arange(12).reshape(3, 4) + 1)


def kept(running: Stream) -> dict[str, Any]:
    """The variables of a running program."""
    return dict(running._send.__self__.gi_frame.f_locals)  # type: ignore[attr-defined]


def test_step_by_step_is_the_whole() -> None:
    running = stream(trace(lambda x: kqv(x, shift_right(x, 1), x, operator.eq, reduction="max")))
    x = [3, 1, 3, 3, 2]
    whole = running.run(x).tolist()
    running.reset()
    assert [running.step(t) for t in x] == whole
    running.reset()
    assert [*running.run(x[:2]), *running.run([]), *running.run(x[2:])] == whole, "a run goes on from what was seen"


def test_the_same_program_runs_over_other_tables() -> None:
    """Side by side, without disturbing each other; and what does not fit is refused."""
    machines = [TuringMachine.random(symbols=3, states=2, seed=seed) for seed in (0, 1)]
    first = Stream(turing_graph(3, 2), tables_of(machines[0]))
    running = [first, first.with_tables(tables_of(machines[1]))]
    tokens = [machine.trace(machine.encode(["a1", "a2", "a3", "a1"]), 6).tolist() for machine in machines]
    written = [[of.step(x) for of, x in zip(running, pair, strict=True)] for pair in zip(*tokens, strict=True)]
    expected = [predict(x, m, engine="reference") for m, x in zip(machines, tokens, strict=True)]
    assert np.array_equal(np.transpose(written), expected) and not np.array_equal(*expected)
    larger = tables_of(TuringMachine.random(symbols=3, states=3, seed=0))
    assert "must be of shape" in refusal(lambda: first.with_tables(larger))


def test_two_sequences_step_together() -> None:
    running = Stream(simplify(trace(lambda x, y: cumsum(x == y), 2)))
    assert [running.step(1, 1), running.step(2, 1), running.step(3, 3)] == [1, 1, 2]
    assert refusal(lambda: running.step(1)) == "the program takes 2 sequence(s), 1 given"
    assert refusal(lambda: running.run([1], [1, 2])).startswith("the sequences differ in shape: (1,), (2,)")
    assert refusal(lambda: running.run([1])) == "the program takes 2 sequence(s), 1 given"


@pytest.mark.parametrize("offset", [1, LONG, LONG + 1, 100])
def test_delays_keep_as_many_tokens_as_they_are_long(offset: int) -> None:
    running = stream(trace(lambda x: shift_right(x, offset, default=-3)))
    x = np.arange(1, 301)
    assert running.run(x).tolist() == [-3] * offset + x[: 300 - offset].tolist()
    containers = [v for v in kept(running).values() if hasattr(v, "__len__")]
    assert sum(len(v) for v in containers) + sum(isinstance(v, int) for v in kept(running).values()) <= offset + 4


def test_far_delays_cost_nothing_until_they_are_reached() -> None:
    for engine in ("eager", "graph", "stream", "jit"):
        assert run(lambda x: shift_right(x, 10**15, default=4), [1, 2], engine=engine).tolist() == [4, 4]


def test_counters_keep_one_number() -> None:
    running = stream(trace(lambda x: cumsum(x == 1)))
    running.run([1, 0] * 500)
    assert all(isinstance(v, int) for v in kept(running).values())


def test_equalities_keep_one_entry_for_each_distinct_key() -> None:
    running = stream(trace(lambda x: kqv(x, x, x, operator.eq, reduction="max")))
    running.run(np.arange(1000) % 7)
    memories = [v for v in kept(running).values() if isinstance(v, dict)]
    assert [len(m) for m in memories] == [7]


def test_the_step_is_straight_line_code() -> None:
    """Nothing in the loop of the paper's program depends on the length of the context."""
    machine = TuringMachine.random(symbols=3, states=2, seed=0)
    source = Stream(turing_graph(3, 2), tables_of(machine)).source
    body = source[source.index("while True:") :]
    assert "for " not in body and "deque" not in body and body.count("while") == 1
    assert "remember" not in body, "no predicate that has to look at every key"


# --- general predicates -----------------------------------------------------------------------------------------------

ORDERS: list[Callable[[Any, Any], Any]] = [operator.lt, operator.le, operator.gt, operator.ge, operator.ne]


@settings(max_examples=25)
@given(st.lists(st.integers(-3, 6), max_size=15), st.sampled_from(ORDERS), st.sampled_from(["mean", "max", "min"]))
def test_order_comparisons_of_few_keys(x: list[int], order: Callable[[Any, Any], Any], reduction: str) -> None:
    assert_agree(lambda x: sel_width(select(x, x, order)), x, jit=False)
    assert_agree(lambda x: kqv(x, shift_right(x, 1), x, order, default=-4, reduction=reduction), x, jit=False)


def test_order_comparisons_of_many_keys_are_refused_by_name() -> None:
    def program(x: Any) -> Any:
        return sel_width(select(named(x * 3, "price"), x, operator.lt))

    assert (
        run(program, np.arange(MAX_DISTINCT), engine="stream").tolist()
        == run(program, np.arange(MAX_DISTINCT), engine="eager").tolist()
    )
    message = refusal(lambda: run(program, np.arange(MAX_DISTINCT + 1), engine="stream"))
    assert message.startswith("sel_width(price < x) compares keys by more than equality")
    assert f"over {MAX_DISTINCT} distinct" in message and "engine='eager'" in message


# --- tables -----------------------------------------------------------------------------------------------------------

LOOKUPS: dict[str, Callable[[Any], Any]] = {
    "next": lambda x: tok_map(x, lambda a: TABLE(a + 1)),
    "negative": lambda x: tok_map(x, lambda a: TABLE(-a)),
    "difference": lambda x: seq_map(x, shift_right(x, 1), lambda a, b: TABLE(a - b)),
    "of a table": lambda x: tok_map(x, lambda a: TABLE(TABLE(a % 4))),
    "of a delayed token": lambda x: tok_map(shift_right(x, 1), lambda a: TABLE(a)),
    "of a token with a bad default": lambda x: tok_map(shift_right(x, 1, default=9), lambda a: TABLE(a)),
    "of a token with a negative default": lambda x: tok_map(shift_right(x, 1, default=-1), lambda a: TABLE(a)),
    "of two": lambda x: seq_map(x, shift_right(x, 2), lambda a, b: GRID(a % 3, b)),
    "of a constant": lambda x: tok_map(x, lambda a: GRID(1, a) + GRID(7, a) + TABLE(-1)),
    "of a count": lambda x: tok_map(cumsum(x == 1), TABLE),
    "of a choice": lambda x: tok_map(x, lambda a: TABLE(a if a > 1 else 2)),
    "of a bad choice": lambda x: tok_map(x, lambda a: TABLE(a if a > 1 else 77)),
    "of attention": lambda x: tok_map(kqv(x, x, x * 5, operator.eq), TABLE),
    "of truth": lambda x: tok_map(x == 1, TABLE),
    "far": lambda x: tok_map(x, lambda a: TABLE(a * 10**12)),
}


@pytest.mark.parametrize("name", LOOKUPS)
def test_tables_are_zero_outside(name: str) -> None:
    assert_agree(LOOKUPS[name], [0, 1, 2, 3, 3, 0, 1, 1, 1, 1, 1, 2])


def test_tokens_outside_the_tables_are_refused() -> None:
    graph = simplify(trace(lambda x: tok_map(shift_right(x, 1), TABLE)))
    for running in (Stream(graph).run, uncompiled(graph).predict):
        for wrong in ([0, 4], [-1], [10**12]):
            assert refusal(lambda run=running, x=wrong: run(x)) == (
                f"token {[t for t in wrong if not 0 <= t < 4][0]} is outside 0..3, the range of the program's tables"
            )
    assert refusal(lambda: Stream(graph).step(4)).startswith("token 4 is outside 0..3")


def test_only_the_sequence_that_is_looked_up_is_limited() -> None:
    graph = simplify(trace(lambda x, y: tok_map(x, TABLE) + y, 2))
    assert Stream(graph).run([1, 2], [100, -100]).tolist() == [103, -91]
    assert refusal(lambda: Stream(graph).run([100, 2], [1, 1])).startswith("token 100 is outside")


def test_tables_are_taken_in_the_order_of_the_graph() -> None:
    graph = simplify(trace(lambda x: tok_map(x, lambda a: GRID(TABLE(a) % 3, a)) + tok_map(x, TABLE)))
    others = [np.full(t.values.shape, 1 + i) for i, t in enumerate(graph.tables()) if t.values is not None]
    expected = sum(int(v.flat[0]) for v in others)
    assert Stream(graph, others).run([0, 3]).tolist() == uncompiled(graph).predict([0, 3], tables=others).tolist()
    assert Stream(graph, others).run([0]).tolist() == [expected]


def test_other_tables_of_the_same_shape() -> None:
    graph = simplify(trace(lambda x: tok_map(x, TABLE)))
    assert Stream(graph, [np.array([1, 1, 1, 8], dtype=np.int8)]).run([3, 0]).tolist() == [8, 1]
    for wrong in ([np.zeros(3)], [np.zeros((4, 4))]):
        assert "the table favourite must be of shape (4,)" in refusal(lambda w=wrong: Stream(graph, w))
    assert "the program has 1 table(s), 0 given" in refusal(lambda: Stream(graph, []))
    unknown = simplify(trace(lambda x: tok_map(x, Table("guess", None, arity=1))))
    assert "guess is an unknown function" in refusal(lambda: Stream(unknown))


# --- odd programs -----------------------------------------------------------------------------------------------------


def test_long_chains_of_functions_are_not_nested_too_deep() -> None:
    def program(x: Any) -> Any:
        for i in range(300):
            x = tok_map(x, lambda a, i=i: (a * 3 + i) % 1001)
        return x

    assert_agree(program, [1, 2, 3])


def test_long_lists_of_cases() -> None:
    cases = list(range(0, 300, 3))
    assert_agree(lambda x: tok_map(x, lambda a: a in cases), [0, 1, 3, 150, 299, 297])
    assert_agree(lambda x: tok_map(x, lambda a: a in range(7, 1000)), [0, 7, 999, 1000], jit=False)


def test_opaque_functions_are_called_with_numpys_numbers() -> None:
    def program(x: Any) -> Any:
        return tok_map(x, lambda a: [1, 2][int(~(a == 1))] + (a == 1) + (a == 1))

    assert assert_agree(program, [0, 1, 2], jit=False).tolist() == [2, 3, 2]


def test_programs_without_an_input_in_them() -> None:
    assert_agree(lambda x: full(x, 7), [4, 5])
    assert_agree(lambda x: tok_map(full(x, 0), lambda a: [7, 8][a]), [4, 5])
    assert_agree(lambda x: tok_map(full(x, 2), lambda a: 9 / (a - 2) if a != 2 else 1), [4, 5])


def test_large_numbers_stay_whole() -> None:
    big = 2**62 + 1
    x = [big, -big, big - 3, 2**63 - 1, -(2**63) + 1]
    for program in (
        lambda x: shift_right(x, 1),
        lambda x: shift_right(x, 20, default=-big),
        lambda x: kqv(x, x, x, operator.eq),
        lambda x: kqv(x, x, x, operator.eq, reduction="max"),
        lambda x: tok_map(x, lambda a: a % 1000),
        lambda x: kqv(x, x, x, lambda k, q: True, reduction="min"),
    ):
        assert_agree(program, x)
