"""Multiplication by a factor of k digits as a Turing Program, with the paper's compact scratchpad:

    $4324*135|432e*135(0540~054,0)|43c*135(0270~032,40)|...|^*135(0000~005,83740)|^*135(0000~000,583740)|583740.

Each line says (digit times factor ~ carry, product so far), with k + 1 and k digits; the digit being multiplied is a
letter. Lines go on until the first operand is used up and the carry is 0; then comes the product.

The program writes this text for first operands of every length. It is right on exactly those problems in which neither
the first operand, without its last digit, nor a product so far has an (n+1)-gram twice. `proofs_check.tasks` predicts
the first wrong token of every other problem.
"""

from __future__ import annotations

from functools import reduce
from typing import Any

from rasp.core import full, named, tok_map
from rasp.errors import check_whole
from rasp.library import cumsum, shift_right
from rasp.programs.arithmetic import Marks, copy_number, digit_worked_on, digit_written, is_finished
from rasp.programs.copying import check_program, first_case, has_had, is_token, last, told
from rasp.programs.vocabulary import MULTIPLICATION, InvalidProblem, is_letter, is_worked_on

MARKS = Marks(MULTIPLICATION, "*(~,")
TIMES, OPEN, TILDE, COMMA, CLOSE, BAR, STOP = MULTIPLICATION.tokens("*(~,)|.")
LEFT, MIDDLE, PRODUCT = range(3)  # the regions of a line: before *, from there on, and from the comma on


def next_tokens_multiplication(x: Any, digits: int = 3, n: int = 4) -> Any:
    """The prediction at every position of x, for factors of so many digits, looking at the last n+1 tokens."""
    check_digits(digits)
    x = check_program(x, MULTIPLICATION, n)
    line = named(cumsum(is_token(x, BAR)), "line")
    region = named(has_had(line, is_token(x, TIMES)) + has_had(line, is_token(x, COMMA)), "region")
    here, first = digit_written(x), full(x, 0)
    factor = [named(told(line, after(x, TIMES, i + 1), here, asked=first), f"factor[{i}]") for i in range(digits)]
    carried = [told(line + 1, after(x, TILDE, i + 1), here, asked=line) for i in range(digits)]
    before = [named(digit, f"carry before[{i}]") for i, digit in enumerate(carried)]
    times = times_digit(factor, named(digit_worked_on(x, line, tok_map(x, is_letter)), "digit"))
    *carry, digit = add_numbers(times, before)
    finished = is_finished(x, line, is_token(region, LEFT), reduce(lambda a, b: a | b, before))
    copied = named(copy_number(x, line, region, PRODUCT, finished, MARKS, n), "copied")
    return named(first_case(
        (tok_map(x, is_worked_on), full(x, TIMES)),
        *spelled(x, TIMES, factor, OPEN),
        *spelled(x, OPEN, times, TILDE),
        *spelled(x, TILDE, carry, COMMA),
        (is_token(x, COMMA), digit),
        (is_token(x, CLOSE), full(x, BAR)),
        (finished & is_token(copied, CLOSE), full(x, STOP)),
        otherwise=copied,
    ), "next token")  # fmt: skip


def next_token_multiplication(x: Any, digits: int = 3, n: int = 4) -> int:
    """The token after x."""
    return last(next_tokens_multiplication(x, digits, n))


def after(x: Any, mark: int, distance: int) -> Any:
    """1 where the mark stands this many tokens back."""
    return shift_right(is_token(x, mark), distance)


def spelled(x: Any, mark: int, number: list[Any], then: int) -> list[tuple[Any, Any]]:
    """Cases: the digits of the number follow the mark one after another, and then this token."""
    return [(after(x, mark, i), token) for i, token in enumerate([*number, full(x, then)])]


def times_digit(number: list[Any], digit: Any) -> list[Any]:
    """The digits of number * digit, one more than the number has, most significant first."""
    result: list[Any] = []
    carry = full(digit, 0)
    for place in reversed(number):
        total = place * digit + carry
        result.insert(0, tok_map(total, lambda t: t % 10))
        carry = tok_map(total, lambda t: t // 10)
    return [carry, *result]


def add_numbers(longer: list[Any], shorter: list[Any]) -> list[Any]:
    """The digits of the sum, as many as the longer number has (a factor's carry always leaves room)."""
    result: list[Any] = []
    carry = full(longer[0], 0)
    for place, other in zip(reversed(longer), [*reversed(shorter), full(longer[0], 0)], strict=True):
        total = place + other + carry
        result.insert(0, tok_map(total, lambda t: t % 10))
        carry = tok_map(total, lambda t: t // 10)
    return result


def check_digits(digits: Any) -> None:
    check_whole("digits", digits, "the factor has so many", InvalidProblem)
