"""Who continues a text: a program, a transformer, a machine."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np

Writer = Callable[[np.ndarray, int], Iterable[int]]  # (prompt, count) -> the next tokens, one after the other
