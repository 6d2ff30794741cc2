"""The primitives on numpy arrays equal the paper's listing: defaults, cut means, masks, empty selections, odd types."""

from __future__ import annotations

import functools
import itertools
import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from agreement import listing_aggr, listing_kqv, listing_map, listing_select
from hypothesis import given
from hypothesis import strategies as st

from rasp import aggr, aggr_max, aggr_mean, aggr_min, full, indices, kqv, run, sel_width, select, seq_map, tok_map
from rasp.engines.reference import Plain
from rasp.errors import EngineError, FunctionError, ProgramError

NUMBERS = [10, 20, 30, 40, 50]
NAMES = {-2: 7, -1: 1, 0: 5, 1: -3, 2: 9}
TWO = functools.partial(lambda a, b, c: a * c - b, c=2)


def stepwise(a: Any) -> int:
    if a < -2:
        return -1
    return 0 if a % 2 else int(a)


FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "arithmetic": lambda a: 3 * a - 7,
    "branches": lambda a: a if a > 0 else -a * 10,
    "nested branches": lambda a: (1 if a > 2 else 2) if a != 0 else 3,
    "and, or, not": lambda a: (a > 1 and a < 4) or not a,
    "a truth value": lambda a: a == 3,
    "negated truth value": lambda a: ~(a == 3),
    "sum of truth values": lambda a: (a == 3) + (a < 5),
    "product of truth values": lambda a: (a > -3) * (a < 5),
    "truth value and number": lambda a: (a == 3) + 1,
    "a fraction": lambda a: a / 2,
    "fraction on one branch": lambda a: a / 3 if a > 0 else a,
    "a float": lambda a: 2.75,
    "floor division": lambda a: a // 3,
    "remainder": lambda a: a % 3,
    "division by zero": lambda a: 7 // a,
    "remainder by zero": lambda a: 7 % a,
    "guarded division": lambda a: 7 // a if a else -1,
    "power": lambda a: a**2,
    "shifts": lambda a: (a << 2) >> 1,
    "bits": lambda a: (a & 3) | 8 ^ a,
    "absolute": abs,
    "largest of": lambda a: max(a, 2),
    "in a list": lambda a: a in [1, 3, 5],
    "in a range": lambda a: a in range(2, 6),
    "in a set": lambda a: a in {1, 3, 5},
    "indexes a list": lambda a: NUMBERS[a % 5],
    "indexes a dictionary": lambda a: NAMES.get(int(a), 0),
    "converts": lambda a: int(str(abs(int(a)))[0]),
    "asks for the type": lambda a: a + 1 if isinstance(a, np.integer) else -99,
    "numpy function": np.abs,
    "numpy comparison": lambda a: np.maximum(a, 1),
    "default argument": lambda a, b=4: a + b,
    "named": stepwise,
    "constant": lambda a: -5,
    "doubles for long": lambda a: functools.reduce(lambda x, _: x + x, range(40), a),
    "loops": lambda a: sum(1 for i in range(20) if i < a),
}
PAIRS: dict[str, Callable[[Any, Any], Any]] = {
    "arithmetic": lambda a, b: a * b - b,
    "branches": lambda a, b: a if b > 0 else b,
    "mean": lambda a, b: (a + b) / 2,
    "comparison": operator.le,
    "division": lambda a, b: a // b,
    "remainder": lambda a, b: a % b,
    "partial": TWO,
    "indexes": lambda a, b: NUMBERS[(a + b) % 5],
    "and not": lambda a, b: a and not b,
    "numpy function": np.minimum,
}
PREDICATES: dict[str, Callable[[Any, Any], Any]] = {
    "equal": operator.eq,
    "next": lambda k, q: q == k + 1,
    "half": lambda k, q: k / 2 == q,
    "third": lambda k, q: q // 2 == k,
    "key": lambda k, q: k,
    "key above": lambda k, q: k > 1,
    "query": lambda k, q: q < 0,
    "always": lambda k, q: True,
    "never": lambda k, q: 0,
    "less": operator.lt,
    "at least": operator.ge,
    "unequal": operator.ne,
    "sum": lambda k, q: (k + q) % 3 == 0,
    "indexes": lambda k, q: NUMBERS[k % 5] > NUMBERS[q % 5],
}
number = st.integers(-6, 9)
sequences = st.integers(0, 9).flatmap(lambda n: st.tuples(*[st.lists(number, min_size=n, max_size=n)] * 3))
reductions = st.sampled_from(["mean", "max", "min"])


def array(items: list[int]) -> np.ndarray:
    return np.array(items, dtype=int)


def same(found: Any, expected: np.ndarray) -> None:
    assert isinstance(found, np.ndarray) and found.dtype == np.int64
    assert found.tolist() == expected.tolist()


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_tok_map(name: str) -> None:
    for x in (np.arange(-6, 10), array([]), array([3]), np.array([0, 1, 5], dtype=np.int8)):
        same(tok_map(x, FUNCTIONS[name]), listing_map(FUNCTIONS[name], x.astype(int)))  # sequences hold int64


