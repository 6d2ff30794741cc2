"""The RASP-L primitives (np-rasp's names and signatures).

Each primitive asks the interpreter of what it was given: numpy arrays are computed at once (`engines.eager`), traced
sequences build a graph (`tracing`), plain sequences follow the definition word by word (`engines.reference`).
Everything else in RASP-L is written on these.

Keys and queries may also be tuples of sequences, `kqv((a, b), (c, d), v, equals)`: then a place is found where each key
equals its query. That is the conjunction `select(a, c, equals) & select(b, d, equals)`, and every interpreter takes it
as one equality.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Hashable
from functools import cache, lru_cache, reduce
from numbers import Number
from typing import Any, Protocol

from rasp.errors import ProgramError

Function = Callable[..., Any]
Program = Callable[..., object]  # from sequences to a sequence
REDUCTIONS = ("mean", "max", "min")


class Interpreter(Protocol):
    """What a way of running RASP-L must know how to do. The class of a sequence names it, as `__rasp__`."""

    def full(self, x: Any, const: int) -> Any: ...
    def indices(self, x: Any) -> Any: ...
    def tok_map(self, x: Any, func: Function) -> Any: ...
    def seq_map(self, x: Any, y: Any, func: Function) -> Any: ...
    def select(self, k: Any, q: Any, pred: Function, causal: bool) -> Any: ...
    def sel_width(self, A: Any) -> Any: ...
    def aggr(self, A: Any, v: Any, default: int, reduction: str) -> Any: ...
    def kqv(self, k: Any, q: Any, v: Any, pred: Function, default: int, reduction: str) -> Any: ...


_for_arrays: list[Callable[[], Interpreter]] = []


def interpret_arrays_with(load: Callable[[], Interpreter]) -> None:
    """Name the interpreter of what names none itself: numpy arrays and lists. It is loaded when first needed."""
    _for_arrays[:] = [cache(load)]


def interpreter_of(*values: Any) -> Interpreter:
    """The interpreter of the first value that names one; that of arrays otherwise."""
    for value in values:
        if _names_one(type(value)):  # type: ignore[arg-type]  # a class is hashable
            return value.__rasp__  # type: ignore[no-any-return]
    return _for_arrays[0]()


@lru_cache(maxsize=1024)
def _names_one(kind: Hashable) -> bool:
    """To ask an array for what it has not takes longer than to remember it."""
    return hasattr(kind, "__rasp__")


def full(x: Any, const: int) -> Any:
    return interpreter_of(x).full(x, const)


def indices(x: Any) -> Any:
    return interpreter_of(x).indices(x)


def tok_map(x: Any, func: Function) -> Any:
    return interpreter_of(x).tok_map(x, func)


def seq_map(x: Any, y: Any, func: Function) -> Any:
    return interpreter_of(x, y).seq_map(x, y, func)


def select(k: Any, q: Any, pred: Function, causal: bool = True) -> Any:
    if (isinstance(k, tuple) or isinstance(q, tuple)) and (pairs := _pairs(k, q, pred)):
        return reduce(operator.and_, (select(a, b, pred, causal) for a, b in pairs))
    return interpreter_of(k, q).select(k, q, pred, causal)


def sel_width(A: Any) -> Any:
    return interpreter_of(A).sel_width(A)


def aggr_mean(A: Any, v: Any, default: int = 0) -> Any:
    return aggr(A, v, default, "mean")


def aggr_max(A: Any, v: Any, default: int = 0) -> Any:
    return aggr(A, v, default, "max")


def aggr_min(A: Any, v: Any, default: int = 0) -> Any:
    return aggr(A, v, default, "min")


def aggr(A: Any, v: Any, default: int = 0, reduction: str = "mean") -> Any:
    return interpreter_of(A, v).aggr(A, v, default, _known(reduction))


def kqv(k: Any, q: Any, v: Any, pred: Function, default: int = 0, reduction: str = "mean") -> Any:
    if (isinstance(k, tuple) or isinstance(q, tuple)) and (pairs := _pairs(k, q, pred)):
        at_once = getattr(interpreter_of(*k, *q, v), "kqv_tuples", None)
        if at_once is None:
            return aggr(select(k, q, pred), v, default, reduction)
        return at_once(pairs, v, default, _known(reduction))
    return interpreter_of(k, q, v).kqv(k, q, v, pred, default, _known(reduction))


def named(x: Any, label: str) -> Any:
    """`x` itself; a traced sequence remembers the label for drawings and for the heads compiled from it."""
    label_of = getattr(interpreter_of(x), "named", None)
    return label_of(x, label) if label_of else x


def _pairs(k: Any, q: Any, pred: Function) -> list[tuple[Any, Any]]:
    """Each key with its query, if they are tuples of sequences (a tuple of numbers is a sequence itself)."""
    sizes = [len(x) if isinstance(x, tuple) and not any(isinstance(a, Number) for a in x) else None for x in (k, q)]
    if sizes == [None, None]:
        return []
    if sizes[0] != sizes[1] or not sizes[0]:
        given = " and ".join("no tuple" if size is None else f"a tuple of {size}" for size in sizes)
        raise ProgramError(f"keys and queries are {given}: give tuples of as many sequences, or a sequence each")
    if pred is not operator.eq:
        raise ProgramError("keys that are tuples are compared by equals; join selectors with & for other predicates")
    return list(zip(k, q, strict=True))


def _known(reduction: str) -> str:
    if reduction not in REDUCTIONS:
        raise ValueError(f"reduction {reduction!r} is not one of {', '.join(REDUCTIONS)}")
    return reduction
