"""Linear regression by SGD, for many samples at once, and its numbers as tokens: a_k stands for (k - 100) / 100."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from experiments.tasks.base import IntArray, Reals
from rasp.programs.vocabulary import NUMBERS
from rasp.programs.vocabulary import ZERO as MIDDLE

Kept = Callable[[Reals], Reals]  # what is kept of numbers that were worked out


def quantised(values: npt.ArrayLike) -> IntArray:
    """The number tokens of reals; what lies outside [-1, 1) is put at its end."""
    hundredths = np.round(np.asarray(values) * MIDDLE, 6)  # so that halves are halves, and go to the even number
    return np.clip(np.rint(hundredths).astype(np.int64) + MIDDLE, 0, NUMBERS - 1)


def rounded(values: Reals) -> Reals:
    """What a reader of the tokens knows of the numbers."""
    return (quantised(values) - MIDDLE) / MIDDLE


def exact(values: Reals) -> Reals:
    return values


@dataclass(frozen=True)
class Steps:
    """One pass of SGD: step t works on example n - 1 - t; arrays are (samples, steps) or (samples, steps, 2)."""

    predicted: Reals
    gradient: Reals
    weights: Reals


def draw_problems(rng: np.random.Generator, sizes: IntArray) -> tuple[Reals, Reals]:
    """Inputs (samples, examples, 2), and the weights (samples, 1, 2) that explain their labels."""
    return rng.uniform(-1, 1, size=(len(sizes), sizes.max(), 2)), rng.uniform(-0.5, 0.5, size=(len(sizes), 1, 2))


def explained(x: Reals, truth: Reals) -> Reals:
    return (x * truth).sum(axis=2)


def descend(x: Reals, y: Reals, sizes: IntArray, rate: float, kept: Kept = exact) -> Steps:
    """w <- w - rate * grad (y - w . x)^2 over the examples, from each sample's last to its first; of every number that
    is worked out, what is `kept` of it is used further on."""
    rows, steps = np.arange(len(sizes)), x.shape[1]
    weights = np.zeros((len(sizes), 2))
    predicted, gradient, after = np.zeros((len(sizes), steps)), np.zeros_like(x), np.zeros_like(x)
    for t in range(steps):
        at = np.maximum(sizes - 1 - t, 0)  # a sample that is done goes on with its first example; nobody looks
        inputs, label = x[rows, at], y[rows, at]
        predicted[:, t] = kept((weights * inputs).sum(axis=1))
        gradient[:, t] = kept(2 * rate * (predicted[:, t] - label)[:, None] * inputs)
        weights = after[:, t] = kept(weights - gradient[:, t])
    return Steps(predicted, gradient, after)
