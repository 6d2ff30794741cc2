"""What stock tracr does with RASP-L programs: its known failures, each shown to be there, and its size.

These tests pass as long as the failure is real. One that fails means tracr has changed: then the correction it
justifies (compile/tracr_craft.py, compile/tracr_assemble.py) can be looked at again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from rasp import cumsum, equals, indices, kqv, maximum, seq_map, shift_right, simplify, trace
from rasp.graph import Graph
from rasp.machines.machine import TuringMachine
from rasp.programs.turing import next_tokens

pytest.importorskip("tracr", reason="tracr is not installed")
pytest.importorskip("torch", reason="torch is not installed")

from compile.tracr.assemble import from_zero
from compile.tracr.export import to_torch
from experiments.benchmarks.stock_tracr import StockModel, compile_stock
from experiments.benchmarks.stock_tracr_program import to_tracr
from experiments.benchmarks.stock_tracr_size import stock_size

LENGTH = 30


def graph_of(program: Callable[[Any], Any]) -> Graph:
    return simplify(trace(program), hoist=False)


def stock(program: Callable[[Any], Any], tokens: int, length: int = LENGTH, **options: Any) -> StockModel:
    return from_zero(lambda: compile_stock(graph_of(program), range(tokens), length, **options))


def wrong(model: Any, program: Callable[[Any], Any], x: np.ndarray) -> np.ndarray:
    """The positions where the model differs from the program."""
    return np.flatnonzero(model.predict(x) != program(x))


def count_ones(x: Any) -> Any:
    return cumsum(x == 1)


def pairwise_maximum(x: Any) -> Any:
    pair = indices(x) // 2
    return kqv(pair, pair, x, equals, reduction="max")


# --- wrong without a word ---------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def counter() -> StockModel:
    return stock(count_ones, 2)


def test_counts_are_wrong_from_ten_on(counter: StockModel) -> None:
    ones = np.ones(LENGTH, dtype=int)
    assert wrong(counter, count_ones, ones)[0] == 9  # the tenth one
    assert len(wrong(counter, count_ones, ones)) == LENGTH - 9


def test_counts_are_right_with_the_exactness_they_need() -> None:
    model = stock(count_ones, 2, mlp_exactness=2 * (LENGTH + 1) * (LENGTH + 2))
    assert not len(wrong(model, count_ones, np.ones(LENGTH, dtype=int)))


def test_attention_thaws_as_keys_grow() -> None:
    """Scores are divided by sqrt(key_size): with 400 positions, a rare token is outvoted by those that do not match."""

    def shifted(x: Any) -> Any:
        return shift_right(x, 1)

    x = np.zeros(400, dtype=int)
    x[[5, 398]] = 1
    assert wrong(stock(shifted, 2, length=400), shifted, x).tolist() == [399]  # the other 1 has few to outvote it


def test_a_default_is_whatever_leaks() -> None:
    """A row without a match is a null vector; nothing says what it decodes to."""

    def shifted(x: Any) -> Any:
        return shift_right(x, 1, default=2)

    assert 0 in wrong(stock(shifted, 3), shifted, np.resize([1, 0], LENGTH))


def test_a_maximum_becomes_a_mixture() -> None:
    x = np.resize([2, 1, 0, 2], LENGTH)
    assert len(wrong(stock(pairwise_maximum, 3), pairwise_maximum, x)) > LENGTH // 4


def test_two_counters_in_a_layer_soil_bos() -> None:
    """Both clean bos up through the same hidden direction, so each is subtracted twice: 0 becomes -1."""
    both = stock(lambda x: seq_map(cumsum(x == 1), cumsum(x == 2), lambda a, b: a - b), 3, length=6)
    assert sorted(at_bos(both)) == [-1, -1]


def test_one_counter_leaves_bos_clean(counter: StockModel) -> None:
    assert at_bos(counter) == [0]


def at_bos(model: StockModel) -> list[int]:
    """What the residual stream holds at bos where a count of 0 would be."""
    final = np.asarray(model.haiku.apply(["compiler_bos", 0, 1]).transformer_output)[0, 0]
    zeros = [
        i
        for i, name in enumerate(model.haiku.residual_labels)
        if name.startswith("selector_width") and name.endswith(":0")
    ]
    return [round(float(final[i])) for i in zeros]


# --- refused, or not looked at ----------------------------------------------------------------------------------------


def test_values_with_more_directions_than_keys_break_the_assembly() -> None:
    with pytest.raises(ValueError, match="broadcast"):
        stock(maximum, 6)


def test_constants_and_joined_selectors_do_not_compile() -> None:
    from tracr.compiler.compiling import compile_rasp_to_model
    from tracr.rasp import rasp

    with pytest.raises(NotImplementedError, match="cannot be translated"):
        compile_rasp_to_model(rasp.SequenceMap(lambda a, b: a + b, rasp.tokens, rasp.Full(1)), {0, 1}, 4)
    same = rasp.Select(rasp.tokens, rasp.tokens, rasp.Comparison.EQ)
    before = rasp.Select(rasp.indices, rasp.indices, rasp.Comparison.LT)
    with pytest.raises(TypeError, match="composite"):
        compile_rasp_to_model(rasp.Aggregate(rasp.selector_and(same, before), rasp.tokens), {0, 1}, 4)


def test_static_validation_sees_one_node_of_each_name() -> None:
    from tracr.compiler.validating import static_validate
    from tracr.rasp import rasp

    same = rasp.Select(rasp.tokens, rasp.tokens, rasp.Comparison.EQ)
    with_default = rasp.Aggregate(same, rasp.tokens, default=1)  # categorical defaults are not supported
    assert len(static_validate(with_default)) == 1
    assert static_validate(rasp.Aggregate(same, with_default)) == []


def test_walking_the_graph_takes_a_step_for_every_path(monkeypatch: pytest.MonkeyPatch) -> None:
    import queue

    from tracr.compiler import rasp_to_graph

    steps = 0

    class Counting(queue.Queue):
        def put(self, *args: Any, **kwargs: Any) -> None:
            nonlocal steps
            steps += 1
            super().put(*args, **kwargs)

    monkeypatch.setattr(rasp_to_graph.queue, "Queue", Counting)

    def doubling(x: Any) -> Any:
        for _ in range(10):
            x = seq_map(x, shift_right(x, 1), lambda a, b: (a + b) % 2)
        return x

    program = to_tracr(trace(doubling))
    size = len(rasp_to_graph.extract_rasp_graph(program).graph)
    assert size < 100 and steps > 2**10


def test_causal_sets_the_mask_and_nothing_else() -> None:
    """tracr's own evaluator does not know it: comparisons have to use its causal one."""
    from tracr.rasp import causal_eval, rasp

    program = to_tracr(graph_of(count_ones))
    assert rasp.evaluate(program, [1, 1, 0]) == [2, 2, 2]
    assert causal_eval.evaluate(program, [1, 1, 0]) == [1, 2, 2]


