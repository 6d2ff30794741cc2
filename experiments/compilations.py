"""Machines compiled into transformers on request."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from experiments.files import need_folder
from experiments.machines import read_machine
from experiments.versions import versions
from rasp import make_simulable

if TYPE_CHECKING:
    from compile import Transformer


@dataclass(frozen=True, kw_only=True)
class CompilationRequest:
    """Which machine becomes a transformer, by which backend, for how many steps, and where it is kept."""

    machine: str
    backend: str = "hard_alibi"
    n: int = 1
    steps: int = 64
    max_seq_len: int | None = None  # tracr only: positions of the model
    tags: int | None = None  # tag so many cells first
    check: bool = True
    precision: str = "float32"  # of the weights
    threads: int | None = None
    output: Path | None = None  # folder

    def __post_init__(self) -> None:
        if self.max_seq_len is not None and self.backend != "tracr":
            raise ValueError(f"--max-seq-len is for the tracr backend; {self.backend} runs at every length")


@dataclass(frozen=True)
class Compilation:
    """A model, and how long it took to make it."""

    request: CompilationRequest
    model: Transformer
    seconds: float

    @property
    def report(self) -> dict[str, Any]:
        request, model = self.request, self.model
        return {
            "machine": request.machine,
            "n": request.n,
            "steps": request.steps,
            "backend": request.backend,
            "layers": model.config.layers,
            "heads": [shape.heads for shape in model.config.shapes],
            "d_model": model.config.d_model,
            "parameters": model.parameter_count(),
            "nonzero": model.nonzero_count(),
            "seconds": self.seconds,
            "summary": [row._asdict() for row in model.summary()],
            "output": str(request.output) if request.output else None,
            "versions": versions(),
        }


def run_compilation(request: CompilationRequest) -> Compilation:
    from compile import compile_machine
    from experiments.devices import use_threads

    need_folder(request.output)
    machine = read_machine(request.machine)
    if request.tags is not None:
        machine = make_simulable(machine, request.tags, request.n).machine
    options: dict[str, Any] = {} if request.max_seq_len is None else {"max_seq_len": request.max_seq_len}
    if request.precision != "float32":
        options["dtype"] = request.precision
    use_threads(request.threads)
    started = time.perf_counter()
    model = compile_machine(
        machine, backend=request.backend, n=request.n, steps=request.steps, check=request.check, **options
    )
    seconds = time.perf_counter() - started
    if request.output is not None:
        model.save_pretrained(request.output)
    return Compilation(request, model, seconds)
