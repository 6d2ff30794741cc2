"""Machines and programs compiled into transformers on request."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from experiments.files import output_folder
from experiments.machines import read_machine
from experiments.programs import is_program
from experiments.versions import versions
from rasp import make_simulable

if TYPE_CHECKING:
    from compile import Transformer


@dataclass(frozen=True, kw_only=True)
class CompilationRequest:
    """Which machine or program becomes a transformer, by which backend, for how many steps, and where it is kept."""

    machine: str  # or a program: a task, universal, FILE.py:FUNCTION
    backend: str = "hard_alibi"
    n: int | None = None  # None: 1, for tasks 4
    steps: int = 64  # or lines, or how far a program counts
    tokens: int | None = None  # of a program of one's own: how many different ones it reads
    positions: int | None = None  # of a program that uses `indices`: the longest input
    max_seq_len: int | None = None  # tracr only: positions of the model
    tags: int | None = None  # tag so many cells first
    check: bool = True
    precision: str = "float32"  # of the weights
    threads: int | None = None
    output: Path | None = None  # folder

    def __post_init__(self) -> None:
        if self.max_seq_len is not None and self.backend != "tracr":
            raise ValueError(f"--max-seq-len is for the tracr backend; {self.backend} runs at every length")
        if self.is_program and self.tags is not None:
            raise ValueError(f"--tags is for machines; {self.machine} is a program")
        if not self.is_program and (self.tokens is not None or self.positions is not None):
            raise ValueError(f"--tokens and --positions are for programs of one's own; {self.machine} is none")
        if self.tokens is not None and self.tokens < 1:
            raise ValueError(f"--tokens is {self.tokens}; a program reads at least one")

    @property
    def is_program(self) -> bool:
        return is_program(self.machine)

    @property
    def options(self) -> dict[str, Any]:
        """Of the backend, where they are not the usual ones."""
        options: dict[str, Any] = {} if self.max_seq_len is None else {"max_seq_len": self.max_seq_len}
        return options if self.precision == "float32" else {**options, "dtype": self.precision}


@dataclass(frozen=True)
class Compilation:
    """A model, and how long it took to make it."""

    request: CompilationRequest
    model: Transformer
    seconds: float

    @property
    def decoding(self) -> dict[str, Any]:
        """The engine of long texts, with the largest share of attention that it leaves out; or why it is torch."""
        from compile.sparse import NotSparse
        from compile.transformer.engines import looked_up_by

        found = looked_up_by(self.model)
        if isinstance(found, NotSparse):
            return {"engine": "torch", "reason": str(found)}
        return {"engine": "sparse", "left_out": max((bound.total for bound in found.bounds), default=0.0)}

    @property
    def report(self) -> dict[str, Any]:
        request, model = self.request, self.model
        return {
            "machine": request.machine,
            "n": request.n or model.config.extra.get("n"),
            "steps": request.steps,
            "backend": request.backend,
            "layers": model.config.layers,
            "heads": [shape.heads for shape in model.config.shapes],
            "d_model": model.config.d_model,
            "parameters": model.parameter_count(),
            "nonzero": model.nonzero_count(),
            "seconds": self.seconds,
            "decoding": self.decoding,
            "summary": [row._asdict() for row in model.summary()],
            "output": str(request.output) if request.output else None,
            "versions": versions(),
        }


def run_compilation(request: CompilationRequest) -> Compilation:
    from experiments.devices import use_threads

    use_threads(request.threads)
    with output_folder(request.output):
        started = time.perf_counter()
        model = _compiled_program(request) if request.is_program else _compiled_machine(request)
        seconds = time.perf_counter() - started
        if request.output is not None:
            model.save_pretrained(request.output)
    return Compilation(request, model, seconds)


def _compiled_machine(request: CompilationRequest) -> Transformer:
    from compile import compile_machine

    n = 1 if request.n is None else request.n
    machine = read_machine(request.machine)
    if request.tags is not None:
        machine = make_simulable(machine, request.tags, n).machine
    return compile_machine(
        machine, backend=request.backend, n=n, steps=request.steps, check=request.check, **request.options
    )


def _compiled_program(request: CompilationRequest) -> Transformer:
    from experiments.own_programs import compile_named

    return compile_named(
        request.machine,
        n=request.n,
        counts=request.steps,
        positions=request.positions,
        tokens=request.tokens,
        backend=request.backend,
        check=request.check,
        **request.options,
    )
