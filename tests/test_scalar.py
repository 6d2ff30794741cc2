"""What is recorded of a function is the function: for random functions, simplified, substituted and spelled."""

from __future__ import annotations

import functools
import operator
import pickle
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rasp.scalar import (
    BINARY,
    MAX_DEPTH,
    Expr,
    Scalar,
    Table,
    arg,
    as_int,
    assume,
    binary,
    capture,
    const,
    cut,
    evaluate,
    evaluate_arrays,
    evaluate_int,
    ite,
    opaque_calls,
    split_on_shared_conditions,
    substitute,
    tables,
    to_source,
    truth,
    unary,
    walk,
    whole,
)

Function = Callable[..., Any]

# --- random functions -------------------------------------------------------------------------------------------------

leaves: st.SearchStrategy[Function] = st.one_of(
    st.sampled_from([lambda a, b: a, lambda a, b: b]),
    st.integers(-4, 5).map(lambda c: lambda a, b: c),
)


def combine(inner: st.SearchStrategy[Function]) -> st.SearchStrategy[Function]:
    def operated(op: str, f: Function, g: Function) -> Function:
        return lambda a, b: BINARY[op](f(a, b), g(a, b))

    def branched(test: Function, f: Function, g: Function) -> Function:
        return lambda a, b: f(a, b) if test(a, b) else g(a, b)

    def both(f: Function, g: Function) -> Function:
        return lambda a, b: (f(a, b) and g(a, b)) or not f(a, b)

    def negated(f: Function) -> Function:
        return lambda a, b: -(f(a, b) + 0)

    arithmetic = st.sampled_from(["+", "-", "*", "//", "%", "&", "|", "^"])
    comparison = st.sampled_from(["==", "!=", "<", "<=", ">", ">="])
    return st.one_of(
        st.builds(operated, arithmetic, inner, inner),
        st.builds(operated, comparison, inner, inner),
        st.builds(branched, inner, inner, inner),
        st.builds(both, inner, inner),
        st.builds(negated, inner),
    )


functions = st.recursive(leaves, combine, max_leaves=12)
GRID = [(a, b) for a in range(-3, 4) for b in (-2, 0, 1, 3)]


def called(function: Function, a: int, b: int) -> int | None:
    """What the listing stores; None where numpy has no answer (a negative or a difference of truth values)."""
    try:
        with np.errstate(all="ignore"):
            return int(function(np.int64(a), np.int64(b)))
    except TypeError:
        return None


@settings(max_examples=300)
@given(functions)
def test_captured_functions_are_the_functions(function: Function) -> None:
    e = capture(function, 2)
    expected = [called(function, a, b) for a, b in GRID]
    if None in expected:
        return
    stored = whole(e)
    arrays = [np.array(column) for column in zip(*GRID, strict=True)]
    with np.errstate(all="ignore"):
        vector = np.broadcast_to(evaluate_arrays(stored, arrays), len(GRID)).astype(int)
    assert vector.tolist() == expected
    assert [evaluate_int(e, pair) for pair in GRID] == expected
    assert [int(evaluate(stored, pair)) for pair in GRID] == expected
    constants = [substitute(stored, [const(a), const(b)]) for a, b in GRID]
    assert [evaluate_int(c, ()) for c in constants] == expected
    assert all(c.op == "const" for c in constants) or opaque_calls(e)


@settings(max_examples=150)
@given(functions, functions)
def test_composition_and_case_splitting_preserve_values(f: Function, g: Function) -> None:
    outer, inner = capture(f, 2), whole(capture(g, 2))
    if any(called(f, a, b) is None or called(g, a, b) is None for a, b in GRID):
        return
    composed = substitute(outer, [inner, arg(1)])
    for a, b in GRID:
        value = evaluate(inner, (a, b))
        expected = evaluate_int(outer, (value, b))
        assert evaluate_int(composed, (a, b)) == expected
        assert evaluate_int(split_on_shared_conditions(composed), (a, b)) == expected


@settings(max_examples=150)
@given(functions)
def test_spelled_code_is_the_function(function: Function) -> None:
    e = capture(function, 2)
    if opaque_calls(e) or any(node.op in ("//", "%") for node in walk(e)):
        return  # the code generator guards divisions itself
    code = compile(to_source(e, ["a", "b"]), "<spelled>", "eval")
    for a, b in GRID:
        assert cut(eval(code, {"a": a, "b": b})) == evaluate_int(e, (a, b))


@settings(max_examples=100)
@given(functions, functions)
def test_assumptions_hold_where_they_are_made(f: Function, g: Function) -> None:
    e, condition = capture(f, 2), truth(capture(g, 2))
    if condition.op == "const" or opaque_calls(condition):
        return
    for value in (True, False):
        assumed = assume(e, condition, value)
        for pair in GRID:
            if bool(evaluate(condition, pair)) == value:
                assert evaluate_int(assumed, pair) == evaluate_int(e, pair)


