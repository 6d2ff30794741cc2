"""The checkpoints that come with this repository, each a folder with its weights, recipe, curve and evaluation."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
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
    return Recipe.from_dict(read_story(path.parent)["recipe"])


@dataclass
class Parcel:
    """A checkpoint on its way among the shipped: its folder for now, and what was found there."""

    folder: Path
    story: dict[str, Any]

    def note(self, results: Sequence[Result]) -> None:
        self.story = {**self.story, "evaluation": [r.to_dict() for r in results]}


@contextmanager
def shipping(run: Path, name: str) -> Iterator[Parcel]:
    """Put a run's weights, in half precision, and its story (not its optimizer state) among the shipped checkpoints.

    What is evaluated inside is what is shipped; nothing is, unless that ends well.
    """
    target, story = FOLDER / name, read_story(run)
    if not re.fullmatch(r"[A-Za-z0-9][\w.-]*", name):
        raise ValueError(f"{name!r} is no name for a checkpoint; expected letters, digits, '-', '_' and '.'")
    if not story["finished"]:
        raise ValueError(f"{run} is not finished; end it with `turing-programs train ... --resume` before shipping it")
    start = story["recipe"].get("start", "")
    if start and (FOLDER / start).parent != FOLDER:
        raise ValueError(f"{run} began with {start}, which is not shipped, so nobody could train it "
                         "again; ship that one first, and train from its name")  # fmt: skip
    if target.exists() and kind(read_story(target)) != kind(story):
        raise ValueError(f"{name} is the name of a checkpoint for another task, {kind(read_story(target))}; "
                         f"{run} is for {kind(story)}: choose another name")  # fmt: skip
    with TemporaryDirectory() as temporary:
        parcel = Parcel(Path(temporary) / name, {**story, "command": f"turing-programs reproduce {name}"})
        parcel.folder.mkdir()
        save_weights_and_config(Transformer.from_pretrained(run), parcel.folder, stored="float16")
        yield parcel
        write_json(parcel.folder / STORY, parcel.story)
        shutil.copytree(parcel.folder, target, dirs_exist_ok=True)


def read_story(folder: Path) -> dict[str, Any]:
    try:
        story = json.loads((folder / STORY).read_text())
    except ValueError as error:
        raise ValueError(f"{folder / STORY} is damaged ({error})") from None
    if not isinstance(story, dict) or not {"recipe", "finished"} <= set(story):
        raise ValueError(f"{folder / STORY} does not tell of a training run; name a folder written by `train`")
    return story


def kind(story: Mapping[str, Any]) -> str:
    """What a run learns: its task, of machines which, and whether it writes its steps out."""
    task = {"scratchpad": True, **story["recipe"]["task"]}
    keys = ("name", "symbols", "states", "machine_seed", "digits")
    return " ".join([str(task[key]) for key in keys if key in task] + ["at once"] * (not task["scratchpad"]))


def noted_evaluations() -> tuple[list[Result], dict[str, int]]:
    """What was found when each was shipped, and the longest problem each was trained on: the README's table."""
    stories = {folder.name: read_story(folder) for folder in shipped()}
    results = [Result(**{**found, "name": name}) for name, story in stories.items() for found in story["evaluation"]]
    return results, {name: story["recipe"]["lengths"][1] for name, story in stories.items()}
