"""The tokens of the paper's arithmetic tasks, and how they are printed: one definition for programs and training data.

Digits are tokens 0 to 9. The digit being worked on is written as a letter (a for 0 .. j for 9), tokens 10 to 19; an
operand that is used up is `^`. SGD's numbers are tokens 0 to 199, printed a0 to a199: a_k stands for (k - 100) / 100.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

DIGITS, LETTERS, EMPTY = "0123456789", "abcdefghij", "^"
FIRST_LETTER = len(DIGITS)
NUMBERS, ZERO = 200, 100  # how many number tokens there are, and the one that stands for 0


class InvalidProblem(ValueError):
    """A problem or a text that a program cannot work on."""


@dataclass(frozen=True)
class Vocabulary:
    """The names of a task's tokens, in order; `joiner` stands between the tokens of a printed text."""

    names: tuple[str, ...]
    joiner: str = ""

    def __len__(self) -> int:
        return len(self.names)

    @cached_property
    def numbering(self) -> dict[str, int]:
        return {name: token for token, name in enumerate(self.names)}

    def token(self, name: str) -> int:
        if name not in self.numbering:
            raise InvalidProblem(f"{name!r} is not a token of this task; its tokens are {' '.join(self.names)}")
        return self.numbering[name]

    def tokens(self, names: Iterable[str]) -> list[int]:
        return [self.token(name) for name in names]

    def text(self, tokens: Iterable[Any]) -> str:
        return self.joiner.join(self.names[int(token)] for token in tokens)

    def count(self, text: str) -> int:
        """How many tokens a printed text has."""
        return len(text.split()) if self.joiner else len(text)

    def read(self, text: str) -> np.ndarray:
        """The tokens of a printed text."""
        names = text.split() if self.joiner else list("".join(text.split()))
        return np.array(self.tokens(names), dtype=np.int64)

    def check(self, x: Any) -> np.ndarray:
        """x as an int64 array of token ids, or an error that names the first that is none."""
        try:
            array = np.asarray(x)
        except ValueError:  # rows of different lengths
            raise InvalidProblem("tokens must be a flat sequence of whole numbers, not a nested one") from None
        if array.ndim != 1 or (array.size and not np.issubdtype(array.dtype, np.integer)):
            raise InvalidProblem(
                f"tokens must be a flat sequence of whole numbers, not {array.dtype} of shape {array.shape}"
            )
        array = array.astype(np.int64)
        wrong = np.flatnonzero((array < 0) | (array >= len(self)))
        if len(wrong):
            raise InvalidProblem(
                f"token {array[wrong[0]]} at position {wrong[0]} is none of this task's 0..{len(self) - 1}"
            )
        return array


ADDITION = Vocabulary((*DIGITS, *LETTERS, EMPTY, *"$+(,)|."))
MULTIPLICATION = Vocabulary((*DIGITS, *LETTERS, EMPTY, *"$*(~,)|."))
SGD = Vocabulary((*(f"a{i}" for i in range(NUMBERS)), "$", "d", ",", "yp", "g", "cur", "|"), joiner=" ")


def is_digit(z: Any) -> Any:
    return z < FIRST_LETTER


def is_letter(z: Any) -> Any:
    return (z >= FIRST_LETTER) & (z < 2 * FIRST_LETTER)


def is_worked_on(z: Any) -> Any:
    """A letter or `^`: what an operand ends with while the scratchpad is written."""
    return (z >= FIRST_LETTER) & (z <= 2 * FIRST_LETTER)
