"""`turing-programs prove` and `theorem`: the theorem proved, and on one page."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from experiments.cli.common import JsonOption, path_option, print_json, print_verdict, screen, stage_bar, versions
from experiments.files import output_folder

if TYPE_CHECKING:
    from rich.table import Table

    from experiments.verifications import ProofRequest, Proofs


def register(app: typer.Typer) -> None:
    app.command(
        epilog="Examples:  turing-programs prove  ·  turing-programs prove step keys  ·  "
        "turing-programs prove --formal --certificate proof/"
    )(prove)
    app.command(epilog="Example:  turing-programs theorem -o theorem/")(theorem)


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
        Path | None, path_option(help="Write each claim to this folder: SMT-LIB for another solver, .v files for Coq.")
    ] = None,
    json: JsonOption = False,
) -> None:
    """Prove the theorem for all machines at once: with Coq, and the lemmas with z3, which must fail on wrong programs.

    Exit code 0 if every claim is proved and every wrong program refuted, 1 otherwise.
    """
    from experiments.verifications import ProofRequest, run_proofs

    request = ProofRequest(lemmas=tuple(lemmas or ()), mutants=mutants, formal=formal, certificate=certificate)
    with stage_bar("claims and wrong programs") as progress:
        proofs = run_proofs(request, progress)
    if json:
        print_json(proofs.to_json())
    else:
        _print_proofs(proofs, request)
    if proofs.missing:
        typer.echo(f"{proofs.missing}; the claims it proves for every machine and length were left out", err=True)
    if not proofs.all_proved:
        raise typer.Exit(1)


def _print_proofs(proofs: Proofs, request: ProofRequest) -> None:
    console = screen()
    console.print(_table(proofs))
    for error in proofs.theorems.errors if proofs.theorems else ():
        console.print(error, style="bold red", markup=False)
    tried = any(row.mutants for row in proofs.lemmas.lemmas)
    proved = "every lemma is proved" + (", and refuted on every wrong program" if tried else "")
    if proofs.theorems:
        proved += f"; every theorem is proved in Coq {proofs.theorems.coq}, from no axioms"
    verdict = proved if proofs.all_proved else "NOT everything was proved"
    console.print(verdict, style="bold green" if proofs.all_proved else "bold red")
    if request.certificate is not None:
        typer.echo(f"wrote {proofs.smt_files} SMT-LIB files to {request.certificate}")
    if proofs.coq_files:
        order = "order.txt has the order to compile them in"
        typer.echo(f"wrote {proofs.coq_files} Coq files to {request.certificate}; {order}")


def _table(proofs: Proofs) -> Table:
    """One row for each claim. "all": all that its second line names; "any length": the same, about one place or two."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    table = Table(box=SIMPLE_HEAD)
    for heading in ("name", "claim, and for what", "proved for", "by", "result", "seconds", "wrong programs"):
        table.add_column(heading, justify="right" if heading == "seconds" else "left")
    for claim in proofs.theorems.claims if proofs.theorems else ():
        style = "green" if claim.result == "proved" else "bold red"
        resting = "rests on Coq alone" if claim.assumptions == "closed" else f"rests on {claim.assumptions}"
        words = Text(f"{claim.claim}\n").append(claim.scope, style="dim")
        result = Text(claim.result, style)
        table.add_row(claim.theorem, words, claim.kind, "Coq", result, f"{claim.seconds:.2f}", resting)
    for row in proofs.lemmas.lemmas:
        style = "green" if row.result == "proved" else "bold red"
        caught = f"{row.mutants_caught} of {len(row.mutants)} refuted" if row.mutants else ""
        words = Text(f"{row.claim}\n").append(row.scope, style="dim")
        solvers = "z3" if row.confirmed is None else f"z3; cvc5 {row.confirmed} of {row.queries}"
        table.add_row(row.name, words, row.kind, solvers, Text(row.result, style), f"{row.seconds:.2f}", caught)
        if row.witness:
            table.add_row("", Text(row.witness))
    return table


def theorem(
    output: Annotated[
        Path, path_option("-o", "--output", help="Folder for the page (theorem.md) and its figures.")
    ] = Path("theorem"),
    full: Annotated[bool, typer.Option("--full", help="At full size: much longer than half a minute.")] = False,
    json: JsonOption = False,
) -> None:
    """Everything about the theorem on one page: claim, evidence gathered just now, verdict."""
    from rich.console import Console

    from proofs_check import theorem_page

    with output_folder(output), Console(stderr=True).status("gathering evidence") as status:
        page = theorem_page(output, quick=not full, progress=lambda what: status.update(what))
    if json:
        print_json({**page.to_json(), "versions": versions()})
    else:
        print_verdict(page.render(), page.ok)
        typer.echo("wrote " + ", ".join(str(file) for file in page.files))
    if not page.ok:
        raise typer.Exit(1)
