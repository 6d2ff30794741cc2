"""The RASP-L primitives (np-rasp's names and signatures).

Each primitive asks the interpreter of what it was given: numpy arrays are computed at once (`rasp.eager`), traced
sequences build a graph (`rasp.tracing`), plain sequences follow the definition word by word (`rasp.reference`).
Everything else in RASP-L is written on these.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

Function = Callable[..., Any]
Predicate = Callable[[Any, Any], Any]
REDUCTIONS = ("mean", "max", "min")


class Interpreter(Protocol):
    """What a way of running RASP-L must know how to do. Sequences name theirs in the attribute `__rasp__`."""

    def full(self, x: Any, const: int) -> Any: ...
    def indices(self, x: Any) -> Any: ...
    def tok_map(self, x: Any, func: Function) -> Any: ...
    def seq_map(self, x: Any, y: Any, func: Function) -> Any: ...
    def select(self, k: Any, q: Any, pred: Predicate, causal: bool) -> Any: ...
    def sel_width(self, A: Any) -> Any: ...
    def aggr(self, A: Any, v: Any, default: int, reduction: str) -> Any: ...
    def kqv(self, k: Any, q: Any, v: Any, pred: Predicate, default: int, reduction: str) -> Any: ...


def interpreter_of(*values: Any) -> Interpreter:
    """The interpreter of the first value that names one; numpy's otherwise."""
    for value in values:
        found = getattr(value, "__rasp__", None)
        if found is not None:
            return found
    from rasp.eager import EAGER

    return EAGER


def full(x: Any, const: int) -> Any:
    return interpreter_of(x).full(x, const)


def indices(x: Any) -> Any:
    return interpreter_of(x).indices(x)


def tok_map(x: Any, func: Function) -> Any:
    return interpreter_of(x).tok_map(x, func)


def seq_map(x: Any, y: Any, func: Function) -> Any:
    return interpreter_of(x, y).seq_map(x, y, func)


def select(k: Any, q: Any, pred: Predicate, causal: bool = True) -> Any:
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


def kqv(k: Any, q: Any, v: Any, pred: Predicate, default: int = 0, reduction: str = "mean") -> Any:
    return interpreter_of(k, q, v).kqv(k, q, v, pred, default, _known(reduction))


def named(x: Any, label: str) -> Any:
    """`x` itself; a traced sequence remembers the label for drawings and for the heads compiled from it."""
    label_of = getattr(interpreter_of(x), "named", None)
    return label_of(x, label) if label_of else x


def _known(reduction: str) -> str:
    if reduction not in REDUCTIONS:
        raise ValueError(f"reduction {reduction!r} is not one of {', '.join(REDUCTIONS)}")
    return reduction
