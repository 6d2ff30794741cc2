"""What may be given to a program: flat lists of whole numbers that fit 64 bits, or of truth values."""

from __future__ import annotations

from typing import Any

import numpy as np

from rasp.errors import ProgramError


def sequence(x: Any) -> np.ndarray:
    """A program's input as an array of int64, or of bool."""
    try:
        array = np.asarray(x)
    except ValueError:  # rows of different lengths
        raise ProgramError("a sequence is a flat list of whole numbers, not a nested list") from None
    if array.ndim != 1 or (array.size and array.dtype.kind not in "biu" and not _too_large(array)):
        raise ProgramError(f"a sequence is a flat list of whole numbers, not {array.dtype} of shape {array.shape}")
    if array.dtype == np.bool_:
        return array.view(np.ndarray)
    beyond = [v for v in array.tolist() if not -(2**63) <= v < 2**63] if array.dtype.kind in "Ou" else []
    if beyond:
        raise ProgramError(f"{beyond[0]} is no 64-bit number (those run from -2**63 to 2**63 - 1)")
    return array.astype(np.int64, copy=False).view(np.ndarray)


def _too_large(array: np.ndarray) -> bool:
    """Numpy makes objects (or, next to negative ones, floats) of integers that no 64 bits hold."""
    return array.dtype == object and all(isinstance(v, int) and not isinstance(v, bool) for v in array)


def whole_numbers(x: Any) -> np.ndarray:
    """A program's input as int64: truth values are 0 and 1."""
    return sequence(x).astype(np.int64, copy=False)
