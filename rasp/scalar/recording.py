"""What a function of one or two numbers computes, found by calling it on symbolic numbers.

A branch (`x if m else 0`) is explored both ways and becomes `ite`. A function that does what only real numbers can do
(index a list, hash, convert, ask for its argument's type or attributes) is kept opaque: called as it is. So is one that
was recorded but gives something else on plain numbers, which is tried on a few.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import numpy as np

from rasp.arithmetic import UFUNCS, WHOLE_NUMBERS, Fraction, Kind, Number
from rasp.errors import FunctionError
from rasp.operators import Operators
from rasp.scalar.building import as_int, binary, ite, split_on_shared_conditions, truth, unary
from rasp.scalar.evaluation import evaluate
from rasp.scalar.expression import Expr, Opaque, arg, const, tables
from rasp.scalar.memory import remembered
from rasp.scalar.table import Table
from rasp.values import call

MAX_PATHS = 4096  # a function that branches more often than this is kept opaque,
MAX_SIZE = 4096  # and one that computes more,
MAX_DEPTH = 120  # or nests deeper: Python's parser and our own recursion have limits
PROBES: dict[Kind, tuple[Number, ...]] = {
    "int": (0, 1, 2, 3, -1, 7),
    "bool": (False, True),
    "float": (0.0, 0.5, 2.0, -1.5, 7.25),
}


class _Fork(BaseException):
    """Raised at a branch whose outcome has not been chosen yet. Not an `Exception`, so that no program swallows it."""

    def __init__(self, condition: Expr) -> None:
        self.condition = condition


class _Unrecordable(BaseException):
    """Raised where only a real number has an answer. Not an `Exception`, so that no program swallows it."""


class _Path:
    """The choices made so far on the way through a function, and whether something stopped the recording."""

    def __init__(self, chosen: dict[Expr, bool]) -> None:
        self.chosen = chosen
        self.stopped: BaseException | None = None

    def stop(self, reason: BaseException) -> NoReturn:
        self.stopped = reason  # remembered: a bare `except:` may swallow what is raised
        raise reason

    def decide(self, condition: Expr) -> bool:
        if condition in self.chosen:
            return self.chosen[condition]
        opposite = unary("not", condition)
        if opposite in self.chosen:
            return not self.chosen[opposite]
        self.stop(_Fork(condition))


class _Paths(threading.local):
    """The paths being explored, innermost capture last; each thread explores its own."""

    def __init__(self) -> None:
        self.stack: list[_Path] = []


_paths = _Paths()


def _stop(reason: str) -> NoReturn:
    """Give up recording: the function asks what a symbolic number does not know."""
    if not _paths.stack:
        raise TypeError(f"a symbolic number {reason}")
    _paths.stack[-1].stop(_Unrecordable(reason))


def _refuses(reason: str) -> Callable[..., Any]:
    return lambda self, *args: _stop(reason)


class _Symbolic(type):
    """The type of `Scalar`, which must not be compared with other types either."""

    def __eq__(cls, other: object) -> bool:
        return cls is other or not _paths.stack or _stop("is of no type")

    def __hash__(cls) -> int:
        return id(cls) if not _paths.stack else _stop("is of no type")


class Scalar(Operators, metaclass=_Symbolic):
    """A symbolic number: arithmetic on it records an expression, branching on it explores both branches."""

    __slots__ = ("expr",)

    def __init__(self, expr: Expr) -> None:
        if expr.size > MAX_SIZE or expr.depth > MAX_DEPTH:
            _stop("cannot hold so large an expression")
        self.expr = expr

    def __bool__(self) -> bool:
        condition = truth(self.expr)
        if condition.op == "const":
            return bool(condition.payload)
        if not _paths.stack:
            raise TypeError("a symbolic number has no truth value outside `capture`")
        return _paths.stack[-1].decide(condition)

    def _binary(self, op: str, other: Any, swapped: bool) -> Any:
        try:
            left, right = self.expr, expression(other)
        except TypeError:
            return NotImplemented
        if swapped:
            left, right = right, left
        return Scalar(operate(op, left, right))

    def _unary(self, op: str) -> Scalar:
        if op == "invert" and self.expr.kind == "float":
            raise Fraction("~")
        return Scalar(unary(op, self.expr if op == "invert" else as_int(self.expr)))

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        if ufunc.__name__ in ("maximum", "minimum") and not options:
            return self._better(">=" if ufunc.__name__ == "maximum" else "<=", *(expression(x) for x in inputs))
        op = UFUNCS.get(ufunc.__name__)
        if op is None or method != "__call__" or options:
            _stop(f"is nothing for numpy's {ufunc.__name__}")
        operands = [expression(x) for x in inputs]
        return Scalar(operate(op, *operands)) if len(operands) == 2 else Scalar(operands[0])._unary(op)

    @staticmethod
    def _better(op: str, a: Expr, b: Expr) -> Scalar:
        if not (a.is_whole and b.is_whole):
            _stop("may be NaN, which numpy treats in its own way")
        return Scalar(ite(binary(op, as_int(a), as_int(b)), a, b))

    @staticmethod
    def look_up(table: Table, args: Sequence[Any]) -> Scalar:
        indices = [unary("int", expression(a)) for a in args]
        return Scalar(Expr("table", tuple(indices), table))

    __class__ = property(_refuses("is of no type"))  # type: ignore[assignment]
    __hash__ = _refuses("cannot be looked up")  # type: ignore[assignment]
    __index__ = __int__ = __float__ = __complex__ = _refuses("has no digits")
    __round__ = __trunc__ = __floor__ = __ceil__ = _refuses("has no digits")
    __repr__ = __str__ = __format__ = __dir__ = _refuses("has no digits")
    __reduce_ex__ = __reduce__ = __sizeof__ = _refuses("is no object to copy")

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__array"):  # numpy asks: it is no array
            raise AttributeError(name)
        _stop(f"has no {name}")


def operate(op: str, a: Expr, b: Expr) -> Expr:
    """`a op b` as numbers have it; on two truth values + is or and * is and, as in numpy."""
    if a.is_bool and b.is_bool:
        if op in ("&", "|", "^", "+", "*"):
            return binary({"+": "|", "*": "&"}.get(op, op), a, b)
    elif op in ("<<", ">>", "&", "|", "^") and not (a.is_whole and b.is_whole):
        raise Fraction(op)
    return binary(op, as_int(a), as_int(b))


def expression(value: Any) -> Expr:
    return value.expr if type(value) is Scalar else const(value)


def capture(func: Callable[..., Any], arity: int, kinds: Sequence[Kind] = (), truth: bool = False) -> Expr:
    """The expression `func` computes of `arity` numbers; `opaque` (call it as it is) where it cannot be recorded.

    `kinds` says which numbers are truth values or floats; `truth` that the result serves as a condition.
    """
    known = tuple(kinds) or (WHOLE_NUMBERS,) * arity
    return remembered(func, (known, truth), _capture, func, known, truth)  # type: ignore[no-any-return]


def _capture(func: Callable[..., Any], kinds: Sequence[Kind], truth: bool) -> Expr:
    args = [Scalar(arg(i, kind)) for i, kind in enumerate(kinds)]
    try:
        recorded = split_on_shared_conditions(_explore(func, args, {}, [MAX_PATHS]))
        if _holds(recorded, func, kinds):
            return recorded
    except (Exception, _Unrecordable):  # what fails on symbolic numbers may do well on real ones
        pass
    return Expr("opaque", tuple(a.expr for a in args), Opaque(func, truth))


def _explore(func: Callable[..., Any], args: list[Scalar], chosen: dict[Expr, bool], budget: list[int]) -> Expr:
    budget[0] -= 1
    if budget[0] < 0 or len(chosen) > MAX_DEPTH:
        raise _Unrecordable("too many branches")
    path = _Path(chosen)
    _paths.stack.append(path)
    try:
        result = func(*args)
    except _Fork as fork:
        path.stopped = fork
    finally:
        _paths.stack.pop()
    if path.stopped is None:
        return expression(result)
    if not isinstance(path.stopped, _Fork):
        raise path.stopped
    condition = path.stopped.condition
    then = _explore(func, args, {**chosen, condition: True}, budget)
    other = _explore(func, args, {**chosen, condition: False}, budget)
    joined = ite(condition, then, other)
    if joined.size > MAX_SIZE or joined.depth > MAX_DEPTH:
        raise _Unrecordable("too large")
    return joined


def _holds(e: Expr, func: Callable[..., Any], kinds: Sequence[Kind]) -> bool:
    """Whether what was recorded is what the function gives on a few plain numbers."""
    if any(table.values is None for table in tables(e)):
        return True  # an unknown function has no value to compare
    points = itertools.islice(itertools.product(*(PROBES[kind] for kind in kinds)), 64)
    try:
        with np.errstate(all="ignore"):
            return all(_same(evaluate(e, point), call(func, *point)) for point in points)
    except FunctionError:
        return False


def _same(a: Number, b: Number) -> bool:
    return a == b or (a != a and b != b)