# --- rules ------------------------------------------------------------------------------------------------------------


def test_where_becomes_one_if_then_else() -> None:
    """The library's `where` (two masks and a merge) is one choice again, whatever is chosen from."""
    x_masked = capture(lambda x, m: x if m else 0, 2)
    y_masked = capture(lambda y, m: y if not m else 0, 2)
    merge = capture(lambda x, y: x if y == 0 else y, 2)
    x, y, m = arg(0), arg(1), arg(2)
    joined = substitute(merge, [substitute(x_masked, [x, m]), substitute(y_masked, [y, m])])
    split = split_on_shared_conditions(joined)
    assert split == ite(binary("!=", m, const(0)), x, y) or split == ite(binary("==", m, const(0)), y, x)
    assert sum(node.op == "ite" for node in walk(split)) == 1


def test_rules() -> None:
    x, y = arg(0), arg(1)
    zero, one = const(0), const(1)
    flag = binary("<", x, y)
    assert binary("+", x, zero) == x and binary("*", one, x) == x and binary("*", x, zero) == zero
    assert binary("==", x, x) == const(True) and binary("<", x, x) == const(False)
    assert unary("not", flag) == binary(">=", x, y) and unary("not", unary("not", truth(x))) == truth(x)
    assert ite(flag, one, zero) == as_int(flag) and ite(flag, x, x) == x
    assert ite(flag, const(True), const(False)) == flag and ite(const(False), x, y) == y
    assert ite(binary("==", x, one), one, x) == x
    assert binary("==", as_int(flag), zero) == unary("not", flag)
    assert binary("==", as_int(flag), const(5)) == const(False)
    assert binary("&", truth(x), flag) == binary("&", flag, truth(x)), "one spelling for both orders"


def test_constants_of_different_types_are_different() -> None:
    assert const(1) != const(True) and const(1) != const(1.0) and const(True).is_bool and not const(1).is_bool
    assert not const(1.0).is_whole and const(np.int8(3)) == const(3) and const(np.bool_(True)) == const(True)


