"""What a function of one or two numbers computes, as an expression.

RASP-L programs hand plain Python functions to `tok_map`, `seq_map` and `select`. `capture` calls such a function on
symbolic numbers and records what it does; a branch (`x if m else 0`) is explored both ways and becomes `ite`. The
expression is what the vectorised, streaming, jitted, symbolic and compiled interpreters share.

`Expr` is the recorded tree (plain data: hashable, comparable). `Scalar` is the number the function sees.
"""

from __future__ import annotations

import math
import operator
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

MAX_PATHS = 4096  # a function that branches more often than this is kept opaque,
MAX_SIZE = 4096  # and one that computes more,
MAX_DEPTH = 120  # or nests deeper: Python's parser and our own recursion have limits


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
            return Scalar(Expr("table", tuple(as_int(_expr(a)) for a in args), self))
        return self.lookup(*args)

    def lookup(self, *args: Any) -> int:
        if self.values is None:
            raise TypeError(f"{self.name} is an unknown function: it has no value at {args}")
        place = tuple(int(a) for a in args)
        inside = all(0 <= a < size for a, size in zip(place, self.values.shape, strict=True))
        return int(self.values[place]) if inside else 0

    def __repr__(self) -> str:
        return f"Table({self.name})"


@dataclass(frozen=True, eq=False)
class Expr:
    """A node of an expression: an operator, its operands, and for leaves their payload.

    Leaves: `arg` (payload: which argument), `const` (payload: the number). `table` and `opaque` carry what they call.
    What is asked of every node again and again (hash, size, depth, type) is worked out once, from the operands.
    """

    op: str
    args: tuple[Expr, ...] = ()
    payload: Any = None
    size: int = field(init=False, repr=False)
    depth: int = field(init=False, repr=False)
    is_bool: bool = field(init=False, repr=False)
    is_whole: bool = field(init=False, repr=False)  # a whole number by construction: no fraction to cut
    _hash: int = field(init=False, repr=False)

    def __post_init__(self) -> None:
        known, args = self.__dict__, self.args  # frozen to everyone else
        known["size"], known["depth"] = 1, 1
        for a in args:
            known["size"] += a.size
            known["depth"] = max(known["depth"], a.depth + 1)
        known["is_bool"] = _holds_truth(self)
        known["is_whole"] = known["is_bool"] or _holds_whole(self)
        known["_hash"] = hash((self.op, args, self.payload))

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, Expr) or self._hash != other._hash or self.op != other.op:
            return False
        same_kind = type(self.payload) is type(other.payload)  # 1, 1.0 and True are different constants
        return same_kind and self.payload == other.payload and self.args == other.args

    def __hash__(self) -> int:
        return self._hash

    def __reduce__(self) -> tuple[Any, ...]:
        return Expr, (self.op, self.args, self.payload)  # hashes differ from one process to the next

    def __str__(self) -> str:
        return to_source(self, [f"x{i}" for i in range(1 + max(arguments(self), default=-1))])


def _holds_truth(e: Expr) -> bool:
    if e.op == "const":
        return isinstance(e.payload, bool)
    if e.op in ("&", "|", "^", "ite"):
        return e.args[-2].is_bool and e.args[-1].is_bool
    return e.op in COMPARISONS or e.op in ("not", "boolarg")


def _holds_whole(e: Expr) -> bool:
    if e.op in ("arg", "table", "int"):
        return True
    if e.op == "const":
        return not isinstance(e.payload, float)
    if e.op in ("/", "opaque"):
        return False
    if e.op == "**" and not (e.args[1].op == "const" and e.args[1].payload >= 0):
        return False
    return all(a.is_whole for a in (e.args[1:] if e.op == "ite" else e.args))


