"""The checkpoints that come with this repository, each a folder with its weights, recipe, record and card.

Of runs that only a figure or a table needs (other seeds, other encodings), all but the weights is kept.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from compile.transformer.files import CONFIG, WEIGHTS
from experiments.evaluation.cards import card
from experiments.evaluation.results import Result
from experiments.files import read_json, write_fields, write_json
from experiments.imports import is_import
from rasp.files import write_whole

FOLDER = Path(__file__).parents[1] / "checkpoints"
RECIPE, RECORD, CARD = "recipe.json", "training.json", "README.md"


def shipped() -> list[Path]:
    """Those with weights."""
    return sorted(path.parent for path in FOLDER.glob(f"*/{WEIGHTS}"))


def find(name: str) -> Path:
    """A folder that a person named: a path, or the name of a shipped checkpoint."""
    path = Path(name)
    return path if path.exists() or not (FOLDER / name).is_dir() else FOLDER / name


@dataclass
class StagedCheckpoint:
    """A checkpoint on its way among the shipped: its folder for now, and what is known of it."""

    folder: Path
    recipe: dict[str, Any]
    record: dict[str, Any]

    def note(self, results: Sequence[Result]) -> None:
        self.record = {**self.record, "evaluation": [r.to_dict() for r in results]}


@contextmanager
def shipping(run: Path, name: str, weights: bool = True) -> Iterator[StagedCheckpoint]:
    """Put a run's weights, in half precision, its recipe and record (not its optimizer state) among the shipped; or
    all but its weights.

    What is evaluated inside is what is shipped; nothing is, unless that ends well.
    """
    from compile.transformer import Transformer  # torch, which reading results does without
    from compile.transformer.saving import save_weights_and_config

    need_checkpoint_name(name)
    need_checkout()
    target, recipe, record = FOLDER / name, read_run(run, RECIPE, {"task", "lengths"}), read_record(run)
    if not record["finished"]:
        raise ValueError(f"{run} is not finished; end it with `turing-programs train ... --resume` before shipping it")
    need_shipped_start(run, recipe.get("start", ""))
    need_task_of_the_paper(run, recipe["task"])
    if target.exists():
        need_same_task(name, read_recipe_of(target)["task"], recipe["task"])
    with TemporaryDirectory() as temporary:
        staged = StagedCheckpoint(
            Path(temporary) / name, recipe, {**record, "command": f"turing-programs reproduce {name}"}
        )
        staged.folder.mkdir()
        save_weights_and_config(Transformer.from_pretrained(run), staged.folder, stored="float16")
        yield staged
        write_fields(staged.folder / RECIPE, staged.recipe)
        write_json(staged.folder / RECORD, staged.record)
        write_whole(staged.folder / CARD, card(name, staged.recipe, staged.record, weights))
        shutil.copytree(staged.folder, target, dirs_exist_ok=True)
        for file in () if weights else (WEIGHTS, CONFIG):
            (target / file).unlink()


def need_checkpoint_name(name: str) -> None:
    if not re.fullmatch(r"[A-Za-z0-9][\w.-]*", name):
        raise ValueError(f"{name!r} is no name for a checkpoint; expected letters, digits, '-', '_' and '.'")


def need_shipped_start(run: Path, start: str) -> None:
    if start and (FOLDER / start).parent != FOLDER:
        raise ValueError(
            f"{run} began with {start}, which is not shipped, so nobody could train it "
            "again; ship that one first, and train from its name"
        )


def need_task_of_the_paper(run: Path, task: Mapping[str, Any]) -> None:
    if is_import(task["name"]):
        raise ValueError(
            f"{run} learned {task['name']}, a task of one's own, which is not part of this repository; keep its "
            "folder, or its results with -o"
        )


def need_same_task(name: str, shipped: Mapping[str, Any], new: Mapping[str, Any]) -> None:
    """A checkpoint is not replaced by one that learned something else, such as another machine."""
    from experiments.tasks import make_task

    if make_task(shipped) != make_task(new):
        raise ValueError(
            f"{name} is the name of a checkpoint for another task, {dict(shipped)}; this one is for {dict(new)}: "
            "choose another name"
        )


def need_checkout() -> None:
    """Shipped checkpoints are part of the source: an installed package is not written into."""
    if not (FOLDER.parents[1] / "pyproject.toml").is_file():
        raise ValueError(
            f"{FOLDER.parent} is an installed package, not a checkout of the source; clone the repository to ship "
            "checkpoints, or keep results with -o"
        )


def read_record(folder: Path) -> dict[str, Any]:
    """What training.json tells of a run."""
    return read_run(folder, RECORD, {"finished", "steps_done"})


def read_recipe_of(folder: Path) -> dict[str, Any]:
    return read_run(folder, RECIPE, {"task", "lengths"})


def read_run(folder: Path, name: str, needed: set[str]) -> dict[str, Any]:
    values = read_json(folder / name)
    if not needed <= set(values):
        raise ValueError(f"{folder / name} does not tell of a training run; name a folder written by `train`")
    return values


def keep_results(name: str, results: Sequence[Result]) -> None:
    """Beside a shipped checkpoint, with those of other lengths that are there already; its card follows."""
    need_checkout()
    folder = FOLDER / name
    record, recipe = read_record(folder), read_recipe_of(folder)
    known = {asked(found): found for found in record["evaluation"]}
    known |= {asked(found): found for found in (r.to_dict() for r in results)}
    record = {**record, "evaluation": list(known.values())}
    write_json(folder / RECORD, record)
    write_whole(folder / CARD, card(name, recipe, record, (folder / WEIGHTS).is_file()))


def asked(found: Mapping[str, Any]) -> tuple[Any, ...]:
    """What tells one result of a checkpoint from another."""
    return found["length"], found["rollout"], found["group"]


def kept_results(names: Sequence[str]) -> list[Result]:
    """What is kept beside these shipped checkpoints."""
    return [Result(**{**found, "name": name}) for name in names for found in read_record(FOLDER / name)["evaluation"]]


def noted_evaluations() -> tuple[list[Result], dict[str, int]]:
    """What was found when each was shipped, and the longest problem each learned: the table of docs/results.md."""
    trained = {folder.name: read_recipe_of(folder)["lengths"][1] for folder in shipped()}
    return kept_results(list(trained)), trained
