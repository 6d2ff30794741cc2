"""The one error a compiler raises: a sentence that names the operation and says why it cannot be expressed."""

from __future__ import annotations

import numpy as np

REFUSED = -(2**62)  # what a compiled model answers where a count ran over its capacity


class CompileError(ValueError):
    """The program, or its size, is beyond what a backend can express exactly."""


class CapacityError(ValueError):
    """A compiled model was given an input beyond the capacity it was compiled for.

    `written` is what `generate` had by then: each prompt and its continuation.
    """

    written: list[np.ndarray] | None = None