def test_tok_map_of_truth_values() -> None:
    x = np.array([True, False, True])
    functions: list[Callable[[Any], Any]] = [
        lambda m: ~m,
        lambda m: m + 1,
        lambda m: m + m,
        lambda m: m == 1,
        lambda m: 3 if m else 4,
        lambda m: not m,
    ]
    for function in functions:
        same(tok_map(x, function), listing_map(function, x))
    assert tok_map(x, lambda m: -m).tolist() == [-1, 0, -1], "0 and 1, where numpy refuses"


@pytest.mark.parametrize("name", PAIRS)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_seq_map(name: str) -> None:
    a, b = np.meshgrid(np.arange(-4, 5), np.arange(-4, 5))
    same(seq_map(a.ravel(), b.ravel(), PAIRS[name]), listing_map(PAIRS[name], a.ravel(), b.ravel()))
    same(seq_map(a[0], b[0][:3], PAIRS[name]), listing_map(PAIRS[name], a[0], b[0][:3]))  # as zip: the shorter one


def test_seq_map_of_truth_values_and_numbers() -> None:
    m, x = np.array([True, False, True, False]), array([1, 2, -3, 0])
    functions: list[Callable[[Any, Any], Any]] = [
        lambda a, b: ~a,
        lambda a, b: a & (b > 0),
        lambda a, b: b if a else 0,
        lambda a, b: a + b,
        lambda a, b: NAMES[int(a)],
    ]
    for function in functions:
        same(seq_map(m, x, function), listing_map(function, m, x))
    same(seq_map(m, ~m, lambda a, b: a | b), listing_map(lambda a, b: a | b, m, ~m))


@given(sequences, st.sampled_from(sorted(PREDICATES)), st.booleans())
def test_select_and_width(xs: tuple[list[int], ...], name: str, causal: bool) -> None:
    k, q, _ = map(array, xs)
    expected = listing_select(k, q, PREDICATES[name], causal)
    found = select(k, q, PREDICATES[name], causal=causal)
    assert found.dtype == np.bool_ and found.tolist() == expected.tolist()
    same(sel_width(found), expected.sum(axis=1).astype(int))


@given(sequences, st.sampled_from(sorted(PREDICATES)), st.sampled_from([0, -1, 7, 2.9, -2.9, True]), reductions)
def test_kqv(xs: tuple[list[int], ...], name: str, default: Any, reduction: str) -> None:
    k, q, v = map(array, xs)
    expected = listing_kqv(k, q, v, PREDICATES[name], default, reduction)
    same(kqv(k, q, v, PREDICATES[name], default=default, reduction=reduction), expected)
    same(aggr(select(k, q, PREDICATES[name]), v, default, reduction), expected)


@given(sequences, st.sampled_from(sorted(PREDICATES)), reductions)
def test_looking_ahead(xs: tuple[list[int], ...], name: str, reduction: str) -> None:
    k, q, v = map(array, xs)
    A = select(k, q, PREDICATES[name], causal=False)
    same(aggr(A, v, -1, reduction), listing_aggr(listing_select(k, q, PREDICATES[name], False), v, -1, reduction))


@given(sequences, st.sampled_from(["max", "mean"]), st.sampled_from([0, 1, 5, -1]))
def test_truth_values_everywhere(xs: tuple[list[int], ...], reduction: str, default: int) -> None:
    k, q, v = (array(x) > 0 for x in xs)
    for name in ("equal", "key", "query", "always", "unequal"):
        expected = listing_kqv(k, q, v, PREDICATES[name], default, reduction)
        same(kqv(k, q, v, PREDICATES[name], default, reduction), expected)
        same(aggr(select(k, q, PREDICATES[name]), v, default, reduction), expected)


@given(sequences, reductions)
def test_fractions_given(xs: tuple[list[int], ...], reduction: str) -> None:
    """np-rasp programs may hold halves in a numpy array; keys keep them, results cut them."""
    k, q, v = (array(x) / 2 for x in xs)
    for name in ("equal", "next", "less", "always"):
        same(kqv(k, q, v, PREDICATES[name], -1, reduction), listing_kqv(k, q, v, PREDICATES[name], -1, reduction))
    same(tok_map(k, lambda a: a * 3), listing_map(lambda a: a * 3, k))


SIDES: dict[str, Callable[[Any], Any]] = {
    "any": lambda x: x,
    "counting": indices,
    "counting from 2": lambda x: indices(x) + 2,
    "counting from -3": lambda x: indices(x) - 3,
    "counting and wrapping": lambda x: indices(x) + (2**63 - 3),
    "one number": lambda x: full(x, 3),
    "the lowest": lambda x: full(x, -(2**63)),
    "changed": lambda x: full(x, 2) + indices(x) * 0,
}


