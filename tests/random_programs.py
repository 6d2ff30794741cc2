"""Random RASP-L programs for Hypothesis: a list of instructions, each building a sequence from earlier ones."""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

from rasp import cumsum, full, indices, kqv, mask, sel_width, select, seq_map, shift_right, tok_map, where
from rasp.library import argmax, firsts, has_seen, lasts, maximum, num_prev, prefix_fill, where3

LIST = [3, 1, 4, 1, 5, 9, 2, 6]

UNARY: list[Callable[[Any], Any]] = [
    lambda a: a + 1, lambda a: a % 3, lambda a: 0 - a, lambda a: 1 if a > 1 else 0, lambda a: a == 2, lambda a: a / 2,
    lambda a: 5 // a if a else 0, lambda a: 7 % a, lambda a: a in (1, 2, 4), lambda a: LIST[a % 8], lambda a: 4,
    lambda a: abs(a) % 5, lambda a: (a > 0) & (a < 3), lambda a: a * 1.5,
]  # fmt: skip
BINARY: list[Callable[[Any, Any], Any]] = [
    lambda a, b: a + b, lambda a, b: a if b else 0, lambda a, b: a if a > b else b, lambda a, b: (a * b) % 7,
    lambda a, b: a == b, lambda a, b: a and not b, lambda a, b: (a + b) / 2, lambda a, b: a // b, lambda a, b: b,
    lambda a, b: LIST[(a + b) % 8], lambda a, b: a + 0 - b if a != b else 3,
]  # fmt: skip
CHEAP: list[Callable[[Any, Any], Any]] = [  # predicates whose cost does not grow
    operator.eq, lambda k, q: q == k + 1, lambda k, q: k, lambda k, q: k == 1, lambda k, q: q, lambda k, q: q > 0,
    lambda k, q: True, lambda k, q: False, lambda k, q: 2 * k == q - 1, lambda k, q: k if k > 1 else 0,
]  # fmt: skip
SCANNED: list[Callable[[Any, Any], Any]] = [
    operator.lt, operator.ge, operator.ne, lambda k, q: (k + q) % 2, lambda k, q: k / 2 == q, lambda k, q: k * q > 2,
    lambda k, q: LIST[k % 8] > q, lambda k, q: k == q or k == 1,
]  # fmt: skip


@dataclass(frozen=True)
class Program:
    """Instructions are (operation, operands: how many sequences back, parameters)."""

    steps: tuple[tuple[str, tuple[int, ...], tuple[Any, ...]], ...]

    def __call__(self, *xs: Any) -> Any:
        made = list(xs)
        for operation, back, parameters in self.steps:
            made.append(OPERATIONS[operation](*(made[-1 - b % len(made)] for b in back), *parameters))
        return made[-1]

    @property
    def scans(self) -> bool:
        return any(op in ("joined", "either") or (p and p[0] in SCANNED) for op, _, p in self.steps)

    def __repr__(self) -> str:
        return f"Program({[(op, back, [_spelled(p) for p in ps]) for op, back, ps in self.steps]})"


def _spelled(parameter: Any) -> Any:
    for name, pool in (("UNARY", UNARY), ("BINARY", BINARY), ("CHEAP", CHEAP), ("SCANNED", SCANNED)):
        if callable(parameter) and parameter in pool:
            return f"{name}[{pool.index(parameter)}]"  # type: ignore[attr-defined]
    return parameter


OPERATIONS: dict[str, Callable[..., Any]] = {
    "tok_map": lambda x, f: tok_map(x, f),
    "seq_map": lambda x, y, f: seq_map(x, y, f),
    "shift": lambda x, n, default: shift_right(x, n, default),
    "full": lambda x, c: full(x, c),
    "indices": lambda x: indices(x) % 4,
    "plain indices": lambda x: indices(x),
    "kqv": lambda k, q, v, pred, default, reduction: kqv(k, q, v, pred, default, reduction),
    "width": lambda k, q, pred: sel_width(select(k, q, pred)),
    "joined": lambda k, q, v, p1, p2: sel_width(select(k, q, p1) & select(v, k, p2)),
    "either": lambda k, q, v, p1, p2: sel_width(select(k, q, p1) | select(v, k, p2)),
    "add": lambda x, y: (x + y) % 10,
    "flag": lambda x, y: x == y,
    "not a flag": lambda x, y: ~(x < y),
    "flags": lambda x, y: (x > 1) & (y < 3) | (x == y),
    "reflected": lambda x: 3 - (x % 5),
    "where": lambda c, x, y: where(c > 0, x, y),
    "mask": lambda x, m: mask(x, m == 1, 2),
    "cumsum": lambda x: cumsum(x == 1),
    "prefix": lambda x: prefix_fill(x, 2, 3),
    "where3": lambda c, x, y: where3(c % 3, x, y, x),
    "maximum": lambda x: maximum(x % 8),
    "argmax": lambda x: argmax(x % 4),
    "seen": lambda x, y: has_seen(x, y),
    "firsts": lambda x, y: firsts(x, y),
    "lasts": lambda x, y: lasts(x, y),
    "previous": lambda x, y: num_prev(x, y),
}
_back = st.integers(0, 6)
_default = st.sampled_from([0, 0, 1, -2, 3])


def _step(name: str, operands: int, *parameters: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.tuples(st.just(name), st.tuples(*[_back] * operands), st.tuples(*parameters))


def programs(scanned: bool = True, opaque: bool = True, size: int = 9) -> st.SearchStrategy[Program]:
    predicate = st.sampled_from(CHEAP + (SCANNED if scanned else []))
    unary = st.sampled_from([f for f in UNARY if opaque or not _indexes(f)])
    binary = st.sampled_from([f for f in BINARY if opaque or not _indexes(f)])
    reduction = st.sampled_from(["mean", "max", "min"])
    shift = _step("shift", 1, st.sampled_from([0, 1, 1, 2, 3, 5, 16, 17, 20, 40, -1]), _default)
    steps = [
        _step("tok_map", 1, unary), _step("seq_map", 2, binary), shift, shift, _step("full", 1, st.integers(-1, 3)),
        _step("indices", 1), _step("plain indices", 1), _step("kqv", 3, predicate, _default, reduction),
        _step("kqv", 3, predicate, _default, reduction), _step("width", 2, predicate), _step("add", 2),
        _step("flag", 2), _step("not a flag", 2), _step("flags", 2), _step("reflected", 1), _step("where", 3),
        _step("mask", 2), _step("cumsum", 1), _step("prefix", 1), _step("where3", 3), _step("maximum", 1),
        _step("argmax", 1), _step("seen", 2), _step("firsts", 2), _step("lasts", 2), _step("previous", 2),
    ]  # fmt: skip
    if scanned:
        steps += [_step("joined", 3, predicate, predicate), _step("either", 3, predicate, predicate)]
    return st.lists(st.one_of(steps), min_size=1, max_size=size).map(lambda chosen: Program(tuple(chosen)))


def _indexes(function: Callable[..., Any]) -> bool:
    return "LIST" in function.__code__.co_names
