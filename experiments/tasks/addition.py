"""Addition with the paper's compact scratchpad:

    $4324+139|432e+13j(1,3)|43c+1d(0,63)|4d+b(0,463)|e+^(0,4463)|4463.

Each line drops the digits added in the one before and says (carry, sum so far). Where the paper's example does not
reach: lines go on until both operands are used up and the carry is 0, so a last carry has the line `^+^(0,1...)`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from experiments.tasks.base import IntArray, Samples, lay_out, where_present
from experiments.tasks.digits import FEW, draw_digits, most_significant_first, part, under_work
from experiments.tasks.symbols import Repetition, SymbolTask
from rasp.programs.problems import Sum
from rasp.programs.vocabulary import ADDITION, EMPTY


@dataclass(frozen=True, kw_only=True)
class Addition(SymbolTask):
    few: ClassVar[range] = FEW
    operands: ClassVar[int] = 2
    unit: ClassVar[str] = "digits"

    @property
    def vocabulary(self) -> tuple[str, ...]:
        return ADDITION.names

    def generate_from(self, rng: np.random.Generator, lengths: IntArray, repetition: Repetition | None) -> Samples:
        left, right = lengths.T
        if repetition is None:
            return self.lay_out_sums(draw_digits(rng, left), left, draw_digits(rng, right), right)
        both = draw_digits(rng, left + right, repetition)  # as one, so that what one repeats may stand in the other
        return self.lay_out_sums(part(both, 0 * left, left), left, part(both, left, right), right)

    def problem(self, left: str, right: str) -> Samples:
        """The one sample `left + right`."""
        Sum(left, right)  # refuses what is no number
        numbers = [np.array([[int(d) for d in reversed(number)]]) for number in (left, right)]
        sizes = [np.array([len(number)]) for number in (left, right)]
        return self.lay_out_sums(numbers[0], sizes[0], numbers[1], sizes[1])

    def lay_out_sums(self, a: IntArray, a_size: IntArray, b: IntArray, b_size: IntArray) -> Samples:
        places = max(a.shape[1], b.shape[1]) + 1  # one more for the last carry
        total, carries = add(a, b, places)
        sizes = np.maximum(a_size, b_size) + (np.take_along_axis(total, np.maximum(a_size, b_size)[:, None], 1)[:, 0])
        prompt = [
            self.const("$"),
            most_significant_first(a, a_size),
            self.const("+"),
            most_significant_first(b, b_size),
            self.const("|"),
        ]
        answer: list[IntArray] = []
        for place in range(places if self.scratchpad else 0):
            answer += self.line(place, (a, a_size), (b, b_size), carries[:, place], total, sizes)
        return lay_out(prompt, [*answer, most_significant_first(total, sizes), self.const(".")])

    def line(
        self,
        place: int,
        a: tuple[IntArray, IntArray],
        b: tuple[IntArray, IntArray],
        carry: IntArray,
        total: IntArray,
        sizes: IntArray,
    ) -> list[IntArray]:
        """The pieces of the line that adds at `place`; all holes where the sum is already complete."""
        empty = self.token(EMPTY)
        so_far = total[:, : place + 1][:, ::-1]
        pieces = [
            *under_work(*a, place, empty),
            self.const("+"),
            *under_work(*b, place, empty),
            self.const("("),
            carry[:, None],
            self.const(","),
            so_far,
            self.const(")|"),
        ]
        return [where_present((place < sizes)[:, None], piece) for piece in pieces]


def add(a: IntArray, b: IntArray, places: int) -> tuple[IntArray, IntArray]:
    """Digits of a + b and the carry out of every place, all (samples, places)."""
    total = np.zeros((len(a), places), dtype=np.int64)
    total[:, : a.shape[1]] += a
    total[:, : b.shape[1]] += b
    carries = np.zeros_like(total)
    for place in range(places):
        if place:
            total[:, place] += carries[:, place - 1]
        carries[:, place], total[:, place] = np.divmod(total[:, place], 10)
    return total, carries
