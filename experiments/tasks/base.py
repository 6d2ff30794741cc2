"""What every task offers: samples drawn on line, a vocabulary, a check of answers, and text for people.

Texts are laid out in columns for all samples at once: a piece is (samples, width) tokens with HOLE where a sample has
nothing to say, pieces stand side by side, and the holes are dropped at the end. No loop runs over samples.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt

from experiments.schedule import Schedule

if TYPE_CHECKING:
    from compile.transformer import Transformer

IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]
Reals = npt.NDArray[np.float64]

HOLE = -1
LONGEST = 10_000  # cells, digits or examples: beyond it a length is a slip of the keyboard


@dataclass(frozen=True)
class Samples:
    """Ragged rows: sample i is `tokens[starts[i]:starts[i + 1]]`, and its first `prompts[i]` tokens are given.

    Training wants of every token its label, at its weight in the loss. A label is a token, or a row of the soft
    targets of the task's practice; what is given has weight 0.
    """

    tokens: IntArray
    starts: IntArray
    prompts: IntArray
    labels: IntArray
    weights: Reals
    truth: Any = None  # what a tolerant check compares with

    def __len__(self) -> int:
        return len(self.prompts)

    def row(self, index: int) -> IntArray:
        return self.tokens[self.starts[index] : self.starts[index + 1]]

    def prompt(self, index: int) -> IntArray:
        return self.row(index)[: self.prompts[index]]

    def answer(self, index: int) -> IntArray:
        return self.row(index)[self.prompts[index] :]


class Piece(NamedTuple):
    """Columns of a text for training: what each token counts in the loss, and its labels where these are not tokens."""

    tokens: IntArray
    weights: npt.ArrayLike = 1.0
    labels: IntArray | None = None


def lay_out(prompt: Sequence[IntArray], answer: Sequence[IntArray | Piece], truth: Any = None) -> Samples:
    """Samples from the pieces of their prompts and answers, side by side."""
    pieces = [Piece(p, 0.0) for p in prompt] + [p if isinstance(p, Piece) else Piece(p) for p in answer]
    rows = max(len(piece.tokens) for piece in pieces)

    def joined(parts: Iterable[npt.ArrayLike]) -> npt.NDArray[Any]:
        shapes = ((rows, piece.tokens.shape[1]) for piece in pieces)
        return np.concatenate([np.broadcast_to(p, s) for p, s in zip(parts, shapes, strict=True)], axis=1)

    table = joined(piece.tokens for piece in pieces)
    kept = table != HOLE
    given = sum(piece.shape[1] for piece in prompt)
    tokens = table[kept].astype(np.int64)
    labels = tokens
    if any(piece.labels is not None for piece in pieces):
        labels = joined(piece.tokens if piece.labels is None else piece.labels for piece in pieces)[kept]
    weights = joined(piece.weights for piece in pieces)[kept].astype(np.float64)
    starts = np.concatenate(([0], kept.sum(axis=1).cumsum()))
    return Samples(tokens, starts, kept[:, :given].sum(axis=1), labels, weights, truth)


def where_present(present: npt.ArrayLike, values: npt.ArrayLike) -> IntArray:
    """`values`, with holes where not present."""
    return np.where(present, values, HOLE)


class UnknownOption(ValueError):
    """An option that a task, or its practice, does not have."""

    def __init__(self, owner: str, option: str, known: Iterable[str]) -> None:
        self.owner, self.option, self.known = owner, option, sorted(known)
        there_are = f"there are {', '.join(self.known)}" if self.known else "it has none"
        super().__init__(f"{owner} has no option {option!r}; {there_are}")


@dataclass(frozen=True, kw_only=True)
class Practice:
    """What training draws of a task, step by step; here, what tests draw, too."""

    task: Task

    @classmethod
    def read(cls, task: Task, options: Mapping[str, Any]) -> Practice:
        """From a recipe: options that change during training are schedules."""
        known = {f.name: f for f in fields(cls) if f.name != "task"}
        for name in options:
            if name not in known:
                raise UnknownOption(f"the practice of {type(task).__name__}", name, known)
        values = {
            name: Schedule.read(value) if isinstance(known[name].default, Schedule) else value
            for name, value in options.items()
        }
        return cls(task=task, **values)

    def draw(self, rng: np.random.Generator, lengths: IntArray, step: int) -> Samples:
        """One sample per row of `lengths`, (samples, operands), as this step of training wants them."""
        return self.task.generate(rng, lengths)

    @property
    def soft_targets(self) -> Reals | None:
        """(labels, vocabulary): of every label, how much of each token the loss wants. None: labels are tokens."""
        return None

    def initialise(self, model: Transformer) -> None:
        """Change the weights that training begins with."""

    def need_shares(self, *names: str) -> None:
        for name in names:
            value = getattr(self, name)
            values = value.values if isinstance(value, Schedule) else [value]
            if not all(0 <= share <= 1 for share in values):
                given = value.to_json() if isinstance(value, Schedule) else value
                raise ValueError(f"{name} is {given}; a share lies between 0 and 1")


@dataclass(frozen=True, kw_only=True)
class Task(ABC):
    """A family of problems by length. `scratchpad=False` asks for the answer at once, as in the paper's baseline."""

    scratchpad: bool = True

    practice_type: ClassVar[type[Practice]] = Practice
    separator: ClassVar[str] = "|"
    joiner: ClassVar[str] = ""  # between the tokens of a printed text
    operands: ClassVar[int] = 1  # how many lengths a problem has
    multiples: ClassVar[tuple[float, ...]] = (1, 1.5, 2)  # of the longest problem trained on, that models are tried at
    unit: ClassVar[str] = "in length"  # what lengths count

    @property
    @abstractmethod
    def vocabulary(self) -> tuple[str, ...]: ...

    @abstractmethod
    def generate(self, rng: np.random.Generator, lengths: IntArray) -> Samples:
        """One sample per row of `lengths`, (samples, operands)."""

    def practice(self, **options: Any) -> Practice:
        """What training draws, with the options of a recipe."""
        return self.practice_type.read(self, options)

    def sample(self, rng: np.random.Generator, lengths: npt.ArrayLike, count: int | None = None) -> Samples:
        """One sample per entry of `lengths`; or `count` of one length (or of one pair of operand lengths)."""
        given = np.asarray(lengths, dtype=np.int64)
        if count is not None:
            given = np.broadcast_to(given, (count, self.operands))
        elif given.ndim == 1:
            given = np.repeat(given[:, None], self.operands, axis=1)
        check_lengths(given)
        return self.generate(rng, given)

    def draw_lengths(self, rng: np.random.Generator, count: int, low: int, high: int, decay: float = 1.0) -> IntArray:
        """Every operand's length in low..high, independently; each is `decay` times as frequent as the one below it.

        With a decay, that nothing is longer than `high` is hardly worth learning: a model that counts gains little.
        """
        if decay == 1:
            return rng.integers(low, high, size=(count, self.operands), endpoint=True)
        shares = decay ** np.arange(high - low + 1)
        return low + rng.choice(len(shares), size=(count, self.operands), p=shares / shares.sum())

    def check(self, samples: Samples, answers: Sequence[npt.ArrayLike]) -> BoolArray:
        """Whether each answer is right: here, every token of it."""
        exact = (np.array_equal(samples.answer(i), answer) for i, answer in enumerate(answers))
        return np.fromiter(exact, dtype=np.bool_, count=len(samples))

    @property
    def is_exact(self) -> bool:
        """Whether an answer is right only if every token of it is: of tasks without a check of their own."""
        return type(self).check is Task.check

    @cached_property
    def numbering(self) -> dict[str, int]:
        return {name: token for token, name in enumerate(self.vocabulary)}

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


def check_lengths(lengths: npt.ArrayLike, smallest: int = 1) -> None:
    given = np.asarray(lengths)
    if given.size and (given.min() < smallest or given.max() > LONGEST):
        wrong = given.min() if given.min() < smallest else given.max()
        raise ValueError(f"length {wrong} is not one a problem can have; expected {smallest} to {LONGEST}")
