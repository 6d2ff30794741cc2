"""Tracing records a program node for node, and says in a sentence what it cannot record."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from agreement import assert_agree

from rasp import aggr, full, indices, kqv, named, run, sel_width, select, seq_map, shift_right, simplify, tok_map, trace
from rasp.graph import Graph
from rasp.tracing import Traced, TraceError


def test_nodes_are_recorded_as_written() -> None:
    graph = trace(lambda x: kqv(indices(x) + 1, indices(x), x, operator.eq, default=7))
    assert [node.op for node in graph.nodes] == ["input", "indices", "map", "indices", "select", "aggr"]
    assert graph.nodes[-1].default == 7 and graph.nodes[-1].reduction == "mean"
    assert graph.counts() == {"aggr": 1, "indices": 2, "input": 1, "map": 1, "select": 1}
    assert graph.attention_depth() == 1 and graph.arity == 1 and len(graph) == 6


def test_descriptions() -> None:
    graph = trace(lambda x, y: seq_map(shift_right(x, 1, 4), named(y + 1, "next"), lambda a, b: a if b > 2 else 0), 2)
    texts = [graph.describe(i) for i in range(len(graph))]
    assert texts[:2] == ["x0", "x1"] and any("if (next > 2) else 0" in text for text in texts)
    flat = simplify(graph, hoist=False)
    assert "shift_right(x0, 1, default=4)" in [flat.describe(i) for i in range(len(flat))]
    assert simplify(trace(lambda x: kqv(x, x, x, operator.eq, reduction="max"))).describe(1) == "kqv(x == x, v=x, max)"


def test_long_descriptions_are_cut() -> None:
    graph = trace(lambda x: tok_map(x, lambda a: sum(i * (a + i) for i in range(30))))
    assert len(graph.describe(1)) <= 60 and graph.describe(1).endswith("...")


def test_networkx() -> None:
    graph = trace(lambda x: x + shift_right(x, 1))
    exported = graph.to_networkx()
    assert len(exported) == len(graph) and exported.graph["output"] == graph.output
    assert exported.nodes[0]["op"] == "input" and exported.nodes[0]["label"] == "x"
    assert all(a < b for a, b in exported.edges)


def test_names_survive_rewriting() -> None:
    graph = simplify(trace(lambda x: named(shift_right(named(x * 2, "twice"), 1), "late")))
    assert set(graph.names.values()) == {"x", "twice", "late"}
    assert run(lambda x: named(x, "same"), [1, 2], engine="eager").tolist() == [1, 2]


REFUSED: dict[str, tuple[Callable[[Traced], Any], str]] = {
    "length": (lambda x: full(x, len(x)), "has no length"),
    "index": (lambda x: x[0], "cannot index a sequence by position"),
    "slice": (lambda x: x[1:], "cannot index a sequence by position"),
    "branch": (lambda x: x if x else x, "cannot branch on a whole sequence"),
    "comparison as a branch": (lambda x: x if x == 1 else x, "cannot branch on a whole sequence"),
    "loop": (lambda x: [a for a in x], "cannot loop over a sequence"),
    "a list": (lambda x: x + [1], "combined with list"),
    "an array": (lambda x: x + np.array([1, 2]), "combined with ndarray"),
    "an array first": (lambda x: np.array([1, 2]) + x, "combined with ndarray"),
    "an array as key": (lambda x: kqv(np.array([1]), x, x, operator.eq), "combined with ndarray"),
    "none": (lambda x: x == None, "combined with NoneType"),  # noqa: E711
    "bits of a fraction": (lambda x: (x * 0.5) & 1, "& has no meaning for fractions"),
    "a mean of fractions": (lambda x: kqv(x, x, x / 2, operator.eq), "a mean of fractions depends on the order"),
    "a number beyond 64 bits": (lambda x: x + 2**63, "9223372036854775808 is no 64-bit number"),
    "a numpy function": (lambda x: np.sort(x), "no numbers for numpy"),
    "a numpy choice": (lambda x: np.where(x, 1, 2), "no numbers for numpy|cannot branch"),
    "a matrix": (lambda x: aggr(np.eye(3), x), "needs a selector made by select, not ndarray"),
    "width of a sequence": (lambda x: sel_width(x), "needs a selector made by select, not Traced"),
    "joined with a sequence": (lambda x: sel_width(select(x, x, operator.eq) & x), "needs a selector made by select"),
    "negated selector": (lambda x: sel_width(~select(x, x, operator.eq)), "would look at the future"),
    "mixed masks": (
        lambda x: sel_width(select(x, x, operator.eq) & select(x, x, operator.eq, causal=False)),
        "a causal and a non-causal selector cannot be joined",
    ),
    "no sequence returned": (lambda x: 3, "returned int, not a sequence"),
    "nothing returned": (lambda x: None, "returned NoneType, not a sequence"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refusals(name: str) -> None:
    program, sentence = REFUSED[name]
    with pytest.raises(TraceError, match=sentence):
        trace(program)


def test_programs_cannot_be_mixed() -> None:
    kept: list[Any] = []
    trace(lambda x: kept.append(x) or x)
    trace(lambda x: kept.append(select(x, x, operator.eq)) or x)
    with pytest.raises(TraceError, match="two programs' sequences are mixed"):
        trace(lambda x: x + kept[0])
    with pytest.raises(TraceError, match="two programs' selectors are mixed"):
        trace(lambda x: sel_width(select(x, x, operator.eq) & kept[1]))


def test_wrong_inputs_to_a_graph() -> None:
    graph = trace(lambda x, y: x + y, 2)
    with pytest.raises(ValueError, match="takes 2 sequence.s., 1 given"):
        graph.run([1])
    with pytest.raises(ValueError, match="differ in length: 1, 2"):
        graph.run([1], [1, 2])


OPERATORS: list[Callable[[Any, Any], Any]] = [
    lambda x, y: x + 1,
    lambda x, y: 1 - x,
    lambda x, y: 2 * x - y,
    lambda x, y: -x,
    lambda x, y: ~x,
    lambda x, y: abs(x),
    lambda x, y: x // 2,
    lambda x, y: x % 3,
    lambda x, y: 7 // x,
    lambda x, y: x % y,
    lambda x, y: x**2,
    lambda x, y: (x % 4) << 2,
    lambda x, y: x >> 1,
    lambda x, y: 1 << (x % 4),
    lambda x, y: x & 3,
    lambda x, y: 1 | x,
    lambda x, y: x ^ y,
    lambda x, y: x == y,
    lambda x, y: x != 2,
    lambda x, y: x < y,
    lambda x, y: x > 0,
    lambda x, y: x >= y,
    lambda x, y: (x > 0) & (y > 0),
    lambda x, y: (x > 0) | (y == 1),
    lambda x, y: (x > 0) ^ (y == 1),
    lambda x, y: ~(x > 0),
    lambda x, y: (x > 0) + (y > 0),
    lambda x, y: (x > 0) * (y > 0),
    lambda x, y: (x > 0) + y,
    lambda x, y: (x > 0) * 3,
    lambda x, y: (x > 0) & y,
    lambda x, y: (x > 0) == (y > 0),
    lambda x, y: np.int64(3) + x,
    lambda x, y: x * np.int64(3),
    lambda x, y: np.int64(3) > x,
    lambda x, y: x + True,
    lambda x, y: np.bool_(True) & (x > 0),
    lambda x, y: abs(x > 0),
]


@pytest.mark.parametrize("i", range(len(OPERATORS)))
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_operators_are_numpys(i: int) -> None:
    x, y = np.array([-3, -1, 0, 0, 1, 2, 5, 4]), np.array([1, 0, 2, 0, 1, -2, 5, 3])
    assert assert_agree(OPERATORS[i], x, y).tolist() == OPERATORS[i](x, y).astype(int).tolist()


SELECTORS: list[Callable[[Any, Any], Any]] = [
    lambda x, y: select(x, y, operator.eq) & select(y, x, operator.eq),
    lambda x, y: select(x, y, operator.eq) | select(y, x, operator.lt),
    lambda x, y: select(x, x, lambda k, q: k) & select(y, y, lambda k, q: q),
    lambda x, y: (select(x, y, operator.eq) | select(y, x, operator.eq)) & select(x, x, lambda k, q: k > 0),
    lambda x, y: select(x, y, operator.eq) & select(x, x, lambda k, q: True),
    lambda x, y: select(x > 0, y > 0, operator.eq) & select(indices(x), indices(x), lambda k, q: q - k < 3),
]


@pytest.mark.parametrize("i", range(len(SELECTORS)))
def test_joined_selectors(i: int) -> None:
    x, y = np.array([1, 2, 2, 0, 1, 3, 2]), np.array([1, 1, 2, 2, 0, 3, 1])
    assert_agree(lambda x, y: sel_width(SELECTORS[i](x, y)), x, y, jit=False)
    for reduction in ("mean", "max", "min"):
        assert_agree(lambda x, y, r=reduction: aggr(SELECTORS[i](x, y), x + 10 * y, -1, r), x, y, jit=False)


def test_programs_that_look_ahead_run_where_they_can() -> None:
    def program(x: Any) -> Any:
        return aggr(select(x, x, operator.eq, causal=False), indices(x), reduction="max")

    for engine in ("reference", "eager", "graph"):
        assert run(program, [3, 1, 3], engine=engine).tolist() == [2, 1, 2]
    for engine in ("stream", "jit"):
        with pytest.raises(ValueError, match="not causal: it looks at the future"):
            run(program, [3, 1, 3], engine=engine)


def test_graphs_compare_by_what_they_compute() -> None:
    graphs: list[Graph] = [simplify(trace(p)) for p in (lambda x: x + x, lambda x: x + x, lambda x: x - x + x)]
    assert graphs[0] == graphs[1] != graphs[2]
