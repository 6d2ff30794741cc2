"""How values are read from the residual stream: sparse row vectors, a coefficient by dimension."""

from __future__ import annotations

Reading = dict[int, float]
View = dict[int, Reading]  # of one operation: for each value, what is 1 where it holds and 0 elsewhere

BIAS = -1  # the dimension that stands for a constant
