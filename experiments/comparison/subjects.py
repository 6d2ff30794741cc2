"""What is compared: a machine with the model that learned it, and on how many tapes of which lengths."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from compile.backends import BACKENDS
from experiments.evaluation.checkpoints import Checkpoint, load_checkpoint
from experiments.evaluation.shipped import FOLDER, RECIPE, RECORD, read_record, shipped
from experiments.tasks import TuringRasp
from experiments.training.recipe import Recipe, read_recipe
from rasp import TuringMachine

TIMES = (1.0, 1.5, 2.0, 3.0, 5.0, 10.0)  # of the longest tape trained on
UNTRAINED = (2, 20)  # lengths taken for the training lengths where nothing was trained
ROLLOUT_AT = 2.0  # many steps in a row are taken at this length
LONG, VERY_LONG = 3.0, 5.0  # beyond these there are fewer tapes, which take long
NS = (1, 2, 3, 4)


@dataclass(frozen=True, kw_only=True)
class Settings:
    """`examples` tapes per length; long tapes and compiled models, which are slower, get a share of them."""

    lengths: tuple[int, ...] = ()  # cells; default: TIMES of the longest trained on
    steps: int = 10
    seeds: tuple[int, ...] = (0,)  # of the tapes; each gives its share of them
    examples: int = 288
    ns: tuple[int, ...] = NS
    backends: tuple[str, ...] = tuple(BACKENDS)  # tracr on the first machine only, at the shortest length
    finetune: int = 60  # steps of training from compiled weights, on the first machine; 0: none
    precision: str = "float32"  # of the models as they run

    def __post_init__(self) -> None:
        for name, least in (("examples", 1), ("steps", 1), ("finetune", 0)):
            if getattr(self, name) < least:
                raise ValueError(f"{name} is {getattr(self, name)}; expected at least {least}")
        if not self.seeds or min(self.seeds) < 0 or len(self.seeds) > self.examples:
            raise ValueError(
                f"seeds are {list(self.seeds)}; expected at least one, none negative, and no more of them "
                f"than the {self.examples} tapes per length"
            )
        if any(length < 1 for length in self.lengths):
            raise ValueError(f"a tape has at least one cell; the lengths asked for are {list(self.lengths)}")
        if not self.ns or not set(self.ns) <= set(NS):
            raise ValueError(f"programs are compared for n = 1 to 4, not {', '.join(map(str, self.ns)) or 'none'}")
        if not self.backends or not set(self.backends) <= set(BACKENDS):
            raise ValueError(f"backends are {', '.join(BACKENDS)}, not {', '.join(self.backends) or 'none'}")

    @property
    def seed(self) -> int | list[int]:
        """As results.json has it."""
        return self.seeds[0] if len(self.seeds) == 1 else list(self.seeds)

    def tapes(self, times: float, kind: str, first: bool) -> int:
        """How many tapes of a length a simulator is given. Compiled models say what their program says: on the first
        machine that is checked at every length, on the others up to ROLLOUT_AT."""
        if kind == "program":
            return self.examples
        if kind == "compiled":
            share = 0 if times > ROLLOUT_AT and not first else self.examples / (9 if times <= LONG else 36)
        else:
            share = self.examples / (1 if times <= LONG else 3 if times <= VERY_LONG else 6)
        return math.ceil(share)

    def runs(self, kind: str, first: bool) -> int:
        """How many of them are followed for all steps."""
        if kind == "compiled":
            return math.ceil(self.examples / 36) if first else 0
        return math.ceil(self.examples / 4)


@dataclass(frozen=True)
class Subject:
    """A machine, and the model that learned it, if one did."""

    name: str
    machine: TuringMachine
    trained: tuple[int, int] = UNTRAINED
    checkpoint: Checkpoint | None = None
    seconds: float | None = None  # of training
    recipe: Recipe | None = None  # how it was trained

    def lengths(self, settings: Settings) -> list[int]:
        return sorted(set(settings.lengths)) or [round(self.trained[1] * times) for times in TIMES]

    def times(self, length: int) -> float:
        return round(length / self.trained[1], 2)


def learned_subject(folder: Path) -> Subject:
    checkpoint = load_checkpoint(folder)
    if not isinstance(checkpoint.task, TuringRasp):
        raise ValueError(f"{folder} was not trained on a Turing machine in RASP format: no program does what it does")
    seconds = read_record(folder)["seconds"] if (folder / RECORD).is_file() else None
    recipe = read_recipe(folder / RECIPE) if (folder / RECIPE).is_file() else None
    return Subject(checkpoint.name, checkpoint.task.machine, checkpoint.lengths, checkpoint, seconds, recipe)


def shipped_subjects() -> list[Subject]:
    """The machines that come with this repository, each with its first model by name; other encodings come later."""
    found: dict[TuringMachine, Subject] = {}
    for checkpoint in (load_checkpoint(folder) for folder in shipped()):
        if isinstance(checkpoint.task, TuringRasp) and checkpoint.task.machine not in found:
            found[checkpoint.task.machine] = learned_subject(FOLDER / checkpoint.name)
    return list(found.values())


def machine_subjects(machine: TuringMachine, name: str) -> list[Subject]:
    """The models that have learned this machine, if any come with this repository; otherwise the machine alone."""
    known = [subject for subject in shipped_subjects() if subject.machine == machine]
    return known or [Subject(machine.name or name, machine)]


def distinct(subjects: Sequence[Subject]) -> list[Subject]:
    """A second model of the same name gets a number."""
    names: list[str] = []
    for subject in subjects:
        same = sum(name == subject.name or name.startswith(f"{subject.name} (") for name in names)
        names.append(f"{subject.name} ({same + 1})" if same else subject.name)
    return [replace(subject, name=name) for subject, name in zip(subjects, names, strict=True)]
