"""`turing-programs exact`: a compiled transformer on fresh sums or products, held to its contract."""

from __future__ import annotations

from typing import Annotated

import typer

from experiments.cli.common import MOST, MOST_PROBLEMS, JsonOption, print_json, progress_bar, versions


def register(app: typer.Typer) -> None:
    app.command(
        epilog="Examples:  turing-programs exact addition --digits 100 --n 6  ·  "
        "turing-programs exact multiplication1 --digits 20 --problems 50"
    )(exact)


def exact(
    task: Annotated[str, typer.Argument(help="addition, multiplication1, multiplication3, ...")],
    digits: Annotated[int, typer.Option("--digits", "-d", min=1, max=400, help="Of the numbers, not the factor.")] = 20,
    n: Annotated[int, typer.Option("--n", "-n", min=1, help="The program looks n+1 tokens back.")] = 4,
    problems: Annotated[int, typer.Option(min=1, max=MOST_PROBLEMS, help="Fresh problems.")] = 288,
    seed: Annotated[int, typer.Option(min=0, max=MOST, help="Which problems.")] = 0,
    workers: Annotated[int, typer.Option(min=1, max=64, help="Threads.")] = 1,
    keep: Annotated[bool, typer.Option("--keep", help="Store it for `table`.")] = False,
    json: JsonOption = False,
) -> None:
    """Compile a task, and see on fresh problems that it is right where its contract says, and wrong nowhere else.

    Exit code 1 if a problem comes out otherwise than its contract says.
    """
    from experiments.evaluation.compiled import ExactRequest, evaluate_compiled

    request = ExactRequest(task=task, digits=digits, n=n, problems=problems, seed=seed, workers=workers)
    with progress_bar("problems", problems) as progress:
        found = evaluate_compiled(request, progress)
    if keep:
        from experiments.evaluation.table import keep_exact

        keep_exact(found, versions())
    if json:
        print_json({**found.to_dict(), "versions": versions()})
    else:
        typer.echo(
            f"{task}, {digits} digits, n = {n}: {found.layers} layers, {found.parameters / 1e6:.1f} M parameters; "
            f"{problems} fresh problems, {found.tokens:,} tokens, seed {seed}\n"
            f"the contract promises {found.promised}, and {found.right} came out right ({found.accuracy:.3f}); "
            f"{found.as_predicted} of {problems} are right or first wrong exactly where it says"
        )
    if not found.exact:
        raise typer.Exit(1)
