"""What a function of one or two numbers computes, as an expression.

RASP-L programs hand plain Python functions to `tok_map`, `seq_map` and `select`. `capture` calls such a function on
symbolic numbers and records what it does; a branch (`x if m else 0`) is explored both ways and becomes `ite`. The
expression is what the vectorised, streaming, jitted, symbolic and compiled interpreters share.

`Expr` is the recorded tree (plain data: hashable, comparable). `Scalar` is the number the function sees.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

MAX_PATHS = 4096  # a function that branches more often than this is kept opaque


class Table:
    """A finite function of token ids given by its values: callable on numbers and on symbolic numbers alike.

    Outside the table the value is 0, as in the paper's listing. `values=None` is an unknown function (for proofs).
    """

    def __init__(self, name: str, values: np.ndarray | None, arity: int = 2) -> None:
        self.name = name
        self.values = values
        self.arity = values.ndim if values is not None else arity

    def __call__(self, *args: Any) -> Any:
        if any(isinstance(a, Scalar) for a in args):
            return Scalar(Expr("table", tuple(_expr(a) for a in args), self))
        return self.lookup(*args)

    def lookup(self, *args: Any) -> int:
        if self.values is None:
            raise TypeError(f"{self.name} is an unknown function: it has no value at {args}")
        inside = all(0 <= a < size for a, size in zip(args, self.values.shape, strict=True))
        return int(self.values[args]) if inside else 0

    def __repr__(self) -> str:
        return f"Table({self.name})"


@dataclass(frozen=True)
class Expr:
    """A node of an expression: an operator, its operands, and for leaves their payload.

    Leaves: `arg` (payload: which argument), `const` (payload: the number). `table` and `opaque` carry what they call.
    """

    op: str
    args: tuple[Expr, ...] = ()
    payload: Any = None

    @property
    def is_bool(self) -> bool:
        if self.op == "const":
            return isinstance(self.payload, bool)
        if self.op in ("&", "|", "^"):
            return self.args[0].is_bool and self.args[1].is_bool
        if self.op == "ite":
            return self.args[1].is_bool and self.args[2].is_bool
        return self.op in COMPARISONS or self.op in ("not", "boolarg")

    def __str__(self) -> str:
        return to_source(self, [f"x{i}" for i in range(16)])


COMPARISONS: dict[str, Callable[[Any, Any], Any]] = {
    "==": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip
BINARY: dict[str, Callable[[Any, Any], Any]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "//": operator.floordiv, "%": operator.mod,
    "/": operator.truediv, "**": operator.pow, "<<": operator.lshift, ">>": operator.rshift,
    "&": operator.and_, "|": operator.or_, "^": operator.xor, **COMPARISONS,
}  # fmt: skip
UNARY: dict[str, Callable[[Any], Any]] = {
    "neg": operator.neg, "invert": operator.invert, "abs": abs, "not": operator.not_, "int": int,
}  # fmt: skip


def arg(i: int, is_bool: bool = False) -> Expr:
    return Expr("boolarg" if is_bool else "arg", (), i)


def const(value: Any) -> Expr:
    if isinstance(value, bool | np.bool_):
        return Expr("const", (), bool(value))
    if isinstance(value, float | np.floating):
        return Expr("const", (), float(value))
    return Expr("const", (), int(operator.index(value)))


def _expr(value: Any) -> Expr:
    return value.expr if isinstance(value, Scalar) else const(value)


# --- building, with the simplifications that hold for all numbers ---------------------------------------------------


def binary(op: str, a: Expr, b: Expr) -> Expr:
    if a.op == "const" and b.op == "const":
        return const(BINARY[op](a.payload, b.payload))
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
    if op in ("==", "!=") and b.op == "const" and a.op == "int":  # int(c) == 0 is not c
        return _compare_flag(op, a.args[0], b.payload)
    return Expr(op, (a, b))


def _compare_flag(op: str, flag: Expr, value: Any) -> Expr:
    if value not in (0, 1):
        return const(op == "!=")
    return flag if (value == 1) == (op == "==") else unary("not", flag)


def _is_int(e: Expr, value: int) -> bool:
    return e.op == "const" and not isinstance(e.payload, bool) and e.payload == value


def unary(op: str, a: Expr) -> Expr:
    if a.op == "const":
        return const(UNARY[op](a.payload))
    if op == "not" and a.op == "not":
        return a.args[0]
    negated = {"==": "!=", "!=": "==", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}
    if op == "not" and a.op in negated:
        return Expr(negated[a.op], a.args)
    if op == "int" and not a.is_bool:
        return a
    return Expr(op, (a,))


def as_int(e: Expr) -> Expr:
    """0/1 for a truth value, the number itself otherwise."""
    return unary("int", e) if e.is_bool else e


def truth(e: Expr) -> Expr:
    """The condition Python sees in `if e`."""
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
        return const(e.payload.lookup(*(int(a.payload) for a in args)))
    return Expr(e.op, tuple(args), e.payload)


def assume(e: Expr, condition: Expr, value: bool) -> Expr:
    """`e` where `condition` is known to be `value`."""
    if e == condition:
        return const(value)
    if e == unary("not", condition):
        return const(not value)
    if condition.op == ("==" if value else "!=") and condition.args[1].op == "const" and e == condition.args[0]:
        return condition.args[1]
    if not e.args:
        return e
    args = tuple(assume(a, condition, value) for a in e.args)
    return e if args == e.args else rebuild(e, args)


def substitute(e: Expr, values: Sequence[Expr]) -> Expr:
    """`e` with argument i replaced by `values[i]`."""
    if e.op in ("arg", "boolarg"):
        return values[e.payload] if e.op == "arg" else truth(values[e.payload])
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
            if size(split) < size(e):
                return split_on_shared_conditions(split)
    return e


def walk(e: Expr) -> list[Expr]:
    """Every node of `e`, operands first."""
    return [node for a in e.args for node in walk(a)] + [e]


def size(e: Expr) -> int:
    return 1 + sum(size(a) for a in e.args)


def arguments(e: Expr) -> set[int]:
    """Which arguments `e` depends on."""
    return {node.payload for node in walk(e) if node.op in ("arg", "boolarg")}


def tables(e: Expr) -> list[Table]:
    return [node.payload for node in walk(e) if node.op == "table"]


def opaque_calls(e: Expr) -> list[Callable[..., Any]]:
    return [node.payload for node in walk(e) if node.op == "opaque"]


# --- recording --------------------------------------------------------------------------------------------------------


class _Fork(BaseException):
    """Raised at a branch whose outcome has not been chosen yet. Not an `Exception`, so that no program swallows it."""

    def __init__(self, condition: Expr) -> None:
        self.condition = condition


_assumed: list[dict[Expr, bool]] = []  # the choices of the path being explored, innermost capture last


class Scalar:
    """A symbolic number: arithmetic on it records an expression, branching on it explores both branches."""

    __slots__ = ("expr",)
    __hash__ = None  # type: ignore[assignment]  # a dict lookup must fail, so that the function is kept opaque

    def __init__(self, expr: Expr) -> None:
        self.expr = expr

    def __bool__(self) -> bool:
        condition = truth(self.expr)
        if condition.op == "const":
            return bool(condition.payload)
        if not _assumed:
            raise TypeError("a symbolic number has no truth value outside `capture`")
        if condition in _assumed[-1]:
            return _assumed[-1][condition]
        raise _Fork(condition)

    def __invert__(self) -> Scalar:
        return Scalar(unary("not" if self.expr.is_bool else "invert", self.expr))

    def __neg__(self) -> Scalar:
        return Scalar(unary("neg", as_int(self.expr)))

    def __pos__(self) -> Scalar:
        return self

    def __abs__(self) -> Scalar:
        return Scalar(unary("abs", as_int(self.expr)))


def _binary_method(op: str, swapped: bool) -> Callable[[Scalar, Any], Any]:
    def method(self: Scalar, other: Any) -> Any:
        try:
            left, right = self.expr, _expr(other)
        except TypeError:
            return NotImplemented
        if swapped:
            left, right = right, left
        if op not in ("&", "|", "^") or not (left.is_bool and right.is_bool):
            left, right = as_int(left), as_int(right)
        return Scalar(binary(op, left, right))

    return method


_METHODS = {"+": "add", "-": "sub", "*": "mul", "//": "floordiv", "%": "mod", "/": "truediv", "**": "pow",
            "<<": "lshift", ">>": "rshift", "&": "and", "|": "or", "^": "xor"}  # fmt: skip
_RELATIONS = {"==": "eq", "!=": "ne", "<": "lt", "<=": "le", ">": "gt", ">=": "ge"}
for _op, _name in _METHODS.items():
    setattr(Scalar, f"__{_name}__", _binary_method(_op, swapped=False))
    setattr(Scalar, f"__r{_name}__", _binary_method(_op, swapped=True))
for _op, _name in _RELATIONS.items():
    setattr(Scalar, f"__{_name}__", _binary_method(_op, swapped=False))


def capture(func: Callable[..., Any], arity: int, is_bool: Sequence[bool] = ()) -> Expr:
    """The expression `func` computes of `arity` numbers; `opaque` (call it as it is) where it cannot be recorded."""
    flags = tuple(is_bool) or (False,) * arity
    args = [Scalar(arg(i, flag)) for i, flag in enumerate(flags)]
    budget = [MAX_PATHS]
    try:
        return split_on_shared_conditions(_explore(func, args, {}, budget))
    except Exception:  # the function does something only real numbers can do: index a list, hash, convert
        return Expr("opaque", tuple(a.expr for a in args), func)


def _explore(func: Callable[..., Any], args: list[Scalar], assumed: dict[Expr, bool], budget: list[int]) -> Expr:
    budget[0] -= 1
    if budget[0] < 0:
        raise OverflowError("too many branches")
    _assumed.append(assumed)
    try:
        return _expr(func(*args))
    except _Fork as fork:
        condition = fork.condition
    finally:
        _assumed.pop()
    then = _explore(func, args, {**assumed, condition: True}, budget)
    other = _explore(func, args, {**assumed, condition: False}, budget)
    return ite(condition, then, other)


# --- running ----------------------------------------------------------------------------------------------------------


def evaluate(e: Expr, args: Sequence[Any]) -> Any:
    """The value of `e` at plain numbers."""
    if e.op in ("arg", "boolarg"):
        return args[e.payload]
    if e.op == "const":
        return e.payload
    if e.op == "ite":
        return evaluate(e.args[1] if evaluate(e.args[0], args) else e.args[2], args)
    values = [evaluate(a, args) for a in e.args]
    if e.op == "table":
        return e.payload.lookup(*values)
    if e.op == "opaque":
        return e.payload(*values)
    return BINARY[e.op](*values) if e.op in BINARY else UNARY[e.op](*values)


def evaluate_int(e: Expr, args: Sequence[Any]) -> int:
    """As `tok_map` returns it: truth values are 0/1, fractions are cut."""
    return int(evaluate(e, args))


_VECTOR_UNARY: dict[str, Callable[[Any], Any]] = {
    "neg": np.negative, "invert": np.invert, "abs": np.abs, "not": np.logical_not,
    "int": lambda a: np.asarray(a).astype(np.int64),
}  # fmt: skip


def evaluate_arrays(e: Expr, args: Sequence[Any]) -> Any:
    """The value of `e` at arrays (numpy broadcasting), elementwise."""
    if e.op in ("arg", "boolarg"):
        return args[e.payload]
    if e.op == "const":
        return e.payload
    values = [evaluate_arrays(a, args) for a in e.args]
    if e.op == "ite":
        return np.where(*values)
    if e.op == "table":
        return _lookup_arrays(e.payload, values)
    if e.op == "opaque":
        return _call_on_distinct(e.payload, values)
    return BINARY[e.op](*values) if e.op in BINARY else _VECTOR_UNARY[e.op](values[0])


def _lookup_arrays(table: Table, values: Sequence[Any]) -> np.ndarray:
    assert table.values is not None
    arrays = np.broadcast_arrays(*values)
    inside = np.logical_and.reduce([(a >= 0) & (a < n) for a, n in zip(arrays, table.values.shape, strict=True)])
    return np.where(inside, table.values[tuple(np.where(inside, a, 0) for a in arrays)], 0)


def _call_on_distinct(func: Callable[..., Any], values: Sequence[Any]) -> np.ndarray:
    """An opaque function is called once for each distinct combination of its arguments."""
    arrays = np.broadcast_arrays(*values)
    stacked = np.stack([a.ravel() for a in arrays])
    distinct, where = np.unique(stacked, axis=1, return_inverse=True)
    results = np.array([func(*column) for column in distinct.T])
    return results[where.reshape(arrays[0].shape)] if results.size else np.zeros(arrays[0].shape, dtype=np.int64)


_SPELLED = {"neg": "-{0}", "invert": "~{0}", "abs": "abs({0})", "not": "not {0}", "int": "int({0})"}


def to_source(e: Expr, args: Sequence[str], name_of: Callable[[Any], str] | None = None, index: str = "call") -> str:
    """Python for `e`, with `args[i]` for argument i. `name_of` names tables and opaque functions.

    `index` says how a table is spelled: `call` f(a, b), `nested` t[a][b], or `array` t[a, b].
    """
    if e.op in ("arg", "boolarg"):
        return args[e.payload]
    if e.op == "const":
        return repr(e.payload)
    parts = [to_source(a, args, name_of, index) for a in e.args]
    if e.op == "ite":
        return f"({parts[1]} if {parts[0]} else {parts[2]})"
    if e.op in ("table", "opaque"):
        default = e.payload.name if e.op == "table" else getattr(e.payload, "__name__", "function")
        name = name_of(e.payload) if name_of else default
        return name + _spell_arguments(parts, index if e.op == "table" else "call")
    if e.op in BINARY:
        return f"({parts[0]} {e.op} {parts[1]})"
    return f"({_SPELLED[e.op].format(parts[0])})"


def _spell_arguments(parts: Sequence[str], index: str) -> str:
    if index == "nested":
        return "".join(f"[{p}]" for p in parts)
    inner = ", ".join(parts)
    return f"[{inner}]" if index == "array" else f"({inner})"
