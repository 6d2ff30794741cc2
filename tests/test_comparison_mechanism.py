"""Heads compared: patterns made by hand, compiled models beside themselves, and a checkpoint, whole and broken."""

from __future__ import annotations

import copy
import json

import numpy as np
import pytest
import torch

from compile import compile_machine
from compile.transformer import Transformer
from experiments.comparison.mechanism import (
    SHIFTS,
    TraceRows,
    ablate,
    attention,
    compare_heads,
    mechanism,
    mechanism_of,
    one_step_traces,
    overlaps,
    scaled_to_one,
    shuffled_queries,
)
from experiments.evaluation.checkpoints import Checkpoint, load_checkpoint
from experiments.evaluation.shipped import find
from experiments.tasks import Addition
from rasp import TuringMachine

torch.set_num_threads(1)


@pytest.fixture(scope="module")
def machine() -> TuringMachine:
    return TuringMachine.random(symbols=5, states=3, seed=1)


@pytest.fixture(scope="module")
def lean(machine: TuringMachine) -> Transformer:
    return compile_machine(machine, "lean", n=3, steps=4, check=False)


@pytest.fixture(scope="module")
def traces(machine: TuringMachine) -> TraceRows:
    return one_step_traces(machine, 4, 8, count=20)


@pytest.fixture(scope="module")
def checkpoint() -> Checkpoint:
    return load_checkpoint(find("tm-0"))


# --- the pieces -------------------------------------------------------------------------------------------------------


def test_traces_are_one_step_of_the_machine_and_queries_are_what_writes_the_answer(
    machine: TuringMachine, traces: TraceRows
) -> None:
    for tokens, queries, width in zip(traces.tokens, traces.queries, traces.widths, strict=True):
        tape = tokens[: width - 1].tolist()
        assert tokens[: 2 * width].tolist() == machine.trace(tape, 1).tolist()
        assert np.flatnonzero(queries).tolist() == list(range(width - 1, 2 * width - 1))
    assert set(traces.widths - 4) == {4, 5, 6, 7, 8}


def test_overlap_is_the_attention_two_heads_share_and_shifts_do_not_wrap_around() -> None:
    compiled = np.array([[0, 0.5, 0.5, 0, 0], [1, 0, 0, 0, 0]], dtype=np.float32)
    learned = np.zeros((2, 2, 5), dtype=np.float32)
    learned[0, 0], learned[1, 0] = [0.2, 0.2, 0.6, 0, 0], [1, 0, 0, 0, 0]
    learned[0, 1], learned[1, 1] = [0, 0, 0, 0.5, 0.5], [0, 0, 0, 0, 1]  # two later; and at the other end
    found = dict(zip(SHIFTS, overlaps(learned, compiled), strict=True))
    assert found[0].tolist() == pytest.approx([(0.2 + 0.5 + 1) / 2, 0])
    assert found[2].tolist() == pytest.approx([0, 1 / 2])
    assert found[-1].tolist() == pytest.approx([(0.2 + 0.2) / 2, 0])
    assert found[4].tolist() == pytest.approx([0, 1 / 2])


def test_what_lies_on_start_tokens_is_left_out() -> None:
    shares, any_there = scaled_to_one(np.array([[0.25, 0.25], [0, 0]], dtype=np.float32))
    assert shares.tolist() == [[0.5, 0.5], [0, 0]]
    assert any_there.tolist() == [True, False]


def test_shuffled_queries_stand_at_the_same_place_of_another_length(traces: TraceRows) -> None:
    chosen = shuffled_queries(traces, np.random.default_rng(0))
    rows, places = np.nonzero(traces.queries)
    some = chosen >= 0
    assert some.mean() > 0.8
    assert (places[chosen[some]] == places[some]).all()
    assert (traces.widths[rows[chosen[some]]] != traces.widths[rows[some]]).all()


def test_one_length_is_refused(machine: TuringMachine) -> None:
    with pytest.raises(ValueError, match="different lengths"):
        one_step_traces(machine, 6, 6, count=8)


