"""What training draws to learn SGD: against guessing, rough looks and counting (see docs/training-notes.md)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

import numpy as np

from experiments.schedule import Schedule
from experiments.tasks.base import BoolArray, IntArray, Practice, Reals, Samples
from experiments.tasks.sgd.regression import MIDDLE, draw_problems, exact, explained, rounded
from experiments.tasks.sgd.writing import RunWriter, Writing
from rasp.programs.vocabulary import NUMBERS, SGD

if TYPE_CHECKING:
    from torch import Tensor

    from compile.transformer import Transformer

RANDOM = 0.6  # random labels lie within it: larger ones would take the weights out of range
NARROWEST, WIDEST = 0.05, 0.4  # half the range of the examples of a problem of similar ones, where others have 1
FASTEST = 30.0  # radians per 1: neighbouring numbers, 1/100 apart, are then 0.3 radians apart
# Spreads of the rows of numbers. Large, because the optimizer's steps are equally long for all weights: they would soon
# roughen small waves, and a product can be read off smooth ones only.
SPREADS = {"embed": 1.0, "unembed": 0.1}


@dataclass(frozen=True, kw_only=True)
class SgdPractice(Practice):
    """`random_labels` is the share of training problems whose labels are drawn by chance. Where y = w . x, the
    prediction can be guessed from the label next to it, and a model that does so never learns the product.

    `similar` is the share of training problems whose examples resemble each other. A line ends after the example that
    the line before has last but one; where no two examples are alike, a rough look is enough to find it, and fails in
    longer problems, where some are. Of the numbers of such problems, the share `differing` is drawn from the whole
    range all the same: where examples resemble each other in some of their numbers only, all three must be compared.

    `truncated` is the share of lines in training that begin with a later example than the first. A line that has one
    example less than the one before can also be ended by counting both, but not beyond the lengths that were counted;
    where lines are truncated, only looking for the example helps. What cannot be known from a truncated line is
    masked; and so are so many ends of long lines that an end is as likely after any number of examples.

    With `from_text`, numbers are worked out from those that stand in the text, rounded as they are: then the text alone
    decides every one of them. In tests they are real numbers, rounded only where they are written; a model that works
    from the text without error stays within the tolerance there (a test says how often).

    `soft_labels` is the width, in tokens, of the bell that the loss wants around a number that is worked out (0: the
    number alone), `copy_weight` the weight of all other tokens. `fourier` is the share of the columns in which numbers
    begin as waves of their value. Tests have none of all this.
    """

    random_labels: float = 0.0
    similar: Schedule = Schedule.read(0)
    differing: float = 0.0
    truncated: Schedule = Schedule.read(0)
    from_text: bool = False
    soft_labels: float = 0.0
    copy_weight: Schedule = Schedule.read(1)
    fourier: float = 0.0

    def __post_init__(self) -> None:
        self.need_shares("random_labels", "similar", "differing", "truncated", "fourier")
        if not 0 <= self.soft_labels < math.inf:
            raise ValueError(f"soft_labels is {self.soft_labels}; expected a width in tokens, not below 0")
        if min(self.copy_weight.values) <= 0:
            raise ValueError(f"copy_weight is {self.copy_weight.to_json()}; expected weights above 0")

    def draw(self, rng: np.random.Generator, lengths: IntArray, step: int) -> Samples:
        sizes = lengths[:, 0]
        x, y = self.examples(rng, sizes, self.similar.at(step))
        first, masked_ends, share = None, None, self.truncated.at(step)
        if share:
            examples = np.maximum(sizes[:, None] - np.arange(sizes.max()), 0)  # of every line
            shorter = rng.random(examples.shape) < share
            latest = np.maximum(examples - 1, 1)  # of its examples the last two tell where the next line ends
            first = np.where(shorter, rng.integers(latest), 0)
            masked_ends = uneven_ends(rng, examples - first)
        kept = rounded if self.from_text else exact
        writing = Writing(kept, first, masked_ends, self.copy_weight.at(step), self.soft_labels > 0)
        return cast(RunWriter, self.task).lay_out_runs(x, y, sizes, writing)

    def examples(self, rng: np.random.Generator, sizes: IntArray, similar: float) -> tuple[Reals, Reals]:
        """Inputs and labels."""
        x, truth = draw_problems(rng, sizes)
        by_chance = rng.random((len(sizes), 1)) < self.random_labels
        labels = rng.uniform(-RANDOM, RANDOM, size=x.shape[:2])
        if similar:
            narrow = self.narrowing(rng, len(sizes), similar)
            of_inputs, of_labels = narrow[..., :2], narrow[..., 2]
            x = of_inputs * x + rng.uniform(-1, 1, (len(sizes), 1, 2)) * (1 - of_inputs)
            labels = of_labels * labels + rng.uniform(-RANDOM, RANDOM, (len(sizes), 1)) * (1 - of_labels)
        return x, np.where(by_chance, labels, explained(x, truth))

    def narrowing(self, rng: np.random.Generator, count: int, similar: float) -> Reals:
        """(problems, 1, 3): of each of an example's numbers, the share of its range that the problem uses."""
        narrow = NARROWEST * (WIDEST / NARROWEST) ** rng.random((count, 1, 1))
        narrow = np.where(rng.random((count, 1, 1)) < similar, narrow, 1.0)
        wide = rng.random((count, 1, 3)) < self.differing if self.differing else np.zeros((1, 1, 3), dtype=np.bool_)
        return np.where(wide, 1.0, narrow)

    @property
    def soft_targets(self) -> Reals | None:
        """Every token for itself; after them, of every number a bell around it."""
        if not self.soft_labels:
            return None
        numbers = np.arange(NUMBERS)
        bells = np.exp(-0.5 * ((numbers[:, None] - numbers) / self.soft_labels) ** 2)
        bells = np.pad(bells / bells.sum(axis=1, keepdims=True), ((0, 0), (0, len(SGD) - NUMBERS)))
        return np.concatenate((np.eye(len(SGD)), bells))

    def initialise(self, model: Transformer) -> None:
        for part, spread in SPREADS.items() if self.fourier else ():
            write_waves(model.get_parameter(f"{part}.weight"), spread, self.fourier)


def write_waves(table: Tensor, spread: float, share: float) -> None:
    """Write rows that vary smoothly with the number they stand for: waves of all lengths from 6 down to a fifth.

    With independent rows a model must first find out, from pairs of tokens, that a57 lies between a56 and a58. Columns
    that stay random tell a57 and a58 apart where one of them is looked for.
    """
    import torch

    values = torch.tensor([(i - MIDDLE) / MIDDLE for i in range(NUMBERS)])[:, None]
    smooth = int(share * table.shape[1])
    waves = torch.exp(torch.rand(smooth) * math.log(FASTEST)) * values + 2 * math.pi * torch.rand(smooth)
    with torch.no_grad():
        table.mul_(spread / table.std())
        table[:NUMBERS, :smooth] = spread * math.sqrt(2) * waves.cos()


def uneven_ends(rng: np.random.Generator, examples: IntArray) -> BoolArray:
    """Of lines with so many examples, (samples, lines), those without whose ends an end after the k-th example is as
    frequent for every k, among lines with at least k, as it is for k = 1. The end of the longest is always one of them,
    unless all have one example."""
    lines = np.bincount(examples.ravel())  # how many have k examples
    longer = lines[::-1].cumsum()[::-1] - lines
    if not longer[1]:
        return np.zeros(examples.shape, dtype=np.bool_)
    kept = lines[1] / longer[1] * longer / np.maximum(lines, 1)
    return rng.random(examples.shape) >= kept[examples]
