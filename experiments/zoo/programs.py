"""The zoo's RASP-L programs, and texts for those that are about texts.

Each program stands on `from rasp import *` alone: its text is the source that a zoo ships.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from rasp import (
    argmax,
    argmin,
    binary_mode,
    cumsum,
    equals,
    first_true,
    firsts,
    full,
    geq,
    gt,
    has_seen,
    index_select,
    indices,
    induct,
    induct_kqv,
    induct_prev,
    kqv,
    lasts,
    lt,
    mask,
    maximum,
    minimum,
    mode,
    num_prev,
    prefix_fill,
    sel_width,
    select,
    seq_map,
    shift_right,
    tok_map,
    where,
    where3,
)

# --- the library, a function at a time --------------------------------------------------------------------------------


def shift_right_1(x: Any) -> Any:
    """The token before this one."""
    return shift_right(x, 1)


def shift_right_3(x: Any) -> Any:
    """The token three before this one, and 4 before the start."""
    return shift_right(x, 3, default=4)


def cumsum_ones(x: Any) -> Any:
    """How many ones there have been."""
    return cumsum(x == 1)


def where_repeated(x: Any) -> Any:
    """This token where it repeats the one before, and the one before that elsewhere."""
    return where(x == shift_right(x, 1), x, shift_right(x, 2))


def mask_after_zero(x: Any) -> Any:
    """This token, hidden where the one before is 0."""
    return mask(x, shift_right(x, 1) != 0, 4)


def running_maximum(x: Any) -> Any:
    """The largest token so far."""
    return maximum(x)


def running_minimum(x: Any) -> Any:
    """The smallest token so far."""
    return minimum(x)


def argmax_position(x: Any) -> Any:
    """Where the largest token so far stood last."""
    return argmax(x)


def argmin_position(x: Any) -> Any:
    """Where the smallest token so far stood last."""
    return argmin(x)


def num_prev_same(x: Any) -> Any:
    """How many tokens so far equal this one."""
    return num_prev(x, x)


def has_seen_successor(x: Any) -> Any:
    """Whether this token plus one has been seen."""
    return has_seen(x, x + 1)


def firsts_position(x: Any) -> Any:
    """Where this token stood first."""
    return firsts(x, x)


def lasts_of_previous(x: Any) -> Any:
    """Where the token before this one stood last."""
    return lasts(x, shift_right(x, 1))


def index_select_by_token(x: Any) -> Any:
    """The token at the position that this token names."""
    return index_select(x, x)


def first_true_three(x: Any) -> Any:
    """Where the first 3 stands, from there on."""
    return first_true(x == 3)


def mode_so_far(x: Any) -> Any:
    """The most frequent token so far; of several, the one that became so last."""
    return mode(x)


def binary_mode_so_far(x: Any) -> Any:
    """Whether there have been more ones than zeros."""
    return binary_mode(x)


def induct_one(x: Any) -> Any:
    """What followed the first occurrence of this token: an induction head."""
    return induct(x, x, offset=1)


def induct_two(x: Any) -> Any:
    """What stood two after the first occurrence of this token."""
    return induct(x, x, offset=2)


def induct_kqv_double(x: Any) -> Any:
    """Twice what followed the first occurrence of this token."""
    return induct_kqv(x, x, 2 * x, offset=1)


def induct_prev_one(x: Any) -> Any:
    """What stood before the first occurrence of this token."""
    return induct_prev(x, x, offset=-1)


def prefix_fill_3(x: Any) -> Any:
    """4 for three tokens, then the input."""
    return prefix_fill(x, 3, 4)


def where3_choice(x: Any) -> Any:
    """By the remainder of the token before: this token, the one before, or the one before that."""
    return where3(shift_right(x, 1) % 3, x, shift_right(x, 1), shift_right(x, 2))


# --- np-rasp's examples, and the tasks of the paper that RASP-L comes from --------------------------------------------


def count_to(x: Any) -> Any:
    """np-rasp's counting: `8 first last 9` is followed by first, first + 1, .., last, and then 10."""
    begin = firsts(x, full(x, 8))
    first, last = index_select(x, begin + 1), index_select(x, begin + 2)
    following = where(x == last, full(x, 10), tok_map(x, lambda t: min(t + 1, 10)))
    return where(x == 9, first, following)


