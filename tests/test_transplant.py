"""Compiled weights in a trainable model: equal at every token, trained on, and broken on purpose."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

from compile import compile_machine
from compile.transformer import Transformer
from experiments.comparison import transplant as module
from experiments.comparison.finetuning import FineTuning, finetune_compiled, relative_change
from experiments.comparison.transplant import exactness, trainable_shape, transplant, trial_traces
from experiments.training.presets import preset
from rasp import TuringMachine
from rasp.machines.tape import empt

torch.set_num_threads(1)

TINY = preset("tm-tiny").changed(lengths=(2, 8))


@pytest.fixture(scope="module")
def small() -> TuringMachine:
    return TuringMachine.random(symbols=3, states=2, seed=0)


@pytest.mark.parametrize("n", [1, 2, 3])
def test_equal_to_the_compiled_model_at_every_token(small: TuringMachine, n: int) -> None:
    lean = compile_machine(small, "lean", n=n, steps=20, check=False)
    traces = [*trial_traces(small, (1, 2, 5, 30), 12, 1), *trial_traces(small, (1, 4), 4, 20)]
    found = exactness(transplant(small, n, steps=20), lean, traces)
    assert found.tokens > 2_000 and found.mismatches == 0 and found.largest_error < 0.01


def test_equal_on_a_machine_of_the_usual_size() -> None:
    machine = TuringMachine.random(symbols=15, states=5, seed=3)
    lean = compile_machine(machine, "lean", n=2, steps=10, check=False)
    found = exactness(transplant(machine, 2, steps=10), lean, trial_traces(machine, (1, 10, 40), 4, 8))
    assert found.mismatches == 0


def test_it_is_a_model_that_is_trained_here(small: TuringMachine, tmp_path: Path) -> None:
    model = transplant(small, 1, steps=4)
    config = model.config
    assert (config.norm, config.activation, config.bias, config.scale) == ("rmsnorm", "gelu", False, None)
    assert config.vocabulary == small.base and config.prepend == empt
    recipe = TINY.changed(model=trainable_shape(compile_machine(small, "lean", n=1, steps=4, check=False)))
    fresh = recipe.make_model()
    assert {k: v.shape for k, v in fresh.state_dict().items()} == {k: v.shape for k, v in model.state_dict().items()}
    model.save_pretrained(tmp_path)
    assert Transformer.from_pretrained(tmp_path).config == config


def test_too_blunt_a_gelu_shows(small: TuringMachine, monkeypatch: pytest.MonkeyPatch) -> None:
    lean = compile_machine(small, "lean", n=2, steps=20, check=False)
    monkeypatch.setattr(module, "GELU_SCALE", 1.0)
    assert exactness(transplant(small, 2, steps=20), lean, trial_traces(small, (5, 20), 4, 1)).mismatches > 0


def test_a_damaged_transplant_shows(small: TuringMachine) -> None:
    lean = compile_machine(small, "lean", n=2, steps=4, check=False)
    model = transplant(small, 2, steps=4)
    with torch.no_grad():
        model.blocks[-1].attn.qkv.weight.zero_()
    assert exactness(model, lean, trial_traces(small, (5, 20), 4, 1)).mismatches > 0


# --- fine-tuning ------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def tuned() -> FineTuning:
    return finetune_compiled(TINY, n=3, steps=4, rates=(1e-6, 0.02), context=48, batch=4, examples=16)


def test_careful_steps_keep_what_was_compiled_and_wild_ones_do_not(tuned: FineTuning) -> None:
    careful, wild = tuned.runs
    assert tuned.exactness.mismatches == 0
    assert careful.before[0].accuracy > 0.5 and careful.keeps and not wild.keeps
    assert careful.relative_change["all"] < 1e-3 < wild.relative_change["all"]
    assert "keeps" in tuned.verdict and "loses" in tuned.verdict


def test_a_gradient_that_explodes_ends_a_run_and_is_reported() -> None:
    found = finetune_compiled(TINY, n=3, steps=8, rates=(1.0,), context=48, batch=4, examples=16, scratch=False)
    run = found.runs[0]
    assert "gradient" in run.ended and run.steps < 8 and not run.keeps and found.scratch is None


def test_attention_that_sharp_gets_no_gradient(tuned: FineTuning) -> None:
    assert tuned.match_gradient["q"] < 1e-3 * tuned.match_gradient["v"]


def test_what_is_reported(tuned: FineTuning) -> None:
    written = json.loads(json.dumps(tuned.to_dict()))
    run = written["runs"][0]
    assert [row["length"] for row in run["after"]] == [8, 16, 24, 40]
    assert all(row["low"] <= row["accuracy"] <= row["high"] for row in run["before"] + run["after"])
    assert [point["step"] for point in run["curve"]] == [1, 3, 4] and run["tokens"] == 4 * 4 * 48
    assert written["scratch"]["start"] == "scratch" and "From scratch" in written["verdict"]


def test_only_machines_can_be_compiled() -> None:
    with pytest.raises(ValueError, match="no Turing machine"):
        finetune_compiled(preset("addition-cpu"))


def test_relative_change_is_of_norms() -> None:
    old, new = {"w": torch.tensor([3.0, 4.0])}, {"w": torch.tensor([3.0, 4.5])}
    assert relative_change(old, new) == pytest.approx({"w": 0.1, "all": 0.1})
