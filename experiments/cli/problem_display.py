"""A problem of the paper's tasks as `turing-programs run addition 4324+139` shows it, line by line."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import typer

from experiments.cli.common import print_json, versions

if TYPE_CHECKING:
    from experiments.problems import ProblemRequest, WorkedProblem


def work_out(request: ProblemRequest, json: bool) -> None:
    """Work it out, print it; exit code 1 if a transformer gets it wrong."""
    from experiments.problems import work_request

    worked = work_request(request)
    if json:
        print_json(report(worked, request.writer, request.size))
    else:
        show(worked, request.writer, request.size)
    if not worked.correct and request.writer != "program":
        raise typer.Exit(1)


def report(worked: WorkedProblem, on: str, n: int) -> dict[str, Any]:
    return {
        "task": worked.task.name,
        "problem": worked.problem.prompt,
        "on": on,
        "n": n,
        "text": worked.text,
        "answer": worked.answer,
        "correct": worked.correct,
        "first_wrong": worked.wrong,
        "versions": versions(),
    }


def show(worked: WorkedProblem, on: str, n: int) -> None:
    from experiments.problems import WRITERS

    for line in worked.lines:
        typer.echo(line)
    if worked.correct:
        typer.echo(f"\nright at all {len(worked.written):,} tokens; answer {worked.answer}")
        return
    typer.echo(f"\nthe last line should be {worked.true_line}")
    by_program = on in WRITERS
    typer.echo(f"token {worked.wrong} is the first wrong one. {worked.explain(n) if by_program else ''}".rstrip())
