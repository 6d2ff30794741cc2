"""What every benchmark returns, and how it takes time."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Row:
    """One line of a benchmark; `ratio` is against `baseline`, measured in the same run."""

    name: str
    value: float
    unit: str
    baseline: str = ""
    ratio: float | None = None


def seconds(function: Callable[[], Any], repeats: int = 3) -> float:
    """The best of several runs: what else the machine does only ever adds."""
    best = float("inf")
    for _ in range(repeats):
        start = time.perf_counter()
        function()
        best = min(best, time.perf_counter() - start)
    return best
