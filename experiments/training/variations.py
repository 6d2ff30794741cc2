"""Other runs like a given one: shorter, longer, on other lengths, another encoding, another machine, no scratchpad."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from experiments.evaluation.shipped import FOLDER
from experiments.schedule import Schedule
from experiments.tasks import MACHINE, TuringPaper, TuringRasp
from experiments.tasks.base import LONGEST
from experiments.training.recipe import Recipe
from rasp import load_machine
from rasp.formats.json import to_json

FRESH: dict[str, Any] = {"start": ""}  # of a model that is too different to go on from another


@dataclass(frozen=True, kw_only=True)
class Variation:
    """What a person wants changed in a recipe; None: as it is."""

    seed: int | None = None
    machine_seed: int | None = None
    machine: str | None = None  # as for `run`; the recipe holds the machine itself
    task: str | None = None  # a person's own, FILE.py:CLASS
    batch: int | None = None
    accumulate: int | None = None
    context: int | None = None
    lengths: tuple[int, int] | None = None
    encoding: str | None = None
    start: str | None = None
    scratchpad: bool = True
    precision: str | None = None

    def of(self, recipe: Recipe) -> Recipe:
        plain = {name: getattr(self, name) for name in ("seed", "batch", "accumulate", "context", "precision")}
        varied = recipe.changed(**{name: value for name, value in plain.items() if value is not None})
        if self.lengths is not None:
            varied = with_lengths(varied, self.lengths)
        if self.task is not None:
            varied = with_task(varied, self.task)
        if self.machine is not None:
            varied = with_machine(varied, self.machine)
        if self.machine_seed is not None:
            if self.machine is not None:
                raise ValueError("--machine and --machine-seed both say which machine; give one of them")
            varied = varied.changed(task={**varied.task, "machine_seed": self.machine_seed})
        varied = varied if self.scratchpad else without_scratchpad(varied)
        varied.make_task()  # refuses what this task does not have
        if self.encoding is not None:
            varied = with_encoding(varied, self.encoding)
        return varied if self.start is None else varied.changed(start=find_start(self.start))


def with_lengths(recipe: Recipe, lengths: tuple[int, int]) -> Recipe:
    """The same recipe on shorter or longer problems; it is tried at the same multiples of the longest."""
    probes = (min(max(1, round(probe * lengths[1] / recipe.lengths[1])), LONGEST) for probe in recipe.probes)
    return recipe.changed(lengths=lengths, probes=tuple(dict.fromkeys(probes)))


def with_machine(recipe: Recipe, name: str) -> Recipe:
    """The same recipe on another machine, which it holds as JSON: nothing else is needed to train it again."""
    if not isinstance(recipe.make_task(), TuringRasp | TuringPaper):
        raise ValueError("--machine is for presets that train on Turing machines, such as tm-cpu")
    task = {key: value for key, value in recipe.task.items() if key not in MACHINE}
    return recipe.changed(task={**task, "machine": to_json(load_machine(name))}, **FRESH)


def with_task(recipe: Recipe, name: str) -> Recipe:
    """The same recipe on a person's own task, FILE.py:CLASS; what the preset's own practice asks for is left out."""
    from experiments.tasks import own_task_name

    return recipe.changed(task={"name": own_task_name(name)}, practice={}, **FRESH)


def with_steps(recipe: Recipe, steps: int) -> Recipe:
    """The same recipe over fewer or more steps; what changes on the way keeps its share."""

    def stretched(value: Any) -> Any:
        return value.stretched(steps / recipe.steps) if isinstance(value, Schedule) else value

    return recipe.changed(
        steps=steps,
        rate_factor=stretched(recipe.rate_factor),
        slope_scale=stretched(recipe.slope_scale),
        practice={name: stretched(value) for name, value in recipe.practice.items()},
    )


def with_encoding(recipe: Recipe, encoding: str) -> Recipe:
    """Another encoding at the same shape; the windows belong to Hard-ALiBi."""
    from compile.transformer.encodings import ROOMS

    model = {**recipe.model, "encoding": encoding, "slopes": []}
    if encoding != "hard_alibi":
        model["windows"] = []
    if encoding in ROOMS:
        model["max_positions"] = recipe.context * ROOMS[encoding]
    return recipe.changed(model=model, slope_scale=1, **FRESH)


def without_scratchpad(recipe: Recipe) -> Recipe:
    """The paper's baseline: the answer at once."""
    task = recipe.make_task()
    if isinstance(task, TuringRasp) and task.steps == 1:
        raise ValueError(
            "a problem of this preset is one step of a machine, answered at once as it is: there is "
            "no scratchpad to leave out"
        )
    return recipe.changed(task={**recipe.task, "scratchpad": False}, **FRESH)


def find_start(name: str) -> str:
    """The name of a shipped checkpoint, or a folder's path that means the same from everywhere."""
    if not name:
        raise ValueError("--start is empty; name a shipped checkpoint or a folder of a run, or leave it out")
    return name if (FOLDER / name).is_dir() else str(Path(name).resolve())
