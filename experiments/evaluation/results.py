"""Shares of right answers with their 95% intervals, added up over seeds, and as a table."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

Z = 1.959963984540054  # of a 95% interval


@dataclass(frozen=True)
class Result:
    """A share of right answers with its 95% interval; `rollout` is the number of machine steps (1: one answer)."""

    name: str
    length: int | str
    accuracy: float
    low: float
    high: float
    examples: int
    rollout: int = 1
    group: str = "all"

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def wilson(right: int, total: int) -> tuple[float, float]:
    """The 95% score interval of a share."""
    if total == 0:
        return 0.0, 1.0
    share = right / total
    middle = share + Z * Z / (2 * total)
    spread = Z * math.sqrt(share * (1 - share) / total + Z * Z / (4 * total * total))
    scale = 1 + Z * Z / total
    low, high = (middle - spread) / scale, (middle + spread) / scale
    return (0.0 if right == 0 else low), (1.0 if right == total else high)


def result(name: str, length: int | str, right: np.ndarray, rollout: int = 1) -> Result:
    low, high = wilson(int(right.sum()), len(right))
    return Result(name, length, float(right.mean()) if len(right) else 0.0, low, high, len(right), rollout)


def band(results: Sequence[Result], name: str) -> list[Result]:
    """Several seeds of one experiment as one curve: the mean, and the 95% t-interval of it over seeds."""
    from scipy.stats import t

    merged = []
    for length, step, group in dict.fromkeys((r.length, r.rollout, r.group) for r in results):
        those = [r for r in results if (r.length, r.rollout, r.group) == (length, step, group)]
        shares, total = np.array([r.accuracy for r in those]), sum(r.examples for r in those)
        spread = 0.0
        if len(shares) > 1:
            spread = float(t.ppf(0.975, len(shares) - 1) * shares.std(ddof=1) / math.sqrt(len(shares)))
        mean = float(shares.mean())
        merged.append(Result(name, length, mean, max(0.0, mean - spread), min(1.0, mean + spread), total, step, group))
    return merged


def as_markdown(results: Sequence[Result], trained: Mapping[str, int]) -> str:
    """One row per model: accuracy with its interval per multiple of the length it was `trained` to, then the longest
    rollout."""
    shown = [r for r in results if r.group == "all" and isinstance(r.length, int)]
    last = max((r.rollout for r in shown), default=1)
    cells: dict[str, dict[str, str]] = {}
    for r in sorted(shown, key=lambda r: r.rollout):
        column = f"{int(r.length) / trained[r.name]:.3g}x" + (f", {last} steps in a row" if r.rollout > 1 else "")
        if r.rollout in (1, last):
            text = f"{r.accuracy:.3f} [{r.low:.3f}, {r.high:.3f}]"
            cells.setdefault(r.name, {"to": str(trained[r.name])}).setdefault(column, text)
    found = {column for row in cells.values() for column in row} - {"to"}
    columns = ["to", *sorted(found, key=lambda column: ("step" in column, float(column.partition("x")[0])))]
    lines = [["", *columns], ["---"] * (len(columns) + 1)]
    lines += [[f"`{name}`", *(row.get(column, "") for column in columns)] for name, row in cells.items()]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
