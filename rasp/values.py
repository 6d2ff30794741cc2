"""The numbers that functions are called with: numpy's, as in np-rasp, except that their operators follow our rule.

A function that cannot be recorded as an expression is called element by element, and the reference calls every
function so. What it may return is checked here, once, for all engines.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from rasp.arithmetic import UFUNCS, Number, apply, apply_unary, number
from rasp.errors import FunctionError
from rasp.operators import Operators

if TYPE_CHECKING:
    from rasp.scalar.table import Table


class _Value(Operators):
    """A number whose operators follow `rasp.arithmetic`; numpy's functions work on it as on numpy's numbers."""

    __slots__ = ()

    def _plain(self) -> Number:
        raise NotImplementedError

    def _binary(self, op: str, other: Any, swapped: bool) -> Any:
        try:
            theirs = other._plain() if isinstance(other, _Value) else number(other)
        except TypeError:
            return NotImplemented
        mine = self._plain()
        return value(apply(op, theirs, mine) if swapped else apply(op, mine, theirs))

    def _unary(self, op: str) -> Any:
        return value(apply_unary(op, self._plain()))

    @staticmethod
    def look_up(table: Table, args: Sequence[Any]) -> Any:
        """What a table has at these numbers: again a number that follows the rule."""
        return value(table.lookup(*args))

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        """np.add(a, 1) is a + 1; functions that no operator has (np.sqrt) get numpy's numbers."""
        op = UFUNCS.get(ufunc.__name__)
        if op is None or method != "__call__" or options or any(isinstance(x, np.ndarray) for x in inputs):
            given = [_numpys(x) if isinstance(x, _Value) else x for x in inputs]
            return getattr(ufunc, method)(*given, **options)
        plain = [x._plain() if isinstance(x, _Value) else number(x) for x in inputs]
        return value(apply(op, *plain) if len(plain) == 2 else apply_unary(op, *plain))


class _Named(type):
    """Lets `type(a) == np.int64` be true of a class that stands for it."""

    stands_for: type

    def __eq__(cls, other: object) -> bool:
        return cls is other or other is cls.__dict__.get("stands_for")

    def __hash__(cls) -> int:
        return hash(cls.stands_for)


def _compared(op: str, compare: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """Comparing two whole numbers at numpy's speed: the reference does little else."""

    def method(self: Any, other: Any) -> Any:
        if type(other) is type(self):
            return _TRUE if compare(self, other) else _FALSE
        return self._binary(op, other, False)

    return method


class Whole(_Value, np.int64, metaclass=_Named):  # type: ignore[misc]
    stands_for = np.int64
    __hash__ = np.int64.__hash__  # type: ignore[assignment]
    __eq__ = _compared("==", np.int64.__eq__)  # type: ignore[assignment]
    __ne__ = _compared("!=", np.int64.__ne__)  # type: ignore[assignment]
    __lt__ = _compared("<", np.int64.__lt__)
    __le__ = _compared("<=", np.int64.__le__)
    __gt__ = _compared(">", np.int64.__gt__)
    __ge__ = _compared(">=", np.int64.__ge__)

    def _plain(self) -> int:
        return int(self)

    def __repr__(self) -> str:
        return f"np.int64({int(self)})"


class Real(_Value, np.float64, metaclass=_Named):  # type: ignore[misc]
    stands_for = np.float64
    __hash__ = np.float64.__hash__  # type: ignore[assignment]

    def _plain(self) -> float:
        return float(self)

    def __repr__(self) -> str:
        return f"np.float64({float(self)})"


class Truth(_Value):
    """A truth value. (numpy's own cannot be derived from.)"""

    __slots__ = ("_held",)

    def __init__(self, held: bool) -> None:
        self._held = held

    def _plain(self) -> bool:
        return self._held

    def __bool__(self) -> bool:
        return self._held

    def __index__(self) -> int:
        return int(self._held)

    __int__ = __index__

    def __float__(self) -> float:
        return float(self._held)

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(self._held)

    def __repr__(self) -> str:
        return repr(np.bool_(self._held))

    def __str__(self) -> str:
        return str(self._held)


_TRUE, _FALSE = Truth(True), Truth(False)


def value(plain: Number) -> Any:
    """The number as functions see it."""
    if isinstance(plain, bool):
        return _TRUE if plain else _FALSE
    return Real(plain) if isinstance(plain, float) else Whole(plain)


def _numpys(x: _Value) -> Any:
    plain = x._plain()
    return np.bool_(plain) if isinstance(plain, bool) else np.array(plain)[()]


def call(function: Callable[..., Any], *args: Any) -> Number:
    """What the function gives for these numbers (plain ones, or already as functions see them).

    Call it with numpy's warnings off: the function may use numpy.
    """
    return ask(function, *[a if isinstance(a, _Value) else value(a) for a in args])


def ask(function: Callable[..., Any], *seen: Any) -> Number:
    """The same, for numbers as functions see them."""
    try:
        result = function(*seen)
    except Exception as error:
        at = ", ".join(str(a) for a in seen)
        raise FunctionError(function, f"failed at {at}: {type(error).__name__}: {error}") from error
    return result._held if type(result) is Truth else returned(function, result)


def returned(function: Callable[..., Any], result: Any) -> Number:
    """The plain number in what a function returned; an error in a sentence if it is none."""
    if isinstance(result, _Value):
        return result._plain()
    if result is True or result is False:
        return result  # type: ignore[no-any-return]
    try:
        return number(result)
    except TypeError:
        hint = " (is a `return` missing?)" if result is None else ""
        wrong = repr(result) if isinstance(result, str | None) else f"a {type(result).__name__}"
        raise FunctionError(function, f"returned {wrong}, which is no number{hint}") from None
    except OverflowError as error:
        raise FunctionError(function, f"returned a number that no sequence can hold: {error}") from None
