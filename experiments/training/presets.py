"""Recipes by name, each a file: for tests, for CPU cores, and with the paper's settings; and those of shipped models.

Why the settings are what they are is told in docs/training-notes.md.
"""

from __future__ import annotations

from pathlib import Path

from experiments.evaluation.shipped import FOLDER, RECIPE
from experiments.training.recipe import Recipe, read_recipe

RECIPES = Path(__file__).parents[1] / "recipes"


def preset_names() -> list[str]:
    return sorted(path.stem for path in RECIPES.glob("*.json"))


def preset(name: str) -> Recipe:
    if name not in preset_names():
        raise ValueError(f"there is no preset {name!r}; choose one of {', '.join(preset_names())}")
    return read_recipe(RECIPES / f"{name}.json")


def recipe_of(name: str) -> Recipe:
    """Of a shipped checkpoint."""
    if not (FOLDER / name / RECIPE).is_file():
        known = ", ".join(sorted(path.parent.name for path in FOLDER.glob(f"*/{RECIPE}")))
        raise ValueError(f"no checkpoint is called {name!r}; there are {known}")
    return read_recipe(FOLDER / name / RECIPE)
