"""Addition as a Turing Program, with the paper's compact scratchpad:

    $4324+139|432e+13j(1,3)|43c+1d(0,63)|4d+b(0,463)|e+^(0,4463)|4463.

Each line drops the digits added in the one before and says (carry, sum so far); the digits being added are letters.
Lines go on until both operands are used up and the carry is 0; then comes the sum.

The program writes this text for operands of every length. It is right on exactly those problems in which no operand,
without its last digit, and no sum so far has an (n+1)-gram twice. `proofs_check.tasks` predicts the first wrong token
of every other problem.
"""

from __future__ import annotations

from typing import Any

from rasp.core import full, named, tok_map
from rasp.library import cumsum, shift_right
from rasp.programs.arithmetic import Marks, copy_number, digit_worked_on, digit_written, is_finished
from rasp.programs.copying import check_program, first_case, has_had, is_token, last, told
from rasp.programs.vocabulary import ADDITION, is_letter, is_worked_on

MARKS = Marks(ADDITION, "+(,")
PLUS, OPEN, COMMA, CLOSE, BAR, STOP = ADDITION.tokens("+(,)|.")
LEFT, RIGHT, CARRY, SUM = range(4)  # the regions of a line: how many of the marks it has had


def next_tokens_addition(x: Any, n: int = 4) -> Any:
    """The prediction at every position of x, looking at the last n+1 tokens."""
    x = check_program(x, ADDITION, n)
    line = named(cumsum(is_token(x, BAR)), "line")
    region = named(region_of(x, line), "region")
    after_open = shift_right(is_token(x, OPEN), 1)
    carry_before = named(told(line + 1, after_open, digit_written(x), asked=line), "carry before")
    carry, digit = add_digits(x, line, region, carry_before)
    finished = is_finished(x, line, tok_map(region, lambda r: r < CARRY), carry_before)
    copied = named(copy_number(x, line, region, SUM, finished, MARKS, n), "copied")
    return named(first_case(
        (tok_map(x, is_worked_on), tok_map(region, lambda r: PLUS if r == LEFT else OPEN)),
        (is_token(x, OPEN), carry),
        (after_open, full(x, COMMA)),
        (is_token(x, COMMA), digit),
        (is_token(x, CLOSE), full(x, BAR)),
        (finished & is_token(copied, CLOSE), full(x, STOP)),
        otherwise=copied,
    ), "next token")  # fmt: skip


def next_token_addition(x: Any, n: int = 4) -> int:
    """The token after x."""
    return last(next_tokens_addition(x, n))


def region_of(x: Any, line: Any) -> Any:
    """LEFT, RIGHT, CARRY or SUM: a mark begins its region, the bar before a line begins LEFT."""
    return has_had(line, is_token(x, PLUS)) + has_had(line, is_token(x, OPEN)) + has_had(line, is_token(x, COMMA))


def add_digits(x: Any, line: Any, region: Any, carry_before: Any) -> tuple[Any, Any]:
    """The carry and the new digit of the sum: the line's two letters, and the carry of the line before."""
    letter = tok_map(x, is_letter)
    left = named(digit_worked_on(x, line, letter & is_token(region, LEFT)), "left digit")
    right = named(digit_worked_on(x, line, letter & is_token(region, RIGHT)), "right digit")
    total = left + right + carry_before
    return tok_map(total, lambda t: t // 10), tok_map(total, lambda t: t % 10)
