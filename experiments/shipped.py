"""The checkpoints that come with this repository, each a folder with its weights, recipe, curve and evaluation."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

from experiments.presets import planned
from experiments.recipe import Recipe
from experiments.run_state import write_json

FOLDER = Path(__file__).parent / "checkpoints"
FILES = ("model.safetensors", "config.json", "training.json")


def shipped() -> list[Path]:
    return sorted(path.parent for path in FOLDER.glob("*/model.safetensors"))


def find(name: str) -> Path:
    """A folder that a person named: a path, or the name of a shipped checkpoint."""
    path = Path(name)
    return path if path.exists() or not (FOLDER / name).is_dir() else FOLDER / name


def recipe_of(name: str) -> Recipe:
    """Of a shipped checkpoint; or of one that is planned."""
    path, plan = FOLDER / name / "training.json", planned()
    if not path.is_file():
        if name not in plan:
            raise ValueError(f"no checkpoint is called {name!r}; there are {', '.join(plan)}")
        return plan[name]
    return Recipe.from_dict(json.loads(path.read_text())["recipe"])


def ship(run: Path, name: str, evaluation: list[dict[str, Any]]) -> Path:
    """Copy a run's weights and story (not its optimizer state) among the shipped checkpoints."""
    target = FOLDER / name
    target.mkdir(parents=True, exist_ok=True)
    for file in FILES:
        shutil.copyfile(run / file, target / file)
    story = json.loads((target / "training.json").read_text())
    write_json(target / "training.json", {**story, "evaluation": evaluation})
    return target
