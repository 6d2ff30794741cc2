"""The weights of a model laid out for machine code, one array behind the other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from compile.sparse.arrays import BODY_BITS, Plan
from compile.sparse.bounds import NotSparse
from compile.sparse.weights import Columns, SparseWeights


def make_plan(weights: SparseWeights) -> Plan:
    stages: list[tuple[Columns, np.ndarray, bool]] = []
    for layer in weights.layers:
        if np.any(layer.out_bias) or np.any(layer.down_bias):
            raise NotSparse("a layer adds a constant to the residual stream")
        stages += [
            (layer.project, layer.project_bias, False),
            (layer.out, np.zeros(weights.d_model), False),
            (layer.up, layer.up_bias, True),
            (layer.down, np.zeros(weights.d_model), False),
        ]
    stages += [(weights.unembed, weights.unembed_bias, False), (weights.embed, np.zeros(weights.d_model), False)]
    entries = _offsets([len(c.rows) for c, _, _ in stages])
    always = [np.flatnonzero(bias > 0) if relu else np.flatnonzero(bias) for _, bias, relu in stages]
    windows = [layer.windows for layer in weights.layers]
    unbounded = np.concatenate([*windows, np.zeros(0)]) == 0
    sizes = [layer.d_head for layer in weights.layers for _ in layer.windows]
    stairs = [s for layer in weights.layers for s in layer.staircases]
    rows_at = _offsets([len(s.rows) for s in stairs])
    if unbounded.sum() >= 1 << (62 - BODY_BITS - 2):
        raise NotSparse(f"it has {unbounded.sum()} unbounded heads")
    return Plan(
        layers=len(weights.layers),
        d_model=weights.d_model,
        column=_offsets([len(c.start) for c, _, _ in stages]),
        start=_joined([c.start + at for (c, _, _), at in zip(stages, entries, strict=False)], np.int64),
        rows=_joined([c.rows for c, _, _ in stages], np.int32),
        values=_joined([c.values for c, _, _ in stages], np.float64),
        bias_at=_offsets([len(bias) for _, bias, _ in stages]),
        bias=_joined([bias for _, bias, _ in stages], np.float64),
        always_at=_offsets([len(rows) for rows in always]),
        always=_joined(always, np.int32),
        head_at=_offsets([len(w) for w in windows]),
        d_head=np.array([layer.d_head for layer in weights.layers], dtype=np.int64),
        window=_joined(windows, np.int64),
        strength=_joined([layer.strength for layer in weights.layers], np.float64),
        constant_at=_offsets(sizes),
        constant=_joined([layer.constant.ravel() for layer in weights.layers], np.int8),
        sums=_joined([layer.sums for layer in weights.layers], np.int8),
        bits=np.array([(2 * size).bit_length() for size in sizes], dtype=np.int64),
        number=np.cumsum(unbounded).astype(np.int64),
        stair_at=_offsets([len(layer.staircases) for layer in weights.layers]),
        stair_share=np.array([s.share for s in stairs], dtype=np.int64),
        gate_at=_offsets([len(s.gate_dims) for s in stairs]),
        gate_dims=_joined([s.gate_dims for s in stairs], np.int64),
        gate_values=_joined([s.gate_values for s in stairs], np.float64),
        gate_bias=np.array([s.gate_bias for s in stairs], dtype=np.float64),
        edge_at=_offsets([len(s.edges) for s in stairs]),
        edges=_joined([s.edges for s in stairs], np.float64),
        first_at=_offsets([len(s.first) for s in stairs]),
        first=_joined([s.first + at for s, at in zip(stairs, rows_at, strict=False)], np.int64),
        stair_rows=_joined([s.rows for s in stairs], np.int32),
        stair_offset=_joined([s.offset for s in stairs], np.float64),
        stair_slope=_joined([s.slope for s in stairs], np.float64),
    )


def _offsets(sizes: Sequence[int]) -> np.ndarray:
    return np.concatenate(([0], np.cumsum(sizes, dtype=np.int64))).astype(np.int64)


def _joined(parts: Sequence[np.ndarray], dtype: Any) -> np.ndarray:
    return np.concatenate([*parts, np.zeros(0)]).astype(dtype)
