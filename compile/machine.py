"""Turing machines to transformers: the paper's `next_tokens`, compiled for one machine."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from compile.errors import CompileError
from compile.pipeline import compile_program
from rasp.core import named
from rasp.formats import to_json
from rasp.machine import TuringMachine
from rasp.turing import next_tokens

BACKENDS = ("hard_alibi", "lean", "tracr")


def compile_machine(
    machine: TuringMachine, backend: str = "hard_alibi", n: int = 1, steps: int = 64, packing: str = "unbounded",
    examples: Iterable[Sequence[int]] = (), **options: Any,
) -> Any:  # fmt: skip
    """A model that predicts the next token of the machine's trace, as `next_tokens(x, machine, n, packing)` does.

    It counts separators up to `steps` + 2: a trace of `steps` steps with its last separator and one in front. Unless
    `check` is False, it is compared with the program on traces of random tapes and on `examples`.
    """
    if not isinstance(machine, TuringMachine):
        raise CompileError(f"{machine!r} is not a TuringMachine; rasp.gallery.machine(...) makes one of a name, and "
                           "rasp.load_machine(...) of a file")  # fmt: skip
    if backend not in BACKENDS:
        raise CompileError(f"backend {backend!r} is not one of {', '.join(BACKENDS)}")
    if isinstance(steps, bool) or not isinstance(steps, int) or steps < 1:
        raise CompileError(f"steps is {steps!r}; give the number of machine steps to run, from 1 on")
    extra = {"backend": backend, "machine": to_json(machine), "n": n, "steps": steps, "packing": packing}
    traces: list[Any] = [*sample_traces(machine, steps), *examples]
    if backend == "lean":
        from compile.lean import compile_lean

        return compile_lean(machine, n=n, steps=steps, extra=extra, examples=traces, **options)
    return compile_program(
        lambda x: named(next_tokens(x, machine, n, packing), f"next {n + 1}-gram"), range(machine.base), backend,
        counts=steps + 2, examples=traces, token_names=machine.vocabulary, extra=extra, **options,
    )  # fmt: skip


def sample_traces(machine: TuringMachine, steps: int, seed: int = 0, most_tokens: int = 400) -> list[np.ndarray]:
    """Traces from random tapes of a few lengths; the shortest tape is run to the capacity."""
    rng = np.random.default_rng(seed)
    found = []
    for length in (1, 4, 12):
        cells = rng.integers(len(machine.symbols), size=length)
        head, state = int(rng.integers(length)), str(rng.choice(machine.states))
        tape = machine.encode([machine.symbols[c] for c in cells], head, state)
        found.append(machine.trace(tape, min(steps, max(1, most_tokens // (length + 4)))))
    return found
