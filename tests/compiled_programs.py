"""RASP-L programs that the compiler's tests share: (program, vocabulary, options of compile_program)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from compile.front.domains import Capacity, infer_domains
from compile.front.factor import factor
from compile.front.program import FiniteProgram
from compile.front.trace import check_vocabulary, rewrite, trace
from rasp import (
    argmax,
    cumsum,
    equals,
    first_true,
    firsts,
    full,
    geq,
    has_seen,
    indices,
    induct,
    kqv,
    lasts,
    lt,
    maximum,
    minimum,
    num_prev,
    sel_width,
    select,
    seq_map,
    shift_right,
    tok_map,
    where,
)


def finite(program: Callable[[Any], Any], vocabulary: Iterable[int], capacity: Capacity | None = None) -> FiniteProgram:
    """The first stages of the compiler: trace -> rewrite -> infer domains -> factor."""
    graph = rewrite(trace(program))
    return factor(graph, infer_domains(graph, check_vocabulary(vocabulary), capacity))


class Program(NamedTuple):
    run: Callable[[Any], Any]
    vocabulary: range
    options: dict[str, Any] = {}


def count_ones(x: Any) -> Any:
    return cumsum(tok_map(x, lambda z: z == 1))


def parity(x: Any) -> Any:
    return count_ones(x) % 2


def mode(x: Any) -> Any:
    """The most frequent token so far, the largest of several."""
    times = num_prev(x, x)
    return kqv(times, maximum(times), x, equals, reduction="max")


def copy_unique(x: Any) -> Any:
    """What followed this token's last occurrence: copying a string of distinct tokens."""
    return kqv(shift_right(x, 1, default=9), x, x, equals, reduction="max")


def induction_pair(x: Any) -> Any:
    """What followed the last two tokens before: a 2-gram key, matched digit by digit."""
    previous = shift_right(x, 1)
    key = seq_map(previous, shift_right(x, 2), lambda a, b: a + 10 * b)
    return kqv(key, seq_map(x, previous, lambda a, b: a + 10 * b), x, equals, default=0, reduction="max")


def add_reversed(x: Any) -> Any:
    """Addition of two numbers given as pairs of digits, lowest first (token 10a + b): the sum's digits.

    The carry into a digit was made by the last pair that does not sum to 9, if that sums to more.
    """
    total = tok_map(x, lambda z: z // 4 + z % 4)
    decides = tok_map(total, lambda s: 2 * (s != 3) + (s > 3))  # 0: passes a carry on, 2: none, 3: carry
    position_free = shift_right(cumsum(tok_map(decides, lambda d: d > 0)), 1)
    carry = kqv(cumsum(tok_map(decides, lambda d: d > 0)), position_free, decides, equals, default=0, reduction="max")
    return seq_map(total, carry, lambda s, c: (s + (c == 3)) % 4)


def rank_below(x: Any) -> Any:
    """How many earlier tokens are smaller: an order comparison."""
    return sel_width(select(x, x, lt))


def mean_so_far(x: Any) -> Any:
    return kqv(x, x, x, lambda k, q: True, reduction="mean")


def mean_of_larger(x: Any) -> Any:
    return kqv(x, x, tok_map(x, lambda z: z - 3), geq, default=-7, reduction="mean")


def smallest_since(x: Any) -> Any:
    """The smallest token that is not smaller than this one's double."""
    return kqv(x, tok_map(x, lambda z: 2 * z), x, lambda k, q: k >= q, default=7, reduction="min")


def two_selectors(x: Any) -> Any:
    previous = shift_right(x, 1)
    return sel_width(select(x, x, equals) & select(previous, previous, equals))


def mixed_condition(x: Any) -> Any:
    return sel_width(select(x, x, equals) | select(shift_right(x, 1), x, equals))


def balanced(x: Any) -> Any:
    """Whether as many 1 as 2 were seen, and never more 2 than 1 is not asked."""
    ones, twos = cumsum(tok_map(x, lambda z: z == 1)), cumsum(tok_map(x, lambda z: z == 2))
    return ones == twos


FIVE, TEN, LENGTH = range(5), range(10), 24
PROGRAMS = {
    "count_ones": Program(count_ones, FIVE, {"counts": 40}),
    "parity": Program(parity, FIVE, {"counts": 40}),
    "mode": Program(mode, FIVE, {"counts": 40}),
    "copy_unique": Program(copy_unique, TEN),
    "induction_pair": Program(induction_pair, TEN),
    "has_seen": Program(lambda x: has_seen(x, shift_right(x, 1)), TEN),
    "has_seen_double": Program(lambda x: has_seen(x, tok_map(x, lambda z: 2 * z)), TEN),
    "running_maximum": Program(maximum, TEN),
    "running_minimum": Program(minimum, TEN),
    "add_reversed": Program(add_reversed, range(16), {"counts": 40}),
    "rank_below": Program(rank_below, FIVE, {"counts": 40}),
    "mean_so_far": Program(mean_so_far, TEN, {"counts": 40}),
    "mean_of_larger": Program(mean_of_larger, TEN, {"counts": 40}),
    "smallest_since": Program(smallest_since, TEN),
    "two_selectors": Program(two_selectors, FIVE, {"counts": 40}),
    "mixed_condition": Program(mixed_condition, FIVE, {"counts": 40}),
    "balanced": Program(balanced, FIVE, {"counts": 40}),
    "first_occurrence": Program(lambda x: firsts(x, x), FIVE, {"positions": LENGTH}),
    "last_occurrence": Program(lambda x: lasts(x, shift_right(x, 1)), FIVE, {"positions": LENGTH}),
    "first_true": Program(lambda x: first_true(x == 3), FIVE, {"positions": LENGTH, "counts": 40}),
    "argmax": Program(argmax, FIVE, {"positions": LENGTH}),
    "induct": Program(lambda x: induct(x, x, offset=1), FIVE, {"positions": LENGTH}),
    "constant": Program(lambda x: full(x, 3), FIVE),
    "identity": Program(lambda x: x, FIVE),
    "position_parity": Program(lambda x: indices(x) % 2, FIVE, {"positions": LENGTH}),
    "swap_neighbours": Program(lambda x: where(shift_right(x, 1) == 0, x, shift_right(x, 2, default=4)), FIVE),
}
