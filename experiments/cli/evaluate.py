"""`turing-programs evaluate` and `figure`: how often trained models are right."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from experiments.cli.common import (
    DeviceOption,
    ExamplesOption,
    JsonOption,
    PrecisionOption,
    SeedOption,
    ThreadsOption,
    TrainedPrecisionOption,
    path_option,
    print_json,
    progress_bar,
    read_numbers,
    refuse_others,
    screen,
)

if TYPE_CHECKING:
    from experiments.evaluation import EvaluationRequest
    from experiments.evaluation.results import Result
    from experiments.evaluation.table import TableRow

LengthsOption = Annotated[
    str | None,
    typer.Option(help="Such as 20,40,60. Default: 1, 1.5, 2 times the trained; machines also 3, 5; SGD to 1.6."),
]
GridOption = Annotated[
    str | None, typer.Option(help="Operand lengths to cross, such as 6,12,18 (addition); at most 96 problems each.")
]

WeightsOption = Annotated[bool, typer.Option(help="With --ship: keep the weights, too, or only what is known of them.")]


def register(app: typer.Typer) -> None:
    app.command(
        epilog="Examples:  turing-programs evaluate --shipped  ·  "
        "turing-programs evaluate runs/tm-cpu --lengths 20,40,60 --rollout 10 -o figures/"
    )(evaluate)
    app.command(epilog="Examples:  turing-programs figure machines  ·  turing-programs figure grid --again -o grid/")(
        figure
    )
    app.command(epilog="Examples:  turing-programs table  ·  turing-programs table --markdown")(table)


def evaluate(
    checkpoints: Annotated[list[str] | None, typer.Argument(help="Folders of runs, or names of shipped ones.")] = None,
    shipped: Annotated[bool, typer.Option("--shipped", help="All that come with this repository.")] = False,
    lengths: LengthsOption = None,
    rollout: Annotated[int, typer.Option(min=0, max=10**6, help="Machine steps in a row.")] = 0,
    gram: Annotated[
        int, typer.Option(min=0, max=10**6, help="Split by whether the tape repeats an n-gram of this size.")
    ] = 0,
    grid: GridOption = None,
    examples: ExamplesOption = 288,
    seed: SeedOption = 0,
    context: Annotated[
        int | None, typer.Option(min=1, max=10**6, help="Tokens a model sees at once. Default: as in training.")
    ] = None,
    seeds: Annotated[bool, typer.Option("--seeds", help="The checkpoints are seeds of one: mean and band.")] = False,
    output: Annotated[Path | None, path_option("-o", "--output", help="Folder for figures and results.json.")] = None,
    ship: Annotated[str | None, typer.Option(help="Keep the run among the shipped, under this name.")] = None,
    weights: WeightsOption = True,
    yes: Annotated[bool, typer.Option("--yes", help="With --ship: do not ask.")] = False,
    keep: Annotated[bool, typer.Option("--keep", help="Store results beside the shipped checkpoints.")] = False,
    device: DeviceOption = "auto",
    precision: TrainedPrecisionOption = "float32",
    threads: ThreadsOption = None,
    markdown: Annotated[bool, typer.Option("--markdown", help="Print the table of docs/results.md.")] = False,
    json: JsonOption = False,
) -> None:
    """Accuracy of trained models on problems of any length, with 95% intervals."""
    from experiments.evaluation import EvaluationRequest, run_evaluation
    from experiments.evaluation.results import as_markdown

    request = EvaluationRequest(
        checkpoints=tuple(checkpoints or ()),
        shipped=shipped,
        lengths=read_numbers(lengths),
        rollout=rollout,
        gram=gram,
        grid=read_numbers(grid),
        examples=examples,
        seed=seed,
        context=context,
        as_band=seeds,
        ship=ship,
        weights=weights,
        keep=keep,
        output=output,
        device=device,
        precision=precision,
        threads=threads,
    )
    if ship is not None and not yes:
        confirm_shipping(request)
    with progress_bar("evaluating") as progress:
        found = run_evaluation(request, progress)
    if json:
        print_json(found.report)
    elif markdown:
        typer.echo(as_markdown(found.results, found.trained))
    else:
        print_results(found.results)


def figure(
    context: typer.Context,
    name: Annotated[str, typer.Argument(help="machines, rollouts, seeds, encodings, formats, grid, ...")],
    output: Annotated[Path | None, path_option("-o", "--output", help="Folder.", show_default="figures/NAME")] = None,
    again: Annotated[bool, typer.Option("--again", help="Measure anew instead of drawing stored results.")] = False,
    examples: ExamplesOption = 288,
    seed: SeedOption = 0,
    device: DeviceOption = "auto",
    precision: PrecisionOption = "float32",
    threads: ThreadsOption = None,
    markdown: Annotated[bool, typer.Option("--markdown", help="Print what it shows as a table.")] = False,
    json: JsonOption = False,
) -> None:
    """Draw one of the paper's figures, from stored results of the checkpoints that come with this repository."""
    from experiments.evaluation import FigureRequest, run_figure
    from experiments.evaluation.results import as_markdown

    if not again:
        refuse_others(context, "a figure of stored results (without --again)", "name", "output", "markdown")
    request = FigureRequest(
        name=name,
        output=output or Path("figures") / name,
        again=again,
        examples=examples,
        seed=seed,
        device=device,
        precision=precision,
        threads=threads,
    )
    with progress_bar("evaluating") as progress:
        drawn = run_figure(request, progress)
    if json:
        print_json(drawn.report)
    elif markdown:
        typer.echo(as_markdown(drawn.results, drawn.trained))
    else:
        typer.echo(f"{drawn.about}: wrote {', '.join(map(str, drawn.files))}")


def table(
    markdown: Annotated[bool, typer.Option("--markdown", help="As in the README.")] = False,
    json: JsonOption = False,
) -> None:
    """The paper's Table 1 beside what is shipped here, from stored results: trained, and compiled."""
    from experiments.evaluation.table import paper_table, table_markdown

    rows = paper_table()
    if json:
        print_json({"rows": [row.to_dict() for row in rows]})
    elif markdown:
        typer.echo(table_markdown(rows))
    else:
        print_table(rows)


def confirm_shipping(request: EvaluationRequest) -> None:
    """Nobody is asked about what would be refused."""
    from experiments.evaluation.shipped import FOLDER, need_checkpoint_name

    assert request.ship is not None and request.folders
    need_checkpoint_name(request.ship)
    typer.confirm(f"Write the checkpoint {request.ship} into {FOLDER}?", abort=True, err=True)


def print_table(rows: list[TableRow]) -> None:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    shown = Table("", "paper", "learned here", "compiled", box=SIMPLE_HEAD)
    for row in rows:
        shown.add_row(*map(Text, (row.task, row.paper, row.learned, row.compiled)))
    screen().print(shown)


def print_results(results: list[Result]) -> None:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    table = Table(box=SIMPLE_HEAD)
    for heading in ("name", "length", "steps", "right", "95% interval", "of", ""):
        table.add_column(heading, justify="left" if heading in ("name", "") else "right")
    for r in results:
        interval = f"{r.low:.3f} - {r.high:.3f}"
        group = "" if r.group == "all" else r.group
        table.add_row(r.name, str(r.length), str(r.rollout), f"{r.accuracy:.3f}", interval, str(r.examples), group)
    screen().print(table)