def add_with_hints(x: Any) -> Any:
    """np-rasp's addition with index hints, in base 3 with three columns.

    `h0 a0 h1 a1 h2 a2 + h0 b0 h1 b1 h2 b2 = h0 s0 ..`, most significant digit first: digits are 0 to 2, + is 3, = is 4,
    the end is 5 and hints are 6 to 8. A column carries if the nearest one to its right that does not add up to 2 adds
    up to more.
    """
    is_hint, is_digit = x >= 6, x < 3
    column = where(is_hint, x, shift_right(x, 1))
    in_first, in_answer = 1 - has_seen(x, full(x, 3)), has_seen(x, full(x, 4))
    first_column = mask(column, is_digit & in_first, -1)
    digit = tok_map(x, lambda t: t if t < 3 else 0)
    sums = digit + kqv(first_column, column, digit, equals, reduction="max")
    second_column = mask(column, is_digit & (1 - in_first) & (1 - in_answer), -1)
    settled = mask(second_column, sums != 2, -1)
    decider = kqv(settled, x, settled, gt, default=-2, reduction="min")
    carry = kqv(settled, decider, sums > 2, equals, default=0, reduction="max")
    written = (kqv(second_column, x, sums, equals, reduction="max") + carry) % 3
    following = tok_map(column, lambda c: 5 if c == 8 else min(c + 1, 8))
    return where(is_hint, written, where(x == 4, full(x, 6), following))


def copy_unique(x: Any) -> Any:
    """Copying a text of distinct tokens: what followed this token before."""
    return kqv(shift_right(x, 1, default=7), x, x, equals, reduction="max")


def copy_by_pairs(x: Any) -> Any:
    """Copying a text of distinct pairs: what followed the last two tokens before."""
    before = shift_right(x, 1)
    return kqv((before, shift_right(x, 2)), (x, before), x, equals, reduction="max")


def sort_next(x: Any) -> Any:
    """Sorting: the smallest token so far that is larger than this one; 7 if there is none."""
    return kqv(x, x, x, gt, default=7, reduction="min")


def parity(x: Any) -> Any:
    """Whether the number of ones is odd."""
    return cumsum(x == 1) % 2


def parity_scratchpad(x: Any) -> Any:
    """Parity one step at a time: this bit added to the answer before it, in texts `bit answer bit answer ..`."""
    return seq_map(x, shift_right(x, 1), lambda bit, answer: (bit + answer) % 2)


def majority(x: Any) -> Any:
    """Whether more than half of the tokens are ones."""
    ones = cumsum(x == 1)
    return tok_map(2 * ones - indices(x), lambda d: d > 1)


