"""Finite functions given by their values."""

from __future__ import annotations

from typing import Any

import numpy as np


class Table:
    """A finite function of token ids given by its values: callable on numbers and on symbolic numbers alike.

    Outside the table the value is 0, as in the paper's listing. `values=None` is an unknown function (for proofs).
    """

    def __init__(self, name: str, values: np.ndarray | None, arity: int = 2) -> None:
        self.name = name
        self.values = values
        self.arity = values.ndim if values is not None else arity

    def __call__(self, *args: Any) -> Any:
        for a in args:
            asked = getattr(type(a), "look_up", None)  # a symbolic number records the question
            if asked is not None:
                return asked(self, args)
        return self.lookup(*args)

    def lookup(self, *args: Any) -> int:
        if self.values is None:
            raise TypeError(f"{self.name} is an unknown function: it has no value at {args}")
        place = tuple(int(a) for a in args)
        inside = all(0 <= a < size for a, size in zip(place, self.values.shape, strict=True))
        return int(self.values[place]) if inside else 0

    def lookup_arrays(self, *args: Any) -> np.ndarray:
        """The values at every position of arrays of indices."""
        assert self.values is not None, f"{self.name} is an unknown function"
        arrays = np.broadcast_arrays(*args)
        inside = np.logical_and.reduce([(a >= 0) & (a < n) for a, n in zip(arrays, self.values.shape, strict=True)])
        return np.where(inside, self.values[tuple(np.where(inside, a, 0) for a in arrays)], 0)

    def __repr__(self) -> str:
        return f"Table({self.name})"
