"""`turing-programs verify`, `prove` and `theorem`: the theorem sampled, proved, and on one page."""

from __future__ import annotations

import json as jsonlib
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from experiments.cli.common import JsonOption, NOption, PackingOption, print_json, progress_bar, screen, versions
from experiments.files import need_folder, need_output

if TYPE_CHECKING:
    from proofs_check.formal.check import FormalReport
    from proofs_check.sampled.report import Report
    from proofs_check.symbolic.proving import ProofReport


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
        "turing-programs prove --formal --certificate proof/"
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
    corners: Annotated[
        bool, typer.Option("--corners/--no-corners", help="Also a few hundred runs of each unusual shape.")
    ] = True,
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
            machines,
            symbols=symbols,
            states=states,
            length=_length(length),
            steps=steps,
            n=n,
            packing=packing,
            seed=seed,
            strict_in_memory=strict_in_memory,
            workers=workers,
            dask=dask,
            resume=resume,
            engine=engine,
            progress=progress,
            program=program,
        )
    unusual = _verify_corners(seed) if corners and program is None else {}
    result = {**report.to_json(), "corners": {c: r.result() for c, r in unusual.items()}, "versions": versions()}
    if output is not None:
        output.write_text(jsonlib.dumps(result, indent=2) if output.suffix == ".json" else report.render() + "\n")
    if json:
        print_json(result)
    else:
        _say("\n".join([report.render(), *(_corner_line(c, r) for c, r in unusual.items())]), report.ok)
    if not (report.ok and all(r.ok for r in unusual.values())):
        raise typer.Exit(1)


def _verify_corners(seed: int) -> dict[str, Report]:
    from proofs_check.sampled.corners import CORNERS, verify_corners

    with progress_bar("corners", len(CORNERS)) as progress:
        return verify_corners(seed=seed, progress=progress)


def _corner_line(name: str, report: Report) -> str:
    s, t = report.sweep, report.tally
    return (
        f"{name}: {t.machines:,} runs of {s.symbols} x {s.states}, {s.longest} cells, {s.steps} steps, n = {s.n}, "
        f"{s.packing}: {t.violations} violations"
    )


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
    formal: Annotated[
        bool | None,
        typer.Option(
            "--formal/--no-formal", help="Insist on the proof in Coq, or leave it out. Default: if coqc is found."
        ),
    ] = None,
    certificate: Annotated[
        Path | None, typer.Option(help="Write each claim to this folder: SMT-LIB for another solver, .v files for Coq.")
    ] = None,
    json: JsonOption = False,
) -> None:
    """Prove the theorem for all machines at once: with Coq, and the lemmas with z3, which must fail on wrong programs.

    Exit code 0 if every claim is proved and every wrong program refuted, 1 otherwise.
    """
    from proofs_check.formal.check import MISSING, find_coqc, need_coqc
    from proofs_check.symbolic.proving import prove as run_prove

    chosen = lemmas or None
    if formal:
        need_coqc()
    with progress_bar("claims and wrong programs") as progress:
        report = run_prove(chosen, with_mutants=mutants, progress=lambda _, done, total: progress(done, total))
    wanted = formal is True or (formal is None and chosen is None)
    theorems = _check_formally() if wanted and find_coqc() else None
    written = _write_certificates(certificate, chosen, wanted) if certificate is not None else []
    all_proved = report.all_proved and (theorems is None or theorems.all_proved)
    if json:
        found = {"formal": theorems.to_json(), "trouble": theorems.trouble} if theorems else {}
        print_json({**report.to_json(), "all_proved": all_proved, **found})
    else:
        _print_proofs(report, theorems, all_proved)
        for line in written:
            typer.echo(line)
    if wanted and theorems is None:
        typer.echo(f"{MISSING}; the claims it proves for every machine and length were left out", err=True)
    if not all_proved:
        raise typer.Exit(1)


def _check_formally() -> FormalReport:
    from proofs_check.formal.check import check

    with progress_bar("files of the proof in Coq") as progress:
        return check(progress=lambda _, done, total: progress(done, total))


def _write_certificates(folder: Path, chosen: list[str] | None, formal: bool) -> list[str]:
    from proofs_check.formal.check import write_proof
    from proofs_check.symbolic.certificates import write_certificates

    said = [f"wrote {len(write_certificates(folder, chosen))} SMT-LIB files to {folder}"]
    if formal:
        said.append(
            f"wrote {len(write_proof(folder))} Coq files to {folder}; order.txt has the order to compile them in"
        )
    return said


def _print_proofs(report: ProofReport, theorems: FormalReport | None, all_proved: bool) -> None:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    table = Table(box=SIMPLE_HEAD)
    for heading in ("name", "claim, and for what", "by", "result", "seconds", "wrong programs"):
        table.add_column(heading, justify="right" if heading == "seconds" else "left")
    for claim in theorems.claims if theorems else ():
        style = "green" if claim.result == "proved" else "bold red"
        resting = "rests on Coq alone" if claim.assumptions == "closed" else f"rests on {claim.assumptions}"
        words = Text(f"{claim.claim}\n").append(claim.scope, style="dim")
        table.add_row(claim.theorem, words, "Coq", Text(claim.result, style), f"{claim.seconds:.2f}", resting)
    for row in report.lemmas:
        style = "green" if row.result == "proved" else "bold red"
        caught = f"{row.mutants_caught} of {len(row.mutants)} refuted" if row.mutants else ""
        words = Text(f"{row.claim}\n").append(row.scope, style="dim")
        table.add_row(row.name, words, "z3", Text(row.result, style), f"{row.seconds:.2f}", caught)
        if row.witness:
            table.add_row("", Text(row.witness))
    console = screen()
    console.print(table)
    for trouble in theorems.trouble if theorems else ():
        console.print(trouble, style="bold red", markup=False)
    tried = any(row.mutants for row in report.lemmas)
    proved = "every lemma is proved" + (", and refuted on every wrong program" if tried else "")
    if theorems:
        proved += f"; every theorem is proved in Coq {theorems.coq}, from no axioms"
    verdict = proved if all_proved else "NOT everything was proved"
    console.print(verdict, style="bold green" if all_proved else "bold red")


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
