"""One rule of arithmetic on every engine, and what functions and inputs are refused."""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from agreement import assert_agree

from rasp import aggr, full, indices, kqv, run, sel_width, select, seq_map, shift_right, tok_map, trace
from rasp.arithmetic import BINARY, FLOAT, apply, apply_arrays, apply_unary, apply_unary_arrays, cut, cut_array, wrap
from rasp.engines.ranges import fits, of_binary
from rasp.errors import EngineError, FunctionError, ProgramError
from rasp.scalar import Table

ENGINES = ("reference", "eager", "graph", "stream", "jit")
LOWEST, HIGHEST = -(2**63), 2**63 - 1
EDGES = [0, 1, -1, 2, 3, -3, 7, 20, 63, 64, 65, -64, 2**31, -(2**31), 2**53 + 1, 2**62, HIGHEST, LOWEST, LOWEST + 1]

# --- the definition -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("op", BINARY)
def test_arrays_follow_the_definition(op: str) -> None:
    kinds: list[list[Any]] = [EDGES, [False, True]]
    if op not in ("<<", ">>", "&", "|", "^"):
        kinds.append([0.0, -0.0, 0.5, -1.5, 2.0, 3.0, 1e18, 1e19, -1e300, math.inf, -math.inf, math.nan])
    for left, right in itertools.product(kinds, kinds):
        pairs = list(itertools.product(left, right))
        a, b = (np.array(column) for column in zip(*pairs, strict=True))
        with np.errstate(all="ignore"):
            found = np.broadcast_to(apply_arrays(op, a, b), a.shape)
        expected = [apply(op, x, y) for x, y in pairs]
        assert [repr(v) for v in found.tolist()] == [repr(v) for v in expected], (op, left, right)


@pytest.mark.parametrize("op", ["neg", "abs", "invert", "not", "int"])
def test_unary_operators_of_arrays(op: str) -> None:
    for values in (EDGES, [False, True], [0.5, -2.5, 1e300, math.nan]):
        if op != "invert" or not isinstance(values[0], float):
            found = apply_unary_arrays(op, np.array(values)).tolist()
            assert [repr(v) for v in found] == [repr(apply_unary(op, v)) for v in values]


def test_what_the_definition_says() -> None:
    assert apply("+", HIGHEST, 1) == LOWEST and apply("*", 2**62, 4) == 0 and apply_unary("neg", LOWEST) == LOWEST
    assert apply("//", LOWEST, -1) == LOWEST and apply("%", LOWEST, -1) == 0
    assert apply("//", 7, 0) == apply("%", 7, 0) == 0 and repr(apply("/", 6, 0)) == "0.0"
    assert apply("<<", 1, 64) == apply("<<", 1, -1) == 0 and apply(">>", -5, 99) == -1 and apply(">>", 5, -1) == 0
    assert apply("**", 3, 64) == wrap(3**64) and apply("**", 2, -1) == 0 == apply("**", 0, -1)
    assert apply("**", -1, -3) == -1 and apply("**", 1, LOWEST) == 1
    assert apply("+", True, True) is True and apply("-", True, True) == 0 and apply_unary("neg", True) == -1
    assert apply("==", 2**53 + 1, 2.0**53) is True, "the number becomes a float first"
    assert cut(math.nan) == cut(math.inf) == cut(-math.inf) == cut(2.0**63) == LOWEST and cut(-2.9) == -2
    assert cut_array(np.array([math.nan, 2.0**63, -(2.0**63), 1e18, -0.5])).tolist() == [LOWEST] * 3 + [10**18, 0]
    assert (
        FLOAT["**"](0.0, -1.0) == 0.0 and math.isnan(FLOAT["**"](-8.0, 0.5)) and FLOAT["**"](-10.0, 999.0) == -math.inf
    )


# --- every engine ---------------------------------------------------------------------------------------------------

FEW = Table("FEW", np.array([0, 3, 2, 1]))  # and 0 elsewhere

