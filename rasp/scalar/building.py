"""Building expressions, with the simplifications that hold for all numbers.

Floats are left as they were written: they round, so their order matters, and NaN and -0.0 break the laws of algebra.
"""

from __future__ import annotations

from collections.abc import Sequence

from rasp.arithmetic import BINARY, COMPARISONS, UNARY, Number, apply, apply_unary, cut
from rasp.errors import FunctionError
from rasp.scalar.expression import ARGUMENTS, Expr, const, walk


def binary(op: str, a: Expr, b: Expr) -> Expr:
    if a.op == "const" and b.op == "const":
        return const(apply(op, a.payload, b.payload))
    if not (a.is_whole and b.is_whole):  # floats round: their order and their odd values (NaN, -0.0) are left alone
        return Expr(op, (a, b))
    if op in COMPARISONS and a == b:
        return const(op in ("==", "<=", ">="))
    if op in ("+", "-", "|", "^") and _is_int(b, 0) and not a.is_bool:
        return a
    if op in ("+", "|", "^") and _is_int(a, 0) and not b.is_bool:
        return b
    if op == "*" and (_is_int(a, 1) or _is_int(b, 1)):
        return as_int(b if _is_int(a, 1) else a)
    if op in ("*", "&") and (_is_int(a, 0) or _is_int(b, 0)):
        return const(0)
    if op in ("&", "|") and a == b:
        return a
    if op in ("&", "|", "^") and str(b) < str(a):  # one spelling for both orders
        a, b = b, a
    if op in ("==", "!=") and b.op == "const" and a.op == "int" and a.args[0].is_bool:  # int(c) == 0 is not c
        return _compare_flag(op, a.args[0], b.payload)
    return Expr(op, (a, b))


def _compare_flag(op: str, flag: Expr, value: Number) -> Expr:
    if value not in (0, 1):
        return const(op == "!=")
    return flag if (value == 1) == (op == "==") else unary("not", flag)


def _is_int(e: Expr, value: int) -> bool:
    return e.op == "const" and e.kind == "int" and e.payload == value


NEGATED = {"==": "!=", "!=": "==", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}


def unary(op: str, a: Expr) -> Expr:
    if a.op == "const":
        return const(apply_unary(op, a.payload))
    if op == "not" and a.op == "not" and a.args[0].is_bool:
        return a.args[0]
    if op == "not" and a.op in NEGATED and all(side.is_whole for side in a.args):  # NaN is neither < nor >= anything
        return Expr(NEGATED[a.op], a.args)
    if op == "invert" and a.is_bool:
        return unary("not", a)
    if op == "int" and a.kind == "int":
        return a
    return Expr(op, (a,))


def as_int(e: Expr) -> Expr:
    """0/1 for a truth value, the number itself otherwise."""
    return unary("int", e) if e.is_bool else e


def whole(e: Expr) -> Expr:
    """As `tok_map` stores it: 0/1 for a truth value, fractions cut."""
    if e.op == "ite" and not e.is_bool:
        return ite(e.args[0], whole(e.args[1]), whole(e.args[2]))
    return unary("int", e)


def truth(e: Expr) -> Expr:
    """The condition Python sees in `if e`."""
    if e.op == "ite" and e.kind == "float":  # one branch may hold whole numbers beyond what a float can
        return ite(e.args[0], truth(e.args[1]), truth(e.args[2]))
    return e if e.is_bool else binary("!=", e, const(0))


def ite(condition: Expr, then: Expr, other: Expr) -> Expr:
    if condition.op == "const":
        return then if condition.payload else other
    then, other = assume(then, condition, True), assume(other, condition, False)
    if then.is_bool != other.is_bool:
        then, other = as_int(then), as_int(other)
    if then == other:
        return then
    if condition.op == "not":
        return ite(condition.args[0], other, then)
    if then.is_bool and then.op == other.op == "const":
        return condition if then.payload else unary("not", condition)
    if _is_int(then, 1) and _is_int(other, 0):
        return as_int(condition)
    if _is_int(then, 0) and _is_int(other, 1):
        return as_int(unary("not", condition))
    if then.is_whole and other.is_whole:
        if condition.op == "==" and then == condition.args[1] and other == condition.args[0]:
            return other  # y == c ? c : y
        if condition.op == "!=" and other == condition.args[1] and then == condition.args[0]:
            return then
    return Expr("ite", (condition, then, other))


def rebuild(e: Expr, args: Sequence[Expr]) -> Expr:
    """`e` with other operands, simplified."""
    if e.op == "ite":
        return ite(*args)
    if e.op in BINARY:
        return binary(e.op, args[0], args[1])
    if e.op in UNARY:
        return unary(e.op, args[0])
    if e.op == "table" and e.payload.values is not None and all(a.op == "const" for a in args):
        return const(e.payload.lookup(*(cut(a.payload) for a in args)))
    if e.op == "opaque" and all(a.op == "const" for a in args):
        return _called_once(e, args)
    return Expr(e.op, tuple(args), e.payload)


def _called_once(e: Expr, args: Sequence[Expr]) -> Expr:
    """An opaque function of constants; left as it is where it fails, which is no fault of a branch never taken."""
    try:
        return const(e.payload(*(a.payload for a in args)))
    except FunctionError:
        return Expr("opaque", tuple(args), e.payload)


def assume(e: Expr, condition: Expr, value: bool) -> Expr:
    """`e` where `condition` is known to be `value`."""
    known = {condition: const(value), unary("not", condition): const(not value)}
    if condition.op == ("==" if value else "!="):
        left, right = condition.args
        if right.op == "const" and left.kind == right.kind == "int":
            known[left] = right
    return replaced(e, known)


def replaced(e: Expr, known: dict[Expr, Expr]) -> Expr:
    """`e` with every part that is a key of `known` replaced by what stands for it."""
    if e in known:
        return known[e]
    args = [replaced(a, known) for a in e.args]
    return e if all(a is b for a, b in zip(args, e.args, strict=True)) else rebuild(e, args)


def substitute(e: Expr, values: Sequence[Expr]) -> Expr:
    """`e` with argument i replaced by `values[i]`."""
    if e.op in ARGUMENTS:
        return truth(values[e.payload]) if e.op == "boolarg" else values[e.payload]
    return rebuild(e, [substitute(a, values) for a in e.args]) if e.args else e


def split_on_shared_conditions(e: Expr) -> Expr:
    """Case-split on a condition tested in several places, which shortens what each case computes.

    This is what turns the library's `where` (two masks and a merge) back into one if-then-else.
    """
    seen: dict[Expr, int] = {}
    for node in walk(e):
        if node.op == "ite":
            seen[node.args[0]] = seen.get(node.args[0], 0) + 1
    for condition, times in seen.items():
        if times > 1:
            split = ite(condition, assume(e, condition, True), assume(e, condition, False))
            if split.size < e.size:
                return split_on_shared_conditions(split)
    return e
