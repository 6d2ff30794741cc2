"""Turing machines to transformers: the paper's `next_tokens`, compiled for one machine."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from compile.backends import find_backend
from compile.errors import CompileError
from compile.pipeline import compile_source
from compile.source import MachineProgram, Option, Source, Tokens, WholeBackend
from compile.transformer import Transformer
from rasp.core import Program, named
from rasp.formats.json import from_json, to_json
from rasp.machines.machine import TuringMachine
from rasp.programs.turing import check_packing, next_tokens


def compile_machine(
    machine: TuringMachine,
    backend: str = "hard_alibi",
    n: int = 1,
    steps: int = 64,
    packing: str = "unbounded",
    examples: Iterable[Tokens] = (),
    **options: Option,
) -> Transformer:
    """A model that predicts the next token of the machine's trace, as `next_tokens(x, machine, n, packing)` does.

    It counts separators up to `steps` + 2: a trace of `steps` steps with its last separator and one in front. Unless
    `check` is False, it is compared with the program on traces of random tapes and on `examples`.
    """
    chosen = find_backend(backend)
    _check(machine, n, steps, packing)
    source = Source(
        machine_source(machine, n, packing),
        tuple(range(machine.base)),
        (*sample_traces(machine, steps), *examples),
        machine.vocabulary,
        {"backend": backend, "machine": to_json(machine), "n": n, "steps": steps, "packing": packing},
        MachineProgram(machine, n, steps, packing),
    )
    if isinstance(chosen, WholeBackend):
        return compile_source(source, backend, options)
    return compile_source(source, backend, {"counts": steps + 2, **options})


def machine_source(machine: TuringMachine, n: int, packing: str) -> Program:
    """The program that `compile_machine` compiles."""
    return lambda x: named(next_tokens(x, machine, n, packing), f"next {n + 1}-gram")


def _check(machine: TuringMachine, n: int, steps: int, packing: str) -> None:
    if not isinstance(machine, TuringMachine):
        raise CompileError(
            f"{machine!r} is not a TuringMachine; rasp.gallery.machine(...) makes one of a name, and "
            "rasp.load_machine(...) of a file"
        )
    try:
        check_packing(n, machine.base, packing)
    except (ValueError, OverflowError) as error:
        raise CompileError(str(error)) from error
    if isinstance(steps, bool) or not isinstance(steps, int) or steps < 1:
        raise CompileError(f"steps is {steps!r}; give the number of machine steps to run, from 1 on")


def machine_of(model: Transformer) -> TuringMachine | None:
    """The machine that a model was compiled from or trained on, if it carries one."""
    text = model.config.extra.get("machine")
    return from_json(text) if isinstance(text, str) else None


def sample_traces(machine: TuringMachine, steps: int, seed: int = 0, most_tokens: int = 400) -> list[np.ndarray]:
    """Traces from random tapes of a few lengths; the shortest tape is run to the capacity and past it."""
    rng = np.random.default_rng(seed)
    found = []
    for length in (1, 4, 12):
        cells = rng.integers(len(machine.symbols), size=length)
        head, state = int(rng.integers(length)), str(rng.choice(machine.states))
        tape = machine.encode([machine.symbols[c] for c in cells], head, state)
        found.append(machine.trace(tape, min(steps + 3, max(1, most_tokens // (length + 4)))))
    return found