# --- compiled models beside compiled models ---------------------------------------------------------------------------


def test_a_model_beside_itself(lean: Transformer, traces: TraceRows) -> None:
    found = mechanism(lean, lean, traces)
    assert found.induction.agreement == pytest.approx(1, abs=1e-3)
    assert (found.induction.layer, found.induction.head, found.induction.shift) == (1, 0, 0)
    assert found.induction.baseline < 0.4 and found.induction.verdict == "found"
    assert found.unablated > 0.9 and found.induction.lost_when_ablated > 0.8


def test_both_backends_look_at_the_same_place(machine: TuringMachine, lean: Transformer, traces: TraceRows) -> None:
    other = compile_machine(machine, "hard_alibi", n=3, steps=4, check=False)
    heads, _ = compare_heads(other, lean, traces)
    match = next(head for head in heads if head.label == "match next 4-gram")
    assert match.best.agreement > 0.95 and match.best.layer == other.config.layers - 1


def test_a_head_that_looks_by_position_is_no_match(lean: Transformer, traces: TraceRows) -> None:
    """Window heads agree with themselves completely, and as completely with themselves on other tapes."""
    heads, tokens = compare_heads(lean, lean, traces)
    assert 0 < tokens <= traces.queries.sum()
    for head in heads:
        if head.window is not None:
            assert head.best.agreement == pytest.approx(1, abs=1e-3)
            assert head.best.baseline == pytest.approx(1, abs=1e-3)


def test_attention_leaves_out_prepended_tokens(lean: Transformer, traces: TraceRows) -> None:
    layers = attention(lean, traces)
    assert [a.shape for a in layers] == [
        (int(traces.queries.sum()), shape.heads, traces.tokens.shape[1]) for shape in lean.config.shapes
    ]


def test_accuracy_is_that_of_the_model(lean: Transformer, traces: TraceRows) -> None:
    right = []
    for tokens, width in zip(traces.tokens, traces.widths, strict=True):
        said = lean.generate(tokens[:width].tolist(), int(width))
        right.append(np.array_equal(said, tokens[: 2 * width]))
    assert ablate(lean, traces)[0] == pytest.approx(np.mean(right))


# --- a learned checkpoint ---------------------------------------------------------------------------------------------


def test_the_learned_model_has_a_match_head(checkpoint: Checkpoint) -> None:
    found = mechanism_of(checkpoint, count=24)
    assert found.induction.verdict == "found"
    assert found.induction.agreement > 0.7 > 0.3 > found.induction.baseline
    assert found.induction.shift < 0  # it looks at the cell itself; the program, at where its key is known
    written = json.loads(json.dumps(found.to_dict()))
    layers, heads = checkpoint.model.config.layers, len(checkpoint.model.config.shapes[0].windows)
    assert {"compiled", "tokens", "heads", "ablation", "unablated", "induction"} <= set(written)
    assert np.shape(written["heads"][0]["matches"]) == np.shape(written["heads"][0]["baseline"]) == (layers, heads)
    assert len(written["ablation"]) == layers * heads


def test_a_damaged_checkpoint_shows(checkpoint: Checkpoint) -> None:
    """Noise on the queries and keys of all layers but the first: they still have heads, but these find nothing."""
    model = copy.deepcopy(checkpoint.model)
    with torch.no_grad():
        for weight in (block.attn.qkv.weight for block in model.blocks[1:]):
            weight += weight.std() * 3 * torch.randn(weight.shape, generator=torch.Generator().manual_seed(0))
    damaged = Checkpoint("damaged", model, checkpoint.task, checkpoint.lengths, checkpoint.context)
    found = mechanism_of(damaged, count=24)
    assert found.unablated < 0.2
    assert found.induction.agreement < 0.5 and found.induction.verdict == "not found"


def test_only_machines_have_a_compiled_counterpart(checkpoint: Checkpoint) -> None:
    other = Checkpoint("sum", checkpoint.model, Addition(), checkpoint.lengths, checkpoint.context)
    with pytest.raises(ValueError, match="no Turing machine"):
        mechanism_of(other)
