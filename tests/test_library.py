"""Every library function means what numpy says it means, and means the same in every interpreter."""

from __future__ import annotations

import builtins
import inspect
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from agreement import assert_agree
from hypothesis import given, settings
from hypothesis import strategies as st

import rasp
from rasp import *
from rasp import run

Sequence = list[int]
Meaning = Callable[..., list[int]]


# --- meanings, position by position -----------------------------------------------------------------------------------


def prefixes(x: Sequence) -> list[Sequence]:
    return [x[: i + 1] for i in range(len(x))]


def found_at(x: Sequence, value: int, missing: int) -> int:
    return x.index(value) if value in x else missing


def last_at(x: Sequence, value: int, missing: int = -1) -> int:
    return len(x) - 1 - x[::-1].index(value) if value in x else missing


def pick(x: Sequence, j: int, i: int, default: int) -> int:
    return x[j] if 0 <= j <= i else default


def shifted(x: Sequence, n: int, default: int = 0) -> Sequence:
    return [x[i - n] if i >= n else default for i in range(len(x))]


def most_frequent(x: Sequence) -> list[int]:
    seen: Counter[int] = Counter()
    out, best = [], 0
    for token in x:
        seen[token] += 1
        if seen[token] >= best:
            best, answer = seen[token], token
        out.append(answer)
    return out


def inducted(k: Sequence, q: Sequence, v: Sequence, offset: int, default: int = 0) -> list[int]:
    early = shifted(k, offset, -999)
    return [pick(v, found_at(early[: i + 1], q[i], -999), i, default) for i in range(len(k))]


MEANINGS: dict[str, tuple[Callable[..., Any], Meaning]] = {
    "shift_right": (lambda x, y: shift_right(x, 2), lambda x, y: shifted(x, 2)),
    "shift_right with default": (lambda x, y: shift_right(x, 3, default=-7), lambda x, y: shifted(x, 3, -7)),
    "shift_right by nothing": (lambda x, y: shift_right(x, 0), lambda x, y: x),
    "shift_right far": (lambda x, y: shift_right(x, 40, 5), lambda x, y: [5] * len(x)),
    "shift_right to the left": (lambda x, y: shift_right(x, -1, 5), lambda x, y: [5] * len(x)),
    "cumsum": (lambda x, y: cumsum(x > 1), lambda x, y: np.cumsum(np.array(x) > 1).tolist()),
    "cumsum of numbers counts them": (lambda x, y: cumsum(x), lambda x, y: np.cumsum(np.array(x) != 0).tolist()),
    "where": (lambda x, y: where(x > y, x, y), lambda x, y: np.where(np.array(x) > y, x, y).tolist()),
    "where of numbers": (lambda x, y: where(x, y, x), lambda x, y: np.where(x, y, x).tolist()),
    "mask": (lambda x, y: mask(x, y > 0), lambda x, y: np.where(np.array(y) > 0, x, 0).tolist()),
    "mask with value": (lambda x, y: mask(x, y > 0, -4), lambda x, y: np.where(np.array(y) > 0, x, -4).tolist()),
    "maximum": (lambda x, y: maximum(x), lambda x, y: np.maximum.accumulate(x).tolist()),
    "minimum": (lambda x, y: minimum(x), lambda x, y: np.minimum.accumulate(x).tolist()),
    "argmax": (lambda x, y: argmax(x), lambda x, y: [last_at(p, max(p)) for p in prefixes(x)]),
    "argmin": (lambda x, y: argmin(x), lambda x, y: [last_at(p, min(p)) for p in prefixes(x)]),
    "num_prev": (num_prev, lambda x, y: [p.count(q) for p, q in zip(prefixes(x), y, strict=True)]),
    "has_seen": (has_seen, lambda x, y: [int(q in p) for p, q in zip(prefixes(x), y, strict=True)]),
    "firsts": (firsts, lambda x, y: [found_at(p, q, -1) for p, q in zip(prefixes(x), y, strict=True)]),
    "firsts with default": (
        lambda x, y: firsts(x, y, 9),
        lambda x, y: [found_at(p, q, 9) for p, q in zip(prefixes(x), y, strict=True)],
    ),
    "lasts": (lasts, lambda x, y: [last_at(p, q) for p, q in zip(prefixes(x), y, strict=True)]),
    "index_select": (lambda x, y: index_select(x, y, -3), lambda x, y: [pick(x, y[i], i, -3) for i in range(len(x))]),
    "first_true": (
        lambda x, y: first_true(x == y),
        lambda x, y: [found_at([int(a == b) for a, b in zip(p, y, strict=False)], 1, -1) for p in prefixes(x)],
    ),
    "mode": (lambda x, y: mode(x), lambda x, y: most_frequent(x)),
    "binary_mode": (lambda x, y: binary_mode(x), lambda x, y: [int(p.count(1) > p.count(0)) for p in prefixes(x)]),
    "induct_kqv": (
        lambda x, y: induct_kqv(x, y, x + y, 1),
        lambda x, y: inducted(x, y, [a + b for a, b in zip(x, y, strict=True)], 1),
    ),
    "induct": (lambda x, y: induct(x, y, 2, default=-5), lambda x, y: inducted(x, y, x, 2, -5)),
    "induct_prev": (
        lambda x, y: induct_prev(x, y, -1, default=-5),
        lambda x, y: [pick(x, found_at(p, q, -999) - 1, len(p) - 1, -5) for p, q in zip(prefixes(x), y, strict=True)],
    ),
    "prefix_fill": (lambda x, y: prefix_fill(x, 2, 8), lambda x, y: ([8, 8] + x[2:])[: len(x)]),
    "where3": (
        lambda x, y: where3(y % 3, x, y, x + y),
        lambda x, y: [[a, b, a + b][b % 3] for a, b in zip(x, y, strict=True)],
    ),
    "where3 elsewhere": (
        lambda x, y: where3(y, x, y, x * y),
        lambda x, y: [{0: a, 2: a * b}.get(b, b) for a, b in zip(x, y, strict=True)],
    ),
    "leq, lt, geq, gt": (
        lambda x, y: seq_map(x, y, leq) + 2 * seq_map(x, y, lt) + 4 * seq_map(x, y, geq) + 8 * seq_map(x, y, gt),
        lambda x, y: [(a <= b) + 2 * (a < b) + 4 * (a >= b) + 8 * (a > b) for a, b in zip(x, y, strict=True)],
    ),
}

