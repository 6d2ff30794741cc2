"""What depends on the speed of this machine: the precision to compute in, and how many steps fit into some minutes."""

from __future__ import annotations

import time
from dataclasses import dataclass

import torch
from accelerate import Accelerator

from experiments.devices import has_bf16
from experiments.training.recipe import Recipe
from experiments.training.trainer import Trainer, make_accelerator
from experiments.training.variations import with_steps

TRIAL_STEPS = 2  # of each precision that is measured, after one that is not


@dataclass(frozen=True)
class PrecisionChoice:
    """The precision of a run, and why, in a sentence (empty: nothing to say)."""

    precision: str
    reason: str = ""


def choose_precision(recipe: Recipe, accelerator: Accelerator) -> PrecisionChoice:
    """What the recipe says; auto is bf16 where the device has instructions for it and a step is faster with them."""
    device = accelerator.device.type
    supported = agreed(accelerator, float(has_bf16(device))) == 1
    if recipe.precision == "bf16" and not supported:
        return PrecisionChoice(
            "bf16", f"this {device} has no bf16 instructions; --precision float32 may be much faster"
        )
    if recipe.precision != "auto":
        return PrecisionChoice(recipe.precision)
    if not supported:
        return PrecisionChoice("float32", f"computing in float32: this {device} has no bf16 instructions")
    bf16, float32 = (seconds_per_step(recipe, accelerator, name) for name in ("bf16", "float32"))
    measured = f"a step takes {bf16:.2f} s in bf16, {float32:.2f} s in float32"
    chosen = "bf16" if bf16 < float32 else "float32"
    return PrecisionChoice(chosen, f"computing in {chosen}: {measured}")


def seconds_per_step(
    recipe: Recipe, accelerator: Accelerator, precision: str, trial: int = TRIAL_STEPS, best: bool = True
) -> float:
    """Of a model that is thrown away: the best of a few steps, or their mean. The same in all processes."""
    trainer = Trainer(recipe.changed(compiled=False), accelerator, precision)
    trainer.step()
    taken = []
    for _ in range(trial):
        started = time.monotonic()
        trainer.step()
        taken.append(time.monotonic() - started)
    return agreed(accelerator, min(taken) if best else sum(taken) / trial)


def agreed(accelerator: Accelerator, value: float) -> float:
    """The mean over all processes, so that all decide the same."""
    return float(accelerator.reduce(torch.tensor(value, device=accelerator.device), "mean").item())


def steps_in(recipe: Recipe, minutes: float, device: str = "auto", trial: int = 6) -> Recipe:
    """The recipe with as many steps as fit into `minutes` here, in the precision that was measured for it."""
    if not 0 < minutes < 1e6:
        raise ValueError(f"{minutes} minutes is not a time to train for; give a positive number")
    accelerator = make_accelerator(device)
    precision = choose_precision(recipe, accelerator).precision
    each = seconds_per_step(recipe, accelerator, precision, trial, best=False)
    return with_steps(recipe, max(1, int(minutes * 60 / each)))
