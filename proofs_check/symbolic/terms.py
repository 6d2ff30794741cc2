"""Captured functions as z3 terms, with int64 arithmetic.

A value is a Python number where it is known and a z3 term where it is not: 64-bit vectors for numbers (they wrap around
as numpy's int64 does), Booleans for truth values. Known values are folded, so that positions cost the solver nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import z3

from rasp.arithmetic import BINARY, COMPARISONS, UNARY, apply, apply_unary, wrap
from rasp.scalar import Expr

Value: TypeAlias = int | bool | z3.ExprRef
BITS = 64
MARKERS = 4  # sep, bos, eos, empt: the tokens that are no symbol and no state
WORD = z3.BitVecSort(BITS)
_BIT_VECTOR_OPERATORS = frozenset({"+", "-", "*", "//", "%", "<<", ">>", "&", "|", "^", *COMPARISONS})


class Token(z3.BitVecRef):
    """A term that is known to be a symbol or a state: no marker, so comparisons with a marker fold."""

    role: str

    @classmethod
    def of(cls, t: z3.BitVecRef, role: str) -> Token:
        token = cls(t.as_ast(), t.ctx)
        token.role = role
        return token


class NoMeaning(TypeError):
    """The program does something that this translation cannot say in bit-vectors."""


def known(*values: Value) -> bool:
    return not any(isinstance(v, z3.ExprRef) for v in values)


def number(value: Value) -> z3.BitVecRef:
    """The value as a 64-bit vector; truth values are 0 and 1."""
    if isinstance(value, z3.BoolRef):
        return z3.If(value, z3.BitVecVal(1, BITS), z3.BitVecVal(0, BITS))
    if isinstance(value, z3.BitVecRef):
        return value
    assert not isinstance(value, z3.ExprRef)
    if isinstance(value, float):
        raise NoMeaning(f"{value} is a fraction: it has no meaning on bit-vectors")
    if wrap(int(value)) != int(value):
        raise OverflowError(f"{value} is not an int64")
    return z3.BitVecVal(int(value), BITS)


def condition(value: Value) -> z3.BoolRef:
    """Whether the value is true, as Python's `if` sees it."""
    if isinstance(value, z3.BoolRef):
        return value
    if isinstance(value, z3.BitVecRef):
        return value != 0
    return z3.BoolVal(bool(value))


def choose(test: Value, then: Value, other: Value) -> Value:
    """`then if test else other`."""
    if known(test):
        return then if test else other
    if all(isinstance(v, bool | z3.BoolRef) for v in (then, other)):
        return z3.If(condition(test), condition(then), condition(other))
    return z3.If(condition(test), number(then), number(other))


def same(a: Value, b: Value) -> Value:
    """Whether two numbers are equal."""
    if known(a, b):
        return bool(a == b)
    return False if _differ(a, b) or _differ(b, a) else number(a) == number(b)


def _differ(a: Value, b: Value) -> bool:
    """A symbol or state is no marker, and none of the other kind."""
    if not isinstance(a, Token):
        return False
    return isinstance(b, int) and b < MARKERS or isinstance(b, Token) and b.role != a.role


def every(values: Sequence[Value]) -> z3.BoolRef:
    return z3.And(*(condition(v) for v in values))


def some(values: Sequence[Value]) -> z3.BoolRef:
    return z3.Or(*(condition(v) for v in values))


def term(e: Expr, args: Sequence[Value]) -> Value:
    """The value of expression `e` where argument i is `args[i]`."""
    if e.op in ("arg", "boolarg"):
        return args[e.payload]
    if e.op == "const":
        return e.payload  # type: ignore[no-any-return]
    if e.op == "ite":
        return choose(*(term(a, args) for a in e.args))
    values = [term(a, args) for a in e.args]
    if e.op == "table":
        return _look_up(e.payload, values)
    if e.op in BINARY:
        return _binary(e.op, values[0], values[1])
    if e.op in UNARY:
        return _unary(e.op, values[0])
    raise NoMeaning(f"the function {e} could not be recorded, so nothing can be proved about it")


