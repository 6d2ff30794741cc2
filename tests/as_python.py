"""What machine code computes, in small: `python tests/as_python.py` prints it as JSON.

With NUMBA_DISABLE_JIT=1 the same functions run as the Python they are written in, and must say the same.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from compile import compile_machine, compile_task
from proofs_check.sampled.report import Sweep
from proofs_check.sampled.sweep import run_chunk
from rasp import TuringMachine, generate, kqv, run, seq_map, shift_right, tok_map
from rasp.engines import native
from rasp.engines.turing import predict
from rasp.library import cumsum, equals, num_prev
from rasp.machines.simulate import batch_traces, random_tables, random_tapes
from rasp.programs.problems import Product, text_tokens

NUMBERS = [0, 1, -1, 2, -2, 3, 7, -7, 63, 64, 2**31, -(2**31), 2**62, 2**63 - 1, -(2**63)]
BINARY = ("add", "subtract", "multiply", "floordiv", "modulo", "power", "shift_left", "shift_right")


def arithmetic() -> dict[str, Any]:
    """Every pair of numbers through the functions that generated code calls; an error is its name."""
    found: dict[str, Any] = {
        name: [said(getattr(native, name), a, b) for a in NUMBERS for b in NUMBERS] for name in BINARY
    }
    for name in ("negate", "absolute"):
        found[name] = [said(getattr(native, name), a) for a in NUMBERS]
    floats = ("float_divide", "float_floordiv", "float_modulo")
    for name in floats:
        found[name] = [said(getattr(native, name), float(a), float(b)) for a in NUMBERS for b in NUMBERS]
    found["mean"] = [said(native.mean, a, np.int64(3)) for a in NUMBERS]
    found["cut"] = [said(native.cut, x) for x in (0.5, -0.5, 1e300, -1e300, float("nan"), 7.9)]
    return found


def said(function: Any, *given: Any) -> Any:
    with np.errstate(all="ignore"):
        try:
            return repr(float(function(*(np.int64(x) if isinstance(x, int) else x for x in given))))
        except ArithmeticError as error:
            return type(error).__name__


def machines() -> dict[str, Any]:
    tables, tapes = random_tables(4, 3, 2, 0, 0), random_tapes(4, 3, 2, 5, 0, 0)
    short = [run_chunk(Sweep(24, n=n, packing=packing, steps=6, longest=12), "jit", None, 0)
             for n, packing in ((1, "paper"), (2, "unbounded"))]  # fmt: skip
    past_the_bound = run_chunk(Sweep(12, symbols=2, states=1, shortest=1, longest=3, steps=40), "jit", None, 0)
    return {"traces": batch_traces(*tables, tapes, 4).tolist(), "sweeps": [*short, past_the_bound]}


def programs() -> dict[str, Any]:
    """One number as a key, several, and every reduction."""
    x = np.array([3, 1, 2, 2, 4, 3, 0, 2, 3, 1])
    found: dict[str, Any] = {}
    for reduction in ("mean", "max", "min"):
        one = run(lambda x: kqv(x, shift_right(x, 2), cumsum(x), equals, -4, reduction), x, engine="jit")  # noqa: B023
        both = run(lambda x: pairs(x, reduction), x, engine="jit")  # noqa: B023
        found[reduction], found[f"tuple {reduction}"] = one.tolist(), both.tolist()
    found["counted"] = run(lambda x: num_prev(x, x), x, engine="jit").tolist()
    found["pairs counted"] = run(
        lambda x: seq_map(num_prev(x, x), x, lambda a, b: a // (b + 2)), x, engine="jit"
    ).tolist()
    machine = TuringMachine.random(symbols=3, states=2, seed=1)
    tape = machine.encode(list(machine.symbols), 1)
    for packing in ("paper", "tuple"):
        text = machine.trace(tape, 5)
        found[f"turing {packing}"] = predict(text, machine, 1, packing, engine="jit").tolist()
        found[f"written {packing}"] = generate([*tape, 0], machine, 12, 1, packing, engine="jit").tolist()
    return found


def pairs(x: Any, reduction: str) -> Any:
    keys, queries = (x, tok_map(x, lambda a: a % 2)), (shift_right(x, 1), x > 1)
    return kqv(keys, queries, cumsum(x), equals, 5, reduction)


def models() -> dict[str, Any]:
    machine = TuringMachine.random(symbols=2, states=2, seed=3)
    text = machine.trace(machine.encode(list(machine.symbols), 1), 6)
    found = {}
    for backend in ("lean", "hard_alibi"):
        model = compile_machine(machine, backend, n=1, steps=12, check=False)
        found[backend] = model.predict(text, engine="sparse").tolist()
        found[f"{backend} writes"] = list(map(int, model.generate(text[:6].tolist(), 20, engine="sparse")))
    product = compile_task("multiplication1", n=1, lines=5, check=False)
    found["multiplication"] = product.predict(text_tokens(Product("24", "3")), engine="sparse").tolist()
    return found


if __name__ == "__main__":
    print(json.dumps({part.__name__: part() for part in (arithmetic, machines, programs, models)}))
