"""Expressions of whole numbers as numpy code, made once for each expression.

Walking an expression costs more than computing it on a short sequence. Only operators that have the same answer in
numpy for all int64 are spelled; the rest (divisions, floats, tables, functions that are called) is walked.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np

from rasp.arithmetic import COMPARISONS, cut_array
from rasp.scalar.building import unary
from rasp.scalar.evaluation import evaluate_arrays
from rasp.scalar.expression import Expr, const, spell_number, walk

_PLAIN = frozenset({"+", "-", "*", "&", "|", "^", *COMPARISONS})
_SPELLED = {"neg": "np.negative({0})", "invert": "np.invert({0})", "abs": "np.abs({0})", "not": "np.logical_not({0})"}
DEEPEST = 40  # parentheses: Python's parser has a limit


@lru_cache(maxsize=4096)
def vector_function(e: Expr) -> Callable[..., np.ndarray]:
    """A function of arrays that gives `e` at every position, as an array of int64 or bool of their common shape."""
    if e.depth <= DEEPEST and all(_is_plain(node) for node in walk(e)):
        count = 1 + max((node.payload for node in walk(e) if node.op in ("arg", "boolarg")), default=-1)
        names = [f"x{i}" for i in range(count)]
        spelled, constants = _Speller.spelled(e)
        found = eval(f"lambda {''.join(name + ', ' for name in names)}*_: {spelled}", {"np": np, **constants})
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


@dataclass
class _Speller:
    """Writes an expression out. Constants are arrays already: numpy takes as long to convert one as to add it."""

    constants: dict[str, np.ndarray] = field(default_factory=dict)

    @staticmethod
    def spelled(e: Expr) -> tuple[str, dict[str, np.ndarray]]:
        speller = _Speller()
        return speller.spell(e), speller.constants

    def spell(self, e: Expr) -> str:
        if e.op == "arg":
            return f"x{e.payload}"
        if e.op == "boolarg":
            return f"(x{e.payload} != {self.constant(const(0))})"
        if e.op == "const":
            return self.constant(e)
        parts = [self.spell(a) for a in e.args]
        if e.op == "ite":
            return self.choice(e, *parts)
        if e.op == "int":
            return f"{parts[0]}.astype(np.int64)"
        return f"({parts[0]} {e.op} {parts[1]})" if e.op in _PLAIN else _SPELLED[e.op].format(*parts)

    def constant(self, e: Expr) -> str:
        if e.kind == "bool":
            return spell_number(e.payload)
        name = f"c{len(self.constants)}"
        self.constants[name] = np.array(e.payload, dtype=np.int64)
        return name

    def choice(self, e: Expr, condition: str, then: str, other: str) -> str:
        """0 or 1 times a number is quicker than a choice between the number and 0."""
        asked, yes, no = e.args
        if asked.is_bool and yes.kind == "int" and no == const(0):
            return f"({condition} * {then})"
        if asked.op in COMPARISONS and no.kind == "int" and yes == const(0):
            return f"({self.spell(unary('not', asked))} * {other})"
        return f"np.where({condition}, {then}, {other})"
