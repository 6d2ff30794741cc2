"""A recipe: everything that decides a training run's final weights, as plain data that a file holds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from experiments.evaluation.shipped import FOLDER
from experiments.files import read_json
from experiments.schedule import Schedule
from experiments.tasks import Practice, Task, TuringRasp, make_task

if TYPE_CHECKING:
    from compile.transformer import Transformer, TransformerConfig

OPTIMIZERS = ("adamw", "muon")
PRECISIONS = ("auto", "float32", "bf16")
LISTS = ("lengths", "betas", "probes")
SCHEDULES = ("rate_factor", "slope_scale")


@dataclass(frozen=True, kw_only=True)
class Recipe:
    task: dict[str, Any]
    practice: dict[str, Any] = field(default_factory=dict)  # of the task's; numbers, or schedules
    model: dict[str, Any]  # of TransformerConfig; the vocabulary is the task's
    start: str = ""  # shipped checkpoint, or absolute path of one, whose weights it begins with; none: fresh ones
    lengths: tuple[int, int]  # of training samples, both included
    length_decay: float = 1.0  # how often a length is drawn, as a multiple of the one below it
    context: int  # tokens of a row
    batch: int  # rows of a step, over all processes
    whole_rows: float = 0.0  # share of them that begin with a whole problem; the others begin wherever the cut falls
    accumulate: int = 1  # parts that a step's rows are taken in, one after the other, where memory is short
    steps: int
    optimizer: str = "muon"  # muon: on the matrices inside the layers, and AdamW on the rest
    rate: float = 3e-3  # peak, of AdamW
    muon_rate: float = 0.02
    rate_factor: Schedule  # of the peaks
    betas: tuple[float, float] = (0.9, 0.95)
    weight_decay: float = 0.1
    slope_scale: Schedule = Schedule.read(1)  # of the slopes that prefer what is near
    clip: float = 1.0
    ema: float = 0.0  # decay of the averaged weights, which are then the ones shipped; 0: none
    seed: int = 0
    precision: str = "float32"  # or bf16; auto: the faster one here
    compiled: bool = False  # torch.compile
    probes: tuple[int, ...] = ()  # lengths tried during training
    probe_every: int = 500

    def __post_init__(self) -> None:
        for name in LISTS:
            object.__setattr__(self, name, tuple(getattr(self, name)))
        for name in SCHEDULES:
            object.__setattr__(self, name, Schedule.read(getattr(self, name)))
        changing = {k: Schedule.read(v) if isinstance(v, list | tuple) else v for k, v in self.practice.items()}
        object.__setattr__(self, "practice", changing)
        self.check()

    def check(self) -> None:
        if self.optimizer not in OPTIMIZERS:
            raise ValueError(f"optimizer is {self.optimizer!r}; choose one of {', '.join(OPTIMIZERS)}")
        if self.precision not in PRECISIONS:
            raise ValueError(f"precision is {self.precision!r}; choose one of {', '.join(PRECISIONS)}")
        for name in ("context", "batch", "accumulate", "steps", "probe_every"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} is {getattr(self, name)}; expected at least 1")
        if not 0 <= self.ema < 1 or not 0 < self.length_decay <= 1:
            raise ValueError(f"ema {self.ema} must be in [0, 1) and length_decay {self.length_decay} in (0, 1]")
        if not 0 <= self.whole_rows <= 1:
            raise ValueError(f"whole_rows is {self.whole_rows}; a share lies between 0 and 1")
        if min(self.rate_factor.values) < 0 or min(self.slope_scale.values) <= 0:
            raise ValueError("rate_factor must not be below 0, and slope_scale must be above it")
        if not self.model.get("slopes") and set(self.slope_scale.values) != {1}:
            raise ValueError(f"slope_scale is {self.slope_scale.to_json()}; expected 1, except in a model with slopes")
        if len(self.lengths) != 2 or not 1 <= self.lengths[0] <= self.lengths[1]:
            raise ValueError(f"lengths are {self.lengths}; expected two, the first at least 1 and not above the second")

    def make_task(self) -> Task:
        return make_task(self.task)

    def make_practice(self) -> Practice:
        return self.make_task().practice(**self.practice)

    def make_model(self) -> Transformer:
        """The weights training begins with: those of `start`, or fresh ones, the same for the same seed."""
        import torch

        from compile.transformer import Transformer, TransformerConfig

        names = self.make_task().vocabulary
        config = TransformerConfig.from_dict(
            {**self.model, "vocabulary": len(names), "token_names": names, "extra": self.describe()}
        )
        if self.start:
            return with_weights_of(self.start, config)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(self.seed)
            model = Transformer(config)
            self.make_practice().initialise(model)
            return model

    def describe(self) -> dict[str, Any]:
        """What a checkpoint must know to be used without its recipe."""
        from rasp.formats.json import to_json

        task = self.make_task()
        machine = {"machine": to_json(task.machine)} if isinstance(task, TuringRasp) else {}
        return {"task": self.task, "lengths": list(self.lengths), "context": self.context, **machine}

    def ending(self, steps: int, now: int) -> Recipe:
        """What this recipe becomes when, at step `now`, it is decided to decay to 0 at another step."""
        if steps <= now:
            raise ValueError(f"the run has done {now} steps; it can end at a later step only, not at {steps}")
        if steps == self.steps:
            return self
        return self.changed(steps=steps, rate_factor=self.rate_factor.ending(now, steps))

    def differing(self, other: Recipe, done: int) -> list[str]:
        """The fields in which `other` was another one in its first `done` steps."""
        both = ((f.name, getattr(self, f.name), getattr(other, f.name)) for f in fields(self) if f.name != "steps")
        return [name for name, mine, theirs in both if not same_so_far(mine, theirs, done)]

    def changed(self, **changes: Any) -> Recipe:
        return replace(self, **changes)

    def to_dict(self) -> dict[str, Any]:
        return {f.name: as_json(getattr(self, f.name)) for f in fields(self)}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Recipe:
        unknown = sorted(set(values) - {f.name for f in fields(cls)})
        if unknown:
            raise ValueError(f"a recipe has no {', '.join(unknown)}")
        lacking = REQUIRED - set(values)
        if lacking:
            raise ValueError(f"a recipe needs {', '.join(sorted(lacking))}")
        return cls(**values)


REQUIRED = {"task", "model", "lengths", "context", "batch", "steps", "rate_factor"}


def as_json(value: Any) -> Any:
    if isinstance(value, Schedule):
        return value.to_json()
    if isinstance(value, dict):
        return {key: as_json(one) for key, one in value.items()}
    return [as_json(one) for one in value] if isinstance(value, list | tuple) else value


def same_so_far(mine: Any, theirs: Any, done: int) -> bool:
    """Whether both are the same in the first `done` steps."""
    if isinstance(mine, dict) and isinstance(theirs, dict):
        return mine.keys() == theirs.keys() and all(same_so_far(mine[key], theirs[key], done) for key in mine)
    if isinstance(mine, Schedule) or isinstance(theirs, Schedule):
        return Schedule.read(mine).agrees(Schedule.read(theirs), done)
    return as_json(mine) == as_json(theirs)


def read_recipe(path: Path) -> Recipe:
    return Recipe.from_dict(read_json(path))


def with_weights_of(name: str, config: TransformerConfig) -> Transformer:
    """A model of this configuration with the weights of a checkpoint, which must be of the same but for its windows."""
    from compile.transformer import Transformer

    folder = FOLDER / name  # which is the name itself, if that is an absolute path
    if not folder.is_dir():
        raise ValueError(f"there is no checkpoint {name!r} to start with; name a shipped one or a folder of a run")
    begun = Transformer.from_pretrained(folder)
    theirs, ours = begun.config.to_dict(), config.to_dict()
    differing = [key for key in ours if key not in ("extra", "windows") and theirs[key] != ours[key]]
    if differing:
        raise ValueError(
            f"the weights of {name} do not fit, since its model is another (different: "
            f"{', '.join(differing)}); start with a checkpoint of the same task and shape (where slopes "
            "were scaled in training, those it ended with)"
        )
    model = Transformer(config)
    model.load_state_dict(begun.state_dict())
    return model
