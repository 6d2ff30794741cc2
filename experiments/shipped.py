"""The checkpoints that come with this repository, each a folder with its weights, recipe, curve and evaluation."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from compile.model import Transformer
from compile.saving import save_weights_and_config
from experiments.evaluation import Result
from experiments.presets import planned
from experiments.recipe import Recipe
from experiments.run_state import write_json

FOLDER = Path(__file__).parent / "checkpoints"
STORY = "training.json"


def shipped() -> list[Path]:
    return sorted(path.parent for path in FOLDER.glob("*/model.safetensors"))


def find(name: str) -> Path:
    """A folder that a person named: a path, or the name of a shipped checkpoint."""
    path = Path(name)
    return path if path.exists() or not (FOLDER / name).is_dir() else FOLDER / name


def recipe_of(name: str) -> Recipe:
    """Of a shipped checkpoint; or of one that is planned."""
    path, plan = FOLDER / name / STORY, planned()
    if not path.is_file():
        if name not in plan:
            raise ValueError(f"no checkpoint is called {name!r}; there are {', '.join(plan)}")
        return plan[name]
    return Recipe.from_dict(json.loads(path.read_text())["recipe"])


def ship(run: Path, name: str) -> Path:
    """Put a run's weights, in half precision, and its story (not its optimizer state) among the shipped checkpoints."""
    target, story = FOLDER / name, json.loads((run / STORY).read_text())
    if not story["finished"]:
        raise ValueError(f"{run} is not finished; end it with `turing-programs train ... --resume` before shipping it")
    target.mkdir(parents=True, exist_ok=True)
    save_weights_and_config(Transformer.from_pretrained(run), target, stored="float16")
    write_json(target / STORY, {**story, "command": f"turing-programs reproduce {name}"})
    return target


def noted_evaluations() -> tuple[list[Result], dict[str, int]]:
    """What was found when each was shipped, and the longest problem each was trained on: the README's table."""
    stories = {folder.name: json.loads((folder / STORY).read_text()) for folder in shipped()}
    results = [Result(**found) for story in stories.values() for found in story["evaluation"]]
    return results, {name: story["recipe"]["lengths"][1] for name, story in stories.items()}


def note_evaluation(folder: Path, evaluation: list[dict[str, Any]]) -> None:
    write_json(folder / STORY, {**json.loads((folder / STORY).read_text()), "evaluation": evaluation})
