"""Problems of the paper's arithmetic tasks, read from what a person types, and the whole text that solves each.

These texts are the definition that programs are checked against, written for one problem as plainly as possible.
"""

from __future__ import annotations

import reprlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, Protocol

import numpy as np

from rasp.programs.vocabulary import (
    ADDITION,
    DIGITS,
    EMPTY,
    LETTERS,
    MULTIPLICATION,
    NUMBERS,
    SGD,
    ZERO,
    InvalidProblem,
    Vocabulary,
)

LONGEST = 10_000  # digits or examples: beyond it a length is a slip of the keyboard
MOST_DIGITS = 9  # of a factor: its products stay whole numbers of 64 bits where they are laid out in batches


class Problem(Protocol):
    """A problem and its text: `prompt` is given, `lines` follow, each with the token that ends it."""

    @property
    def vocabulary(self) -> Vocabulary: ...
    @property
    def prompt(self) -> str: ...
    def lines(self) -> Iterator[str]: ...


def whole_text(problem: Problem) -> str:
    """The prompt and everything that follows it."""
    return problem.vocabulary.joiner.join([problem.prompt, *problem.lines()])


def prompt_tokens(problem: Problem) -> np.ndarray:
    return problem.vocabulary.read(problem.prompt)


def text_tokens(problem: Problem) -> np.ndarray:
    return problem.vocabulary.read(whole_text(problem))


@dataclass(frozen=True)
class Sum:
    """left + right, two numbers as digits; leading zeros count."""

    left: str
    right: str

    vocabulary: ClassVar[Vocabulary] = ADDITION

    def __post_init__(self) -> None:
        check_number("first", self.left)
        check_number("second", self.right)

    @classmethod
    def read(cls, text: str) -> Sum:
        return cls(*two_numbers(text, "+", "4324+139"))

    @property
    def prompt(self) -> str:
        return f"${self.left}+{self.right}|"

    def lines(self) -> Iterator[str]:
        carry, total, place = 0, "", 0
        while place < max(len(self.left), len(self.right)) or carry:
            carry, digit = divmod(digit_at(self.left, place) + digit_at(self.right, place) + carry, 10)
            total = f"{digit}{total}"
            yield f"{under_work(self.left, place)}+{under_work(self.right, place)}({carry},{total})|"
            place += 1
        yield f"{total}."


@dataclass(frozen=True)
class Product:
    """left * factor, two numbers as digits; leading zeros count."""

    left: str
    factor: str

    vocabulary: ClassVar[Vocabulary] = MULTIPLICATION

    def __post_init__(self) -> None:
        check_number("first", self.left)
        check_number("second", self.factor, MOST_DIGITS)

    @classmethod
    def read(cls, text: str) -> Product:
        return cls(*two_numbers(text, "*", "4324*135"))

    @property
    def digits(self) -> int:
        return len(self.factor)

    @property
    def prompt(self) -> str:
        return f"${self.left}*{self.factor}|"

    def lines(self) -> Iterator[str]:
        carry, total, place, k = 0, "", 0, self.digits
        while place < len(self.left) or carry:
            times = digit_at(self.left, place) * int(self.factor)
            carry, digit = divmod(times + carry, 10)
            total = f"{digit}{total}"
            yield f"{under_work(self.left, place)}*{self.factor}({times:0{k + 1}}~{carry:0{k}},{total})|"
            place += 1
        yield f"{total}."


@dataclass(frozen=True)
class Regression:
    """Examples (x1, x2, y) as number tokens: k stands for (k - 100) / 100."""

    examples: tuple[tuple[int, int, int], ...]

    vocabulary: ClassVar[Vocabulary] = SGD

    def __post_init__(self) -> None:
        if not 1 <= len(self.examples) <= LONGEST:
            raise InvalidProblem(f"{len(self.examples)} examples were given: a problem has 1 to {LONGEST}")
        for example in self.examples:
            if len(example) != 3 or not all(0 <= number < NUMBERS for number in example):
                raise InvalidProblem(f"{example} is no example: expected three number tokens from 0 to {NUMBERS - 1}")

    @classmethod
    def read(cls, text: str) -> Regression:
        """From `d a179 a166 , a76 d a80 a145 , a102`, with or without the `$` before and the `|` after it."""
        names = text.split()
        inner = names[names[:1] == ["$"] : len(names) - (names[-1:] == ["|"])]
        rows = [inner[i : i + 5] for i in range(0, len(inner), 5)]
        for row in rows:
            if len(row) != 5 or (row[0], row[3]) != ("d", ","):
                raise InvalidProblem(
                    f"{shown(' '.join(row))} is no example: write `d x1 x2 , y`, as in d a179 a166 , a76"
                )
        return cls(tuple((number(r[1]), number(r[2]), number(r[4])) for r in rows))

    @property
    def prompt(self) -> str:
        return f"$ {spell_examples(self.examples)} |"

    def lines(self) -> Iterator[str]:
        weights = (0, 0)  # in hundredths, as all numbers below
        for left in range(len(self.examples), 0, -1):
            x1, x2, y = (token - ZERO for token in self.examples[left - 1])
            predicted = rounded(weights[0] * x1 + weights[1] * x2)
            step = rounded((predicted - y) * x1), rounded((predicted - y) * x2)
            weights = within(weights[0] - step[0]), within(weights[1] - step[1])
            worked = f"yp {spell(predicted)} g {spell(*step)} cur {spell(*weights)} |"
            yield f"{spell_examples(self.examples[:left])} {worked}"


# --- spelling ---------------------------------------------------------------------------------------------------------


def digit_at(number: str, place: int) -> int:
    """The digit at this place, counted from the least significant; 0 beyond the number."""
    return int(number[-1 - place]) if place < len(number) else 0


def under_work(number: str, place: int) -> str:
    """The operand while its digit at `place` is worked on."""
    return number[: -1 - place] + LETTERS[digit_at(number, place)] if place < len(number) else EMPTY


def rounded(value: int) -> int:
    """Hundredths from ten-thousandths; halves to even (and `value / 100` is exact where it is a half)."""
    return within(round(value / 100))


def within(hundredths: int) -> int:
    return min(max(hundredths, -ZERO), NUMBERS - 1 - ZERO)


def spell(*hundredths: int) -> str:
    return " ".join(f"a{value + ZERO}" for value in hundredths)


def spell_examples(examples: tuple[tuple[int, int, int], ...]) -> str:
    return " ".join(f"d a{x1} a{x2} , a{y}" for x1, x2, y in examples)


# --- what a person typed ----------------------------------------------------------------------------------------------


def shown(text: str) -> str:
    return reprlib.repr(text)


def two_numbers(text: str, sign: str, example: str) -> tuple[str, str]:
    """The two numbers of a problem such as 4324+139."""
    parts = "".join(text.split()).split(sign)
    if len(parts) != 2 or not all(parts):
        raise InvalidProblem(
            f"{shown(text)} is not a problem: write two numbers with {sign} between them, as in {example}"
        )
    return parts[0], parts[1]


def check_number(which: str, number: str, most: int = LONGEST) -> None:
    strange = number.strip(DIGITS)
    if strange or not number:
        raise InvalidProblem(f"the {which} number is {shown(number)}: expected digits 0 to 9 only")
    if len(number) > most:
        raise InvalidProblem(f"the {which} number has {len(number)} digits: at most {most} are supported")


def number(name: str) -> int:
    """The number token of a printed name such as a179."""
    token = SGD.numbering.get(name, NUMBERS)
    if token >= NUMBERS:
        raise InvalidProblem(f"{shown(name)} is not a number: expected a0 to a{NUMBERS - 1}")
    return token
