"""`turing-programs verify`, `prove` and `theorem`: the theorem sampled, proved, and on one page."""

from __future__ import annotations

import json as jsonlib
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from experiments.cli.common import (
    JsonOption,
    NOption,
    PackingOption,
    need_folder,
    need_output,
    print_json,
    progress_bar,
    screen,
    versions,
)

if TYPE_CHECKING:
    from proofs_check.proving import ProofReport


def register(app: typer.Typer) -> None:
    app.command(
        epilog="Examples:  turing-programs verify  ·  turing-programs verify -m 1000000 --n 2 --length 5:50  ·  "
        "turing-programs verify --steps 64 --resume long.journal"
    )(verify)
    app.command(
        epilog="Examples:  turing-programs exhaust  ·  turing-programs exhaust --symbols 1 --states 2 --length 6 --n 2"
    )(exhaust)
    app.command(
        epilog="Examples:  turing-programs prove  ·  turing-programs prove step keys  ·  "
        "turing-programs prove --no-mutants --certificate smt/"
    )(prove)
    app.command(epilog="Example:  turing-programs theorem -o theorem/")(theorem)


OutputOption = Annotated[Path | None, typer.Option("-o", "--output", help="Also write the report: .json or .txt")]


def verify(
    machines: Annotated[int, typer.Option("--machines", "-m", help="How many random machines.")] = 100_000,
    symbols: Annotated[int, typer.Option(help="Symbols of each machine.")] = 12,
    states: Annotated[int, typer.Option(help="States of each machine.")] = 16,
    length: Annotated[str, typer.Option("--length", "-l", help="Cells of each tape, or LEAST:MOST.")] = "10",
    steps: Annotated[int, typer.Option("--steps", "-t", help="Steps of each run.")] = 32,
    n: NOption = 1,
    packing: PackingOption = "paper",
    seed: Annotated[int, typer.Option(help="Which random machines.")] = 0,
    strict_in_memory: Annotated[
        bool, typer.Option("--strict-in-memory", help="Also demand that the head never stands on an end marker.")
    ] = False,
    workers: Annotated[int | None, typer.Option(help="Processes; default: one per core.")] = None,
    dask: Annotated[str | None, typer.Option(help="Address of a Dask scheduler to run on.")] = None,
    resume: Annotated[
        str | None, typer.Option(help="Journal of finished chunks: written as they finish, read at the start.")
    ] = None,
    engine: Annotated[str, typer.Option(help="How the program runs: jit, stream, eager, graph, reference.")] = "jit",
    program: Annotated[str | None, typer.Option(hidden=True, help="Check MODULE:FUNCTION instead.")] = None,
    output: OutputOption = None,
    json: JsonOption = False,
) -> None:
    """Check the theorem on random machines: is the program wrong exactly where the theorem says, and nowhere else?

    Exit code 0 if no run violates the sharp theorem, 1 if one does.
    """
    from proofs_check import verify as run_verify

    need_output(output, (".json", ".txt"))
    with progress_bar("machines", machines) as progress:
        report = run_verify(
            machines, symbols=symbols, states=states, length=_length(length), steps=steps, n=n, packing=packing,
            seed=seed, strict_in_memory=strict_in_memory, workers=workers, dask=dask, resume=resume, engine=engine,
            progress=progress, program=program,
        )  # fmt: skip
    result = {**report.to_json(), "versions": versions()}
    if output is not None:
        output.write_text(jsonlib.dumps(result, indent=2) if output.suffix == ".json" else report.render() + "\n")
    if json:
        print_json(result)
    else:
        _say(report.render(), report.ok)
    if not report.ok:
        raise typer.Exit(1)


def _length(text: str) -> int | tuple[int, int]:
    parts = text.split(":")
    if len(parts) > 2 or not all(part.strip().lstrip("-").isdigit() for part in parts):
        raise ValueError(f"--length {text!r} is neither a number of cells nor LEAST:MOST, for example 5:50")
    cells = [int(part) for part in parts]
    if cells != sorted(cells):
        raise ValueError(f"--length {text!r} runs backwards: give LEAST:MOST, for example {cells[1]}:{cells[0]}")
    return cells[0] if len(cells) == 1 else (cells[0], cells[1])