def test_folding_is_safe() -> None:
    assert binary("//", const(7), const(0)) == binary("%", const(7), const(0)) == const(0), "numpy's answer"
    assert binary("//", const(-7), const(2)) == const(-4) and binary("%", const(-7), const(2)) == const(1)
    assert binary("/", const(1), const(0)) == const(0.0)
    assert binary("**", const(10), const(10**9)) == const(0), "modulo 2**64, and at once"
    guarded = capture(lambda a: 10 // a if a != 0 else -1, 1)
    assert substitute(guarded, [const(0)]) == const(-1) and substitute(guarded, [const(5)]) == const(2)


def test_fractions_are_cut_once() -> None:
    half = capture(lambda a: a / 2, 1)
    assert not half.is_whole and whole(half).op == "int" and whole(whole(half)) == whole(half)
    assert evaluate_int(half, (-3,)) == -1 == evaluate(whole(half), (-3,))
    assert capture(lambda a: a**2, 1).is_whole and capture(lambda a: 2**a, 1).is_whole
    mixed = whole(capture(lambda a: a / 2 if a > 0 else a, 1))
    assert mixed.op == "ite" and mixed.args[2] == arg(0), "only the branch with the fraction is cut"
    assert cut(float("nan")) == cut(float("inf")) == -(2**63) and cut(-2.9) == -2


def test_spelling_of_odd_constants() -> None:
    for value in (-1, -2.5, float("inf"), -float("inf")):
        e = binary("<", arg(0), const(value))
        assert eval(to_source(e, ["a"]), {"a": 0}) == (value > 0)
    assert eval(to_source(Expr("**", (const(-1), arg(0))), ["a"]), {"a": 2}) == 1


# --- what can be recorded ---------------------------------------------------------------------------------------------


class Doubler:
    def __call__(self, a: Any) -> Any:
        return a * 2

    def method(self, a: Any) -> Any:
        return a + a


def outer(c: int) -> Function:
    return lambda a: a + c


RECORDED: dict[str, Function] = {
    "closure": outer(3),
    "default argument": lambda a, b=2: a * b,
    "partial": functools.partial(lambda c, a: a - c, 4),
    "operator": operator.neg,
    "callable object": Doubler(),
    "method": Doubler().method,
    "builtin": abs,
    "numpy function": lambda a: np.add(a, 1),
    "numpy maximum": lambda a: np.maximum(a, 0),
    "membership": lambda a: a in (1, 2, 5),
    "range": lambda a: a in range(3, 40),
    "chained": lambda a: 0 < a <= 4,
    "minimum": lambda a: min(a, 3, -a),
    "numpy constant": lambda a: a + np.int64(3),
}
OPAQUE: dict[str, Function] = {
    "list index": lambda a: [4, 5, 6][a % 3],
    "dictionary": lambda a: {0: 1}.get(int(a), 7),
    "set": lambda a: a in {1, 2},
    "conversion": lambda a: int(a),
    "string": lambda a: len(str(a)),
    "format": lambda a: len(f"{a:04d}"),
    "type": lambda a: isinstance(a, np.integer),
    "loop without end": lambda a: next(i for i in range(10**9) if i > a),
    "too large": lambda a: functools.reduce(lambda x, _: x * x + x, range(30), a) % 7,
    "too deep": lambda a: functools.reduce(lambda x, i: x + i * a, range(2 * MAX_DEPTH), a),
    "raises on a branch": lambda a: a if a < 100 else [][a],
}


@pytest.mark.parametrize("name", RECORDED)
def test_recorded(name: str) -> None:
    e = capture(RECORDED[name], 1)
    assert not opaque_calls(e)
    for a in range(-5, 45):
        assert evaluate_int(e, (a,)) == int(RECORDED[name](np.int64(a)))


@pytest.mark.parametrize("name", OPAQUE)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_kept_opaque(name: str) -> None:
    e = capture(OPAQUE[name], 1)
    assert e.op == "opaque" and opaque_calls(e) == [OPAQUE[name]]
    for a in range(5):
        assert evaluate_int(e, (a,)) == int(OPAQUE[name](np.int64(a)))


def test_truth_values_behave_as_numpys() -> None:
    assert capture(lambda a: ~(a == 1), 1) == binary("!=", arg(0), const(1))
    assert capture(lambda a, b: (a == 1) + (b == 1), 2).is_bool, "+ is or"
    assert capture(lambda a, b: (a == 1) * (b == 1), 2).op == "&"
    assert capture(lambda a: -(a == 1), 1) == unary("neg", as_int(binary("==", arg(0), const(1)))), "0 or -1"
    assert capture(lambda m: ~m, 1, ["bool"]).op == "not" and capture(lambda m: ~m, 1).op == "invert"


def test_no_truth_outside_capture() -> None:
    with pytest.raises(TypeError, match="no truth value outside"):
        bool(Scalar(arg(0)))
    with pytest.raises(TypeError):
        hash(Scalar(arg(0)))


def test_interrupts_and_forks_pass_through() -> None:
    def interrupted(a: Any) -> Any:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        capture(interrupted, 1)
    assert not opaque_calls(capture(lambda a: cautious(a), 1)), "`except Exception` does not swallow a branch"


def cautious(a: Any) -> Any:
    try:
        return 1 if a > 0 else 2
    except Exception:
        return 3


def test_tables() -> None:
    table = Table("next", np.arange(6).reshape(2, 3))
    e = capture(lambda a, b: table(a, b) + 1, 2)
    assert tables(e) == [table] and table.arity == 2 and "next" in repr(table) and "next(x0, x1)" in str(e)
    assert evaluate(e, (1, 2)) == 6 and evaluate(e, (2, 0)) == 1 and evaluate(e, (-1, 0)) == 1
    grid = np.array([[0, 1, 2, -1], [0, 5, 2, 1]])
    assert evaluate_arrays(e, list(grid)).tolist() == [1, 1, 1, 1]
    assert substitute(e, [const(1), const(1)]) == const(5)
    with pytest.raises(TypeError, match="guess is an unknown function"):
        Table("guess", None)(1, 2)


def test_threads_record_their_own_paths() -> None:
    def branching(k: int) -> Function:
        return lambda a: k if a > k else (a if a > -k else (-k if a % 2 else 0))

    def recorded(k: int) -> list[int]:
        e = capture(branching(k), 1)
        assert not opaque_calls(e)
        return [evaluate_int(e, (a,)) for a in range(-9, 10)]

    expected = {k: [branching(k)(a) for a in range(-9, 10)] for k in range(1, 8)}
    with ThreadPoolExecutor(4) as pool:
        for k, values in pool.map(lambda k: (k, recorded(k)), [k for k in expected for _ in range(30)]):
            assert values == expected[k]


def test_expressions_can_be_sent_to_another_process() -> None:
    e = capture(lambda a, b: a + 1 if a > b else 0, 2)
    code = "import pickle, sys; from rasp.scalar import capture; e = pickle.load(sys.stdin.buffer);"
    code += "print({e: 1}[capture(lambda a, b: a + 1 if a > b else 0, 2)])"
    done = subprocess.run([sys.executable, "-c", code], input=pickle.dumps(e), capture_output=True, check=True)
    assert done.stdout.strip() == b"1"


def test_many_arguments() -> None:
    e = functools.reduce(lambda a, b: binary("&", a, b), [truth(arg(i)) for i in range(40)])
    assert "x39" in str(e)
