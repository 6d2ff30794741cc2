"""The checkpoints that come with this repository, each a folder with its weights, recipe, curve and evaluation."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

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
    path = FOLDER / name / "training.json"
    if not path.is_file():
        names = ", ".join(folder.name for folder in shipped()) or "none yet"
        raise ValueError(f"no shipped checkpoint is called {name!r}; there are: {names}")
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