def exhaust(
    symbols: Annotated[int, typer.Option(help="Symbols of each machine.")] = 2,
    states: Annotated[int, typer.Option(help="States of each machine.")] = 2,
    length: Annotated[int, typer.Option("--length", "-l", help="Every tape of up to this many cells.")] = 3,
    n: NOption = 1,
    steps: Annotated[int | None, typer.Option("--steps", "-t", help="Default: base**n, at most 64.")] = None,
    packing: PackingOption = "paper",
    program: Annotated[str | None, typer.Option(hidden=True, help="Check MODULE:FUNCTION instead.")] = None,
    json: JsonOption = False,
) -> None:
    """Check the theorem on every machine of a size and every tape up to a length: nothing is left out.

    Exit code 0 if no run violates the sharp theorem, 1 if one does.
    """
    from dataclasses import asdict

    from proofs_check.exhaustive import every_machine

    with progress_bar("parts") as progress:
        report = every_machine(
            symbols, states, length, n, steps, packing, program=program,
            progress=lambda _, done, total: progress(done, total),
        )  # fmt: skip
    if json:
        first = report.first.render() if report.first else None
        print_json({**asdict(report), "first": first, "holds": report.holds, "versions": versions()})
    else:
        found = report.first.render() if report.first else ""
        _say(
            f"every machine of {symbols} symbols x {states} states: {report.machines:,}, on every tape of up to "
            f"{length} cells, head and state: {report.tapes:,}; {report.steps} steps, n = {n}, {packing} packing\n\n"
            f"{report.runs:,} runs, {report.correct:,} of them right to the end, {report.violations:,} violations of "
            f"the sharp theorem\n{found}",
            report.holds,
        )
    if not report.holds:
        raise typer.Exit(1)


def prove(
    lemmas: Annotated[list[str] | None, typer.Argument(help="Only these lemmas, by name. Default: all.")] = None,
    mutants: Annotated[bool, typer.Option("--mutants/--no-mutants", help="Also refute wrong programs.")] = True,
    certificate: Annotated[
        Path | None, typer.Option(help="Write each claim as SMT-LIB to this folder, for another solver.")
    ] = None,
    json: JsonOption = False,
) -> None:
    """Prove the lemmas for all machines at once with z3, and see that they fail on wrong programs.

    Exit code 0 if every lemma is proved and every wrong program refuted, 1 otherwise.
    """
    from proofs_check.certificates import write_certificates
    from proofs_check.proving import prove as run_prove

    chosen = lemmas or None
    with progress_bar("claims and wrong programs") as progress:
        report = run_prove(chosen, with_mutants=mutants, progress=lambda _, done, total: progress(done, total))
    written = len(write_certificates(certificate, chosen)) if certificate is not None else 0
    if json:
        print_json(report.to_json())
    else:
        _print_proofs(report)
        if certificate is not None:
            typer.echo(f"wrote {written} SMT-LIB files to {certificate}")
    if not report.all_proved:
        raise typer.Exit(1)


def _print_proofs(report: ProofReport) -> None:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    table = Table(box=SIMPLE_HEAD)
    for heading in ("lemma", "claim, and for what", "result", "seconds", "wrong programs"):
        table.add_column(heading, justify="right" if heading == "seconds" else "left")
    for row in report.lemmas:
        style = "green" if row.result == "proved" else "bold red"
        caught = f"{row.mutants_caught} of {len(row.mutants)} refuted" if row.mutants else ""
        claim = Text(f"{row.claim}\n").append(row.scope, style="dim")
        table.add_row(row.name, claim, Text(row.result, style), f"{row.seconds:.2f}", caught)
        if row.witness:
            table.add_row("", Text(row.witness))
    console = screen()
    console.print(table)
    tried = any(row.mutants for row in report.lemmas)
    proved = "every lemma is proved" + (", and refuted on every wrong program" if tried else "")
    verdict = proved if report.all_proved else "NOT everything was proved"
    console.print(verdict, style="bold green" if report.all_proved else "bold red")


def theorem(
    output: Annotated[
        Path, typer.Option("-o", "--output", help="Folder for the page (theorem.md) and its figures.")
    ] = Path("theorem"),
    full: Annotated[bool, typer.Option("--full", help="At full size: much longer than half a minute.")] = False,
    json: JsonOption = False,
) -> None:
    """Everything about the theorem on one page: claim, evidence gathered just now, verdict."""
    from rich.console import Console

    from proofs_check import theorem_page

    need_folder(output)
    with Console(stderr=True).status("gathering evidence") as status:
        page = theorem_page(output, quick=not full, progress=lambda what: status.update(what))
    if json:
        print_json({**page.to_json(), "versions": versions()})
    else:
        _say(page.render(), page.ok)
        typer.echo("wrote " + ", ".join(str(file) for file in page.files))
    if not page.ok:
        raise typer.Exit(1)


def _say(text: str, ok: bool) -> None:
    """The report, its last paragraph in the colour of the verdict."""
    console = screen()
    before, _, verdict = text.rpartition("\n\n")
    console.print(before + "\n", markup=False)
    console.print(verdict, style="bold green" if ok else "bold red", markup=False)
