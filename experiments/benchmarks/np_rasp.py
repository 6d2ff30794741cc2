"""RASP-L as np-rasp computes it, the baseline of `eager`: every function called for every element, every pair compared.

Examples of np-rasp's kind and size, written on the library as it stands: counting, and the sum of two numbers with
index hints. They run on whatever sequences they are given, so the baseline is only another interpreter.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from rasp import full, kqv, mask, seq_map, shift_right, where
from rasp.core import Function
from rasp.library import equals, firsts, gt, has_seen, index_select

PLUS, IS, START, STOP = -1, -2, -3, -4
HINT = 100  # of the first column


class Naive(np.ndarray):
    """An array whose primitives are np-rasp's."""

    @property
    def __rasp__(self) -> NaiveInterpreter:
        return NAIVE


class NaiveInterpreter:
    def full(self, x: Any, const: int) -> Any:
        return _naive([const] * len(x))

    def indices(self, x: Any) -> Any:
        return _naive(range(len(x)))

    def tok_map(self, x: Any, func: Function) -> Any:
        return _naive([func(a) for a in x])

    def seq_map(self, x: Any, y: Any, func: Function) -> Any:
        return _naive([func(a, b) for a, b in zip(x, y, strict=False)])

    def select(self, k: Any, q: Any, pred: Function, causal: bool) -> Any:
        size = len(k)
        chosen = np.zeros((size, size), dtype=bool)
        for i in range(size):
            for j in range(i + 1 if causal else size):
                chosen[i, j] = pred(k[j], q[i])
        return chosen.view(Naive)

    def sel_width(self, A: Any) -> Any:
        return _naive(np.dot(A, np.ones(len(A))))

    def aggr(self, A: Any, v: Any, default: int, reduction: str) -> Any:
        A, v = np.asarray(A), np.asarray(v).astype(int)
        if reduction == "mean":
            width = A.sum(axis=1)
            return _naive(np.where(width > 0, np.dot(A, v) / np.maximum(width, 1), default))
        best = np.max if reduction == "max" else np.min
        return _naive([best(v[np.flatnonzero(row)]) if row.any() else default for row in A])

    def kqv(self, k: Any, q: Any, v: Any, pred: Function, default: int, reduction: str) -> Any:
        return self.aggr(self.select(k, q, pred, True), v, default, reduction)


NAIVE = NaiveInterpreter()


def _naive(items: Any) -> Any:
    return np.array(items).astype(int).view(Naive)


# --- examples ---------------------------------------------------------------------------------------------------------


def counting(x: Any) -> Any:
    """`START first last IS first first+1 .. last STOP`: the next token at every position."""
    begin = firsts(x, full(x, START))
    first, last = index_select(x, begin + 1), index_select(x, begin + 2)
    following = where(x == last, full(x, STOP), x + 1)
    return where(x == IS, first, following)


def addition(x: Any, columns: int = 6) -> Any:
    """`a PLUS b IS sum STOP`, most significant digit first, before each digit the number of its column (a hint).

    A column carries if the nearest column to its right that does not add up to 9 adds up to more.
    """
    is_hint, is_digit = x >= HINT, (x >= 0) & (x < 10)
    column = where(is_hint, x, shift_right(x, 1))
    in_first, in_answer = 1 - has_seen(x, full(x, PLUS)), has_seen(x, full(x, IS))
    first_column = mask(column, is_digit & in_first, -1)
    sums = x + kqv(first_column, column, x, equals)
    second_column = mask(column, is_digit & (1 - in_first) & (1 - in_answer), -1)
    settled_column = mask(second_column, sums != 9, -1)
    decider = kqv(settled_column, x, settled_column, gt, default=-2, reduction="min")
    carry = kqv(settled_column, decider, sums > 9, equals, default=0, reduction="max")
    digit = (kqv(second_column, x, sums, equals) + carry) % 10
    last = full(x, HINT + columns - 1)
    following = where(seq_map(column, last, equals), full(x, STOP), column + 1)
    following = where(x == IS, full(x, HINT), following)
    return where(is_hint, digit, following)


def generated(program: Callable[[Any], Any], prompt: list[int], naive: bool) -> list[int]:
    """The prompt followed by tokens up to STOP, each the program's last value on all before it."""
    tokens = list(prompt)
    while tokens[-1] != STOP:
        x = np.array(tokens)
        tokens.append(int(program(x.view(Naive) if naive else x)[-1]))
    return tokens


def sum_prompt(a: int, b: int, columns: int = 6) -> list[int]:
    return [*_hinted(a, columns), PLUS, *_hinted(b, columns), IS]


def _hinted(number: int, columns: int) -> list[int]:
    return [token for i, digit in enumerate(f"{number:0{columns}d}") for token in (HINT + i, int(digit))]


def count_prompt(first: int, last: int) -> list[int]:
    return [START, first, last, IS]
