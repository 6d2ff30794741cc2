"""`turing-programs compare`: the machine, its program, compiled and learned models on the same tapes; one page."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Any

import typer

from experiments.cli.common import (
    MOST_PROBLEMS,
    JsonOption,
    PrecisionOption,
    ThreadsOption,
    command_line,
    open_in_browser,
    path_option,
    print_json,
    progress_bar,
    read_numbers,
    refuse_others,
    screen,
)
from rasp.programs.tasks import is_task

NamesArgument = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[TASK | CHECKPOINT]...",
        help="addition, multiplication1, multiplication3 or sgd, with or without runs of it; or folders of runs, or "
        "names of shipped ones.",
        show_default=False,
    ),
]
MachineOption = Annotated[
    str | None,
    typer.Option(help="A machine, as for `run`: its program, compilations, and shipped models of it, if any."),
]
LengthsOption = Annotated[
    str | None,
    typer.Option(
        help="Cells or digits, such as 20,40,60. Default: 1, 1.5, 2, 3, 5 and 10 x training, of tasks up to 100."
    ),
]
ExamplesOption = Annotated[
    int,
    typer.Option(
        min=1, max=MOST_PROBLEMS, help="Tapes or problems per length; long ones and slow models get a share of them."
    ),
]
NsOption = Annotated[
    str | None,
    typer.Option(
        "--n", "-n", help="Programs to compare, each looks n+1 tokens back.", show_default="1,2,3,4; of tasks to 6"
    ),
]
BackendsOption = Annotated[
    str | None,
    typer.Option(
        help="What to compile to; tracr for the first machine only.",
        show_default="hard_alibi,lean,tracr; of tasks hard_alibi",
    ),
]
FinetuneOption = Annotated[
    int, typer.Option(min=0, max=10**9, help="Steps of training from compiled weights, on the first machine. 0: none.")
]
FromOption = Annotated[
    Path | None, path_option("--from", help="Measure nothing: print from this results.json, and draw if -o is given.")
]
OutputOption = Annotated[Path | None, path_option("-o", "--output", help="Folder of the page.", show_default="report")]
WorkersOption = Annotated[
    int | None, typer.Option(min=1, max=1024, help="Processes. Default: one per core, at most 4.")
]


def register(app: typer.Typer) -> None:
    app.command(
        epilog="Examples:  turing-programs compare --shipped --open  ·  turing-programs compare runs/tm-cpu  ·  "
        "turing-programs compare addition --lengths 12,24,100  ·  turing-programs compare addition runs/mine  ·  "
        "turing-programs compare --machine random:15x5:0 --lengths 20,40 --examples 48  ·  "
        "turing-programs compare --from report/results.json --markdown"
    )(compare)


def compare(
    context: typer.Context,
    names: NamesArgument = None,
    shipped: Annotated[bool, typer.Option("--shipped", help="All machines that come with this repository.")] = False,
    machine: MachineOption = None,
    lengths: LengthsOption = None,
    steps: Annotated[
        int, typer.Option("--steps", "-t", min=1, max=10**6, help="Steps in a row, at 2x the length.")
    ] = 10,
    examples: ExamplesOption = 288,
    seeds: Annotated[str, typer.Option(help="Of the tapes, such as 0 or 0,1,2.")] = "0",
    n: NsOption = None,
    backends: BackendsOption = None,
    finetune: FinetuneOption = 60,
    workers: WorkersOption = None,
    precision: PrecisionOption = "float32",
    threads: ThreadsOption = None,
    output: OutputOption = None,
    source: FromOption = None,
    open_: Annotated[bool, typer.Option("--open", help="Open the page in the browser.")] = False,
    markdown: Annotated[bool, typer.Option("--markdown", help="Print the table of docs/results.md.")] = False,
    json: JsonOption = False,
) -> None:
    """Put the true machine, the RASP program, compiled and learned transformers on the same tapes, and show on one page
    where they agree, where each breaks, what each costs, and whether training found the compiled algorithm. Of a task:
    its program, compiled and learned, on the same problems. A comparison of a task goes on where it was interrupted.
    """
    if open_ and source is not None and output is None:
        raise ValueError("--from draws no page unless -o says where; give it, or leave out --open")
    shown = ("source", "output", "open_", "markdown")
    measured = ("names", "lengths", "examples", "seeds", "n", "backends", "precision", "threads")
    if source is not None:
        refuse_others(context, "a page of stored results (--from)", *shown, "names", "shipped", "machine")
    elif any(map(is_task, names or ())):
        refuse_others(context, "a comparison of a task", *shown, *measured, "shipped", "machine")
    from experiments.comparison.requests import ComparisonRequest, run_comparison

    request = ComparisonRequest(
        names=tuple(names or ()),
        shipped=shipped,
        machine=machine,
        lengths=read_numbers(lengths),
        steps=steps,
        seeds=_read_seeds(seeds),
        examples=examples,
        ns=read_numbers(n, "numbers n from 1 on, such as 1,2,3"),
        backends=tuple(backends.split(",")) if backends is not None else (),
        finetune=finetune,
        precision=precision,
        source=source,
        output=output,
        workers=workers,
        threads=threads,
        command=command_line(),
    )
    with progress_bar("parts") as progress:
        found = run_comparison(request, progress)
    _say(found.results, found.page, markdown, json)
    if open_ and found.page is not None:
        open_in_browser(found.page)


def _read_seeds(text: str) -> tuple[int, ...]:
    parts = text.replace(" ", "").split(",")
    if not all(re.fullmatch(r"\d{1,18}", part) for part in parts):
        raise ValueError(f"{text!r} is not a list of seeds such as 0,1,2")
    return tuple(map(int, parts))


def _say(results: dict[str, Any], page: Path | None, markdown: bool, json: bool) -> None:
    if json:
        print_json(results)
        return
    from experiments.comparison.findings import findings, headline
    from experiments.comparison.summary import as_markdown, caption, digits, label, summary_table, words_of

    if markdown:
        typer.echo(as_markdown(results))
        return
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    found, console = summary_table(results), screen()
    table = Table(box=SIMPLE_HEAD)
    table.add_column(f"{words_of(results).whole}s right")
    for heading in found.columns:
        table.add_column(heading, justify="right")
    for family, cells in found.rows:
        table.add_row(label(results, family), *("" if cell is None else digits(cell.mean) for cell in cells))
    console.print(headline(results), style="bold", markup=False)
    console.print(table)
    left_out = (f"left out: {text}" for text in results.get("without", ()))
    for text in (*findings(results), caption(results), *left_out):
        console.print(text, markup=False)
    if page is not None:
        typer.echo(f"wrote {page}")
