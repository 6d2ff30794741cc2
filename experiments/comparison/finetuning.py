"""Training that starts from a compiled model: does it keep what was compiled, and its length generalisation?

The transplanted model (transplant.py) gets the data, the loss and the training loop of a learned checkpoint on the same
machine, at one or more learning rates; beside it, a model of the same shape is trained from scratch. Accuracy is of
whole next tapes on fresh tapes, with the trace given: a tape is right exactly when greedy decoding would write it.

Rows are short: in single trials of 50 steps at rate 1e-4, 8 rows of 128 tokens cost .08 at training length and 16 rows
of 64 tokens .01. A likely reason, not tested: longer rows hold more separators, and a count c is read off 1 / (1 + c)
by units of slope 3 c (c + 1).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from time import monotonic
from typing import Any

import torch

from compile import compile_machine
from compile.transformer import Transformer
from experiments.comparison.transplant import Exactness, exactness, trainable_shape, trial_traces, write_compiled
from experiments.evaluation.evaluate import fresh_rng
from experiments.evaluation.results import Result, result
from experiments.schedule import warmup_then_decay
from experiments.tasks import TuringRasp
from experiments.training.optimizers import Average
from experiments.training.recipe import Recipe
from experiments.training.state import TrainingError
from experiments.training.trainer import Trainer, make_accelerator
from experiments.training.variations import with_steps

TIMES = (1, 2, 3, 5)  # lengths, in units of the longest training tape
RATES = (1e-5, 1e-4, 1e-3)  # of AdamW: the last is a usual one
SCRATCH_RATE = 1e-3
KEPT = 0.05  # of accuracy: losing less than this is keeping it
PROBED = (1, 3, 10, 30, 100, 300, 1000, 3000)  # steps after which accuracy is looked at


@dataclass(frozen=True)
class FineTuningRun:
    """One training: accuracy at every length before and after it, and on the way at the first and the third."""

    start: str  # "compiled" or "scratch"
    rate: float
    steps: int
    tokens: int
    seconds: float  # with the looks on the way
    before: list[Result]  # empty from scratch
    after: list[Result]
    curve: list[dict[str, Any]]  # step, loss, accuracy by length
    relative_change: dict[str, float]  # |new - old| / |old| of every parameter, and of all of them
    ended: str  # why before the last step, if so

    @property
    def lost(self) -> float:
        """The most that any length lost."""
        return max(b.accuracy - a.accuracy for b, a in zip(self.before, self.after, strict=True))

    @property
    def keeps(self) -> bool:
        """Whether accuracy is what it was, at every length."""
        return self.lost < KEPT

    @property
    def generalises(self) -> bool:
        """Whether the longest tapes still do as well beside those of training length as they did."""
        return self.after[0].accuracy > KEPT and _ratio(self.after) > _ratio(self.before) - KEPT

    def to_dict(self) -> dict[str, Any]:
        known = {"lost": self.lost, "keeps": self.keeps, "generalises": self.generalises} if self.before else {}
        return {**asdict(self), **known}


def _ratio(results: Sequence[Result]) -> float:
    return results[-1].accuracy / max(results[0].accuracy, 1e-9)


@dataclass(frozen=True)
class FineTuning:
    n: int
    parameters: int
    recipe: dict[str, Any]
    exactness: Exactness  # of the transplanted model, before any training
    match_gradient: dict[str, float]  # of the loss, by the match head's q, k and v: sharp attention gets none
    runs: list[FineTuningRun]
    scratch: FineTuningRun | None
    seconds: float
    seed: int
    verdict: str

    def to_dict(self) -> dict[str, Any]:
        """Plain data, as results.json has it under "from_compiled"."""
        scratch = None if self.scratch is None else self.scratch.to_dict()
        return {**asdict(self), "runs": [run.to_dict() for run in self.runs], "scratch": scratch}


def finetune_compiled(
    like: Recipe,
    n: int = 3,
    steps: int = 60,
    rates: Sequence[float] = RATES,
    *,
    context: int = 64,
    batch: int = 16,
    examples: int = 96,
    scratch: bool = True,
    tell: Callable[[str], None] = lambda _: None,
) -> FineTuning:
    """Fine-tune a compiled model on the machine, lengths and seed of `like`, once per rate."""
    started = monotonic()
    task = need_machine(like)
    lean = compile_machine(task.machine, "lean", n=n, steps=_most_separators(like, context), check=False)
    base = _plain_recipe(like, steps).changed(model=trainable_shape(lean), context=context, batch=batch, rate=rates[0])
    model = write_compiled(base.make_model(), lean)
    exact = exactness(model, lean, trial_traces(task.machine, _lengths(base), 8, 1, seed=like.seed))
    before = accuracies(model, base, examples)
    tell(f"compiled lean n={n} as a trainable model: {exact.mismatches} of {exact.tokens} tokens differ")
    runs = []
    for rate in rates:
        runs.append(train_from(model, base.changed(rate=rate), before, examples))
        tell(f"fine-tuned at {rate:g}: {_told(runs[-1])}")
    fresh = base.changed(rate=SCRATCH_RATE)
    beside = train_from(None, fresh, [], examples) if scratch else None
    return FineTuning(
        n,
        model.parameter_count(),
        base.to_dict(),
        exact,
        match_gradient(model, base),
        runs,
        beside,
        monotonic() - started,
        like.seed,
        verdict(runs, beside),
    )


def _plain_recipe(like: Recipe, steps: int) -> Recipe:
    """AdamW with warm-up and decay, without averages and probes."""
    return with_steps(like, steps).changed(
        rate_factor=warmup_then_decay(min(steps, max(1, steps // 10)), steps),
        slope_scale=1,
        optimizer="adamw",
        ema=0.0,
        precision="float32",
        compiled=False,
        probes=(),
    )


def need_machine(recipe: Recipe) -> TuringRasp:
    task = recipe.make_task()
    if not isinstance(task, TuringRasp):
        raise ValueError(f"{recipe.task.get('name')} is no Turing machine in RASP format; nothing compiled fits it")
    return task


def _most_separators(recipe: Recipe, context: int) -> int:
    """What a row of the shortest tapes (bos, state, eos and sep around their cells) can hold."""
    return context // (recipe.lengths[0] + 4) + 2


def _lengths(recipe: Recipe) -> list[int]:
    return [recipe.lengths[1] * times for times in TIMES]


# ------------------------------------------------------------------------------------------------------------ training


def train_from(start: Transformer | None, recipe: Recipe, before: list[Result], examples: int) -> FineTuningRun:
    """Train a copy of `start`, or a fresh model."""
    trainer = Trainer(recipe, make_accelerator("cpu"))
    if start is not None:
        trainer.model.load_state_dict(start.state_dict())
        trainer.average = Average(trainer.model.parameters(), recipe.ema)
    old = {name: p.detach().clone() for name, p in trainer.model.named_parameters()}
    curve, began, ended = [], monotonic(), ""
    while trainer.steps_done < recipe.steps and not ended:
        try:
            loss, _ = trainer.step()
        except TrainingError as error:  # compiled steps are steep: a high rate can make a gradient infinite
            ended = str(error)
        else:
            if trainer.steps_done in (*PROBED, recipe.steps):
                shares = _probe(trainer.model, recipe, examples // 2)
                curve.append({"step": trainer.steps_done, "loss": loss, "accuracy": shares})
    seconds, after = monotonic() - began, accuracies(trainer.averaged(), recipe, examples)
    tokens = trainer.steps_done * recipe.batch * recipe.context
    change = relative_change(old, dict(trainer.model.named_parameters()))
    kind = "scratch" if start is None else "compiled"
    return FineTuningRun(kind, recipe.rate, trainer.steps_done, tokens, seconds, before, after, curve, change, ended)


def relative_change(old: dict[str, torch.Tensor], new: dict[str, torch.Tensor]) -> dict[str, float]:
    moved = {name: float((new[name].detach() - value).norm()) for name, value in old.items()}
    size = {name: float(value.norm()) for name, value in old.items()}
    everything = sum(m * m for m in moved.values()) ** 0.5 / sum(s * s for s in size.values()) ** 0.5
    return {**{name: moved[name] / max(size[name], 1e-30) for name in old}, "all": everything}


def match_gradient(model: Transformer, recipe: Recipe) -> dict[str, float]:
    """The norm of the first batch's gradient in the q, k and v of the last layer's head."""
    trainer = Trainer(recipe, make_accelerator("cpu"))
    trainer.model.load_state_dict(model.state_dict())
    inputs, labels, weights = (torch.from_numpy(x) for x in trainer.batch())
    trainer.loss(inputs, labels, weights.float()).backward()
    gradient = trainer.model.blocks[-1].attn.qkv.weight.grad
    assert gradient is not None
    return dict(zip("qkv", gradient.view(3, -1).norm(dim=1).tolist(), strict=True))


# ------------------------------------------------------------------------------------------------------------ accuracy


def accuracies(model: Transformer, recipe: Recipe, examples: int, times: Sequence[int] = TIMES) -> list[Result]:
    """Of whole next tapes, on the fresh tapes that `evaluate` draws."""
    task, found = need_machine(recipe), []
    for length in (recipe.lengths[1] * t for t in times):
        rows = task.sample(fresh_rng(recipe.seed, length), length, count=examples).tokens.reshape(examples, -1)
        width = rows.shape[1] // 2
        said = model.predict(rows[:, :-1])[:, width - 1 :]
        found.append(result("", length, (said == rows[:, width:]).all(axis=1)))
    return found


def _probe(model: Transformer, recipe: Recipe, examples: int) -> dict[str, float]:
    return {str(r.length): r.accuracy for r in accuracies(model, recipe, max(1, examples), (TIMES[0], TIMES[2]))}


# ------------------------------------------------------------------------------------------------------------- verdict


def verdict(runs: Sequence[FineTuningRun], scratch: FineTuningRun | None) -> str:
    told = [f"At rate {run.rate:g} {_told(run)}." for run in runs]
    if scratch is not None:
        told.append(f"From scratch, the same shape reaches {_shares(scratch.after)} in as many steps.")
    return " ".join(told)


def _told(run: FineTuningRun) -> str:
    if run.keeps:
        how = "the compiled model keeps its accuracy at every length"
    elif run.generalises:
        how = f"it loses up to {run.lost:.2f} of its accuracy, at long tapes no more than at short ones"
    else:
        how = f"it loses up to {run.lost:.2f} of its accuracy, and its length generalisation"
    lengths = ", ".join(f"{times}x" for times in TIMES)
    return f"{how} ({lengths}: {_shares(run.before)} before, {_shares(run.after)} after {run.steps} steps)"


def _shares(results: Sequence[Result]) -> str:
    return " / ".join(f"{r.accuracy:.2f}" for r in results)
