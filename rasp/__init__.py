"""RASP-L written once and run many ways, Turing machines, and the paper's `next_token_turing`.

`from rasp import *` gives the language: the core and the library. Machines, the program and the ways to run it are
imported by name; what is heavy behind them (numba, networkx, matplotlib) is loaded when it is first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from rasp.core import (
    aggr,
    aggr_max,
    aggr_mean,
    aggr_min,
    full,
    indices,
    kqv,
    named,
    sel_width,
    select,
    seq_map,
    tok_map,
)
from rasp.library import (
    argmax,
    argmin,
    binary_mode,
    cumsum,
    equals,
    first_true,
    firsts,
    geq,
    gt,
    has_seen,
    index_select,
    induct,
    induct_kqv,
    induct_prev,
    lasts,
    leq,
    lt,
    mask,
    maximum,
    minimum,
    mode,
    num_prev,
    prefix_fill,
    shift_right,
    where,
    where3,
)

if TYPE_CHECKING:
    import numpy as np

    from rasp.engines import ENGINES, generate, run
    from rasp.formats import load_machine, save_machine
    from rasp.graph import Graph
    from rasp.machine import InvalidMachine, InvalidTape, TuringMachine, bos, empt, eos, sep
    from rasp.rewrite import simplify
    from rasp.simulable import make_simulable
    from rasp.tracing import trace
    from rasp.turing import hash_n_gram, hash_n_gram_iter, next_tape, next_token_turing, next_tokens

__version__ = "0.1.0"

__all__ = [  # the core, then the library, as in np-rasp
    "full", "indices", "tok_map", "seq_map", "select", "sel_width", "aggr_mean", "aggr_max", "aggr_min", "aggr", "kqv",
    "equals", "leq", "lt", "geq", "gt", "shift_right", "cumsum", "where", "mask", "maximum", "minimum", "argmax",
    "argmin", "num_prev", "has_seen", "firsts", "lasts", "index_select", "first_true", "mode", "binary_mode",
    "induct_kqv", "induct", "induct_prev", "prefix_fill", "where3", "named", "np",
]  # fmt: skip

_LATER = {
    "np": "eager",  # np-rasp's star import gives numpy too, and programs rely on it
    "ENGINES": "engines", "run": "engines", "generate": "engines",
    "trace": "tracing", "simplify": "rewrite", "Graph": "graph",
    "TuringMachine": "machine", "InvalidMachine": "machine", "InvalidTape": "machine",
    "sep": "machine", "bos": "machine", "eos": "machine", "empt": "machine",
    "load_machine": "formats", "save_machine": "formats", "make_simulable": "simulable",
    "next_tape": "turing", "hash_n_gram": "turing", "hash_n_gram_iter": "turing",
    "next_tokens": "turing", "next_token_turing": "turing",
}  # fmt: skip


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module 'rasp' has no attribute {name!r}")
    value = getattr(import_module(f"rasp.{_LATER[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_LATER})
