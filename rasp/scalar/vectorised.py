"""Expressions of whole numbers as numpy code, made once for each expression.

Walking an expression costs more than computing it on a short sequence. Only operators that have the same answer in
numpy for all int64 are spelled; the rest (divisions, floats, tables, functions that are called) is walked.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

from rasp.arithmetic import COMPARISONS, cut_array
from rasp.scalar.evaluation import evaluate_arrays
from rasp.scalar.expression import Expr, spell_number, walk

_PLAIN = frozenset({"+", "-", "*", "&", "|", "^", *COMPARISONS})
_SPELLED = {"neg": "np.negative({0})", "invert": "np.invert({0})", "abs": "np.abs({0})", "not": "np.logical_not({0})"}
DEEPEST = 40  # parentheses: Python's parser has a limit


@lru_cache(maxsize=4096)
def vector_function(e: Expr) -> Callable[..., np.ndarray]:
    """A function of arrays that gives `e` at every position, as an array of int64 or bool of their common shape."""
    if e.depth <= DEEPEST and all(_is_plain(node) for node in walk(e)):
        count = 1 + max((node.payload for node in walk(e) if node.op in ("arg", "boolarg")), default=-1)
        names = [f"x{i}" for i in range(count)]
        found = eval(f"lambda {''.join(name + ', ' for name in names)}*_: {_spell(e)}", {"np": np})
        if e.op not in ("arg", "const"):
            return found  # type: ignore[no-any-return]
        return lambda *arrays: np.array(np.broadcast_to(found(*arrays), np.broadcast(*arrays).shape))

    def walked(*arrays: Any) -> np.ndarray:
        with np.errstate(all="ignore"):  # both branches of an if-then-else are computed; the other one may overflow
            result = np.asarray(evaluate_arrays(e, arrays))
        result = np.broadcast_to(result, np.broadcast(*arrays).shape)
        return result if e.is_bool and result.dtype == np.bool_ else cut_array(result)

    return walked


def _is_plain(e: Expr) -> bool:
    if e.op in _PLAIN:
        return all(a.is_whole for a in e.args)
    if e.op == "const":
        return e.is_whole
    return e.op in ("arg", "boolarg", "ite", "neg", "invert", "abs", "not") or (e.op == "int" and e.args[0].is_bool)


def _spell(e: Expr) -> str:
    if e.op == "arg":
        return f"x{e.payload}"
    if e.op == "boolarg":
        return f"(x{e.payload} != 0)"
    if e.op == "const":
        return spell_number(e.payload)
    parts = [_spell(a) for a in e.args]
    if e.op == "ite":
        return f"np.where({', '.join(parts)})"
    if e.op == "int":
        return f"{parts[0]}.astype(np.int64)"
    return f"({parts[0]} {e.op} {parts[1]})" if e.op in _PLAIN else _SPELLED[e.op].format(*parts)
