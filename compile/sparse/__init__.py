"""Exact decoding of compiled weights at the cost of their nonzeros: sparse products, and attention by looking up.

weights (a compiled model by its nonzeros; staircases, bounds) -> plan (laid out for machine code) -> kernel (one token:
products, windows, matching, units) -> memory (one sequence) -> engine (what one asks).
"""

from typing import TYPE_CHECKING

from rasp.lazy import lazy_names

if TYPE_CHECKING:
    from compile.sparse.bounds import NotSparse
    from compile.sparse.engine import SparseEngine

__all__ = ["NotSparse", "SparseEngine"]

__getattr__, __dir__ = lazy_names(
    "compile.sparse", {"NotSparse": "compile.sparse.bounds", "SparseEngine": "compile.sparse.engine"}
)