def _binary(op: str, a: Value, b: Value) -> Value:
    if known(a, b):
        return apply(op, a, b)  # type: ignore[arg-type, return-value]
    if op in ("==", "!="):
        equal = same(a, b)
        return equal if op == "==" else _unary("not", equal)
    if op not in _BIT_VECTOR_OPERATORS:
        raise NoMeaning(f"{op} leaves the integers: it has no meaning on bit-vectors")
    if op in ("&", "|", "^") and all(isinstance(v, bool | z3.BoolRef) for v in (a, b)):
        return {"&": z3.And, "|": z3.Or, "^": z3.Xor}[op](condition(a), condition(b))  # type: ignore[operator]
    if op in ("+", "-", "*", "&", "|", "^"):
        by_cases = _by_cases(op, a, b)
        if by_cases is not None:
            return by_cases
    x, y = number(a), number(b)
    if op in ("//", "%"):
        return choose(same(b, 0), 0, _divided(op, x, y))
    return BINARY[op](x, y)  # type: ignore[no-any-return]


def _divided(op: str, x: z3.BitVecRef, y: z3.BitVecRef) -> z3.BitVecRef:
    """Rounded down, as Python does it: z3's / cuts towards 0, and its SRem has the sign of the dividend."""
    if op == "%":
        return x % y
    rest = z3.SRem(x, y)
    return x / y - z3.If(z3.And(rest != 0, (rest < 0) != (y < 0)), number(1), number(0))


def _by_cases(op: str, a: Value, b: Value) -> Value | None:
    """`op` where it is easier said of two cases: flags joined to flags, and numbers times a flag.

    RASP-L says "and", "or" and "if" with 0/1 numbers; as 64-bit products and sums they would cost a solver dearly.
    """
    left, right = _cases(a), _cases(b)
    if op in ("&", "|", "^") and left and right and {*left[1:], *right[1:]} <= {0, 1} and left[1] == right[1] == 1:
        return choose(_binary(op, left[0], right[0]), 1, 0)
    if right and (known(a) or op == "*"):
        return choose(right[0], *(_scaled(op, a, k) for k in right[1:]))
    if left and (known(b) or op == "*"):
        return choose(left[0], *(_scaled(op, k, b) for k in left[1:]))
    return None


def _scaled(op: str, a: Value, b: Value) -> Value:
    """`a op b`, where a product by 0 or 1 needs no multiplication."""
    if op == "*" and not known(a, b):
        factor, other = (a, b) if known(a) else (b, a)
        return (0, other)[int(factor)] if factor in (0, 1) else number(a) * number(b)
    return _binary(op, a, b)


def _cases(value: Value) -> tuple[z3.BoolRef, int, int] | None:
    """Condition and outcomes, if the value is one of two known numbers."""
    if not isinstance(value, z3.BitVecRef) or not z3.is_app_of(value, z3.Z3_OP_ITE):
        return None
    test, then, other = value.children()
    if not (z3.is_bv_value(then) and z3.is_bv_value(other)):
        return None
    return test, then.as_signed_long(), other.as_signed_long()


_SYMBOLIC_UNARY: dict[str, Callable[[Any], Any]] = {
    "neg": lambda a: -number(a),
    "invert": lambda a: _binary("^", a, -1) if _cases(a) else ~number(a),
    "abs": lambda a: z3.If(number(a) < 0, -number(a), number(a)),
    "not": lambda a: z3.Not(condition(a)),
    "int": number,
}


def _unary(op: str, a: Value) -> Value:
    if known(a):
        return apply_unary(op, a)  # type: ignore[arg-type, return-value]
    return _SYMBOLIC_UNARY[op](a)  # type: ignore[no-any-return]


def _look_up(table: Any, args: Sequence[Value]) -> Value:
    """An unknown table says itself what it means; a given one is a case distinction over its entries."""
    meaning = getattr(table, "meaning", None)
    if meaning is not None:
        return meaning(*args)  # type: ignore[no-any-return]
    if known(*args):
        return int(table.lookup(*args))
    if table.values is None:
        raise NoMeaning(f"{table.name} is unknown and says nothing of its meaning")
    result: Value = 0
    for place in zip(*table.values.nonzero(), strict=True):
        here = every([same(a, int(i)) for a, i in zip(args, place, strict=True)])
        result = choose(here, int(table.values[place]), result)
    return result
