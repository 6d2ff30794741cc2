"""The theorem checked on request: sampled with its unusual shapes, or proved by z3 and Coq."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from experiments.files import need_output
from experiments.machines import read_machine
from experiments.versions import versions
from proofs_check.one_machine import TapeReport, exhaust_machine, verify_machine
from proofs_check.sampled.corners import CORNERS, verify_corners
from proofs_check.sampled.report import Report, Sweep
from proofs_check.sampled.sweep import chunk_size, run_sweep
from rasp.files import write_whole
from rasp.progress import Progress, StageProgress

if TYPE_CHECKING:
    from proofs_check.formal.check import FormalReport
    from proofs_check.symbolic.proving import ProofReport

CORNER_MACHINES = 200  # of each unusual shape


# --- sampled


@dataclass(frozen=True, kw_only=True)
class VerificationRequest:
    """Which random machines are run, by what, and where the report goes."""

    sweep: Sweep
    engine: str = "jit"
    workers: int | None = None  # None: one per core
    dask: str | None = None  # address of a scheduler
    resume: str | None = None  # journal of finished chunks
    corners: bool = True  # also the unusual shapes
    output: Path | None = None  # .json or .txt


@dataclass(frozen=True)
class Verification:
    report: Report
    corners: dict[str, Report]

    @property
    def ok(self) -> bool:
        return self.report.ok and all(report.ok for report in self.corners.values())

    def to_json(self) -> dict[str, Any]:
        corners = {name: report.result() for name, report in self.corners.items()}
        return {**self.report.to_json(), "corners": corners, "versions": versions()}


def run_verification(request: VerificationRequest, progress: Progress = lambda *_: None) -> Verification:
    need_output(request.output, (".json", ".txt"))
    sweep = replace(request.sweep, chunk=chunk_size(request.engine))
    total = sweep.machines + request.corners * CORNER_MACHINES * len(CORNERS)
    report = run_sweep(
        sweep,
        request.engine,
        sweep.program or None,
        workers=request.workers,
        dask=request.dask,
        resume=request.resume,
        progress=lambda done, _: progress(done, total),
    )
    unusual = {}
    if request.corners and (report.ok or not sweep.program):  # a program that is seen to be wrong needs no corners
        unusual = verify_corners(
            CORNER_MACHINES,
            sweep.seed,
            progress=lambda done, _: progress(sweep.machines + done * CORNER_MACHINES, total),
            program=sweep.program or None,
        )
    found = Verification(report, unusual)
    write_report(request.output, found.to_json(), report.render())
    return found


def write_report(path: Path | None, found: Mapping[str, Any], text: str) -> None:
    """As JSON, or as a text for people."""
    if path is not None:
        write_whole(path, json.dumps(found, indent=2) if path.suffix == ".json" else text + "\n")


# --- one machine


@dataclass(frozen=True)
class TapeSample:
    """So many random tapes, of lengths from the first to the second."""

    count: int
    lengths: tuple[int, int]
    seed: int = 0
    engine: str = "jit"


@dataclass(frozen=True, kw_only=True)
class MachineCheckRequest:
    """The machine that a person named, on random tapes, or on all tapes of up to so many cells."""

    machine: str
    tapes: TapeSample | int
    steps: int | None = None  # None: on all tapes, base**n, at most 64
    n: int = 1
    packing: str = "paper"
    program: str | None = None
    output: Path | None = None  # .json or .txt


def run_machine_check(request: MachineCheckRequest, progress: Progress = lambda *_: None) -> TapeReport:
    need_output(request.output, (".json", ".txt"))
    machine, tapes = read_machine(request.machine), request.tapes
    options: dict[str, Any] = {"n": request.n, "packing": request.packing, "program": request.program}
    if isinstance(tapes, int):
        report = exhaust_machine(machine, tapes, steps=request.steps, progress=progress, **options)
    else:
        options |= {} if request.steps is None else {"steps": request.steps}
        report = verify_machine(
            machine, tapes.count, tapes.lengths, seed=tapes.seed, engine=tapes.engine, progress=progress, **options
        )
    write_report(request.output, {**report.to_json(), "versions": versions()}, report.render())
    return report


# --- proved


@dataclass(frozen=True, kw_only=True)
class ProofRequest:
    """Which claims are proved, and where their certificates go."""

    lemmas: tuple[str, ...] = ()  # none: all
    mutants: bool = True  # also refute wrong programs
    formal: bool | None = None  # the proof in Coq; None: with all lemmas, if coqc is found
    certificate: Path | None = None  # folder

    @property
    def wants_coq(self) -> bool:
        return self.formal is True or (self.formal is None and not self.lemmas)


@dataclass(frozen=True)
class Proofs:
    """What z3 proved, and Coq; `missing` says why Coq was left out though it was wanted."""

    lemmas: ProofReport
    theorems: FormalReport | None
    missing: str | None
    smt_files: int  # certificates written
    coq_files: int

    @property
    def all_proved(self) -> bool:
        return self.lemmas.all_proved and (self.theorems is None or self.theorems.all_proved)

    def to_json(self) -> dict[str, Any]:
        coq = {"formal": self.theorems.to_json(), "errors": self.theorems.errors} if self.theorems else {}
        return {**self.lemmas.to_json(), "all_proved": self.all_proved, **coq}


def run_proofs(request: ProofRequest, progress: StageProgress = lambda *_: None) -> Proofs:
    from proofs_check.formal.check import MISSING, check, find_coqc, need_coqc, write_proof
    from proofs_check.symbolic.certificates import write_certificates
    from proofs_check.symbolic.proving import prove

    if request.formal:
        need_coqc()
    chosen = list(request.lemmas) or None
    lemmas = prove(
        chosen,
        with_mutants=request.mutants,
        progress=lambda _, done, total: progress("claims and wrong programs", done, total),
    )
    theorems = None
    if request.wants_coq and find_coqc():
        theorems = check(progress=lambda _, done, total: progress("files of the proof in Coq", done, total))
    folder = request.certificate
    return Proofs(
        lemmas,
        theorems,
        MISSING if request.wants_coq and theorems is None else None,
        len(write_certificates(folder, chosen)) if folder is not None else 0,
        len(write_proof(folder)) if folder is not None and request.wants_coq else 0,
    )