PROGRAMS: dict[str, Callable[[Any], Any]] = {
    "overflow": lambda x: x * 2**40 * 2**30 + x,
    "overflow seen": lambda x: (x + HIGHEST) > 0,
    "overflow in a function": lambda x: tok_map(x, lambda a: (a * 2**62 * 3) // 5),
    "a far shift": lambda x: tok_map(x, lambda a: 1 << (20 * a)),
    "a shift of a sequence": lambda x: (1 << (x * 20)) + (x >> (x - 2)) + (-x >> 70),
    "the lowest number": lambda x: kqv(x, x, full(x, LOWEST), operator.eq, default=5, reduction="max"),
    "the lowest key": lambda x: kqv(x * 0 + LOWEST, full(x, LOWEST), x, operator.eq, default=5, reduction="min"),
    "the lowest, counted": lambda x: sel_width(select(x + LOWEST, x + LOWEST, operator.eq)),
    "a large mean": lambda x: kqv(x, x, x + 2**62, lambda k, q: True),
    "a large mean of equals": lambda x: kqv(x % 2, x % 2, x + (LOWEST + 3), operator.eq),
    "the mean of the lowest": lambda x: kqv(x, x, full(x, LOWEST), operator.eq),
    "a large mean asked for": lambda x: kqv(x, x, x * 2**61, lambda k, q: q > 1, default=-7),
    "division": lambda x: 6 // x + 100 * (6 % x),
    "division of a sequence": lambda x: seq_map(x, shift_right(x, 1), lambda a, b: a // b - a % b),
    "fraction": lambda x: tok_map(x, lambda a: 6 / a),
    "fraction of a sequence": lambda x: 6 / x,
    "fractions kept": lambda x: (x + 0.5) * 2,
    "fractions in a function": lambda x: tok_map(x + 0.5, lambda a: a * 2),
    "fractions as keys": lambda x: kqv(x / 2, x * 0.5, x, operator.eq, default=-4, reduction="max"),
    "fractions compared": lambda x: ((x / 3) * 3 == x) * 5,
    "the largest fraction": lambda x: aggr(select(x, x, operator.eq), x / 2 + 0.75, reduction="max"),
    "a fraction with itself": lambda x: tok_map(x, lambda a: (a / a) == (a / a)),
    "not a number": lambda x: tok_map(
        x, lambda a: (a * 1e308 * 10 - a * 1e308 * 10) == (a * 1e308 * 10 - a * 1e308 * 10)
    ),
    "not below": lambda x: tok_map(x, lambda a: not (a * 1e308 * 1e308 * 0 < 1)),
    "order of fractions": lambda x: tok_map(
        x, lambda a: ((a + 0.1) + 0.2 == a + (0.1 + 0.2)) + 2 * ((a + 1e17) - 1e17)
    ),
    "beyond a float": lambda x: tok_map(x, lambda a: (a + 2**53) == (a + 2**53) * 1.0),
    "a choice with a fraction": lambda x: tok_map(x, lambda a: a / 2 if a > 1 else a + 2**60 + 1),
    "minus zero": lambda x: tok_map(x, lambda a: 1 / (a * -0.0) + 1),
    "floor of fractions": lambda x: tok_map(x, lambda a: ((a + 0.5) // -1.5) * 8 + (a - 0.5) % 2 + (a / 2) // (a - 1)),
    "negative truth": lambda x: -(x == 1),
    "truth less one": lambda x: (x == 1) - 1,
    "truths apart": lambda x: (x == 1) - (x == 2) * 3 + ((x == 1) - (x == 2)),
    "truths divided": lambda x: ((x == 1) // (x == 1)) * 200,
    "what a table has, divided by": lambda x: tok_map(x % 7, lambda a: 7 // FEW(a) + (5 << (FEW(a) * 40)) % FEW(a)),
    "truths added": lambda x: ((x == 1) + (x == 1)) * 200,
    "truth shifted": lambda x: ((x == 1) << 9) + ((x == 1) ** (x == 2)) * 300,
    "truths in a function": lambda x: tok_map(x, lambda a: -(a == 1) + ((a > 0) // (a > 1)) * 200),
    "powers": lambda x: x**3 + tok_map(x, lambda a: a**-1) + tok_map(x, lambda a: 3**a) + (x**x) * 5,
    "a power by itself": lambda x: x**5,
    "powers of -1": lambda x: tok_map(x % 5, lambda a: (~0) ** a) + tok_map(x % 5, lambda a: (a - 2) ** (a % 3)),
    "in and out": lambda x: divmod(x, 3)[0] * 10 + divmod(x, -3)[1],
    "an index that wraps": lambda x: kqv(indices(x) + HIGHEST, indices(x) + HIGHEST - 1, x, operator.eq, default=-1),
    "far apart": lambda x: kqv(indices(x) + HIGHEST, indices(x) + LOWEST, x, operator.eq, default=-1),
    "an inverted choice of bits": lambda x: (
        ~(x ^ x) + 3 * ~(x ^ -x) - ~(x | (x * 5)) + tok_map(x, lambda a: ~(a ^ LOWEST))
    ),
    "many digits": lambda x: tok_map(x, lambda a: (a + 2**62) ^ (a * 3 + 2**61) | (a << 40) & ~a),
}


NOT_COMPILED = {"fractions as keys"}  # keys compared by more than equality


@pytest.mark.parametrize("name", PROGRAMS)
def test_every_engine_follows_the_definition(name: str) -> None:
    for x in ([0, 1, 2, 3, 1, 0, -1, 5, 2, 2, -4], [], [HIGHEST, LOWEST, 1, LOWEST, HIGHEST]):
        assert_agree(PROGRAMS[name], x, jit=name not in NOT_COMPILED)


def test_machine_code_follows_the_definition() -> None:
    """Everything at once, so that numba compiles once."""
    chosen = [program for name, program in PROGRAMS.items() if name not in NOT_COMPILED]

    def program(x: Any) -> Any:
        total = x * 0
        for part in chosen:
            total = total * 31 + tok_map(part(x), lambda a: a)
        return total

    assert_agree(program, [0, 1, 2, 3, 1, 0, -1, 5, 2, HIGHEST, LOWEST, 1, 64], compiled=True)


def test_the_examples_by_hand() -> None:
    for engine in ENGINES:
        assert run(lambda x: (x + 0.5) * 2, [0, 1, -1], engine=engine).tolist() == [1, 3, -1]
        assert run(lambda x: tok_map(x, lambda a: 6 / a), [0, 4], engine=engine).tolist() == [0, 1]
        assert run(lambda x: -(x == 1), [1, 2], engine=engine).tolist() == [-1, 0]
        assert run(lambda x: (x == 1) - 1, [1, 2], engine=engine).tolist() == [0, -1]
        assert run(lambda x: ((x == 1) // (x == 1)) * 200, [1, 2], engine=engine).tolist() == [200, 0]
        assert run(lambda x: x + 1, [HIGHEST], engine=engine).tolist() == [LOWEST]
        assert run(PROGRAMS["a far shift"], [0, 3, 4], engine=engine).tolist() == [1, 2**60, 0]
        assert run(PROGRAMS["the lowest number"], [4], engine=engine).tolist() == [LOWEST]
        assert run(lambda x: kqv(x, x, x, lambda k, q: True), [HIGHEST, 1], engine=engine).tolist() == [
            HIGHEST,
            LOWEST // 2,
        ]


@pytest.mark.parametrize("op", ["+", "-", "*", "//", "%", "<<", ">>", "&", "|", "^", "**"])
def test_bounds_hold(op: str) -> None:
    """Of the exact result where it is computed exactly; wherever they lie within an int64, no correction is made."""
    rng = np.random.default_rng(0)
    ends = (LOWEST, LOWEST + 1, -(2**40), -5, -1, 0, 1, 2, 7, 63, 2**40, HIGHEST - 1, HIGHEST)
    for _ in range(400):
        a, b = (tuple(sorted(int(rng.choice(ends)) for _ in range(2))) for _ in range(2))
        low, high = of_binary(op, a, b)
        for x in {*a, min(max(0, a[0]), a[1]), (a[0] + a[1]) // 2}:
            for y in {*b, min(max(0, b[0]), b[1]), (b[0] + b[1]) // 2}:
                found = apply(op, x, y)
                inside = low <= found <= high
                assert inside or not fits((low, high)), f"{x} {op} {y} is {found}, not from {low} to {high}"
                if op in ("&", "|", "^"):
                    assert fits((low, high)), "bits cannot leave an int64"


# --- what is refused ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("engine", ENGINES)
def test_inputs_that_no_sequence_holds(engine: str) -> None:
    for wrong in ([2**63], [2**64], [-(2**63) - 1], np.array([2**63], dtype=np.uint64)):
        with pytest.raises(ProgramError, match="is no 64-bit number"):
            run(lambda x: x, wrong, engine=engine)
    assert run(lambda x: x, np.array([3], dtype=np.uint64), engine=engine).tolist() == [3]
    for number in (2**63, -(2**70)):
        for program in (lambda x, c=number: x + c, lambda x, c=number: full(x, c), lambda x, c=number: x == c):
            with pytest.raises(ProgramError, match="is no 64-bit number"):
                run(program, [1], engine=engine)
    with pytest.raises(ProgramError, match="the default must be a number, not 'a'"):
        run(lambda x: kqv(x, x, x, operator.eq, default="a"), [1], engine=engine)


def forgetful(k: Any, q: Any) -> Any:
    if k == q:
        return True


def wordy(a: Any) -> Any:
    return "" if a == 1 else 3


LINE = forgetful.__code__.co_firstlineno


@pytest.mark.parametrize("engine", ["reference", "eager", "graph", "stream"])
def test_functions_that_return_no_number(engine: str) -> None:
    with pytest.raises(FunctionError, match=rf"forgetful \(.*test_arithmetic.py, line {LINE}\) returned None.*missing"):
        run(lambda x: sel_width(select(x, x, forgetful)), [1, 2], engine=engine)
    with pytest.raises(FunctionError, match="forgetful"):
        run(lambda x: kqv(x, x, x, forgetful), [1, 2], engine=engine)
    with pytest.raises(FunctionError, match="wordy .*returned '', which is no number"):
        run(lambda x: tok_map(x, wordy), [0, 1], engine=engine)
    assert run(lambda x: tok_map(x, wordy), [0, 2], engine=engine).tolist() == [3, 3]
    with pytest.raises(FunctionError, match="returned a list"):
        run(lambda x: seq_map(x, x, lambda a, b: [a, b]), [0], engine=engine)
    with pytest.raises(FunctionError, match="no 64-bit number"):
        run(lambda x: tok_map(x, lambda a: 2**63), [0], engine=engine)


FAILING: dict[str, Callable[[Any], Any]] = {
    "a width": lambda x: sel_width(select(x == x, x == x, lambda k, q: k & (2.0 / k))),
    "a look-up": lambda x: sel_width(select(full(x, 1), full(x, 1), lambda k, q: {}[k] == q)),
    "attention": lambda x: kqv(full(x, 1), full(x, 2), x, lambda k, q: k & (2.0 / k), 3, "max"),
    "a map": lambda x: tok_map(full(x, 1), lambda a: a & (a / 2)),
}


@pytest.mark.parametrize("name", FAILING)
@pytest.mark.parametrize("engine", ENGINES)
def test_functions_that_fail_at_constants(engine: str, name: str) -> None:
    """Rewriting knows what such a function is asked, and must not take its failure for an answer."""
    with pytest.raises(ProgramError, match="failed at"):
        run(FAILING[name], [1, 0, 2], engine=engine)
    if engine != "jit":  # which asks beforehand
        assert run(FAILING[name], [], engine=engine).tolist() == []


@pytest.mark.parametrize("function", [forgetful, wordy])
def test_machine_code_cannot_call_and_says_so(function: Callable[..., Any]) -> None:
    program = (lambda x: kqv(x, x, x, forgetful)) if function is forgetful else (lambda x: tok_map(x, wordy))
    with pytest.raises(EngineError, match=f"{function.__name__}|compares keys by more than equality"):
        run(program, [1], engine="jit")


D = {1: 5, 2: 7}


def cautious(a: Any) -> Any:
    try:
        return D[a]
    except Exception:
        return -1


def bare(a: Any) -> Any:
    try:
        return D[a] if a > 1 else 4
    except:  # noqa: E722
        return -1


def both_ways(a: Any) -> Any:
    if a > 0:
        return 1
    elif a <= 0:
        return 0


ODD: dict[str, Callable[[Any], Any]] = {
    "except Exception": cautious,
    "bare except": bare,
    "hasattr": lambda a: hasattr(a, "item"),
    "getattr": lambda a: getattr(a, "real", 3),
    "type": lambda a: 1 if type(a) == np.int64 else 0,  # noqa: E721
    "type is": lambda a: 1 if type(a) is int else 0,
    "isinstance": lambda a: isinstance(a, np.integer),
    "name of the type": lambda a: len(type(a).__name__) > 100,
    "membership": lambda a: a in D,
    "set": lambda a: a in {1, 3},
    "numpy": lambda a: np.array([4, 5, 6])[a % 3],
    "numpy choice": lambda a: np.where(a > 1, 3, 4),
    "numpy root": lambda a: np.sqrt(a * a),
    "digits": lambda a: len(str(a)),
    "every case": both_ways,
    "round": lambda a: round(a / 2),
}


@pytest.mark.parametrize("name", ODD)
def test_functions_that_only_plain_numbers_can_answer(name: str) -> None:
    x = [0, 1, 2, 3, -1, 2]
    found = assert_agree(lambda x: tok_map(x, ODD[name]), x, jit=False)
    expected = [int(ODD[name](np.int64(a))) for a in x]
    assert found.tolist() == expected
    assert_agree(lambda x: tok_map(x % 4, ODD[name]), x), "a small finite set is tabulated for machine code"


def test_functions_are_only_asked_what_the_program_asks() -> None:
    """A selector asks its predicate about pairs in order only, and an empty sequence asks nothing."""
    distance = {0: True, 1: False, 2: True}

    def near(k: Any, q: Any) -> Any:
        return distance[int(q - k)]

    assert_agree(lambda x: sel_width(select(indices(x), indices(x), near)), [5, 5, 5], jit=False)
    assert_agree(lambda x: tok_map(shift_right(x, 1, default=-1), lambda a: {0: 1}[int(a)]), [], jit=False)


def test_unrecordable_functions_are_kept_opaque() -> None:
    graph = trace(lambda x: tok_map(x, cautious))
    assert graph.nodes[1].function.op == "opaque"
    with pytest.raises(EngineError, match="cautious .*cannot be recorded"):
        run(lambda x: tok_map(x, cautious), [1], engine="jit")
