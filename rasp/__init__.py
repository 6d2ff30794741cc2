"""RASP-L written once and run many ways, Turing machines, and the paper's `next_token_turing`.

`from rasp import *` gives the language: the core and the library. Machines, the program and the ways to run it are
imported by name; what is heavy behind them (numba, networkx, matplotlib) is loaded when it is first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rasp.core import (
    Interpreter,
    aggr,
    aggr_max,
    aggr_mean,
    aggr_min,
    full,
    indices,
    interpret_arrays_with,
    kqv,
    named,
    sel_width,
    select,
    seq_map,
    tok_map,
)
from rasp.lazy import lazy_names
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

    from rasp.engines.dispatch import ENGINES, run
    from rasp.engines.turing import generate
    from rasp.graph import Graph
    from rasp.loading import load_machine, save_machine
    from rasp.machines.machine import InvalidMachine, InvalidTape, TuringMachine, bos, empt, eos, sep
    from rasp.machines.simulable import make_simulable
    from rasp.programs.turing import hash_n_gram, hash_n_gram_iter, next_tape, next_token_turing, next_tokens
    from rasp.programs.universal import universal_prompt
    from rasp.rewrite import simplify
    from rasp.tracing import trace

__version__ = "0.1.0"

__all__ = [  # the core, then the library, as in np-rasp
    "full",
    "indices",
    "tok_map",
    "seq_map",
    "select",
    "sel_width",
    "aggr_mean",
    "aggr_max",
    "aggr_min",
    "aggr",
    "kqv",
    "equals",
    "leq",
    "lt",
    "geq",
    "gt",
    "shift_right",
    "cumsum",
    "where",
    "mask",
    "maximum",
    "minimum",
    "argmax",
    "argmin",
    "num_prev",
    "has_seen",
    "firsts",
    "lasts",
    "index_select",
    "first_true",
    "mode",
    "binary_mode",
    "induct_kqv",
    "induct",
    "induct_prev",
    "prefix_fill",
    "where3",
    "named",
    "np",
]

__getattr__, __dir__ = lazy_names(
    "rasp",
    {
        "np": "rasp.engines.numbers",  # np-rasp's star import gives numpy too, and programs rely on it
        **dict.fromkeys(("ENGINES", "run"), "rasp.engines.dispatch"),
        "generate": "rasp.engines.turing",
        **dict.fromkeys(("InvalidMachine", "InvalidTape", "TuringMachine"), "rasp.machines.machine"),
        **dict.fromkeys(("bos", "empt", "eos", "sep"), "rasp.machines.machine"),
        **dict.fromkeys(("load_machine", "save_machine"), "rasp.loading"),
        **dict.fromkeys(("hash_n_gram", "hash_n_gram_iter", "next_tape"), "rasp.programs.turing"),
        **dict.fromkeys(("next_token_turing", "next_tokens"), "rasp.programs.turing"),
        "universal_prompt": "rasp.programs.universal",
        "Graph": "rasp.graph",
        "make_simulable": "rasp.machines.simulable",
        "simplify": "rasp.rewrite",
        "trace": "rasp.tracing",
    },
)


def _eager() -> Interpreter:
    from rasp.engines.eager import EAGER

    return EAGER


interpret_arrays_with(_eager)