@pytest.mark.parametrize("keys", SIDES)
@pytest.mark.parametrize("queries", SIDES)
def test_equality_with_a_closed_form(keys: str, queries: str) -> None:
    """Keys that count up and queries that stay the same are answered without a selector."""
    rng = np.random.default_rng([len(keys), len(queries)])
    long = (98,) if (keys, queries) in (("any", "any"), ("counting", "any"), ("any", "one number")) else ()
    for length in (0, 1, 9, *long):
        x = rng.integers(-2, 6, length)
        plain = Plain(x)
        chosen = select(SIDES[keys](plain), SIDES[queries](plain), operator.eq)
        for values, reduction, default in itertools.product(SIDES.values(), ("mean", "max", "min"), (0, -7)):
            expected = aggr(chosen, values(plain), default, reduction)
            found = kqv(SIDES[keys](x), SIDES[queries](x), values(x), operator.eq, default, reduction)
            assert found.tolist() == list(expected)


def test_what_counts_up_cannot_be_changed_behind_our_back() -> None:
    for made in (indices([1, 2, 3]), indices([1, 2, 3]) + 1, full([1, 2, 3], 4)):
        with pytest.raises(ProgramError, match="cannot be changed in place"):
            made[0] = 9
        with pytest.raises(ValueError, match="read-only"):
            made.view(np.ndarray)[0] = 9
        copied = np.array(made)
        copied[0] = 9
        assert kqv(copied, full(made, 9), indices(made), operator.eq, default=-1).tolist() == [0, 0, 0]
    assert indices([1, 2, 3]).tolist() == [0, 1, 2]


def test_means_are_cut_towards_zero() -> None:
    x = array([1, 2, -4, -4, -3])
    assert kqv(x, x, x, lambda k, q: True).tolist() == [1, 1, 0, -1, -1]


def test_large_numbers() -> None:
    big = 2**62 + 1
    x = np.array([big, -big, big - 2, 2**63 - 1])
    assert kqv(x, x, x, operator.eq).tolist() == x.tolist(), "a mean of one is that one, beyond what a float holds"
    assert aggr_max(select(x, x, operator.ge), x).tolist() == [big, big, big, 2**63 - 1]
    assert kqv(x, x, x, lambda k, q: True, reduction="min").tolist() == [big, -big, -big, -big]


def test_shorthands() -> None:
    x = array([3, -1, 2])
    A = select(x, x, lambda k, q: k > q)
    for short, reduction in ((aggr_mean, "mean"), (aggr_max, "max"), (aggr_min, "min")):
        same(short(A, x, 9), listing_aggr(A, x, 9, reduction))
        same(short(A, x), listing_aggr(A, x, 0, reduction))
    assert full(x, 2.5).tolist() == [2, 2, 2] and full(x > 0, True).tolist() == [1, 1, 1]
    assert indices(x).tolist() == [0, 1, 2] and full(x, 0).dtype == indices(x).dtype == np.int64


def test_lists_are_taken_too() -> None:
    assert tok_map([1, 2], lambda a: a + 1).tolist() == [2, 3]
    assert kqv([1, 1], [1, 1], [5, 8], operator.eq).tolist() == [5, 6]
    assert full([], 3).tolist() == [] and sel_width(select([], [], operator.eq)).tolist() == []


def test_queries_beyond_the_keys_are_ignored() -> None:
    assert kqv([1, 2], [2, 2, 2], [5, 6], operator.eq, default=-1).tolist() == [-1, 6]
    with pytest.raises(ValueError, match="fewer queries than keys: 1 and 2"):
        kqv([1, 2], [2], [5, 6], operator.eq)
    with pytest.raises(ValueError, match="keys and values differ in length: 2 and 1"):
        kqv([1, 2], [2, 2], [5], operator.eq)


def test_bad_reduction_names_are_refused() -> None:
    x = array([1])
    with pytest.raises(ValueError, match="'sum' is not one of mean, max, min"):
        kqv(x, x, x, operator.eq, reduction="sum")
    with pytest.raises(ValueError, match="'avg' is not one of mean, max, min"):
        aggr(select(x, x, operator.eq), x, 0, "avg")


def test_functions_that_raise_say_so_themselves() -> None:
    with pytest.raises(FunctionError, match=r"<lambda> .*test_core.py, line \d+. failed at 9: KeyError: 9"):
        tok_map(array([9]), lambda a: {1: 2}[int(a)])


@pytest.mark.parametrize("engine", ["reference", "eager", "graph", "stream", "jit"])
def test_run_refuses_what_is_no_sequence(engine: str) -> None:
    for wrong in ([[1, 2]], [1.5], ["a"], 3):
        with pytest.raises(ValueError, match="flat list of whole numbers"):
            run(lambda x: x, wrong, engine=engine)
    with pytest.raises(ValueError, match="differ in length: 1, 2"):
        run(lambda x, y: x, [1], [1, 2], engine=engine)


def test_run_refuses_unknown_engines() -> None:
    with pytest.raises(EngineError, match="'gpu' is not one of reference, eager, graph, stream, jit"):
        run(lambda x: x, [1], engine="gpu")