two_sequences = st.integers(0, 8).flatmap(
    lambda n: st.tuples(*[st.lists(st.integers(-3, 5), min_size=n, max_size=n)] * 2)
)


@pytest.mark.parametrize("name", MEANINGS)
@settings(max_examples=12)
@given(two_sequences)
def test_meaning_in_every_interpreter(name: str, given_two: tuple[Sequence, Sequence]) -> None:
    program, meaning = MEANINGS[name]
    x, y = given_two
    expected = [int(e) for e in meaning(x, y)] if x else []
    assert assert_agree(program, x, y).tolist() == expected


def test_all_of_the_library_in_one_kernel() -> None:
    """Machine code for every function at once: one compilation instead of thirty."""

    def everything(x: Any, y: Any) -> Any:
        total = full(x, 0)
        for i, (program, _) in enumerate(MEANINGS.values()):
            total = total + (2 * i + 1) * program(x, y)
        return total

    rng = np.random.default_rng(7)
    for length in (0, 1, 2, 40, 7):
        x, y = rng.integers(-3, 6, size=(2, length))
        assert_agree(everything, x, y, compiled=True)


def test_truth_valued_inputs() -> None:
    x, y = np.array([True, False, True, True]), np.array([False, False, True, True])
    programs: list[Callable[..., Any]] = [
        lambda x, y: ~x,
        lambda x, y: x & ~y,
        lambda x, y: x | y,
        lambda x, y: x ^ y,
        lambda x, y: cumsum(x),
        lambda x, y: where(x, y, ~y),
        lambda x, y: first_true(y),
        lambda x, y: x + y,
        lambda x, y: x * y,
        lambda x, y: (x == y) + 1,
        lambda x, y: kqv(x, y, x, equals, default=7, reduction="max"),
        lambda x, y: kqv(x, full(x, 3), y, equals, default=7, reduction="max"),
        lambda x, y: kqv(x, full(x, 3), y, equals, default=7),
        lambda x, y: tok_map(x, lambda a: ~a),
        lambda x, y: seq_map(x, y, lambda a, b: a & ~b),
        lambda x, y: maximum(x),
    ]
    for program in programs:
        assert_agree(program, x, y)


# --- the same names as np-rasp ----------------------------------------------------------------------------------------

SIGNATURES = {
    "full": "x, const",
    "indices": "x",
    "tok_map": "x, func",
    "seq_map": "x, y, func",
    "select": "k, q, pred, causal=True",
    "sel_width": "A",
    "aggr_mean": "A, v, default=0",
    "aggr_max": "A, v, default=0",
    "aggr": "A, v, default=0, reduction='mean'",
    "kqv": "k, q, v, pred, default=0, reduction='mean'",
    "shift_right": "x, n, default=0",
    "cumsum": "bool_array",
    "where": "condition, x_if, y_else",
    "mask": "x, bool_mask, mask_val=0",
    "maximum": "x",
    "minimum": "x",
    "argmax": "x",
    "argmin": "x",
    "num_prev": "x, queries",
    "has_seen": "x, queries",
    "firsts": "x, queries, default=-1",
    "lasts": "x, queries, default=-1",
    "index_select": "x, idx, default=0",
    "first_true": "x, default=-1",
    "mode": "x",
    "binary_mode": "x",
    "induct_kqv": "k, q, v, offset, default=0, null_val=-999",
    "induct": "k, q, offset, default=0, null_val=-999",
    "induct_prev": "k, q, offset, default=0, null_val=-999",
    "prefix_fill": "x, n, value",
    "where3": "cond, x, y, z",
}


