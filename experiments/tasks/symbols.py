"""Tasks whose problems are made of symbols or digits, and practice on problems that repeat few of them."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from experiments.schedule import Schedule
from experiments.tasks.base import IntArray, Practice, Samples, Task

MANY = 1 << 30  # a variety that restricts nothing
GROUPS = range(3, 7)  # neighbours that stand twice


class Repetition(NamedTuple):
    """How problems repeat themselves: one number for each of them."""

    variety: IntArray  # it has at most so many different symbols
    group: IntArray | None = None  # so many neighbours stand in it twice, if there is room; 0: none

    def impose(self, rng: np.random.Generator, symbols: IntArray, kinds: int, lengths: IntArray) -> IntArray:
        """On rows of symbols 0..kinds-1, of which the first `lengths` count."""
        few = restrict(rng, symbols, kinds, self.variety)
        return few if self.group is None else repeat(rng, few, lengths, self.group)


@dataclass(frozen=True, kw_only=True)
class RepetitivePractice(Practice):
    """`repetitive` is the share of training problems that are made of few different symbols or digits. In a short text
    of many symbols almost any two neighbours are unique, so a model that looks for the last two does well in training
    and fails on longer texts; few symbols make it look further back. `repeated` is the share in which a group of
    neighbours stands twice: to tell its two places apart one must look further back than the group is long. Let both
    grow from 0: at first, such texts would teach a model to count instead. Tests draw from all symbols.
    """

    repetitive: Schedule = Schedule.read(0)
    fewest: int | None = None  # symbols of a repetitive problem; None: as the task says
    repeated: Schedule = Schedule.read(0)

    def __post_init__(self) -> None:
        self.need_shares("repetitive", "repeated")
        few = self.task.few if isinstance(self.task, SymbolTask) else range(1)
        if self.fewest is not None and not 1 <= self.fewest < few.stop:
            raise ValueError(f"fewest is {self.fewest}; a repetitive problem has 1 to {few[-1]} different symbols here")

    def draw(self, rng: np.random.Generator, lengths: IntArray, step: int) -> Samples:
        task, count = self.task, len(lengths)
        assert isinstance(task, SymbolTask)
        if not any((*self.repetitive.values, *self.repeated.values)):
            return task.generate(rng, lengths)
        few = rng.random(count) < self.repetitive.at(step)
        kinds = task.few if self.fewest is None else range(self.fewest, task.few.stop)
        variety = np.where(few, rng.choice(kinds, count), MANY)
        if not any(self.repeated.values):
            return task.generate_from(rng, lengths, Repetition(variety))
        twice = rng.random(count) < self.repeated.at(step)
        return task.generate_from(rng, lengths, Repetition(variety, np.where(twice, rng.choice(GROUPS, count), 0)))


@dataclass(frozen=True, kw_only=True)
class SymbolTask(Task):
    few: ClassVar[range]  # how many different symbols a repetitive problem has
    practice_type: ClassVar[type[Practice]] = RepetitivePractice

    def generate(self, rng: np.random.Generator, lengths: IntArray) -> Samples:
        return self.generate_from(rng, lengths, None)

    @abstractmethod
    def generate_from(self, rng: np.random.Generator, lengths: IntArray, repetition: Repetition | None) -> Samples:
        """One sample per row of `lengths`, each of which repeats itself as asked."""


def restrict(rng: np.random.Generator, symbols: IntArray, kinds: int, variety: IntArray) -> IntArray:
    """Rows of symbols 0..kinds-1, with at most `variety` different ones in each, chosen by chance."""
    chosen = rng.permuted(np.broadcast_to(np.arange(kinds), (len(symbols), kinds)), axis=1)
    return np.take_along_axis(chosen, symbols % variety[:, None], axis=1)


def repeat(rng: np.random.Generator, symbols: IntArray, lengths: IntArray, group: IntArray) -> IntArray:
    """Rows in which `group` neighbours are written once more, further on, where there is room for both."""
    size = np.where(2 * group <= lengths, group, 0)
    source = rng.integers(lengths - 2 * size + 1)
    target = rng.integers(source + size, lengths - size + 1)
    columns = np.arange(symbols.shape[1])
    copied = (target[:, None] <= columns) & (columns < (target + size)[:, None])
    return np.take_along_axis(symbols, np.where(copied, columns - (target - source)[:, None], columns), axis=1)
