"""Tasks whose problems are made of symbols or digits, and practice on problems that repeat few of them."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from experiments.schedule import Schedule
from experiments.tasks.base import IntArray, Practice, Samples, Task

MANY = 1 << 30  # a variety that restricts nothing


@dataclass(frozen=True, kw_only=True)
class RepetitivePractice(Practice):
    """`repetitive` is the share of training problems that are made of few different symbols or digits. In a short text
    of many symbols almost any two neighbours are unique, so a model that looks for the last two does well in training
    and fails on longer texts; few symbols make it look further back. Let the share grow from 0: at first, such texts
    would teach it to count instead. Tests draw from all symbols.
    """

    repetitive: Schedule = Schedule.read(0)

    def __post_init__(self) -> None:
        self.need_shares("repetitive")

    def draw(self, rng: np.random.Generator, lengths: IntArray, step: int) -> Samples:
        task = self.task
        assert isinstance(task, SymbolTask)
        if not any(self.repetitive.values):
            return task.generate(rng, lengths)
        few = rng.random(len(lengths)) < self.repetitive.at(step)
        return task.generate_from(rng, lengths, np.where(few, rng.choice(task.few, len(lengths)), MANY))


@dataclass(frozen=True, kw_only=True)
class SymbolTask(Task):
    few: ClassVar[range]  # how many different symbols a repetitive problem has
    practice_type: ClassVar[type[Practice]] = RepetitivePractice

    def generate(self, rng: np.random.Generator, lengths: IntArray) -> Samples:
        return self.generate_from(rng, lengths, None)

    @abstractmethod
    def generate_from(self, rng: np.random.Generator, lengths: IntArray, variety: IntArray | None) -> Samples:
        """One sample per row of `lengths`, each of at most `variety` different symbols."""


def restrict(rng: np.random.Generator, symbols: IntArray, kinds: int, variety: IntArray) -> IntArray:
    """Rows of symbols 0..kinds-1, with at most `variety` different ones in each, chosen by chance."""
    chosen = rng.permuted(np.broadcast_to(np.arange(kinds), (len(symbols), kinds)), axis=1)
    return np.take_along_axis(chosen, symbols % variety[:, None], axis=1)
