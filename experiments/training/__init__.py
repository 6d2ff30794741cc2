"""From a recipe to weights: data in rows, optimizers, the loop, and the state that a run resumes from."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rasp.lazy import lazy_names

if TYPE_CHECKING:
    from experiments.training.presets import preset
    from experiments.training.recipe import Recipe
    from experiments.training.requests import TrainingRequest, train

__all__ = ["Recipe", "TrainingRequest", "preset", "train"]

__getattr__, __dir__ = lazy_names(
    "experiments.training",
    {
        "preset": "experiments.training.presets",
        "Recipe": "experiments.training.recipe",
        **dict.fromkeys(("TrainingRequest", "train"), "experiments.training.requests"),
    },
)
