"""Run one program in every way there is and compare; and the listing of the paper's appendix D.1, as an oracle.

The oracle is written from the listing's meaning with numpy and loops, and shares nothing with the package.
"""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any
from unittest.mock import patch

import numpy as np

from rasp import run, simplify, trace
from rasp.codegen import EngineError
from rasp.graph import Graph
from rasp.jit import Kernel
from rasp.stream import Stream

Ways = dict[str, np.ndarray]


def all_ways(program: Callable[..., Any], *sequences: Any, compiled: bool = False, jit: bool = True) -> Ways:
    """The program's value by every interpreter, and by the graph at every stage of rewriting.

    Machine code takes a second to compile: unless `compiled`, the generated code is run as the Python it is.
    """
    arrays = [np.asarray(s) if len(s) else np.zeros(0, dtype=np.int64) for s in sequences]
    raw = trace(program, len(arrays), [a.dtype == np.bool_ for a in arrays])
    flat, hoisted = simplify(raw, hoist=False), simplify(raw)
    found = {
        "reference": run(program, *arrays, engine="reference"),
        "eager": run(program, *arrays, engine="eager"),
        "graph as traced": raw.run(*arrays),
        "graph without hoisting": flat.run(*arrays),
        "graph": hoisted.run(*arrays),
        "stream": Stream(hoisted).run(*arrays),
        "stream without hoisting": Stream(flat).run(*arrays),
    }
    if jit:
        found["jit"] = (Kernel if compiled else uncompiled)(hoisted).predict(*arrays)
    return found


def uncompiled(graph: Graph) -> Kernel:
    """A kernel whose loop runs in Python (the hash tables it calls are machine code)."""
    with patch("rasp.jit.load_module", _run_as_python):
        return Kernel(graph)


def _run_as_python(source: str) -> ModuleType:
    module = ModuleType("uncompiled")
    exec(source.replace("@numba.njit(cache=True, nogil=True)", ""), module.__dict__)
    return module


def assert_agree(
    program: Callable[..., Any], *sequences: Any, compiled: bool = False, jit: bool = True
) -> np.ndarray:
    """All ways agree; gives what they agree on."""
    ways = all_ways(program, *sequences, compiled=compiled, jit=jit)
    expected = ways["reference"]
    for way, found in ways.items():
        assert found.dtype == np.int64, f"{way} gives {found.dtype}"
        assert found.tolist() == expected.tolist(), f"{way}: {found.tolist()}, reference: {expected.tolist()}"
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

