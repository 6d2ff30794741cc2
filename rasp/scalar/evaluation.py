"""The value of an expression at plain numbers, and at whole arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from rasp.arithmetic import BINARY, Number, apply, apply_arrays, apply_unary, apply_unary_arrays, cut
from rasp.scalar.expression import ARGUMENTS, Expr, Opaque


def evaluate(e: Expr, args: Sequence[Any]) -> Number:
    """The value of `e` at plain numbers."""
    if e.op in ARGUMENTS:
        return bool(args[e.payload]) if e.op == "boolarg" else args[e.payload]  # type: ignore[no-any-return]
    if e.op == "const":
        return e.payload  # type: ignore[no-any-return]
    if e.op == "ite":
        return evaluate(e.args[1] if evaluate(e.args[0], args) else e.args[2], args)
    values = [evaluate(a, args) for a in e.args]
    if e.op == "table":
        return e.payload.lookup(*values)  # type: ignore[no-any-return]
    if e.op == "opaque":
        return e.payload(*values)  # type: ignore[no-any-return]
    return apply(e.op, *values) if e.op in BINARY else apply_unary(e.op, *values)


def evaluate_int(e: Expr, args: Sequence[Any]) -> int:
    """As `tok_map` returns it: truth values are 0/1, fractions are cut."""
    return cut(evaluate(e, args))


def evaluate_arrays(e: Expr, args: Sequence[Any]) -> Any:
    """The value of `e` at arrays (numpy broadcasting), elementwise. Call it with numpy's warnings off."""
    if e.op in ARGUMENTS:
        return np.asarray(args[e.payload]).astype(bool, copy=False) if e.op == "boolarg" else args[e.payload]
    if e.op == "const":
        return e.payload
    values = [evaluate_arrays(a, args) for a in e.args]
    if e.op == "ite":
        return np.where(*values)
    if e.op == "table":
        return e.payload.lookup_arrays(*values)
    if e.op == "opaque":
        return _call_on_distinct(e.payload, values)
    return apply_arrays(e.op, *values) if e.op in BINARY else apply_unary_arrays(e.op, values[0])


def _call_on_distinct(function: Opaque, values: Sequence[Any]) -> np.ndarray:
    """An opaque function is called once for each distinct combination of its arguments."""
    arrays = np.broadcast_arrays(*values)
    dtype = np.bool_ if function.truth else np.int64
    known: dict[tuple[Any, ...], int | bool] = {}
    columns = [a.ravel().tolist() for a in arrays]
    results: np.ndarray = np.empty(arrays[0].size, dtype=dtype)
    for i, key in enumerate(zip(*columns, strict=True)):
        if key not in known:
            known[key] = function(*key)
        results[i] = known[key]
    return results.reshape(arrays[0].shape)
