"""Whatever a program does, every engine and the compiler answer as the definition does, or refuse in a sentence."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np
import pytest
from fuzz.compare import REFUSALS
from fuzz.ways import REFERENCE, run_as_python

from compile import compile_program
from rasp import equals, full, kqv, lt, run, sel_width, select, seq_map, shift_right, tok_map
from rasp.errors import ProgramError

CALLS: list[int] = []


def endless(x: Any) -> Any:
    return endless(x)


def never_ends(a: Any) -> Any:
    return never_ends(a)


def yields(x: Any) -> Any:
    yield x


def assigns(x: Any) -> Any:
    y = full(x, 2)
    y[0] = 3
    return y


def adds_in_place(x: Any) -> Any:
    x += 1
    return x


def looks_at_every_bit(a: Any) -> Any:
    return sum(i for i in range(30) if (a >> i) & 1)


def computes_long(a: Any) -> Any:
    for i in range(2000):
        a = (a * 3 + i) % 7
    return a


class Adds:
    def __call__(self, a: Any) -> Any:
        return a + 1


def many_steps(x: Any) -> Any:
    for i in range(100):
        x = (x + i) % 5
    return x


ODD: dict[str, Callable[..., Any]] = {
    "strings": lambda x: tok_map(x, lambda a: "x" * int(a)),
    "a string as default": lambda x: kqv(x, x, x, equals, default="no"),  # type: ignore[arg-type]
    "a string added": lambda x: x + "a",
    "None compared": lambda x: x == None,  # noqa: E711
    "returns None": lambda x: None,
    "a function that returns None": lambda x: tok_map(x, lambda a: None),
    "no function": lambda x: tok_map(x, 3),  # type: ignore[arg-type]
    "a huge shift": lambda x: (1 << (x * 10**15)) + (x >> 10**18),
    "a constant beyond 64 bits": lambda x: x + 2**64,
    "recursion": endless,
    "endless recursion in a function": lambda x: tok_map(x, never_ends),
    "a generator": yields,
    "a generator in a function": lambda x: tok_map(x, lambda a: (i for i in range(3))),
    "numpy": lambda x: np.cumsum(x),
    "a root": lambda x: np.sqrt(x),
    "numpy in a function": lambda x: tok_map(x, lambda a: np.roll([1, 2, 3], int(a))[0]),
    "side effects": lambda x: tok_map(x, lambda a: CALLS.append(1) or a + 1),  # type: ignore[func-returns-value]
    "a branch on a sequence": lambda x: x if x else x + 1,
    "an index": lambda x: x[0],
    "a loop": lambda x: [a for a in x],
    "the length": lambda x: full(x, len(x)),
    "two results": lambda x: (x, x),
    "a number": lambda x: 5,
    "too few arguments": lambda x: seq_map(x, x, lambda a: a),
    "too many sequences": lambda x, y: x,
    "an unknown name": lambda x: undefined(x),  # type: ignore[name-defined]  # noqa: F821
    "an unknown attribute": lambda x: x.foo,
    "division by a plain zero": lambda x: tok_map(x, lambda a: 1 / 0),
    "a high power": lambda x: x ** (10**9),
    "bits of fractions": lambda x: (x + 0.5) & 1,
    "not a number": lambda x: tok_map(x, lambda a: float("nan")),
    "an infinite constant": lambda x: full(x, float("inf")),  # type: ignore[arg-type]
    "complex numbers": lambda x: tok_map(x, lambda a: 1j),
    "decimals": lambda x: tok_map(x, lambda a: Decimal(int(a))),
    "bytes": lambda x: tok_map(x, lambda a: b"a"),
    "many steps": many_steps,
    "many steps in a function": lambda x: tok_map(x, computes_long),
    "many branches": lambda x: tok_map(x, looks_at_every_bit),
    "an unknown reduction": lambda x: kqv(x, x, x, equals, reduction="median"),
    "a selector returned": lambda x: select(x, x, equals),
    "selectors joined by and": lambda x: sel_width(select(x, x, equals) and select(x, x, lt)),
    "an object": lambda x: tok_map(x, Adds()),
    "a partial": lambda x: tok_map(x, functools.partial(operator.add, 2)),
    "numpy's function": lambda x: seq_map(x, x, np.maximum),
    "an assignment": assigns,
    "in place": adds_in_place,
    "a set of strings": lambda x: tok_map(x, lambda a: a in {"a"}),
    "identity": lambda x: tok_map(x, lambda a: a is None),
    "an ellipsis": lambda x: full(x, ...),  # type: ignore[arg-type]
    "half a step": lambda x: shift_right(x, 1.5),  # type: ignore[arg-type]
    "as far as it says": lambda x: shift_right(x, x),
    "no distance": lambda x: shift_right(x, None),  # type: ignore[arg-type]
    "tuples of unequal size": lambda x: kqv((x,), (x, x), x, equals),
    "empty tuples": lambda x: kqv((), (), x, equals),
    "an assignment inside": lambda x: tok_map(x, lambda a: (b := a + 1) * b),
}


ONLY_EAGER = ("a root",)  # which has numpy's arrays


def answer(function: Callable[..., Any], *args: Any) -> list[int] | str:
    """The values, or the sentence in which they are refused; any other error fails the test."""
    try:
        return list(function(*args))
    except REFUSALS as reason:
        return str(reason)


@pytest.mark.parametrize("name", ODD)
def test_every_engine_answers_or_refuses(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rasp.engines.jit.load_module", run_as_python)
    for x in (np.array([1, 2, 0, 3]), np.zeros(0, dtype=np.int64)):
        right = answer(lambda x: run(ODD[name], x, engine=REFERENCE), x)
        for engine in ("eager", "graph", "stream", "jit"):
            found = answer(lambda x, engine=engine: run(ODD[name], x, engine=engine), x)
            assert found == right or isinstance(found, str) or name in ONLY_EAGER, engine


@pytest.mark.parametrize("name", ODD)
def test_the_compiler_answers_or_refuses(name: str) -> None:
    x = np.array([1, 2, 0, 3])
    found = answer(lambda: compile_program(ODD[name], range(4), positions=6, check=False).predict(x))
    if not isinstance(found, str):
        assert found == answer(lambda: run(ODD[name], x, engine=REFERENCE))


@pytest.mark.parametrize("wrong", [[1.5], ["a"], [None], [[1, 2]], "ab", 3, None, [2**63], [float("nan")], {"a": 1}])
@pytest.mark.parametrize("engine", ["reference", "eager", "graph", "stream", "jit"])
def test_inputs_that_are_no_sequences_of_whole_numbers(engine: str, wrong: Any) -> None:
    with pytest.raises(ProgramError):
        run(lambda x: x + 1, wrong, engine=engine)


def test_what_a_program_raises_is_named() -> None:
    with pytest.raises(
        ProgramError, match=r"the function endless \(.*test_odd_programs.py, line \d+\) failed: Recursion"
    ):
        run(endless, [1])
    with pytest.raises(ProgramError, match="is no program"):
        run(3, [1])  # type: ignore[arg-type]
    for engine in ("reference", "eager", "graph"):
        with pytest.raises(ProgramError, match="cannot branch on a whole sequence"):
            run(ODD["a branch on a sequence"], [4], engine=engine)
        with pytest.raises(ProgramError, match="combined with NoneType"):
            run(ODD["None compared"], [4], engine=engine)


@pytest.mark.parametrize("vocabulary", [(), ["a"], [1.5], None, [2**63]])
def test_vocabularies_that_are_none(vocabulary: Any) -> None:
    with pytest.raises(REFUSALS):
        compile_program(lambda x: x, vocabulary)
