"""Remembering what was found out about a function, for functions that are made anew at every call.

`shift_right` makes its lambda each time it is called; its code, what it closes over and its defaults are the same, and
so is what it computes. A function is only remembered where all that it can see is certain not to change.
"""

from __future__ import annotations

import functools
import types
from collections.abc import Callable, Hashable
from typing import Any

from rasp.scalar.table import Table

MOST = 4096  # functions remembered

_found: dict[Hashable, tuple[Any, types.CodeType | None]] = {}
_alone: dict[int, tuple[types.CodeType, bool]] = {}
_FIXED = (types.BuiltinFunctionType, types.ModuleType, type, Table)  # known by identity


class _Changeable(Exception):
    """The function depends on something that may be another thing the next time."""


def remembered(func: Callable[..., Any], more: Hashable, find: Callable[..., Any], *given: Any) -> Any:
    """`find(*given)`, or what it gave for a function that is the same in all respects."""
    code = getattr(func, "__code__", None)
    key: Hashable
    if code is None and type(func) is types.BuiltinFunctionType:
        key = (func, more)
    elif code is not None and _sees_nothing(func, code):
        key = (id(code), more)
    else:
        try:
            key = (_identity(func, 0), more)
        except _Changeable:
            return find(*given)
    known = _found.get(key)
    if known is None:
        if len(_found) >= MOST:
            _found.clear()
        known = _found[key] = (find(*given), code)  # the code too: while it lives, no other has its id
    return known[0]


def forget() -> None:
    _found.clear()


def _sees_nothing(func: Any, code: types.CodeType) -> bool:
    """A function of its arguments alone, known by its code."""
    if func.__closure__ or func.__defaults__ or func.__kwdefaults__:
        return False
    known = _alone.get(id(code))
    if known is None or known[0] is not code:
        if len(_alone) >= MOST:
            _alone.clear()
        known = _alone[id(code)] = (code, type(func) is types.FunctionType and not _names(code))
    return known[1]


def _identity(x: Any, depth: int) -> Hashable:
    """Something equal exactly for what behaves equally."""
    if depth > 6:
        raise _Changeable
    if x is None or isinstance(x, bool | int | str | bytes | range):
        return type(x), x
    if isinstance(x, float):
        return float, repr(x)
    if isinstance(x, tuple | frozenset):
        return type(x), tuple(_identity(item, depth + 1) for item in x)
    if isinstance(x, types.FunctionType):
        return _function(x, depth)
    if isinstance(x, functools.partial):
        keywords = tuple(sorted(x.keywords.items()))
        return functools.partial, _identity((x.func, x.args, keywords), depth + 1)
    if isinstance(x, _FIXED):
        return _Same(x)
    raise _Changeable


class _Same:
    """Equal to nothing but the very same object, which it keeps alive."""

    def __init__(self, held: object) -> None:
        self.held = held

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and self.held is other.held

    def __hash__(self) -> int:
        return id(self.held)


def _function(func: types.FunctionType, depth: int) -> Hashable:
    try:
        closed = tuple(cell.cell_contents for cell in func.__closure__ or ())
    except ValueError:  # a cell that is not filled yet
        raise _Changeable from None
    names = _names(func.__code__)
    seen = tuple(func.__globals__[name] for name in names if name in func.__globals__)
    defaults = (func.__defaults__, tuple(sorted((func.__kwdefaults__ or {}).items())))
    return func.__code__, _identity((closed, defaults, seen), depth + 1)


@functools.lru_cache(maxsize=1024)
def _names(code: types.CodeType) -> tuple[str, ...]:
    """Every global name that the code, or a function made inside it, may ask for."""
    inner = (name for c in code.co_consts if isinstance(c, types.CodeType) for name in _names(c))
    return tuple(sorted({*code.co_names, *inner}))
