"""Python's operators, written once for everything that behaves like a number or a sequence of numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def _left(op: str) -> Callable[[Any, Any], Any]:
    return lambda self, other: self._binary(op, other, False)


def _right(op: str) -> Callable[[Any, Any], Any]:
    return lambda self, other: self._binary(op, other, True)


class Operators:
    """Sends every operator to `_binary` and `_unary`, which say what it means for this kind of value."""

    __slots__ = ()
    __hash__ = None  # type: ignore[assignment]  # equality builds a value; it says nothing about identity

    def _binary(self, op: str, other: Any, swapped: bool) -> Any:
        """`self op other`, or `other op self` if `swapped`; NotImplemented for what it cannot be combined with."""
        raise NotImplementedError

    def _unary(self, op: str) -> Any:
        """One of neg, invert, abs of this value."""
        raise NotImplementedError

    __add__, __radd__ = _left("+"), _right("+")
    __sub__, __rsub__ = _left("-"), _right("-")
    __mul__, __rmul__ = _left("*"), _right("*")
    __floordiv__, __rfloordiv__ = _left("//"), _right("//")
    __mod__, __rmod__ = _left("%"), _right("%")
    __truediv__, __rtruediv__ = _left("/"), _right("/")
    __pow__, __rpow__ = _left("**"), _right("**")
    __lshift__, __rlshift__ = _left("<<"), _right("<<")
    __rshift__, __rrshift__ = _left(">>"), _right(">>")
    __and__, __rand__ = _left("&"), _right("&")
    __or__, __ror__ = _left("|"), _right("|")
    __xor__, __rxor__ = _left("^"), _right("^")
    __eq__, __ne__ = _left("=="), _left("!=")  # type: ignore[assignment]
    __lt__, __le__, __gt__, __ge__ = _left("<"), _left("<="), _left(">"), _left(">=")

    def __divmod__(self, other: Any) -> Any:
        return self // other, self % other

    def __rdivmod__(self, other: Any) -> Any:
        return other // self, other % self

    def __neg__(self) -> Any:
        return self._unary("neg")

    def __invert__(self) -> Any:
        return self._unary("invert")

    def __abs__(self) -> Any:
        return self._unary("abs")

    def __pos__(self) -> Any:
        return self
