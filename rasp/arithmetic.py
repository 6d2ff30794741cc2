"""What the operators of RASP-L compute: the one rule that every engine, proof and backend follows.

A value is an int64, a truth value (0 or 1) or, between primitives and inside functions, a float64. Every operator has
an answer for all numbers, so that rewriting a program (which moves, drops and doubles operations) cannot change it:

- whole numbers wrap around at 64 bits, as the CPU's and numpy's do;
- dividing by zero gives 0, with `//`, `%` and `/` alike; `0 ** -1` divides by zero too;
- `a ** b` with b < 0 is the quotient cut towards zero: 0 unless a is 1 or -1;
- a shift by fewer than 0 or more than 63 places shifts everything out: 0, or -1 for `>>` of a negative number;
- a truth value that meets a number is 0 or 1. Between two truth values `+` is or, `*` is and, `~` is not, as in numpy;
  every other arithmetic operator takes them for 0 and 1;
- a number that meets a float becomes a float64 first, also in a comparison; `/` always gives a float64;
- a float is cut towards zero where a whole number is needed; what no int64 holds (NaN and infinities too) is -2**63.

`docs/language.md` says the same with examples, and `tests/test_arithmetic.py` holds every engine to it.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any, Literal

import numpy as np

from rasp.errors import ProgramError

Number = bool | int | float
Kind = Literal["bool", "int", "float"]
WHOLE_NUMBERS: Kind = "int"
LOWEST, HIGHEST = -(2**63), 2**63 - 1
COMPARISONS: dict[str, Callable[[Any, Any], Any]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
ON_TRUTHS = {"&": "&", "|": "|", "^": "^", "+": "|", "*": "&"}  # operators that stay among the truth values
BITWISE = frozenset({"<<", ">>", "&", "|", "^"})  # no meaning for fractions
BINARY: dict[str, Callable[[Any, Any], Any]] = {  # as Python spells them, for values that have operators of their own
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "//": operator.floordiv,
    "%": operator.mod,
    "/": operator.truediv,
    "**": operator.pow,
    "<<": operator.lshift,
    ">>": operator.rshift,
    "&": operator.and_,
    "|": operator.or_,
    "^": operator.xor,
    **COMPARISONS,
}
UFUNCS = {  # numpy's functions that are operators
    "add": "+",
    "subtract": "-",
    "multiply": "*",
    "floor_divide": "//",
    "remainder": "%",
    "divide": "/",
    "power": "**",
    "left_shift": "<<",
    "right_shift": ">>",
    "bitwise_and": "&",
    "bitwise_or": "|",
    "bitwise_xor": "^",
    "equal": "==",
    "not_equal": "!=",
    "less": "<",
    "less_equal": "<=",
    "greater": ">",
    "greater_equal": ">=",
    "negative": "neg",
    "invert": "invert",
    "absolute": "abs",
}
UNARY = frozenset({"neg", "invert", "abs", "not", "int"})


class Fraction(ProgramError, TypeError):
    """An operator that only whole numbers have was given a float."""

    def __init__(self, op: str) -> None:
        super().__init__(f"{op} has no meaning for fractions; cut them first, with tok_map or //")


def wrap(value: int) -> int:
    """The int64 with the same last 64 bits."""
    return value if LOWEST <= value <= HIGHEST else (value - LOWEST) % 2**64 + LOWEST


def cut(value: Number) -> int:
    """A number without its fraction, as a sequence holds it."""
    if isinstance(value, float):
        return int(value) if -(2.0**63) <= value < 2.0**63 else LOWEST
    return int(value)


def number(value: Any) -> Number:
    """A number of Python's or numpy's as a plain one; TypeError for anything else, OverflowError beyond int64."""
    if type(value) is int and LOWEST <= value <= HIGHEST:
        return value
    if isinstance(value, bool | np.bool_):
        return bool(value)
    if isinstance(value, float | np.floating):
        return float(value)
    if isinstance(value, np.ndarray) and value.ndim == 0 and value.dtype != object:
        return number(value[()])
    whole = int(operator.index(value))
    if not LOWEST <= whole <= HIGHEST:
        raise OverflowError(f"{whole} is no 64-bit number (those run from -2**63 to 2**63 - 1)")
    return whole


def constant(value: Any, what: str) -> int:
    """A number given to a primitive (`full`'s constant, a default), cut; refused in a sentence if it is none."""
    if type(value) is int and LOWEST <= value <= HIGHEST:
        return value
    try:
        return cut(number(value))
    except TypeError:
        raise ProgramError(f"{what} must be a number, not {value!r}") from None
    except OverflowError as error:
        raise ProgramError(f"{what}: {error}") from None


def not_a_number(value: Any) -> str:
    """Why a sequence cannot be combined with this."""
    return f"a sequence was combined with {type(value).__name__}; use full(x, c) for a constant"


def kind_of(value: Number) -> Kind:
    return "bool" if isinstance(value, bool) else "float" if isinstance(value, float) else "int"


def result_kind(op: str, a: Kind, b: Kind) -> Kind:
    """What `a op b` is, by what its operands are."""
    if op in COMPARISONS:
        return "bool"
    if a == b == "bool" and op in ON_TRUTHS:
        return "bool"
    return "float" if op == "/" or "float" in (a, b) else "int"


# --- one operator on plain numbers ------------------------------------------------------------------------------------


def apply(op: str, a: Number, b: Number) -> Number:
    """`a op b`."""
    kinds = kind_of(a), kind_of(b)
    if op in COMPARISONS:
        return bool(COMPARISONS[op](float(a), float(b)) if "float" in kinds else COMPARISONS[op](a, b))
    if kinds == ("bool", "bool") and op in ON_TRUTHS:
        return bool(WHOLE[ON_TRUTHS[op]](int(a), int(b)))
    if op == "/" or "float" in kinds:
        if op in BITWISE:
            raise Fraction(op)
        return FLOAT[op](float(a), float(b))
    return wrap(WHOLE[op](int(a), int(b)))


def apply_unary(op: str, a: Number) -> Number:
    if op == "not":
        return not a
    if op == "int":
        return cut(a)
    if op == "invert":
        if isinstance(a, float):
            raise Fraction("~")
        return not a if isinstance(a, bool) else ~a
    value = a if isinstance(a, float) else int(a)
    result = -value if op == "neg" else abs(value)
    return result if isinstance(result, float) else wrap(result)


def mean(total: int, count: int) -> int:
    """An int64 total divided by how many it is of, cut towards zero."""
    quotient = total // count
    return quotient + 1 if quotient < 0 and quotient * count != total else quotient


def power(a: int, b: int) -> int:
    """a ** b of whole numbers, modulo 2**64."""
    if b >= 0:
        return wrap(pow(a, b, 2**64))
    return 0 if abs(a) != 1 else a if b % 2 else 1


def float_power(a: float, b: float) -> float:
    """The C library's pow, which has an answer where Python raises; 0.0 where it divides by zero."""
    if a == 0 and b < 0:
        return 0.0
    try:
        return math.pow(a, b)
    except OverflowError:
        return -math.inf if a < 0 and b % 2 == 1 else math.inf
    except ValueError:  # a root of a negative number
        return math.nan


WHOLE: dict[str, Callable[[int, int], int]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "//": lambda a, b: a // b if b else 0,
    "%": lambda a, b: a % b if b else 0,
    "**": power,
    "<<": lambda a, b: a << b if 0 <= b < 64 else 0,
    ">>": lambda a, b: a >> b if 0 <= b < 64 else -(a < 0),
    "&": operator.and_,
    "|": operator.or_,
    "^": operator.xor,
}
FLOAT: dict[str, Callable[[float, float], float]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "//": lambda a, b: a // b if b else 0.0,
    "%": lambda a, b: a % b if b else 0.0,
    "/": lambda a, b: a / b if b else 0.0,
    "**": float_power,
}


# --- one operator on arrays -------------------------------------------------------------------------------------------


def apply_arrays(op: str, a: Any, b: Any) -> Any:
    """`a op b` elementwise, of arrays of bool, int64 or float64 (or numbers). Call it with numpy's warnings off."""
    kinds = array_kind(a), array_kind(b)
    if kinds == ("bool", "bool") and op in ON_TRUTHS:
        return _NUMPY[ON_TRUTHS[op]](a, b)
    if op == "/" or "float" in kinds:
        if op in BITWISE:
            raise Fraction(op)
        a, b = np.asarray(a, np.float64), np.asarray(b, np.float64)
        if op in ("/", "//", "%"):
            return np.where(b == 0, 0.0, _NUMPY[op](a, b))
        return _float_powers(a, b) if op == "**" else _NUMPY[op](a, b)
    if op in COMPARISONS:
        return _NUMPY[op](a, b)
    a, b = np.asarray(a, np.int64), np.asarray(b, np.int64)
    return _powers(a, b) if op == "**" else _NUMPY[op](a, b)


def apply_unary_arrays(op: str, a: Any) -> Any:
    kind = array_kind(a)
    if op == "not" or (op == "invert" and kind == "bool"):
        return np.logical_not(a)
    if op == "int":
        return cut_array(np.asarray(a))
    if op == "invert" and kind == "float":
        raise Fraction("~")
    if kind == "bool":
        a = np.asarray(a, np.int64)
    return {"neg": np.negative, "abs": np.abs, "invert": np.invert}[op](a)


def array_kind(a: Any) -> Kind:
    if isinstance(a, np.ndarray | np.generic):
        return {"b": "bool", "f": "float"}.get(a.dtype.kind, "int")  # type: ignore[return-value]
    return kind_of(a)


def cut_array(a: np.ndarray) -> np.ndarray:
    """Every number without its fraction."""
    if a.dtype.kind != "f":
        return a.astype(np.int64)
    inside = (a >= -(2.0**63)) & (a < 2.0**63)
    return np.where(inside, np.where(inside, a, 0.0).astype(np.int64), LOWEST)


def _powers(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    small = np.where(np.abs(a) != 1, 0, np.where(b % 2 != 0, a, 1))
    return np.where(b >= 0, np.power(a, np.maximum(b, 0)), small)


def _float_powers(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """One by one: numpy's own pow may differ from the C library's in the last bit."""
    a, b = np.broadcast_arrays(a, b)
    pairs = zip(a.ravel().tolist(), b.ravel().tolist(), strict=True)
    return np.array([float_power(x, y) for x, y in pairs], dtype=np.float64).reshape(a.shape)


_NUMPY: dict[str, Callable[..., Any]] = {
    "+": np.add,
    "-": np.subtract,
    "*": np.multiply,
    "//": np.floor_divide,
    "%": np.remainder,
    "/": np.true_divide,
    "<<": np.left_shift,
    ">>": np.right_shift,
    "&": np.bitwise_and,
    "|": np.bitwise_or,
    "^": np.bitwise_xor,
    "==": np.equal,
    "!=": np.not_equal,
    "<": np.less,
    "<=": np.less_equal,
    ">": np.greater,
    ">=": np.greater_equal,
}
