"""What every task offers: samples drawn on line, a vocabulary, a check of answers, and text for people.

Texts are laid out in columns for all samples at once: a piece is (samples, width) tokens with HOLE where a sample has
nothing to say, pieces stand side by side, and the holes are dropped at the end. No loop runs over samples.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]

HOLE = -1
COMPUTED = 1 << 20  # a piece's token plus this is a number that is worked out, not copied;
SILENT = 1 << 21  # plus this, it is written, but not asked for in training
MANY = 1 << 30  # a variety that restricts nothing
LONGEST = 10_000  # cells, digits or examples: beyond it a length is a slip of the keyboard


@dataclass(frozen=True)
class Samples:
    """Ragged rows: sample i is `tokens[starts[i]:starts[i + 1]]`, and its first `prompts[i]` tokens are given."""

    tokens: IntArray
    starts: IntArray
    prompts: IntArray
    computed: BoolArray  # of every token, whether it is a number that is worked out, not copied
    silent: BoolArray  # of every token, whether training does not ask for it, although it is part of an answer
    truth: Any = None  # what a tolerant check compares with

    def __len__(self) -> int:
        return len(self.prompts)

    def row(self, index: int) -> IntArray:
        return self.tokens[self.starts[index] : self.starts[index + 1]]

    def prompt(self, index: int) -> IntArray:
        return self.row(index)[: self.prompts[index]]

    def answer(self, index: int) -> IntArray:
        return self.row(index)[self.prompts[index] :]

    @property
    def answered(self) -> BoolArray:
        """For every token, whether it belongs to an answer and is asked for."""
        sizes = np.diff(self.starts)
        within = np.arange(len(self.tokens)) - np.repeat(self.starts[:-1], sizes)
        return (within >= np.repeat(self.prompts, sizes)) & ~self.silent


def lay_out(prompt: Sequence[IntArray], answer: Sequence[IntArray], truth: Any = None) -> Samples:
    """Samples from the pieces of their prompts and answers, side by side."""
    rows = max(len(piece) for piece in (*prompt, *answer))

    def joined(pieces: Sequence[IntArray]) -> IntArray:
        return np.concatenate([np.broadcast_to(p, (rows, p.shape[1])) for p in pieces], axis=1)

    left, right = joined(prompt), joined(answer)
    table = np.concatenate((left, right), axis=1)
    kept = table != HOLE
    starts = np.concatenate(([0], kept.sum(axis=1).cumsum()))
    tokens = table[kept].astype(np.int64)
    prompts = (left != HOLE).sum(axis=1)
    return Samples(tokens % COMPUTED, starts, prompts, tokens & COMPUTED > 0, tokens & SILENT > 0, truth)


def where_present(present: npt.ArrayLike, values: npt.ArrayLike) -> IntArray:
    """`values`, with holes where not present."""
    return np.where(present, values, HOLE)


def computed(piece: IntArray) -> IntArray:
    """The piece with its tokens marked as numbers that are worked out."""
    return np.where(piece != HOLE, piece | COMPUTED, HOLE)


def hushed(piece: IntArray, where: npt.ArrayLike) -> IntArray:
    """The piece with its tokens silent in these places."""
    return np.where((piece != HOLE) & where, piece | SILENT, piece)


@dataclass(frozen=True, kw_only=True)
class Task(ABC):
    """A family of problems by length. `scratchpad=False` asks for the answer at once, as in the paper's baseline.

    `repetitive` is the share of training problems that are made of few different symbols or digits. In a short text of
    many symbols almost any two neighbours are unique, so a model that looks for the last two does well in training and
    fails on longer texts; few symbols make it look further back. The share grows from 0: at first, such texts would
    teach it to count instead. Tests draw from all symbols.
    """

    scratchpad: bool = True
    repetitive: float = 0.0

    few: ClassVar[range] = range(0)  # how many different symbols a repetitive problem has; empty: there are none
    separator: ClassVar[str] = "|"
    joiner: ClassVar[str] = ""  # between the tokens of a printed text
    operands: ClassVar[int] = 1  # how many lengths a problem has

    def __post_init__(self) -> None:
        if not 0 <= self.repetitive <= (1 if self.few else 0):
            raise ValueError(f"repetitive is {self.repetitive}; " + (
                "a share lies between 0 and 1" if self.few else "this task has no symbols to repeat"))  # fmt: skip

    @property
    @abstractmethod
    def vocabulary(self) -> tuple[str, ...]: ...

    @abstractmethod
    def generate(self, rng: np.random.Generator, lengths: IntArray, variety: IntArray | None = None) -> Samples:
        """One sample per row of `lengths`, (samples, operands), each of at most `variety` different symbols."""

    def practice(self, rng: np.random.Generator, lengths: IntArray, progress: float) -> Samples:
        """What training sees when this share of it is done."""
        if not self.repetitive:
            return self.generate(rng, lengths)
        few = rng.random(len(lengths)) < self.repetitive * progress
        return self.generate(rng, lengths, np.where(few, rng.choice(self.few, len(lengths)), MANY))

    def sample(self, rng: np.random.Generator, lengths: npt.ArrayLike, count: int | None = None) -> Samples:
        """One sample per entry of `lengths`; or `count` of one length (or of one pair of operand lengths)."""
        given = np.asarray(lengths, dtype=np.int64)
        if count is not None:
            given = np.broadcast_to(given, (count, self.operands))
        elif given.ndim == 1:
            given = np.repeat(given[:, None], self.operands, axis=1)
        check_lengths(given)
        return self.generate(rng, given)

    def draw_lengths(
        self, rng: np.random.Generator, count: int, low: int, high: int, fall: float = 1.0
    ) -> IntArray:  # fmt: skip
        """Every operand's length in low..high, independently; each is `fall` times as frequent as the one below it.

        With a fall, that nothing is longer than `high` is hardly worth learning: a model that counts gains little.
        """
        if fall == 1:
            return rng.integers(low, high, size=(count, self.operands), endpoint=True)
        shares = fall ** np.arange(high - low + 1)
        return low + rng.choice(len(shares), size=(count, self.operands), p=shares / shares.sum())

    def check(self, samples: Samples, answers: Sequence[npt.ArrayLike]) -> BoolArray:
        """Whether each answer is right: here, every token of it."""
        exact = (np.array_equal(samples.answer(i), answer) for i, answer in enumerate(answers))
        return np.fromiter(exact, dtype=np.bool_, count=len(samples))

    @cached_property
    def numbering(self) -> dict[str, int]:
        return {name: token for token, name in enumerate(self.vocabulary)}

    @property
    def numbers(self) -> dict[int, float]:
        """Tokens that stand for a number in [-1, 1], where like numbers should be alike from the start."""
        return {}

    def token(self, name: str) -> int:
        if name not in self.numbering:
            raise ValueError(f"{name!r} is not a token of this task; its tokens are {' '.join(self.vocabulary)}")
        return self.numbering[name]

    def const(self, names: Iterable[str]) -> IntArray:
        """A piece that is the same in every sample."""
        return np.array([[self.token(name) for name in names]], dtype=np.int64)

    def text(self, tokens: npt.ArrayLike) -> str:
        return self.joiner.join(self.vocabulary[int(t)] for t in np.asarray(tokens))

    def read(self, text: str) -> IntArray:
        """The tokens of a printed text."""
        names = text.split() if self.joiner else list("".join(text.split()))
        return np.array([self.token(name) for name in names], dtype=np.int64)


def restrict(rng: np.random.Generator, symbols: IntArray, kinds: int, variety: IntArray) -> IntArray:
    """Rows of symbols 0..kinds-1, with at most `variety` different ones in each, chosen by chance."""
    chosen = rng.permuted(np.broadcast_to(np.arange(kinds), (len(symbols), kinds)), axis=1)
    return np.take_along_axis(chosen, symbols % variety[:, None], axis=1)


def check_lengths(lengths: npt.ArrayLike, smallest: int = 1) -> None:
    given = np.asarray(lengths)
    if given.size and (given.min() < smallest or given.max() > LONGEST):
        wrong = given.min() if given.min() < smallest else given.max()
        raise ValueError(f"length {wrong} is not one a problem can have; expected {smallest} to {LONGEST}")
