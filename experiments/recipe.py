"""A recipe: everything that decides a training run's final weights, as plain data that a file can hold."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from experiments.tasks import Task, make_task
from experiments.tasks.base import LONGEST

if TYPE_CHECKING:
    from torch import Tensor

    from compile.model import Transformer, TransformerConfig

FASTEST = 30.0  # radians per 1: neighbouring numbers, 1/100 apart, are then 0.3 radians apart
# Spreads of the rows of tasks with numbers. Large, because the optimizer's steps are equally long for all weights: they
# would soon roughen small waves, and a product can be read off smooth ones only.
NUMBER_SPREADS = {"embed": 1.0, "unembed": 0.1}
OPTIMIZERS = ("adamw", "muon")


@dataclass(frozen=True, kw_only=True)
class Recipe:
    task: dict[str, Any]
    model: dict[str, Any]  # of TransformerConfig; the vocabulary is the task's
    start: str = ""  # shipped checkpoint, or absolute path of one, whose weights it begins with; none: fresh ones
    lengths: tuple[int, int]  # of training samples, both included
    fall: float = 1.0  # how often a length is drawn, as a multiple of the one below it
    context: int  # tokens of a row
    batch: int  # rows of a step, over all processes
    steps: int
    horizon: int = 0  # steps over which practice changes (its progress goes from 0 to 1); 0: all
    optimizer: str = "muon"  # muon: on the matrices inside the layers, and AdamW on the rest
    rate: float = 3e-3  # peak, of AdamW
    muon_rate: float = 0.02
    betas: tuple[float, float] = (0.9, 0.95)
    weight_decay: float = 0.1
    warmup: int = 100  # steps; then linear decay to 0
    bends: tuple[tuple[int, float], ...] = ()  # (step, factor of the peak) on the way down, if not on a straight line
    gentler: tuple[int, float] = (0, 1.0)  # from this step on, slopes that prefer what is near are so much less steep
    emphasis: tuple[int, float] = (0, 1.0)  # from this step on, what is not worked out counts so many times as much
    clip: float = 1.0
    blur: float = 0.0  # where a number is worked out, the loss wants a bell of this width (in tokens) around it
    ema: float = 0.0  # decay of the averaged weights, which are then the ones shipped; 0: none
    waves: float = 1.0  # share of the columns in which tokens that are numbers begin as waves of their value
    seed: int = 0
    precision: str = "no"  # or "bf16"
    compiled: bool = False  # torch.compile
    probes: tuple[int, ...] = ()  # lengths tried during training
    probe_every: int = 500

    def __post_init__(self) -> None:
        for name in ("lengths", "betas", "probes", "gentler", "emphasis"):
            object.__setattr__(self, name, tuple(getattr(self, name)))
        object.__setattr__(self, "bends", tuple((int(step), float(factor)) for step, factor in self.bends))
        if self.optimizer not in OPTIMIZERS:
            raise ValueError(f"optimizer is {self.optimizer!r}; choose one of {', '.join(OPTIMIZERS)}")
        if self.precision not in ("no", "bf16"):
            raise ValueError(f"precision is {self.precision!r}; choose no or bf16")
        for name in ("gentler", "emphasis"):
            at, factor = getattr(self, name)
            if at != int(at) or at < 0 or not 0 < factor < math.inf:
                raise ValueError(f"{name} is {(at, factor)}; expected a step and a positive factor")
        if self.gentler[1] != 1 and not self.model.get("slopes"):
            raise ValueError(f"gentler is {self.gentler}; expected a factor of 1, except in a model with slopes")
        if self.horizon < 0:
            raise ValueError(f"horizon is {self.horizon}; expected a number of steps, or 0 for all")
        for name in ("context", "batch", "steps", "probe_every"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} is {getattr(self, name)}; expected at least 1")
        if not 0 <= self.ema < 1 or not 0 <= self.warmup <= self.steps:
            raise ValueError(f"ema {self.ema} must be in [0, 1) and warmup {self.warmup} at most {self.steps} steps")
        if not 0 < self.fall <= 1 or not 0 <= self.waves <= 1 or not 0 <= self.blur < math.inf:
            raise ValueError(f"fall {self.fall} must be above 0 and at most 1, waves {self.waves} in [0, 1], and blur "
                             f"{self.blur} not below 0")  # fmt: skip
        if len(self.lengths) != 2 or not 1 <= self.lengths[0] <= self.lengths[1]:
            raise ValueError(f"lengths are {self.lengths}; expected two, the first at least 1 and not above the second")

    def make_task(self) -> Task:
        return make_task(self.task)

    def make_model(self) -> Transformer:
        """The weights training begins with: those of `start`, or fresh ones, the same for the same seed."""
        import torch

        from compile.model import Transformer, TransformerConfig

        task = self.make_task()
        names = task.vocabulary
        config = TransformerConfig.from_dict(
            {**self.model, "vocabulary": len(names), "token_names": names, "extra": self.describe()}
        )
        if self.start:
            return with_weights_of(self.start, config)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(self.seed)
            model = Transformer(config)
            for part, spread in NUMBER_SPREADS.items() if task.numbers and self.waves else ():
                spell_numbers(model.get_parameter(f"{part}.weight"), task.numbers, spread, self.waves)
            return model

    def describe(self) -> dict[str, Any]:
        """What a checkpoint must know to be used without its recipe."""
        from experiments.tasks import TuringRasp
        from rasp.formats import to_json

        task = self.make_task()
        machine = {"machine": to_json(task.machine)} if isinstance(task, TuringRasp) else {}
        return {"task": self.task, "lengths": list(self.lengths), "context": self.context, **machine}

    def factor(self, step: int) -> float:
        """Of the peak learning rate, in step 0, 1, ...: up over the warm-up, then down to 0."""
        if step < self.warmup:
            return (step + 1) / self.warmup
        corners = [(self.warmup, 1.0), *self.bends, (self.steps, 0.0)]
        (a, above), (b, below) = next(pair for pair in pairwise(corners) if step <= pair[1][0])
        return below + (above - below) * (b - step) / (b - a)

    def weight(self, step: int) -> float:
        """In the loss of this step, of a token that is not worked out, relative to one that is."""
        return self.emphasis[1] if step >= self.emphasis[0] else 1.0

    def ending(self, steps: int, now: int) -> Recipe:
        """What this recipe becomes when, at step `now`, it is decided to decay to 0 at another step."""
        if steps <= now:
            raise ValueError(f"the run has done {now} steps; it can end at a later step only, not at {steps}")
        if steps == self.steps:
            return self
        horizon = self.horizon or self.steps  # what was practised stays the same
        if now <= self.warmup:
            return self.changed(steps=steps, horizon=horizon, warmup=min(self.warmup, steps))
        kept = tuple(bend for bend in self.bends if bend[0] < now)
        return self.changed(steps=steps, horizon=horizon, bends=(*kept, (now, self.factor(now))))

    def continues(self, other: Recipe, done: int) -> bool:
        """Whether `other` has been the same for its first `done` steps."""
        schedule = {"steps": self.steps, "warmup": self.warmup, "bends": self.bends, "horizon": self.horizon,
                    "emphasis": self.emphasis}  # fmt: skip
        past = {0, done // 2, max(0, done - 1)}
        same = all(math.isclose(self.factor(s), other.factor(s), rel_tol=1e-9) for s in past if s < done)
        same = same and all(self.weight(step) == other.weight(step) for step in range(done))
        practised = (self.horizon or self.steps) == (other.horizon or other.steps)
        return same and practised and other.changed(**schedule) == self

    def changed(self, **changes: Any) -> Recipe:
        return replace(self, **changes)

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Recipe:
        unknown = sorted(set(values) - {f.name for f in fields(cls)})
        if unknown:
            raise ValueError(f"a recipe has no {', '.join(unknown)}")
        return cls(**values)


def with_weights_of(name: str, config: TransformerConfig) -> Transformer:
    """A model of this configuration with the weights of a checkpoint, which must be of the same."""
    from compile.model import Transformer
    from experiments.shipped import FOLDER

    folder = FOLDER / name  # which is the name itself, if that is an absolute path
    if not folder.is_dir():
        raise ValueError(f"there is no checkpoint {name!r} to start with; name a shipped one or a folder of a run")
    begun = Transformer.from_pretrained(folder)
    theirs, ours = begun.config.to_dict(), config.to_dict()
    differing = [key for key in ours if key != "extra" and theirs[key] != ours[key]]
    if differing:
        raise ValueError(f"the weights of {name} do not fit, since its model is another (different: "
                         f"{', '.join(differing)}); start with a checkpoint of the same task and shape (where slopes "
                         "became gentler in training, those it ended with)")  # fmt: skip
    begun.config = config
    return begun


def spell_numbers(table: Tensor, numbers: Mapping[int, float], spread: float, share: float) -> None:
    """Write rows that vary smoothly with the number they stand for: waves of all lengths from 6 down to a fifth.

    With independent rows a model must first find out, from pairs of tokens, that a57 lies between a56 and a58. Columns
    that stay random tell a57 and a58 apart where one of them is looked for.
    """
    import torch

    values = torch.tensor(list(numbers.values()))[:, None]
    smooth = int(share * table.shape[1])
    waves = torch.exp(torch.rand(smooth) * math.log(FASTEST)) * values + 2 * math.pi * torch.rand(smooth)
    with torch.no_grad():
        table.mul_(spread / table.std())
        table[list(numbers), :smooth] = spread * math.sqrt(2) * waves.cos()


def with_lengths(recipe: Recipe, lengths: tuple[int, int]) -> Recipe:
    """The same recipe on shorter or longer problems; it is tried at the same multiples of the longest."""
    probes = (min(max(1, round(probe * lengths[1] / recipe.lengths[1])), LONGEST) for probe in recipe.probes)
    return recipe.changed(lengths=lengths, probes=tuple(dict.fromkeys(probes)))


def with_steps(recipe: Recipe, steps: int) -> Recipe:
    """The same recipe over fewer or more steps; the warm-up and what changes on the way keep their share."""

    def share(step: int) -> int:
        return min(round(step * steps / recipe.steps), steps)

    horizon = max(1, share(recipe.horizon)) if recipe.horizon else 0
    later = {name: (share(step), factor) for name, (step, factor) in
             (("gentler", recipe.gentler), ("emphasis", recipe.emphasis))}  # fmt: skip
    return recipe.changed(steps=steps, warmup=share(recipe.warmup), horizon=horizon, **later)
