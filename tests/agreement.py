"""Run one program in every way there is and compare; and the listing of the paper's appendix D.1, as an oracle.

The oracle is written from the listing's meaning with numpy and loops, and shares nothing with the package.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from fuzz.ways import ENGINES, MACHINE_CODE, REFERENCE, Subject, uncompiled

from rasp.arithmetic import array_kind
from rasp.errors import EngineError

__all__ = ["assert_agree", "listing_aggr", "listing_kqv", "listing_map", "listing_select", "refusal", "uncompiled"]


def assert_agree(program: Callable[..., Any], *sequences: Any, compiled: bool = False, jit: bool = True) -> np.ndarray:
    """All ways agree; gives what they agree on.

    Machine code takes a second to compile: unless `compiled`, the generated code is run as the Python it is.
    """
    arrays = [np.asarray(s) if len(s) else np.zeros(0, dtype=np.int64) for s in sequences]
    subject = Subject(program, len(arrays), tuple(map(array_kind, arrays)))
    expected = ENGINES[REFERENCE].make(subject)(*arrays)
    for name, way in {**ENGINES, **(MACHINE_CODE if compiled else {})}.items():
        if jit or not name.startswith("jit"):
            found = way.make(subject)(*arrays)
            assert found.dtype == np.int64, f"{name} gives {found.dtype}"
            assert found.tolist() == expected.tolist(), f"{name}: {found.tolist()}, reference: {expected.tolist()}"
    return expected


def refusal(function: Callable[[], Any]) -> str:
    """What an engine says when it cannot run a program."""
    try:
        function()
    except EngineError as error:
        return str(error)
    raise AssertionError("nothing was refused")


# --- the listing ------------------------------------------------------------------------------------------------------


def listing_map(func: Callable[..., Any], *arrays: np.ndarray) -> np.ndarray:
    with np.errstate(all="ignore"):
        return np.array([func(*items) for items in zip(*arrays, strict=False)]).astype(int)


def listing_select(k: np.ndarray, q: np.ndarray, pred: Callable[..., Any], causal: bool = True) -> np.ndarray:
    size = len(k)
    chosen = np.zeros((size, size), dtype=bool)
    with np.errstate(all="ignore"):
        for i in range(size):
            for j in range(i + 1 if causal else size):
                chosen[i, j] = pred(k[j], q[i])
    return chosen


def listing_aggr(chosen: np.ndarray, v: np.ndarray, default: Any = 0, reduction: str = "mean") -> np.ndarray:
    out: list[int] = []
    like_v = (lambda d: np.full_like(v, d, shape=1)[0]) if reduction == "max" else (lambda d: d)
    for row in chosen:
        seen = v[row]
        reduce: dict[str, Callable[[Any], Any]] = {"mean": lambda s: s.sum() / len(s), "max": np.max, "min": np.min}
        out.append(int(reduce[reduction](seen) if len(seen) else like_v(default)))
    return np.array(out, dtype=int)


def listing_kqv(
    k: np.ndarray, q: np.ndarray, v: np.ndarray, pred: Callable[..., Any], default: Any = 0, reduction: str = "mean"
) -> np.ndarray:
    return listing_aggr(listing_select(k, q, pred), v, default, reduction)
