"""What a run would take, worked out without computing anything: parameters, memory, and the FLOPs of a step.

The model runs one step on torch's `meta` device, whose tensors have shapes and no numbers. FLOPs are those of products
(2 per multiplication), as torch counts them. Activations are taken to be in the precision of products, all of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import torch
from torch import Tensor, autograd
from torch.utils.flop_counter import FlopCounterMode

from experiments.training.loss import weighted_cross_entropy
from experiments.training.optimizers import make_optimizers
from experiments.training.recipe import Recipe
from experiments.training.trainer import rows_of_a_process

BYTES = 4  # of a weight, a gradient, a moment: they are kept in float32 whatever products are taken in
SPEEDS = (1e12, 1e13, 1e14)  # FLOP/s reached: a large CPU, a GPU for desktops, one for data centres
MOST_PAIRS = 2**55  # of tokens that attend to each other: beyond it torch cannot count the bytes
SHORT = 64  # tokens of a row from which longer ones are reckoned
MOMENTS = {"adamw": 2, "muon": 1}  # running averages that an optimizer keeps of every weight


@dataclass(frozen=True)
class RunSize:
    """Of a run. Bytes are of one process; activations are what the backward pass reads again of one part of a step."""

    parameters: int
    tokens_per_step: int
    steps: int
    flops_per_step: int
    weight_bytes: int
    gradient_bytes: int
    optimizer_bytes: int
    average_bytes: int
    activation_bytes: int

    @property
    def bytes(self) -> int:
        parts = (self.weight_bytes, self.gradient_bytes, self.optimizer_bytes, self.average_bytes)
        return sum(parts) + self.activation_bytes

    @property
    def flops(self) -> int:
        return self.flops_per_step * self.steps

    def hours(self, flops_per_second: float) -> float:
        return self.flops / flops_per_second / 3600

    def to_dict(self, speeds: Sequence[float] = ()) -> dict[str, Any]:
        hours = {f"{speed:g}": self.hours(speed) for speed in speeds}
        return {**asdict(self), "bytes": self.bytes, "flops": self.flops, "hours_at_flops_per_second": hours}


def least_bytes(recipe: Recipe, processes: int = 1) -> int:
    """What training takes at least in each process: activations as if they grew no faster than the tokens of a part."""
    context = min(recipe.context, SHORT)
    short = size_of(recipe.changed(context=context, batch=1, accumulate=1))
    tokens = recipe.batch * recipe.context // (recipe.accumulate * processes)
    return short.bytes - short.activation_bytes + short.activation_bytes * tokens // context


def size_of(recipe: Recipe) -> RunSize:
    """The size of the recipe's run; products in bf16 where the recipe leaves that open, as a GPU would choose."""
    rows = rows_of_a_process(recipe, processes=1) // recipe.accumulate
    if rows * recipe.context**2 > MOST_PAIRS:
        raise ValueError(
            f"{rows} rows of {recipe.context} tokens are beyond what any computer holds; give a smaller --batch or "
            "--context"
        )
    kept: dict[int, int] = {}  # bytes by storage: several tensors may be views of one

    def keep(tensor: Tensor) -> Tensor:
        kept[tensor.untyped_storage()._cdata] = tensor.untyped_storage().nbytes()
        return tensor

    with torch.device("meta"), FlopCounterMode(display=False) as counter:
        model = recipe.changed(start="").make_model()
        model.to(torch.float32 if recipe.precision == "float32" else torch.bfloat16)
        tokens = torch.zeros(rows, recipe.context, dtype=torch.long)
        with autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
            loss = weighted_cross_entropy(model(tokens), tokens, torch.ones(tokens.shape))
        loss.backward()
    parameters = list(model.parameters())
    for parameter in parameters:
        kept.pop(parameter.untyped_storage()._cdata, None)
    moments = sum(
        MOMENTS[name] * parameter.numel()
        for name, optimizer in make_optimizers(model, recipe).items()
        for group in optimizer.param_groups
        for parameter in group["params"]
    )
    count = sum(p.numel() for p in parameters)
    return RunSize(
        parameters=count,
        tokens_per_step=recipe.batch * recipe.context,
        steps=recipe.steps,
        flops_per_step=counter.get_total_flops() * recipe.accumulate,
        weight_bytes=BYTES * count,
        gradient_bytes=BYTES * count,
        optimizer_bytes=BYTES * moments,
        average_bytes=BYTES * count,
        activation_bytes=sum(kept.values()),
    )
