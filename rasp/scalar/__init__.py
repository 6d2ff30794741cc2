"""Functions of numbers as expressions.

RASP-L programs hand plain Python functions to `tok_map`, `seq_map` and `select`. `capture` finds out what such a
function computes; the expression is what the vectorised, streaming, jitted, symbolic and compiled interpreters share.
"""

from rasp.arithmetic import BINARY, COMPARISONS, UNARY, cut
from rasp.scalar.building import (
    as_int,
    assume,
    binary,
    ite,
    rebuild,
    replaced,
    split_on_shared_conditions,
    substitute,
    truth,
    unary,
    whole,
)
from rasp.scalar.evaluation import evaluate, evaluate_arrays, evaluate_int
from rasp.scalar.expression import (
    ARGUMENTS,
    Expr,
    Opaque,
    arg,
    arguments,
    const,
    opaque_calls,
    size,
    spell_number,
    tables,
    to_source,
    walk,
)
from rasp.scalar.recording import MAX_DEPTH, Scalar, capture, operate
from rasp.scalar.table import Table
