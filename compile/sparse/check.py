"""Whether the nonzeros, as they are laid out for machine code, are still the model's: checked when a model is read.

Every matrix is multiplied with one random vector, from the plan and from the tensor itself. A wrong index, a head left
out or an entry that is there twice changes the product.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from compile.sparse.arrays import Plan
from compile.sparse.bounds import NotSparse
from compile.sparse.weights import SparseWeights

ROUNDING = 1e-9  # of a sum in another order, as a part of the sum of sizes


def check_plan(plan: Plan, weights: SparseWeights, arrays: Mapping[str, np.ndarray], seed: int = 0) -> None:
    """`NotSparse` names the first matrix that is not the model's."""
    rng = np.random.default_rng(seed)
    for stage, name, matrix in _matrices(weights, arrays):
        x = rng.standard_normal((matrix.shape[1],))
        difference = np.abs(planned_product(plan, stage, x, len(matrix)) - matrix @ x)
        if (difference > ROUNDING * (np.abs(matrix) @ np.abs(x)) + ROUNDING).any():
            raise NotSparse(f"{name} was laid out wrongly; please report it")


def planned_product(plan: Plan, stage: int, x: np.ndarray, rows: int) -> np.ndarray:
    """matrix @ x, from the plan's columns."""
    first = plan.column[stage]
    start = plan.start[first : first + len(x) + 1]
    entries = slice(start[0], start[-1])
    terms = plan.values[entries] * np.repeat(x, np.diff(start))
    return np.bincount(plan.rows[entries], weights=terms, minlength=rows)[:rows]


def _matrices(weights: SparseWeights, arrays: Mapping[str, np.ndarray]) -> Iterator[tuple[int, str, np.ndarray]]:
    """Stage, name and tensor of every matrix of the plan."""
    for index, layer in enumerate(weights.layers):
        path, stage = f"blocks.{index}", 4 * index
        if len(layer.windows):
            yield stage, f"{path}.attn.qkv", arrays[f"{path}.attn.qkv.weight"].astype(np.float64)
            yield stage + 1, f"{path}.attn.out", arrays[f"{path}.attn.out.weight"].astype(np.float64)
        if f"{path}.mlp.up.weight" in arrays:
            yield stage + 2, f"{path}.mlp.up", arrays[f"{path}.mlp.up.weight"][layer.plain].astype(np.float64)
            yield stage + 3, f"{path}.mlp.down", arrays[f"{path}.mlp.down.weight"][:, layer.plain].astype(np.float64)
    stage = 4 * len(weights.layers)
    yield stage, "unembed", arrays["unembed.weight"].astype(np.float64)
    yield stage + 1, "embed", arrays["embed.weight"].T.astype(np.float64)
