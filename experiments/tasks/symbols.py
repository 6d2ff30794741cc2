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
PERIODS = range(1, 5)  # neighbours that stand again at once, and how many of them then do
AGAIN = range(3, 7)


class Repetition(NamedTuple):
    """How problems repeat themselves: one number for each of them."""

    variety: IntArray  # it has at most so many different symbols
    group: IntArray | None = None  # so many neighbours stand in it twice, if there is room; 0: none
    period: IntArray | None = None  # somewhere it goes on as it was so many places before, if there is room; 0: nowhere

    def impose(self, rng: np.random.Generator, symbols: IntArray, kinds: int, lengths: IntArray) -> IntArray:
        """On rows of symbols 0..kinds-1, of which the first `lengths` count."""
        symbols = restrict(rng, symbols, kinds, self.variety)
        if self.group is not None:
            symbols = repeat(rng, symbols, lengths, self.group)
        return symbols if self.period is None else cycle(rng, symbols, lengths, self.period)


@dataclass(frozen=True, kw_only=True)
class RepetitivePractice(Practice):
    """`repetitive` is the share of training problems that are made of few different symbols or digits. In a short text
    of many symbols almost any two neighbours are unique, so a model that looks for the last two does well in training
    and fails on longer texts; few symbols make it look further back. `repeated` is the share in which a group of
    neighbours stands twice: to tell its two places apart one must look further back than the group is long. `periodic`
    is the share in which a group stands again at once, as in 4036403 or 868686. Let all of them grow from 0: at first,
    such texts would teach a model to count instead. Tests draw from all symbols.
    """

    repetitive: Schedule = Schedule.read(0)
    fewest: int | None = None  # symbols of a repetitive problem; None: as the task says
    repeated: Schedule = Schedule.read(0)
    periodic: Schedule = Schedule.read(0)

    def __post_init__(self) -> None:
        self.need_shares("repetitive", "repeated", "periodic")
        few = self.task.few if isinstance(self.task, SymbolTask) else range(1)
        if self.fewest is not None and not 1 <= self.fewest < few.stop:
            raise ValueError(f"fewest is {self.fewest}; a repetitive problem has 1 to {few[-1]} different symbols here")

    def draw(self, rng: np.random.Generator, lengths: IntArray, step: int) -> Samples:
        assert isinstance(self.task, SymbolTask)
        return self.task.generate_from(rng, lengths, self.repetition(rng, len(lengths), step))

    def repetition(self, rng: np.random.Generator, count: int, step: int) -> Repetition | None:
        """Of so many problems, at this step of training."""
        task = self.task
        assert isinstance(task, SymbolTask)
        if not any((*self.repetitive.values, *self.repeated.values, *self.periodic.values)):
            return None
        few = rng.random(count) < self.repetitive.at(step)
        kinds = task.few if self.fewest is None else range(self.fewest, task.few.stop)
        variety = np.where(few, rng.choice(kinds, count), MANY)
        group = _sizes(rng, self.repeated, GROUPS, count, step)
        period = _sizes(rng, self.periodic, PERIODS, count, step)
        return Repetition(variety, group, period)


def _sizes(rng: np.random.Generator, share: Schedule, sizes: range, count: int, step: int) -> IntArray | None:
    """One of `sizes` for the share of the problems that it is at this step, 0 for the others; None: always 0."""
    if not any(share.values):
        return None
    return np.where(rng.random(count) < share.at(step), rng.choice(sizes, count), 0)


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


def cycle(rng: np.random.Generator, symbols: IntArray, lengths: IntArray, period: IntArray) -> IntArray:
    """Rows that somewhere, for 3 to 6 places, go on as they were `period` places before, where there is room."""
    extra = rng.choice(AGAIN, len(symbols))
    size = np.where(period + extra <= lengths, period + extra, 0) * (period > 0)
    start = rng.integers(lengths - size + 1)[:, None]
    columns = np.arange(symbols.shape[1])
    inside = (start <= columns) & (columns < start + size[:, None])
    source = start + (columns - start) % np.maximum(period, 1)[:, None]
    return np.take_along_axis(symbols, np.where(inside, source, columns), axis=1)
