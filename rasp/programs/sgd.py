"""SGD on linear regression as a Turing Program, in the format of the paper's appendix:

    $ d a179 a166 , a76 d a80 a145 , a102 | d a179 a166 , a76 d a80 a145 , a102 yp a101 g a100 a99 cur a99 a102 | ...

The problem is a list of examples `d x1 x2 , y`. Each line copies those that are left, works on the last (yp:
prediction, g: step, cur: new weights), and the next line no longer has it; the text ends with the line that has one
example. Weights begin at 0. Every number is rounded as it is written (halves to even, as numpy does), cut to a0..a199,
and used so further on.

The program writes this text for any number of examples. It is right on exactly those problems in whose list of examples
no (n+1)-gram stands twice. `proofs_check.tasks` predicts the first wrong token of every other problem.
"""

from __future__ import annotations

from typing import Any

from rasp.core import full, kqv, named, seq_map, tok_map
from rasp.library import cumsum, equals, shift_right, where
from rasp.programs.copying import (
    NOWHERE,
    check_program,
    delayed,
    first_case,
    has_had,
    is_token,
    last,
    last_tokens,
    told,
)
from rasp.programs.vocabulary import NUMBERS, SGD, ZERO

START, COMMA, PREDICTION, STEP, WEIGHTS, BAR = SGD.tokens(["$", ",", "yp", "g", "cur", "|"])
EXAMPLE = 5  # tokens of an example
HUNDREDTHS = 100


def next_tokens_sgd(x: Any, n: int = 4) -> Any:
    """The prediction at every position of x, looking at the last n+1 tokens."""
    x = check_program(x, SGD, n)
    line = named(cumsum(is_token(x, BAR)), "line")
    copied = named(copy_examples(x, line, n), "copied")
    w1, w2 = (named(weight_before(x, line, i), f"w{i}") for i in (1, 2))
    return named(first_case(
        (is_token(x, PREDICTION), predict(w1, w2, x1=shift_right(x, 4), x2=shift_right(x, 3))),
        (ago(x, PREDICTION, 1), full(x, STEP)),
        (is_token(x, STEP), gradient(shift_right(x, 1), y=shift_right(x, 3), x=shift_right(x, 6))),
        (ago(x, STEP, 1), gradient(shift_right(x, 2), y=shift_right(x, 4), x=shift_right(x, 6))),
        (ago(x, STEP, 2), full(x, WEIGHTS)),
        (is_token(x, WEIGHTS), descend(w1, shift_right(x, 2))),
        (ago(x, WEIGHTS, 1), descend(w2, shift_right(x, 2))),
        (ago(x, WEIGHTS, 2), full(x, BAR)),
        otherwise=copied,
    ), "next token")  # fmt: skip


def next_token_sgd(x: Any, n: int = 4) -> int:
    """The token after x."""
    return last(next_tokens_sgd(x, n))


def ago(x: Any, token: int, distance: int) -> Any:
    """1 where the token stood this many tokens ago."""
    return shift_right(is_token(x, token), distance)


# --- numbers: token k is (k - 100) hundredths -------------------------------------------------------------------------


def weight_before(x: Any, line: Any, i: int) -> Any:
    """The i-th weight of the line before; 0 if it has none."""
    return told(line + 1, ago(x, WEIGHTS, i), x, asked=line, default=ZERO)


def predict(w1: Any, w2: Any, x1: Any, x2: Any) -> Any:
    """w . x"""
    return tok_map(product(w1, x1) + product(w2, x2), written)


def gradient(predicted: Any, y: Any, x: Any) -> Any:
    """2 * rate * (predicted - y) * x, at the paper's rate of 1/2."""
    error = seq_map(predicted, y, lambda p, label: p - label)
    return tok_map(seq_map(error, x, lambda e, z: e * (z - ZERO)), written)


def descend(w: Any, g: Any) -> Any:
    """w - g"""
    return seq_map(w, g, lambda a, b: within(a - (b - ZERO)))


def product(a: Any, b: Any) -> Any:
    """In units of 1/10000."""
    return seq_map(a, b, lambda u, v: (u - ZERO) * (v - ZERO))


def written(value: Any) -> Any:
    """The token of a number given in units of 1/10000: rounded to hundredths, halves to even."""
    nearest = (value + HUNDREDTHS // 2) // HUNDREDTHS
    is_half = value % HUNDREDTHS == HUNDREDTHS // 2
    return within(nearest - (1 if is_half and nearest % 2 == 1 else 0) + ZERO)


def within(token: Any) -> Any:
    """What lies outside the numbers that have tokens is put at their end."""
    return 0 if token < 0 else NUMBERS - 1 if token >= NUMBERS else token


# --- examples ---------------------------------------------------------------------------------------------------------


def copy_examples(x: Any, line: Any, n: int) -> Any:
    """The token that follows, in the line before, what was just written here; `yp` after the last example to copy.

    A place is seen six tokens late, with the whole example right of it. The first line copies all of the problem; the
    others leave out the example before `yp`, which was worked on.
    """
    is_start = is_token(x, START, BAR)
    worked = named(has_had(line, is_token(x, PREDICTION)), "worked")
    seen = EXAMPLE + 1
    right = shift_right(x, seen - 1)
    ends = is_token(right, BAR) | is_token(x, PREDICTION)
    offer = named(where(ends, full(x, PREDICTION), right), "offer")
    for_line = where(shift_right(worked, seen), full(x, NOWHERE), shift_right(line + 1, seen, default=NOWHERE))
    keys = (for_line, *delayed(last_tokens(x, is_start, n, START), seen))
    queries = (line, *last_tokens(x, is_start, n, START))
    return kqv(keys, queries, offer, equals, default=PREDICTION, reduction="max")
