"""The values an expression can take, without trying every combination of its arguments.

Where there are few combinations they are all tried. Elsewhere the values of the operands are found first, and the
operator is tried on those: an upper bound, as if operands did not depend on each other.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from compile.errors import CompileError
from rasp.engines.attention import map_arrays
from rasp.scalar import ARGUMENTS, Expr, arg, arguments, rebuild

MOST_COMBINATIONS = 2**18  # that are tried one by one

Set = tuple[int, ...]


def values_taken(e: Expr, sets: Sequence[Set]) -> Set:
    """Every value `e` takes where argument i is one of `sets[i]`, and maybe others."""
    if e.op in ARGUMENTS:
        return tuple(sets[e.payload])
    if combinations(e, sets) <= MOST_COMBINATIONS:
        return tuple(np.unique(at_all(e, sorted(arguments(e)), sets)).tolist())
    if e.is_bool:
        return 0, 1
    if e.op == "ite":
        return tuple(sorted({*values_taken(e.args[1], sets), *values_taken(e.args[2], sets)}))
    if not all(a.is_whole for a in e.args):
        raise too_many(combinations(e, sets))
    operands = [values_taken(a, sets) for a in e.args]
    if prod(map(len, operands)) > MOST_COMBINATIONS:
        raise too_many(prod(map(len, operands)))
    return values_taken(rebuild(e, [arg(place, a.kind) for place, a in enumerate(e.args)]), operands)


def too_many(tried: int) -> CompileError:
    return CompileError(f"its inputs have {tried} combinations; at most {MOST_COMBINATIONS} are tried")


def combinations(e: Expr, sets: Sequence[Set]) -> int:
    """Of the values of the arguments that `e` depends on."""
    return prod(len(sets[i]) for i in arguments(e))


def at_all(e: Expr, used: Sequence[int], sets: Sequence[Set]) -> np.ndarray:
    """`e` at every combination of the values of the arguments `used`, with one axis for each of them."""
    grids = np.meshgrid(*(np.array(sets[i], dtype=np.int64) for i in used), indexing="ij")
    shape = grids[0].shape if used else ()
    places: list[np.ndarray] = [grids[0].ravel() if used else np.zeros(1, dtype=np.int64)] * len(sets)
    for axis, i in enumerate(used):
        places[i] = grids[axis].ravel()
    return apply(e, *places).reshape(shape)


def apply(function: Expr, *arrays: np.ndarray) -> np.ndarray:
    """A function at every place of arrays of one shape, as the program's own engine computes it."""
    try:
        return map_arrays(function, *(array.ravel() for array in arrays)).reshape(arrays[0].shape)
    except Exception as error:  # the program's own: it is called on values that it may never meet
        raise CompileError(f"it fails on a value its inputs may have ({type(error).__name__}: {error})") from error
