"""Exact decoding of compiled weights at the cost of their nonzeros: sparse products, and attention by looking up.

weights (a compiled model as sparse arrays) -> kernel (one token, numba) -> engine (sequences, memory, errors).
"""

from typing import TYPE_CHECKING

from rasp.lazy import lazy_names

if TYPE_CHECKING:
    from compile.sparse.engine import SparseEngine
    from compile.sparse.weights import NotSparse

__all__ = ["NotSparse", "SparseEngine"]

__getattr__, __dir__ = lazy_names(
    "compile.sparse", {"NotSparse": "compile.sparse.weights", "SparseEngine": "compile.sparse.engine"}
)
