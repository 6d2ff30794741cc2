"""What addition and multiplication share: operands that lose a digit on each line, and a result that gains one.

An operand `4324` becomes `432e`, `43c`, `4d`, `e`, `^`: its last digit is written as a letter while it is worked on,
and is gone in the next line. The result so far stands between `,` and `)`; a line writes its new digit and copies the
rest.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from rasp.core import full, kqv, named, seq_map, tok_map
from rasp.library import equals, mask, shift_right, where
from rasp.programs.copying import NOWHERE, delayed, is_token, last_tokens, negation, told
from rasp.programs.vocabulary import FIRST_LETTER, Vocabulary, is_digit, is_letter, is_worked_on

USED_UP = 2 * FIRST_LETTER  # the token of `^`


@dataclass(frozen=True)
class Marks:
    """The tokens between the parts of a line: `marks` in the order in which they come, then `)`."""

    vocabulary: Vocabulary
    marks: str

    @property
    def comma(self) -> int:
        return self.vocabulary.token(",")

    @property
    def close(self) -> int:
        return self.vocabulary.token(")")

    @property
    def start(self) -> int:
        return self.vocabulary.token("$")

    @property
    def before_operands(self) -> list[int]:
        """What an operand begins after."""
        return self.vocabulary.tokens(["$", "|", *self.marks.replace(",", "")])


def copy_number(x: Any, line: Any, region: Any, result: int, finished: Any, marks: Marks, n: int) -> Any:
    """The token that follows, in this region of the line before, what was just written here.

    A place is seen two tokens late, with the two tokens right of it. In the region `result` the line's new digit, and
    the bar before the last line, take the place of the comma before the old one. Where there is nothing to copy, `)`
    follows.
    """
    operand_begins, result_begins = is_token(x, *marks.before_operands), is_token(x, marks.comma)
    place_begins = operand_begins | result_begins
    place_region, right, right_right = shift_right(region, 2), shift_right(x, 1), x
    in_result = is_token(place_region, result)
    offer = named(where(in_result, right, becomes(right, right_right)), "offer")
    offers = in_result | tok_map(right, lambda t: t <= USED_UP)
    for_line = mask(shift_right(line + 1, 2, default=NOWHERE), offers, NOWHERE)
    keys = (for_line, place_region, *delayed(last_tokens(x, place_begins, n, marks.start), 2))
    begins = operand_begins | shift_right(result_begins, 1)
    wanted_region = seq_map(finished, region, lambda done, r: result if done else r)
    queries = (line, wanted_region, *last_tokens(x, begins, n, marks.start))
    return kqv(keys, queries, offer, equals, default=marks.close, reduction="max")


def becomes(digit: Any, right: Any) -> Any:
    """What a token of an operand is in the next line, in the place after which it stood.

    The last digit becomes its letter, other digits stay. What was worked on leaves `^`, which is asked for only if no
    digit stands before it.
    """
    is_last = tok_map(right, lambda u: u >= FIRST_LETTER)
    copied = seq_map(digit, is_last, lambda t, last: t + FIRST_LETTER if last else t)
    return where(tok_map(digit, is_worked_on), full(digit, USED_UP), copied)


def is_finished(x: Any, line: Any, in_operand: Any, carry_before: Any) -> Any:
    """Whether the result is all that is left to write: the line before has neither digits to work on nor a carry."""
    digits_left = named(told(line + 1, tok_map(x, is_digit) & in_operand, full(x, 1), asked=line), "digits left")
    return named(negation(digits_left | carry_before) & tok_map(line, lambda k: k > 0), "finished")


def digit_worked_on(x: Any, line: Any, at: Any) -> Any:
    """The digit of the letter that this line has had `at` some place; 0 if it has had none."""
    return told(line, at, tok_map(x, lambda z: z - FIRST_LETTER if is_letter(z) else 0), asked=line)


def digit_written(x: Any) -> Any:
    """The digit that stands here; 0 for any other token, so that arithmetic only ever meets digits."""
    return tok_map(x, lambda z: z if is_digit(z) else 0)