COMPARISONS: dict[str, Callable[[Any, Any], Any]] = {
    "==": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip
BINARY: dict[str, Callable[[Any, Any], Any]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "//": operator.floordiv, "%": operator.mod,
    "/": operator.truediv, "**": operator.pow, "<<": operator.lshift, ">>": operator.rshift,
    "&": operator.and_, "|": operator.or_, "^": operator.xor, **COMPARISONS,
}  # fmt: skip
UNARY: dict[str, Callable[[Any], Any]] = {
    "neg": operator.neg, "invert": operator.invert, "abs": abs, "not": operator.not_, "int": lambda a: cut(a),
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
    if a.op == "const" and b.op == "const" and (folded := _fold(op, a.payload, b.payload)) is not None:
        return folded
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


def _fold(op: str, a: Any, b: Any) -> Expr | None:
    """The constant; None where Python has no answer, which is no fault of a branch that is never taken."""
    if op in ("**", "<<") and abs(b) > 64:
        return None  # no int64 either way, and it may be huge
    try:
        return const(apply(op, a, b))
    except (ArithmeticError, ValueError, TypeError):
        return None


def apply(op: str, a: Any, b: Any) -> Any:
    """One operator on plain numbers. Whole numbers divided by 0 are 0, as in numpy."""
    return 0 if op in ("//", "%") and _is_zero(b) else BINARY[op](a, b)


def _is_zero(b: Any) -> bool:
    return not isinstance(b, float) and b == 0


def _compare_flag(op: str, flag: Expr, value: Any) -> Expr:
    if value not in (0, 1):
        return const(op == "!=")
    return flag if (value == 1) == (op == "==") else unary("not", flag)


def _is_int(e: Expr, value: int) -> bool:
    return e.op == "const" and not isinstance(e.payload, bool) and e.payload == value


def unary(op: str, a: Expr) -> Expr:
    if a.op == "const":
        return const(UNARY[op](a.payload))
    if op == "not" and a.op == "not" and a.args[0].is_bool:
        return a.args[0]
    negated = {"==": "!=", "!=": "==", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}
    if op == "not" and a.op in negated:
        return Expr(negated[a.op], a.args)
    if op == "int" and a.is_whole and not a.is_bool:
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


def cut(value: Any) -> int:
    """A number without its fraction, as numpy's `astype(int)` does it: what is no number is the lowest int64."""
    return int(value) if not isinstance(value, float) or math.isfinite(value) else -(2**63)


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
    if e.op == "opaque" and all(a.op == "const" for a in args):
        return _called_once(e.payload, args)
    return Expr(e.op, tuple(args), e.payload)


def _called_once(func: Callable[..., Any], args: Sequence[Expr]) -> Expr:
    """An opaque function of constants; left as it is where it raises, which is no fault of a branch never taken."""
    try:
        return const(on_numpy(func)(*(a.payload for a in args)))
    except Exception:
        return Expr("opaque", tuple(args), func)


def on_numpy(func: Callable[..., Any]) -> Callable[..., Any]:
    """`func` called with numpy's numbers, as the listing calls it: there `~` negates a truth value."""

    def called(*args: Any) -> Any:
        with np.errstate(all="ignore"):
            return func(*(np.bool_(a) if isinstance(a, bool) else np.int64(a) for a in args))

    called.__name__ = getattr(func, "__name__", type(func).__name__)
    return called


def assume(e: Expr, condition: Expr, value: bool) -> Expr:
    """`e` where `condition` is known to be `value`."""
    known = {condition: const(value), unary("not", condition): const(not value)}
    if condition.op == ("==" if value else "!=") and condition.args[1].op == "const":
        known[condition.args[0]] = condition.args[1]
    return _replace(e, known)


def _replace(e: Expr, known: dict[Expr, Expr]) -> Expr:
    if e in known:
        return known[e]
    args = [_replace(a, known) for a in e.args]
    return e if all(a is b for a, b in zip(args, e.args, strict=True)) else rebuild(e, args)


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
            if split.size < e.size:
                return split_on_shared_conditions(split)
    return e


def walk(e: Expr) -> list[Expr]:
    """Every node of `e`, operands first."""
    found: list[Expr] = []
    stack = [e]
    while stack:
        found.append(node := stack.pop())
        stack.extend(node.args)
    return found[::-1]


def size(e: Expr) -> int:
    return e.size


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


class _Paths(threading.local):
    """The choices of the path being explored, innermost capture last; each thread explores its own."""

    def __init__(self) -> None:
        self.stack: list[dict[Expr, bool]] = []


_assumed = _Paths()


class Scalar:
    """A symbolic number: arithmetic on it records an expression, branching on it explores both branches."""

    __slots__ = ("expr",)
    __hash__ = None  # type: ignore[assignment]  # a dict lookup must fail, so that the function is kept opaque

    def __init__(self, expr: Expr) -> None:
        if expr.size > MAX_SIZE or expr.depth > MAX_DEPTH:
            raise OverflowError("the expression grows too large")
        self.expr = expr

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        raise TypeError("a symbolic number is of no type: a function that asks for the type is kept opaque")

    def __repr__(self) -> str:
        raise TypeError("a symbolic number has no digits: a function that asks for them is kept opaque")

    def __bool__(self) -> bool:
        condition = truth(self.expr)
        if condition.op == "const":
            return bool(condition.payload)
        if not _assumed.stack:
            raise TypeError("a symbolic number has no truth value outside `capture`")
        if condition in _assumed.stack[-1]:
            return _assumed.stack[-1][condition]
        raise _Fork(condition)

    def __invert__(self) -> Scalar:
        return Scalar(unary("not" if self.expr.is_bool else "invert", self.expr))

    def __neg__(self) -> Scalar:
        if self.expr.is_bool:
            raise TypeError("numpy has no negative of a truth value; use ~")
        return Scalar(unary("neg", self.expr))

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
        if left.is_bool and right.is_bool:
            return Scalar(_on_truths(op, left, right))
        return Scalar(binary(op, as_int(left), as_int(right)))

    return method


def _on_truths(op: str, a: Expr, b: Expr) -> Expr:
    """Operators on two truth values, as numpy has them: + is or, * is and, - is refused."""
    if op == "-":
        raise TypeError("numpy has no difference of truth values; use ^")
    if op in ("&", "|", "^", "+", "*"):
        return binary({"+": "|", "*": "&"}.get(op, op), a, b)
    return binary(op, as_int(a), as_int(b))


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
    if budget[0] < 0 or len(assumed) > MAX_DEPTH:
        raise OverflowError("too many branches")
    _assumed.stack.append(assumed)
    try:
        return _expr(func(*args))
    except _Fork as fork:
        condition = fork.condition
    finally:
        _assumed.stack.pop()
    then = _explore(func, args, {**assumed, condition: True}, budget)
    other = _explore(func, args, {**assumed, condition: False}, budget)
    return Scalar(ite(condition, then, other)).expr


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
        return on_numpy(e.payload)(*values)
    return apply(e.op, *values) if e.op in BINARY else UNARY[e.op](*values)


def evaluate_int(e: Expr, args: Sequence[Any]) -> int:
    """As `tok_map` returns it: truth values are 0/1, fractions are cut."""
    return cut(evaluate(e, args))


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
    flat = [a.ravel() for a in arrays]
    if not flat[0].size:
        return np.zeros(arrays[0].shape, dtype=np.int64)
    _, first, where = np.unique(np.stack(flat), axis=1, return_index=True, return_inverse=True)
    results = np.array([func(*(a[i] for a in flat)) for i in first])
    return results[where.reshape(arrays[0].shape)]


_SPELLED = {"neg": "-{0}", "invert": "~{0}", "abs": "abs({0})", "not": "not {0}", "int": "int({0})"}


def to_source(e: Expr, args: Sequence[str], name_of: Callable[[Any], str] | None = None, index: str = "call") -> str:
    """Python for `e`, with `args[i]` for argument i. `name_of` names tables and opaque functions.

    `index` says how a table is spelled: `call` f(a, b), `nested` t[a][b], or `array` t[a, b].
    """
    if e.op in ("arg", "boolarg"):
        return args[e.payload]
    if e.op == "const":
        return _spell_constant(e.payload)
    parts = [to_source(a, args, name_of, index) for a in e.args]
    if e.op == "ite":
        other = parts[2][1:-1] if e.args[2].op == "ite" else parts[2]  # a chain of cases needs no nesting
        return f"({parts[1]} if {parts[0]} else {other})"
    if e.op in ("table", "opaque"):
        default = e.payload.name if e.op == "table" else getattr(e.payload, "__name__", "function")
        name = name_of(e.payload) if name_of else default
        return name + _spell_arguments(parts, index if e.op == "table" else "call")
    if e.op in BINARY:
        return f"({parts[0]} {e.op} {parts[1]})"
    return f"({_SPELLED[e.op].format(parts[0])})"


def _spell_constant(value: Any) -> str:
    if isinstance(value, float) and not math.isfinite(value):
        return {"inf": "1e999", "-inf": "(-1e999)"}.get(repr(value), "(1e999 - 1e999)")
    return repr(value) if value >= 0 else f"({value!r})"  # -1 ** 2 is not (-1) ** 2


def _spell_arguments(parts: Sequence[str], index: str) -> str:
    if index == "nested":
        return "".join(f"[{p}]" for p in parts)
    inner = ", ".join(parts)
    return f"[{inner}]" if index == "array" else f"({inner})"
