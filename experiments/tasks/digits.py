"""Numbers as columns of digits, and the spelling that addition and multiplication share.

The digit being worked on is written as a letter (a for 0 ... j for 9); an operand that is used up is `^`.
"""

from __future__ import annotations

import numpy as np

from experiments.tasks.base import IntArray, where_present
from experiments.tasks.symbols import Repetition
from rasp.programs.vocabulary import FIRST_LETTER

FEW = range(3, 7)  # different digits of a repetitive number


def draw_digits(rng: np.random.Generator, lengths: IntArray, repetition: Repetition | None = None) -> IntArray:
    """(samples, longest) digits, least significant first, 0 beyond each number's length; leading zeros happen."""
    places = np.arange(lengths.max())
    digits = rng.integers(10, size=(len(lengths), len(places)))
    if repetition is not None:
        digits = repetition.impose(rng, digits, 10, lengths)
    return digits * (places < lengths[:, None])


def part(digits: IntArray, start: IntArray, lengths: IntArray) -> IntArray:
    """The numbers of these lengths that begin, in each row of digits, at `start`; 0 beyond each number's length."""
    places = np.arange(lengths.max())
    inside = places < lengths[:, None]
    return np.take_along_axis(digits, np.where(inside, start[:, None] + places, 0), axis=1) * inside


def most_significant_first(digits: IntArray, lengths: IntArray, skip: int = 0) -> IntArray:
    """The piece that spells places `skip` and above of each number."""
    places = np.arange(digits.shape[1] - 1, skip - 1, -1)
    return where_present(places < lengths[:, None], digits[:, skip:][:, ::-1])


def under_work(digits: IntArray, lengths: IntArray, place: int, empty: int) -> tuple[IntArray, IntArray]:
    """The pieces of an operand whose digit at `place` is being worked on: what is above it, and its letter or `^`."""
    used_up = lengths <= place
    digit = digits[:, place] if place < digits.shape[1] else np.zeros(len(digits), dtype=np.int64)
    above = most_significant_first(digits, lengths, place + 1)
    return above, np.where(used_up, empty, FIRST_LETTER + digit)[:, None]


def spelled(number: IntArray, width: int) -> IntArray:
    """The piece that spells small numbers with exactly `width` digits."""
    return number[:, None] // 10 ** np.arange(width - 1, -1, -1) % 10
