"""What can be wrong with a program or what it is given, as errors whose message is a sentence for a person."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

MOST_N = 256
OF_N = "the program hashes n+1 tokens"
NO_TRUTH = "a program cannot branch on a whole sequence; use where(condition, x, y)"
NO_TRUTH_OF_SELECTORS = "selectors are joined with & and |, not with `and` and `or`"
NO_CHANGE = "a sequence cannot be changed in place; use where(condition, x, y) or prefix_fill"


class ProgramError(ValueError):
    """A program or its input means nothing in RASP-L."""


class TraceError(ProgramError, TypeError):
    """The program does something to a sequence that a graph cannot record."""


class EngineError(ProgramError):
    """A program that cannot be run in the way asked for; the message names the operation."""


class FunctionError(ProgramError):
    """A function given to `tok_map`, `seq_map` or `select` failed, or returned what is no number."""

    def __init__(self, function: Callable[..., Any], reason: str) -> None:
        self.function, self.reason = function, reason
        super().__init__(f"{place_of(function)} {reason}")


def check_whole(what: str, value: Any, reason: str, error: type[ValueError] = ValueError) -> None:
    """Refuse what is no whole number from 1 on."""
    if isinstance(value, bool) or not hasattr(value, "__index__") or value < 1:
        raise error(f"{what} must be a whole number from 1 on, not {value!r}: {reason}")


def check_n(n: Any, error: type[ValueError] = ValueError) -> None:
    """The n of n-grams, as the programs count it: n+1 tokens make one key."""
    check_whole("n", n, OF_N, error)
    check_most_n(n, error)


def check_most_n(n: int, error: type[ValueError] = ValueError) -> None:
    if n > MOST_N:
        raise error(f"n is {n}: programs look at most {MOST_N} + 1 tokens back, and grow with n; give a smaller one")


def place_of(function: Callable[..., Any]) -> str:
    """A function in words: its name, and where it was written if that is known."""
    inner: Any = function
    while not hasattr(inner, "__code__") and hasattr(inner, "func"):  # partial
        inner = inner.func
    inner = getattr(inner, "__func__", inner)
    code = getattr(inner, "__code__", None) or getattr(vars(type(inner)).get("__call__"), "__code__", None)
    name = getattr(inner, "__name__", type(inner).__name__)
    return f"the function {name}" + (f" ({code.co_filename}, line {code.co_firstlineno})" if code else "")
