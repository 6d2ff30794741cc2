"""The optimizers of a recipe, its learning rates, and the average of weights over time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import AdamW, Muon, Optimizer
from torch.overrides import TorchFunctionMode

from experiments.training.recipe import Recipe


def make_optimizers(model: nn.Module, recipe: Recipe) -> dict[str, Optimizer]:
    """By name; Muon has the matrices inside the layers, AdamW the rest. Only matrices decay."""
    named = [(name, p) for name, p in model.named_parameters() if p.requires_grad]
    inside = [p for name, p in named if recipe.optimizer == "muon" and _is_layer_matrix(name, p)]
    taken = {id(p) for p in inside}
    rest = [p for _, p in named if id(p) not in taken]
    groups = [
        {"params": [p for p in rest if p.ndim >= 2], "weight_decay": recipe.weight_decay},
        {"params": [p for p in rest if p.ndim < 2], "weight_decay": 0.0},
    ]
    groups = [group for group in groups if group["params"]]
    made: dict[str, Optimizer] = {"adamw": AdamW(groups, lr=recipe.rate, betas=recipe.betas, fused=True)}
    if inside:
        made["muon"] = Muon(inside, lr=recipe.muon_rate, weight_decay=recipe.weight_decay)
    return made


def _is_layer_matrix(name: str, parameter: Tensor) -> bool:
    """Position tables (t5, fire) are parameters of the layers too, but no maps between residual streams."""
    return name.startswith("blocks.") and parameter.ndim == 2 and ".bias." not in name


def set_rates(optimizers: Mapping[str, Optimizer], recipe: Recipe, step: int) -> None:
    peaks = {"adamw": recipe.rate, "muon": recipe.muon_rate}
    for name, optimizer in optimizers.items():
        for group in optimizer.param_groups:
            group["lr"] = peaks[name] * recipe.rate_factor.at(step)


class InFloat32(TorchFunctionMode):
    """Within it nothing is rounded to bf16, as Muon does with every gradient. A run in float32 is so in all of its
    products, and on a CPU without bf16 instructions Muon is five times as fast."""

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Iterable[type],
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        return args[0].clone() if func is Tensor.bfloat16 else func(*args, **(kwargs or {}))


class Average:
    """An exponential moving average of weights. Its decay rises as (1 + t) / (10 + t), so that it forgets the start."""

    def __init__(self, parameters: Iterable[Tensor], decay: float) -> None:
        self.decay = decay
        self.source = list(parameters)
        self.values = [p.detach().clone() for p in self.source]

    @torch.no_grad()
    def update(self, step: int) -> None:
        decay = min(self.decay, (1 + step) / (10 + step)) if self.decay else 0.0
        torch._foreach_lerp_(self.values, [p.detach() for p in self.source], 1 - decay)
