"""Units that decode a count, as tables.

A count c arrives as the share w = 1 / (1 + c) of a counting head and is decoded by a staircase of units
relu(slope * (edge * gate - w)). All units of one staircase are one piecewise linear function of w, kept as a table.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

STAIR_NOISE = 1e-2  # what float32 leaves of steps that cancel, per direction
SHORTEST_STAIRCASE = 8

FloatArray = np.ndarray
IntArray = np.ndarray


@dataclass(frozen=True)
class Staircase:
    """A piecewise linear function of one dimension (a share), where `gate` is 1; nothing where it is 0.

    Between edges k-1 and k (they fall) it writes `offset + slope * share` at `rows`, from first[k] to first[k + 1].
    """

    share: int
    gate_dims: IntArray
    gate_values: FloatArray
    gate_bias: float
    edges: FloatArray
    first: IntArray
    rows: IntArray
    offset: FloatArray
    slope: FloatArray


def find_shares(parts: FloatArray, biases: FloatArray, out: FloatArray, windows: Any, start: int) -> list[int]:
    """The dimensions to which unbounded heads bring the start's mark alone: shares of counting heads."""
    found: list[int] = []
    d_head = parts.shape[2]
    for h, window in enumerate(windows):
        reads = parts[2, h]
        marked = (reads[:, start] != 0) & ~np.delete(reads, start, axis=1).any(axis=1)
        if window is None and marked.any() and not reads[~marked].any() and not biases[2, h].any():
            columns = h * d_head + np.flatnonzero(marked)
            found += np.flatnonzero(out[:, columns].any(axis=1)).tolist()
    return found


def find_staircases(
    up: FloatArray, bias: FloatArray, down: FloatArray, shares: list[int]
) -> tuple[tuple[Staircase, ...], IntArray]:
    """The units that decode a share, as tables; and the indices of all others."""
    groups: dict[tuple[Any, ...], list[tuple[float, float, int]]] = {}
    for share in shares:
        for unit in np.flatnonzero(up[:, share] < 0):
            slope = -up[unit, share]
            gate = np.append(np.delete(up[unit], share), bias[unit]) / slope
            edge = np.abs(gate).max()
            if edge > 0:
                normal = np.round(gate / edge, 6)
                key = (share, tuple(np.flatnonzero(normal)), tuple(normal[np.flatnonzero(normal)]))
                groups.setdefault(key, []).append((float(edge), float(slope), int(unit)))
    taken: set[int] = set()
    tables = []
    for (share, dims, values), units in groups.items():
        if len(units) >= SHORTEST_STAIRCASE:
            taken |= {unit for _, _, unit in units}
            tables.append(_staircase(share, dims, values, sorted(units, reverse=True), up.shape[1], down))
    return tuple(tables), np.array([u for u in range(len(up)) if u not in taken], dtype=np.int64)


def _staircase(
    share: int,
    dims: tuple[int, ...],
    values: tuple[float, ...],
    units: list[tuple[float, float, int]],
    d_model: int,
    down: FloatArray,
) -> Staircase:
    bias = float(sum(v for d, v in zip(dims, values, strict=True) if d == d_model - 1))
    gates = [(d + (d >= share), v) for d, v in zip(dims, values, strict=True) if d != d_model - 1]
    offset: dict[int, float] = {}
    slope: dict[int, float] = {}
    first, kept = [0], []
    for k in range(len(units) + 1):
        if k:
            edge, steep, unit = units[k - 1]
            for row in np.flatnonzero(down[:, unit]).tolist():
                offset[row] = offset.get(row, 0.0) + down[row, unit] * steep * edge
                slope[row] = slope.get(row, 0.0) - down[row, unit] * steep
        # On the interval below edge k-1 the share lies between two edges: an entry that is small at both is small.
        high = units[k - 1][0] if k else 1.0
        low = units[k][0] if k < len(units) else 0.0
        for row, at in list(offset.items()):
            if max(abs(at + slope[row] * high), abs(at + slope[row] * low)) > STAIR_NOISE:
                kept.append((row, at, slope[row]))
            elif abs(slope[row]) * high < STAIR_NOISE:  # the steps up to here cancel
                del offset[row], slope[row]
        first.append(len(kept))
    return Staircase(
        share=share,
        gate_dims=np.array([d for d, _ in gates], dtype=np.int64),
        gate_values=np.array([v for _, v in gates], dtype=np.float64),
        gate_bias=bias,
        edges=np.array([edge for edge, _, _ in units]),
        first=np.array(first, dtype=np.int64),
        rows=np.array([row for row, _, _ in kept], dtype=np.int32),
        offset=np.array([at for _, at, _ in kept]),
        slope=np.array([steep for _, _, steep in kept]),
    )