# --- size -------------------------------------------------------------------------------------------------------------


def test_the_computed_size_is_what_tracr_builds(counter: StockModel) -> None:
    assert stock_size(graph_of(count_ones), range(2), LENGTH).parameters == counter.parameters
    size = stock_size(graph_of(count_ones), range(2), LENGTH)
    built = counter.haiku.model_config
    assert (size.layers, size.heads, size.key_size) == (counter.layers, counter.heads, built.key_size)
    assert (size.mlp, size.d_model) == (built.mlp_hidden_size, counter.d_model)


def test_the_paper_size_needs_terabytes() -> None:
    machine = TuringMachine.random(symbols=12, states=16, seed=0)
    needed = stock_size(graph_of(lambda x: next_tokens(x, machine)), range(machine.base), 256).parameters
    assert 1e12 < needed < 2e12  # weights of four bytes: about six terabytes


def test_what_is_too_large_is_refused_before_it_is_built() -> None:
    machine = TuringMachine.random(symbols=12, states=16, seed=0)
    with pytest.raises(MemoryError, match=r"would need 1\.\de\+12 parameters"):
        compile_stock(graph_of(lambda x: next_tokens(x, machine)), range(machine.base), 256)


def test_inputs_longer_than_compiled_for_are_refused(counter: StockModel) -> None:
    with pytest.raises(ValueError, match="31 tokens do not fit"):
        counter.predict(np.zeros(LENGTH + 1, dtype=int))


# --- conversion of what tracr builds ----------------------------------------------------------------------------------


@pytest.mark.parametrize("trim", [True, False])
def test_stock_models_convert_to_torch_with_the_same_answers(counter: StockModel, trim: bool) -> None:
    converted = to_torch(counter.haiku, trim=trim)
    for x in (np.ones(LENGTH, dtype=int), np.random.default_rng(0).integers(2, size=LENGTH)):
        assert converted.predict(x).tolist() == counter.predict(x).tolist()  # mistakes included
    inside = sum(p.numel() for p in converted.blocks.parameters())
    embedded = 2 + 2 + LENGTH + 1  # tokens with tracr's bos and pad, positions with bos'
    assert trim or inside == counter.parameters - embedded * counter.d_model


# --- the machine ------------------------------------------------------------------------------------------------------


def test_rows_where_stock_is_only_computed() -> None:
    from experiments.benchmarks.stock_tracr_compare import computed_rows

    rows = computed_rows(symbols=2, states=2, steps=4, positions=24)
    assert all(set(row) == {"name", "value", "unit", "baseline", "ratio"} for row in rows)
    assert rows[0]["baseline"] > 500 * rows[0]["value"] and rows[0]["value"] > rows[1]["value"]
    assert rows[2]["value"] == 4


@pytest.mark.slow
def test_the_smallest_machine_is_mostly_wrong_and_ours_is_right() -> None:
    from experiments.benchmarks.stock_tracr_compare import compare_with_stock

    (result,) = compare_with_stock(sizes=[(2, 2)], steps=4)
    assert result.stock.wrong > 0.5 and result.ours.wrong == 0
    assert result.stock.parameters > 100 * result.ours.parameters
