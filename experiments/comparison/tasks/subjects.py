"""What is compared: a task, its program if it has one, models that learned it; on how many problems of which size."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from experiments.comparison.subjects import UNTRAINED
from experiments.comparison.tasks.problems import WrittenProblem
from experiments.evaluation.checkpoints import Checkpoint, load_checkpoint
from experiments.evaluation.evaluate import fresh_rng
from experiments.evaluation.shipped import RECORD, read_recipe_of, read_record, shipped
from experiments.tasks import Addition, Multiplication, Sgd, Task, TuringPaper, TuringRasp, make_task
from experiments.tasks.symbols import Repetition, SymbolTask
from rasp.programs.tasks import TaskProgram, factor_digits, task_program

TIMES = (1.0, 1.5, 2.0, 3.0, 5.0)  # of the longest problem trained on
LONGEST = 100  # digits or examples: the paper's
NS = (1, 2, 3, 4, 5, 6)
BACKENDS = ("hard_alibi", "tracr")
LEARNED_SHARE = ((1.5, 6), (2.0, 12), (3.0, 24), (5.0, 48))  # up to so many times, one in so many problems
VERY_LONG_SHARE, COMPILED_SHARE = 96, 36


@dataclass(frozen=True, kw_only=True)
class TaskSettings:
    """`examples` problems per length for the programs; compiled and learned models, which are slower, get a share."""

    lengths: tuple[int, ...] = ()  # default: TIMES of the longest trained on, and LONGEST
    seeds: tuple[int, ...] = (0,)
    examples: int = 288
    ns: tuple[int, ...] = NS
    backends: tuple[str, ...] = ("hard_alibi",)
    precision: str = "float32"  # of the models as they run

    def __post_init__(self) -> None:
        if self.examples < 1 or not self.seeds or len(self.seeds) > self.examples:
            raise ValueError(
                f"{self.examples} problems per length of {len(self.seeds)} seeds: give at least one of each, and no "
                "more seeds than problems"
            )
        if not self.ns or not set(self.ns) <= set(NS):
            raise ValueError(
                f"programs are compared for n = 1 to {NS[-1]}, not {', '.join(map(str, self.ns)) or 'none'}"
            )
        if not set(self.backends) <= set(BACKENDS):
            raise ValueError(f"tasks are compiled to {' or '.join(BACKENDS)}, not {', '.join(self.backends)}")

    @property
    def seed(self) -> int | list[int]:
        return self.seeds[0] if len(self.seeds) == 1 else list(self.seeds)

    def problems(self, times: float, kind: str) -> int:
        """How many problems of a length someone is given; all begin with the same ones."""
        if kind == "program":
            return self.examples
        if kind == "compiled":
            return math.ceil(self.examples / COMPILED_SHARE)
        share = next((share for most, share in LEARNED_SHARE if times <= most), VERY_LONG_SHARE)
        return math.ceil(self.examples / share)


@dataclass(frozen=True)
class LearnedModel:
    checkpoint: Checkpoint
    seconds: float | None = None  # of training


@dataclass(frozen=True)
class TaskSubject:
    """`program` is None where a person's own task has none: then what it learned is held to the right answers alone."""

    name: str
    task: Task
    program: Callable[[Any, int], Any] | None
    paper: TaskProgram | None  # the task of the paper that this is, with a contract and problems of its own
    learned: tuple[LearnedModel, ...] = ()

    @property
    def trained(self) -> tuple[int, int]:
        return self.learned[0].checkpoint.lengths if self.learned else UNTRAINED

    def lengths(self, settings: TaskSettings) -> list[int]:
        usual = {round(self.trained[1] * times) for times in TIMES}
        return sorted(set(settings.lengths) or usual | ({LONGEST} if self.paper and max(usual) < LONGEST else set()))

    def times(self, length: int) -> float:
        return round(length / self.trained[1], 2)

    def draw(self, length: int, count: int, seed: int, few: bool = False) -> list[WrittenProblem]:
        """The very problems on which `turing-programs evaluate` asks; with `few`, of few different digits."""
        if few and isinstance(self.task, SymbolTask):
            lengths = np.full((count, self.task.operands), length)
            variety = np.resize([2, 3, 4, 6], count)
            samples = self.task.generate_from(fresh_rng(seed, (length, 1)), lengths, Repetition(variety))
        else:
            samples = self.task.sample(fresh_rng(seed, length), length, count=count)
        if self.paper is None:
            return [WrittenProblem(samples.row(i), int(samples.prompts[i]), self.task.vocabulary) for i in range(count)]
        texts = [self.task.text(samples.prompt(i)) for i in range(count)]
        return [WrittenProblem.of(self.paper.read(text.strip("$| "))) for text in texts]


def program_name(task: Task) -> str | None:
    """The name of the task's program in the paper's list; None: it is none of them."""
    if isinstance(task, Addition):
        return "addition"
    if isinstance(task, Multiplication):
        return f"multiplication{task.digits}"
    return "sgd" if isinstance(task, Sgd) else None


def learned_task(folder: Path) -> LearnedModel:
    seconds = read_record(folder)["seconds"] if (folder / RECORD).is_file() else None
    return LearnedModel(load_checkpoint(folder), seconds)


def task_subject(name: str | None, given: Sequence[LearnedModel]) -> TaskSubject:
    """A task of the paper by name, or that of the models given; without models, the shipped one of its own, if any."""
    models = tuple(given) if given or name is None else shipped_model(name)
    for one in models:
        check_model(one.checkpoint, name)
    if name is None:
        task = models[0].checkpoint.task
        name = program_name(task)
        if any(other.checkpoint.task != task for other in models):
            raise ValueError("these models learned different tasks; compare those of one task at a time")
    if name is None:
        program = getattr(task, "program", None)
        return TaskSubject(type(task).__name__, task, program, None, models)
    paper = task_program(name)
    return TaskSubject(name, fresh_task(name), paper.program, paper, models)


def check_model(checkpoint: Checkpoint, name: str | None) -> None:
    task, own = checkpoint.task, program_name(checkpoint.task)
    if isinstance(task, TuringRasp | TuringPaper):
        raise ValueError(
            f"{checkpoint.name} learned a Turing machine: compare it with machines, not with {name or 'this'}"
        )
    if not task.scratchpad:
        raise ValueError(f"{checkpoint.name} answers at once, without scratchpad: no program does what it does")
    if name is not None and own != name:
        raise ValueError(f"{checkpoint.name} learned {own or type(task).__name__}, not {name}; give a run of {name}")


def fresh_task(name: str) -> Task:
    if name == "addition":
        return Addition()
    return Sgd() if name == "sgd" else Multiplication(digits=factor_digits(name))


def shipped_model(name: str) -> tuple[LearnedModel, ...]:
    """The first shipped model, by name, that learned this task with its scratchpad."""
    for folder in shipped():
        task = make_task(read_recipe_of(folder)["task"])
        if program_name(task) == name and task.scratchpad:
            return (learned_task(folder),)
    return ()
