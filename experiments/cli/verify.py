"""`turing-programs verify` and `exhaust`: the theorem on random machines, and on every machine of a size."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from experiments.cli.common import (
    ENGINES,
    JsonOption,
    NOption,
    PackingOption,
    one_of,
    path_option,
    print_json,
    print_verdict,
    progress_bar,
    refuse_others,
    versions,
)

if TYPE_CHECKING:
    from proofs_check.sampled.report import Report


def register(app: typer.Typer) -> None:
    app.command(
        epilog="Examples:  turing-programs verify  ·  turing-programs verify -m 1000000 --n 2 --length 5:50  ·  "
        "turing-programs verify --steps 64 --resume long.journal  ·  turing-programs verify my.json --length 4:12"
    )(verify)
    app.command(
        epilog="Examples:  turing-programs exhaust  ·  turing-programs exhaust --symbols 1 --states 2 --length 6 --n 2"
        "  ·  turing-programs exhaust my.json --length 4"
    )(exhaust)


OwnMachine = Annotated[
    str | None,
    typer.Argument(help="Check this machine, as for `run`, instead of random ones or of all.", show_default=False),
]
MachinesOption = Annotated[
    int, typer.Option("--machines", "-m", help="How many random machines; of one machine, random tapes.")
]
SymbolsOption = Annotated[int, typer.Option(help="Symbols of each machine.")]
StatesOption = Annotated[int, typer.Option(help="States of each machine.")]
LengthOption = Annotated[str, typer.Option("--length", "-l", help="Cells of each tape, or LEAST:MOST.")]
StrictOption = Annotated[
    bool, typer.Option("--strict-in-memory", help="Also demand that the head never stands on an end marker.")
]
WorkersOption = Annotated[int | None, typer.Option(help="Processes; default: one per core.")]
DaskOption = Annotated[str | None, typer.Option(help="Address of a Dask scheduler to run on.")]
ResumeOption = Annotated[
    str | None, typer.Option(help="Journal of finished chunks: written as they finish, read at the start.")
]
EngineOption = Annotated[
    str, typer.Option(help="How the program runs: jit, stream, eager, graph, reference.", callback=one_of(ENGINES))
]
ProgramOption = Annotated[str | None, typer.Option(hidden=True, help="Check MODULE:FUNCTION instead.")]
CornersOption = Annotated[
    bool, typer.Option("--corners/--no-corners", help="Also a few hundred runs of each unusual shape.")
]
OF_ONE_MACHINE = ("machine", "length", "steps", "n", "packing", "program")
OF_A_SAMPLE = ("machines", "seed", "engine", "output")
ReportOption = Annotated[Path | None, path_option("-o", "--output", help="Also write the report: .json or .txt")]


def verify(
    context: typer.Context,
    machine: OwnMachine = None,
    machines: MachinesOption = 100_000,
    symbols: SymbolsOption = 12,
    states: StatesOption = 16,
    length: LengthOption = "10",
    steps: Annotated[int, typer.Option("--steps", "-t", help="Steps of each run.")] = 32,
    n: NOption = 1,
    packing: PackingOption = "paper",
    seed: Annotated[int, typer.Option(help="Which random machines.")] = 0,
    strict_in_memory: StrictOption = False,
    workers: WorkersOption = None,
    dask: DaskOption = None,
    resume: ResumeOption = None,
    engine: EngineOption = "jit",
    program: ProgramOption = None,
    corners: CornersOption = True,
    output: ReportOption = None,
    json: JsonOption = False,
) -> None:
    """Check the theorem on random machines, or on random tapes of one: is the program wrong exactly where the theorem
    says, and nowhere else?

    Exit code 0 if no run violates the sharp theorem, 1 if one does.
    """
    if machine is not None:
        tapes = (machines, _lengths(length), seed, engine)
        asked = {"machine": machine, "steps": steps, "n": n, "packing": packing, "program": program, "output": output}
        return _check_machine(context, json, tapes, **asked)
    from experiments.verifications import VerificationRequest, run_verification
    from proofs_check.sampled.report import Sweep

    shortest, longest = _lengths(length)
    sweep = Sweep(
        machines=machines,
        symbols=symbols,
        states=states,
        shortest=shortest,
        longest=longest,
        steps=steps,
        n=n,
        packing=packing,
        seed=seed,
        strict_in_memory=strict_in_memory,
        program=program or "",
    )
    request = VerificationRequest(
        sweep=sweep, engine=engine, workers=workers, dask=dask, resume=resume, corners=corners, output=output
    )
    with progress_bar("machines", machines) as progress:
        found = run_verification(request, progress)
    if json:
        print_json(found.to_json())
    else:
        lines = [found.report.render(), *(_corner_line(*corner) for corner in found.corners.items())]
        print_verdict("\n".join(lines), found.ok)
    if not found.ok:
        raise typer.Exit(1)


def _check_machine(context: typer.Context, json: bool, tapes: int | tuple[Any, ...], **asked: Any) -> None:
    """The machine that a person named, on a sample of tapes, or on all of up to so many cells."""
    from experiments.verifications import MachineCheckRequest, TapeSample, run_machine_check

    everything = isinstance(tapes, int)
    refuse_others(context, "a check of one machine", *OF_ONE_MACHINE, *(() if everything else OF_A_SAMPLE))
    request = MachineCheckRequest(tapes=tapes if isinstance(tapes, int) else TapeSample(*tapes), **asked)
    with progress_bar("tapes") as progress:
        report = run_machine_check(request, progress)
    if json:
        print_json({**report.to_json(), "versions": versions()})
    else:
        print_verdict(report.render(), report.holds)
    if not report.holds:
        raise typer.Exit(1)


def _corner_line(name: str, report: Report) -> str:
    s, t = report.sweep, report.tally
    return (
        f"{name}: {t.machines:,} runs of {s.symbols} x {s.states}, {s.longest} cells, {s.steps} steps, n = {s.n}, "
        f"{s.packing}: {t.violations} violations"
    )


def _lengths(text: str) -> tuple[int, int]:
    parts = text.split(":")
    if len(parts) > 2 or not all(re.fullmatch(r"\s*-?\d{1,18}\s*", part) for part in parts):
        raise ValueError(f"--length {text!r} is neither a number of cells nor LEAST:MOST, for example 5:50")
    cells = [int(part) for part in parts]
    if cells != sorted(cells):
        raise ValueError(f"--length {text!r} runs backwards: give LEAST:MOST, for example {cells[1]}:{cells[0]}")
    return cells[0], cells[-1]


def exhaust(
    context: typer.Context,
    machine: OwnMachine = None,
    symbols: SymbolsOption = 2,
    states: StatesOption = 2,
    length: Annotated[int, typer.Option("--length", "-l", help="Every tape of up to this many cells.")] = 3,
    n: NOption = 1,
    steps: Annotated[int | None, typer.Option("--steps", "-t", help="Default: base**n, at most 64.")] = None,
    packing: PackingOption = "paper",
    program: ProgramOption = None,
    json: JsonOption = False,
) -> None:
    """Check the theorem on every machine of a size, or on one, and every tape up to a length: nothing is left out.

    Exit code 0 if no run violates the sharp theorem, 1 if one does.
    """
    if machine is not None:
        asked = {"machine": machine, "steps": steps, "n": n, "packing": packing, "program": program}
        return _check_machine(context, json, length, **asked)
    from dataclasses import asdict

    from proofs_check.exhaustive import every_machine

    with progress_bar("parts") as progress:
        report = every_machine(
            symbols,
            states,
            length,
            n,
            steps,
            packing,
            program=program,
            progress=lambda _, done, total: progress(done, total),
        )
    if json:
        first = report.first.render() if report.first else None
        print_json({**asdict(report), "first": first, "holds": report.holds, "versions": versions()})
    else:
        found = report.first.render() if report.first else ""
        print_verdict(
            f"every machine of {symbols} symbols x {states} states: {report.machines:,}, on every tape of up to "
            f"{length} cells, head and state: {report.tapes:,}; {report.steps} steps, n = {n}, {packing} packing\n\n"
            f"{report.runs:,} runs, {report.correct:,} of them right to the end, {report.violations:,} violations of "
            f"the sharp theorem\n{found}",
            report.holds,
        )
    if not report.holds:
        raise typer.Exit(1)
