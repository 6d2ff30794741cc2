"""Multiplication by an operand of k digits, with the paper's compact scratchpad:

    $4324*135|432e*135(0540~054,0)|43c*135(0270~032,40)|...|^*135(0000~005,83740)|^*135(0000~000,583740)|583740.

Each line says (digit times operand ~ carry, product so far), with k + 1 and k digits. Lines go on until the first
operand is used up and the carry is 0, which is one reading of the paper's single example. The second operand does not
begin with 0: a product with 0 is a row of zeros, which can be counted but not copied, and it is unlikely that the
paper's .971 at 100 digits includes a tenth of such problems.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from experiments.schedule import Schedule
from experiments.tasks.base import BoolArray, IntArray, Samples, lay_out, where_present
from experiments.tasks.digits import FEW, draw_digits, most_significant_first, spelled, under_work
from experiments.tasks.symbols import Repetition, RepetitivePractice, SymbolTask
from rasp.programs.problems import MOST_DIGITS, Product
from rasp.programs.vocabulary import EMPTY, MULTIPLICATION


@dataclass(frozen=True, kw_only=True)
class MultiplicationPractice(RepetitivePractice):
    """`near_round` is the share of training problems in which two of three digits are chosen such that their product
    and the carry before add up to almost a round number, as 0871 + 131 do: there a small digit decides the first ones
    of the new carry. That is rare elsewhere, and it is what is learned last. `round_unit` says of what the round
    numbers are multiples; by default it is, for each digit, any power of ten from 100 to the least above all carries.
    """

    near_round: Schedule = Schedule.read(0)
    round_unit: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        self.need_shares("near_round")
        if self.round_unit is not None and self.round_unit < 1:
            raise ValueError(f"round_unit is {self.round_unit}; round numbers are multiples of it, such as 1000")

    def draw(self, rng: np.random.Generator, lengths: IntArray, step: int) -> Samples:
        if not any(self.near_round.values):
            return super().draw(rng, lengths, step)
        task, count = self.task, len(lengths)
        assert isinstance(task, Multiplication)
        digits, factors = task.draw_operands(rng, lengths, self.repetition(rng, count, step))
        changed = rng.random(count) < self.near_round.at(step)
        digits = approach_round(rng, digits, factors, changed, self.round_units(rng, digits.shape))
        return task.lay_out_products(digits, lengths[:, 0], factors)

    def round_units(self, rng: np.random.Generator, shape: tuple[int, ...]) -> IntArray:
        assert isinstance(self.task, Multiplication)
        if self.round_unit is not None:
            return np.full(shape, self.round_unit)
        largest = self.task.digits
        return 10 ** rng.integers(min(2, largest), largest, size=shape, endpoint=True)


@dataclass(frozen=True, kw_only=True)
class Multiplication(SymbolTask):
    digits: int = 1  # of the second operand

    practice_type: ClassVar[type[RepetitivePractice]] = MultiplicationPractice
    few: ClassVar[range] = FEW
    unit: ClassVar[str] = "digits"

    def __post_init__(self) -> None:
        if not 1 <= self.digits <= MOST_DIGITS:
            raise ValueError(f"digits is {self.digits}; the fixed operand may have 1 to {MOST_DIGITS}")

    @property
    def vocabulary(self) -> tuple[str, ...]:
        return MULTIPLICATION.names

    def generate_from(self, rng: np.random.Generator, lengths: IntArray, repetition: Repetition | None) -> Samples:
        digits, factors = self.draw_operands(rng, lengths, repetition)
        return self.lay_out_products(digits, lengths[:, 0], factors)

    def draw_operands(
        self, rng: np.random.Generator, lengths: IntArray, repetition: Repetition | None
    ) -> tuple[IntArray, IntArray]:
        """Digits of the first operands, and the second operands."""
        factors = rng.integers(10 ** (self.digits - 1), 10**self.digits, size=len(lengths))
        return draw_digits(rng, lengths[:, 0], repetition), factors

    def problem(self, left: str, right: str) -> Samples:
        """The one sample `left * right`."""
        Product(left, right)  # refuses what is no number
        digits = np.array([[int(d) for d in reversed(left)]])
        return self.lay_out_products(digits, np.array([len(left)]), np.array([int(right)]))

    def lay_out_products(self, a: IntArray, a_size: IntArray, b: IntArray) -> Samples:
        places = a.shape[1] + self.digits
        local, carries, total = multiply(a, b, places)
        carried = np.concatenate((np.ones_like(carries[:, :1]), carries), axis=1)[:, :-1] > 0  # into each place
        live = (np.arange(places) < a_size[:, None]) | carried
        sizes = live.cumprod(axis=1).sum(axis=1)
        factor = spelled(b, self.digits)
        prompt = [self.const("$"), most_significant_first(a, a_size), self.const("*"), factor, self.const("|")]
        answer: list[IntArray] = []
        for place in range(places if self.scratchpad else 0):
            so_far = total[:, : place + 1][:, ::-1]
            pieces = [
                *under_work(a, a_size, place, self.token(EMPTY)),
                self.const("*"),
                factor,
                self.const("("),
                spelled(local[:, place], self.digits + 1),
                self.const("~"),
                spelled(carries[:, place], self.digits),
                self.const(","),
                so_far,
                self.const(")|"),
            ]
            answer += [where_present((place < sizes)[:, None], piece) for piece in pieces]
        return lay_out(prompt, [*answer, most_significant_first(total, sizes), self.const(".")])


def multiply(a: IntArray, b: IntArray, places: int) -> tuple[IntArray, IntArray, IntArray]:
    """Digit times b, carry and product digit at every place, each (samples, places)."""
    local = np.zeros((len(a), places), dtype=np.int64)
    local[:, : a.shape[1]] = a * b[:, None]
    carries, total = np.zeros_like(local), np.zeros_like(local)
    carry = np.zeros(len(a), dtype=np.int64)
    for place in range(places):
        carry, total[:, place] = np.divmod(local[:, place] + carry, 10)
        carries[:, place] = carry
    return local, carries, total


def approach_round(
    rng: np.random.Generator, digits: IntArray, factors: IntArray, changed: BoolArray, units: IntArray
) -> IntArray:
    """In the rows to be changed, each digit but 0 becomes with chance 2/3 the one, of 1 to 9, whose product with the
    factor, and with the carry before added, is closest to a multiple of this digit's unit."""
    chosen = changed[:, None] & (rng.random(digits.shape) < 2 / 3) & (digits > 0)
    result, carry = digits.copy(), np.zeros_like(factors)
    for place in range(digits.shape[1]):
        sums, unit = np.arange(1, 10) * factors[:, None] + carry[:, None], units[:, place, None]
        closest = 1 + np.minimum(sums % unit, -sums % unit).argmin(axis=1)
        result[:, place] = np.where(chosen[:, place], closest, digits[:, place])
        carry = (result[:, place] * factors + carry) // 10
    return result