@pytest.mark.parametrize("name", SIGNATURES)
def test_signatures(name: str) -> None:
    parameters = inspect.signature(getattr(rasp, name)).parameters.values()
    written = [p.name if p.default is p.empty else f"{p.name}={p.default!r}" for p in parameters]
    assert ", ".join(written) == SIGNATURES[name]


def test_star_import_gives_the_language_and_shadows_nothing() -> None:
    scope: dict[str, Any] = {}
    exec("from rasp import *", scope)
    names = set(scope) - {"__builtins__"}
    assert names >= {*SIGNATURES, "equals", "leq", "lt", "geq", "gt", "aggr_min"}
    assert not names & set(dir(builtins))
    assert scope["np"] is np, "np-rasp's star import gives numpy, too"


def test_public_names_resolve() -> None:
    assert all(hasattr(rasp, name) for name in dir(rasp))
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = rasp.nothing


# --- programs as people write them for np-rasp ------------------------------------------------------------------------

START, END, EQUAL = -1, -2, -3


def count_up(x: Any) -> Any:
    """`START a b a a+1 .. b END`."""
    begin = lasts(x, full(x, START))
    low, high = index_select(x, begin + 1), index_select(x, begin + 2)
    is_first = seq_map(indices(x), begin + 2, equals)
    is_last = (~is_first) & seq_map(x, high, equals)
    return where(is_first, low, where(is_last, full(x, END), x + 1))


def copy_unique(x: Any) -> Any:
    """`START tokens EQUAL tokens`: each token is followed by what followed it before."""
    after_equal = x == EQUAL
    return where(after_equal, index_select(x, full(x, 1)), induct(x, x, 1))


def majority(x: Any) -> Any:
    """More ones than zeros so far?"""
    return tok_map(2 * cumsum(x == 1) - indices(x) - 1, lambda balance: balance > 0)


def parity(x: Any) -> Any:
    """`bits EQUAL p1 p2 ..`: the running parities, each from the one before it."""
    equal = firsts(x, full(x, EQUAL))
    bit = index_select(x, indices(x) - equal)
    before = mask(x, x != EQUAL)
    return mask((before + bit) % 2, equal >= 0)


def add_reversed(x: Any) -> Any:
    """`a0 b0 a1 b1 .. EQUAL s0 s1 .. END`, lowest digits first; the carry is read off the digit just written."""
    equal = firsts(x, full(x, EQUAL))
    written = indices(x) - equal

    def pair(t: Any) -> Any:
        inside = 2 * t < equal
        return mask(index_select(x, 2 * t) + index_select(x, 2 * t + 1), inside)

    before = mask(pair(written - 1), written > 0)
    carried_in = seq_map(before % 10, x, lambda digits, out: 1 if digits != out else 0) * (written > 0)
    carry = tok_map(before + carried_in, lambda s: s >= 10)
    digit = (pair(written) + carry) % 10
    return where(2 * written > equal, full(x, END), digit)


def most_common_pair(x: Any) -> Any:
    """The token that followed the current one most recently, or -1: np-rasp's in-place style."""
    out = lasts(shift_right(x, 1, default=-9), x)
    out += 0
    return where(out < 0, full(x, -1), index_select(x, out))


def complete(program: Callable[[Any], Any], prompt: Sequence, engine: str, stop: int, most: int = 12) -> Sequence:
    x = list(prompt)
    while x[-1] != stop and len(x) < len(prompt) + most:
        x.append(int(run(program, x, engine=engine)[-1]))
    return x[len(prompt) :]


@pytest.mark.parametrize("engine", ["reference", "eager", "graph", "stream"])
def test_np_rasp_programs(engine: str) -> None:
    assert complete(count_up, [START, 3, 7], engine, END) == [3, 4, 5, 6, 7, END]
    assert complete(copy_unique, [START, 4, 9, 2, EQUAL], engine, END, 4) == [4, 9, 2, EQUAL]
    assert complete(parity, [1, 1, 0, 1, EQUAL], engine, END, 4) == [1, 0, 0, 1]
    assert complete(add_reversed, [5, 7, 9, 0, 1, 8, EQUAL], engine, END) == [2, 0, 0, 1, END]
    assert run(majority, [1, 0, 1, 1, 0, 0, 0], engine=engine).tolist() == [1, 0, 1, 1, 1, 0, 0]
    assert run(mode, [4, 7, 7, 4, 4], engine=engine).tolist() == [4, 7, 7, 4, 4]


@settings(max_examples=25)
@given(st.lists(st.integers(-3, 9), max_size=12))
def test_np_rasp_programs_agree_in_every_interpreter(x: Sequence) -> None:
    for program in (count_up, copy_unique, majority, parity, add_reversed, most_common_pair):
        assert_agree(program, x)


@settings(max_examples=8)
@given(st.integers(0, 999), st.integers(0, 999))
def test_additions(a: int, b: int) -> None:
    prompt = [d for i in range(3) for d in (a // 10**i % 10, b // 10**i % 10)]
    digits = complete(add_reversed, [*prompt, EQUAL], "eager", END)
    assert sum(d * 10**i for i, d in enumerate(digits[:-1])) == a + b and digits[-1] == END