def add_reversed(x: Any) -> Any:
    """Sums in base 4, lowest digits first, each token two digits (4a + b): the sum's digits.

    The carry into a digit was made by the last pair that does not add up to 3, if that adds up to more.
    """
    total = tok_map(x, lambda z: z // 4 + z % 4)
    decides = tok_map(total, lambda s: 2 * (s != 3) + (s > 3))
    decided = cumsum(tok_map(decides, lambda d: d > 0))
    carry = kqv(decided, shift_right(decided, 1), decides, equals, default=0, reduction="max")
    return seq_map(total, carry, lambda s, c: (s + (c == 3)) % 4)


# --- counting, comparing, matching ------------------------------------------------------------------------------------


def position_parity(x: Any) -> Any:
    """Whether the position is odd."""
    return indices(x) % 2


def length_so_far(x: Any) -> Any:
    """How many tokens there have been."""
    return indices(x) + 1


def rank_below(x: Any) -> Any:
    """How many tokens so far are smaller."""
    return sel_width(select(x, x, lt))


def mean_so_far(x: Any) -> Any:
    """The mean of all tokens so far, cut to a whole number."""
    return kqv(x, x, x, lambda k, q: True, reduction="mean")


def mean_of_larger(x: Any) -> Any:
    """The mean of the tokens so far that are no smaller than this one."""
    return kqv(x, x, x, geq, default=0, reduction="mean")


def smallest_double(x: Any) -> Any:
    """The smallest token so far that is at least twice this one; 7 if there is none."""
    return kqv(x, tok_map(x, lambda z: 2 * z), x, geq, default=7, reduction="min")


def count_pairs(x: Any) -> Any:
    """How often this pair of neighbours has occurred."""
    before = shift_right(x, 1)
    return sel_width(select(x, x, equals) & select(before, before, equals))


def count_either(x: Any) -> Any:
    """How many places so far have this token at or before them."""
    return sel_width(select(x, x, equals) | select(shift_right(x, 1), x, equals))


def as_many_ones_as_twos(x: Any) -> Any:
    """Whether there have been as many ones as twos."""
    return cumsum(x == 1) == cumsum(x == 2)


def depth_of_brackets(x: Any) -> Any:
    """How many brackets are open: 1 opens, 2 closes; 0 where more were closed than opened."""
    return tok_map(cumsum(x == 1) - cumsum(x == 2), lambda d: max(d, 0))


def since_separator(x: Any) -> Any:
    """The largest token since the last 0."""
    line = cumsum(x == 0)
    return kqv(line, line, x, equals, reduction="max")


def first_of_line(x: Any) -> Any:
    """The token after the last 0."""
    line = cumsum(x == 0)
    starts = where(shift_right(x, 1) == 0, line, full(x, -1))
    return kqv(starts, line, x, equals, reduction="max")


def two_counts_compared(x: Any) -> Any:
    """0, 1 or 2: fewer ones than twos, as many, or more."""
    return seq_map(cumsum(x == 1), cumsum(x == 2), lambda a, b: 1 + (a > b) - (a < b))


def skip_gram(x: Any) -> Any:
    """Whether a 1 has been followed, two places on, by a 2."""
    return has_seen(seq_map(shift_right(x, 2), x, lambda a, b: a == 1 and b == 2), full(x, 1))


def detect_pattern(x: Any) -> Any:
    """Whether the last four tokens are 1 2 1 2."""
    return (x == 2) & (shift_right(x, 1) == 1) & (shift_right(x, 2) == 2) & (shift_right(x, 3) == 1)


def sum_modulo_4(x: Any) -> Any:
    """This token plus the one before plus the one before that, modulo 4."""
    return (x + shift_right(x, 1) + shift_right(x, 2)) % 4


def previous_same_neighbour(x: Any) -> Any:
    """The largest token that stood before this token anywhere so far."""
    return kqv(x, x, shift_right(x, 1), equals, reduction="max")


def bigram_after_first(x: Any) -> Any:
    """What followed the first token of the text, the last time it occurred."""
    first = index_select(x, full(x, 0))
    return kqv(shift_right(x, 1, default=7), first, x, equals, reduction="max")


# --- texts ------------------------------------------------------------------------------------------------------------


def completed(program: Callable[[Any], Any], prompt: list[int], end: int, most: int = 16) -> np.ndarray:
    """The prompt and what the program writes after it, up to `end`."""
    tokens = list(prompt)
    while tokens[-1] != end and len(tokens) < len(prompt) + most:
        tokens.append(int(program(np.array(tokens))[-1]))
    return np.array(tokens)


def counting_text(rng: np.random.Generator) -> np.ndarray:
    first, last = sorted(rng.integers(8, size=2).tolist())
    return completed(count_to, [8, first, last, 9], end=10)


def sum_text(rng: np.random.Generator) -> np.ndarray:
    digits = rng.integers(3, size=(2, 3)).tolist()
    hinted = [[token for hint, digit in enumerate(row, 6) for token in (hint, digit)] for row in digits]
    return completed(add_with_hints, [*hinted[0], 3, *hinted[1], 4], end=5)


TEXTS = {count_to: counting_text, add_with_hints: sum_text}
