"""What a run on a GPU would use: its size, gradients in parts, torch.compile and bf16, all at a size for a CPU."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from typer.testing import CliRunner

from experiments.cli import app
from experiments.training.presets import preset, preset_names
from experiments.training.recipe import Recipe
from experiments.training.sizing import size_of
from experiments.training.trainer import Trainer, make_accelerator
from experiments.training.variations import with_steps

TINY = with_steps(preset("tm-tiny"), 12)


def gradients(recipe: Recipe, precision: str = "float32") -> tuple[float, torch.Tensor]:
    trainer = Trainer(recipe, make_accelerator("cpu"), precision)
    loss = trainer.backward()
    return loss, torch.cat([p.grad.flatten() for p in trainer.model.parameters() if p.grad is not None])


@pytest.mark.parametrize("parts", [2, 4])
def test_a_step_in_parts_has_the_gradient_of_the_whole(parts: int) -> None:
    whole, inpieces = gradients(TINY), gradients(TINY.changed(accumulate=parts))
    assert inpieces[0] == pytest.approx(whole[0], rel=1e-5)
    torch.testing.assert_close(inpieces[1], whole[1], rtol=1e-3, atol=1e-6)


def test_parts_with_other_numbers_of_counted_tokens_are_weighed_by_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """Were the parts' means averaged, the loss would be another."""
    trainer = Trainer(TINY.changed(accumulate=2), make_accelerator("cpu"))
    uneven = trainer.batch()
    uneven.weights[: len(uneven.weights) // 2, 5:] = 0
    monkeypatch.setattr(trainer, "batch", lambda: uneven)
    inputs, labels, weights = (torch.from_numpy(x) for x in uneven)
    halves = [x.chunk(2) for x in (inputs, labels, weights.float())]
    parts = [trainer.loss(*part).item() for part in zip(*halves, strict=True)]
    counts = [part.sum().item() for part in weights.chunk(2)]
    right = sum(loss * count for loss, count in zip(parts, counts, strict=True)) / sum(counts)
    assert counts[0] < counts[1] / 2 and trainer.backward() == pytest.approx(right, rel=1e-5)
    assert abs(sum(parts) / 2 - right) > 1e-4


def test_rows_that_do_not_fall_into_parts_are_refused() -> None:
    with pytest.raises(ValueError, match="16 rows cannot be shared by 1 process.es., each in 3 part"):
        Trainer(TINY.changed(accumulate=3), make_accelerator("cpu"))
    with pytest.raises(ValueError, match="each in 3 part"):
        size_of(TINY.changed(accumulate=3))


def test_a_compiled_model_has_the_same_loss_and_gradient() -> None:
    one_layer = TINY.changed(model={**TINY.model, "layers": 1})  # compiling takes a minute with three
    plain, compiled = gradients(one_layer), gradients(one_layer.changed(compiled=True))
    assert compiled[0] == pytest.approx(plain[0], rel=1e-5)
    torch.testing.assert_close(compiled[1], plain[1], rtol=1e-3, atol=1e-6)


def test_in_bf16_the_loss_is_about_the_same() -> None:
    loss, gradient = gradients(TINY.changed(accumulate=2), "bf16")
    assert loss == pytest.approx(gradients(TINY)[0], rel=1e-2) and gradient.dtype == torch.float32


@pytest.mark.parametrize("name", [name for name in preset_names() if name.startswith("paper-")])
def test_the_papers_models_have_150_million_parameters_and_six_flops_per_parameter_and_token(name: str) -> None:
    size = size_of(preset(name))
    assert 150e6 < size.parameters < 153e6
    products = 6 * size.parameters * size.tokens_per_step  # attention comes on top, embeddings cost nothing
    assert 0.97 * products < size.flops_per_step < 1.1 * products
    assert size.optimizer_bytes == 2 * size.weight_bytes and size.bytes < 12 * 2**30


def test_a_size_is_that_of_the_model_that_trains() -> None:
    model = Trainer(TINY, make_accelerator("cpu")).model
    size, parts = size_of(TINY), size_of(TINY.changed(accumulate=4))
    assert size.parameters == model.parameter_count() and size.gradient_bytes == 4 * size.parameters
    assert parts.activation_bytes < 0.3 * size.activation_bytes and parts.flops_per_step <= size.flops_per_step
    assert size.optimizer_bytes < size_of(TINY.changed(optimizer="adamw")).optimizer_bytes


def test_the_command_says_what_a_run_would_take_and_writes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    found = CliRunner().invoke(app, ["train", "paper-tm", "--dry-run", "--json"])
    assert found.exit_code == 0, found.output
    told = json.loads(found.stdout)
    assert told["hours_at_flops_per_second"]["1e+14"] == pytest.approx(told["flops"] / 1e14 / 3600)
    text = CliRunner().invoke(app, ["train", "tm-tiny", "--dry-run"])
    assert "parameters" in text.output and "MiB" in text.output and " s at 1e+12" in text.output
    text = CliRunner().invoke(app, ["train", "paper-tm", "--dry-run"])
    assert "GiB" in text.output and " h at 1e+12" in text.output
    assert list(tmp_path.iterdir()) == []
