"""`turing-programs compare`: the machine, its program, compiled and learned models on the same tapes; one page."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from experiments.cli.common import JsonOption, ThreadsOption, print_json, progress_bar, read_numbers, screen

CheckpointsArgument = Annotated[
    list[str] | None,
    typer.Argument(metavar="[CHECKPOINT]...", help="Folders of runs, or names of shipped ones.", show_default=False),
]
MachineOption = Annotated[
    str | None,
    typer.Option(help="A machine, as for `run`: its program, compilations, and shipped models of it, if any."),
]
LengthsOption = Annotated[
    str | None, typer.Option(help="Cells, such as 20,40,60. Default: 1, 1.5, 2, 3, 5 and 10 x training.")
]
ExamplesOption = Annotated[
    int, typer.Option(min=1, help="Tapes per length; long tapes and compiled models get a share of them.")
]
NsOption = Annotated[str, typer.Option("--n", "-n", help="Programs to compare, such as 1,4; each hashes n+1 tokens.")]
BackendsOption = Annotated[str, typer.Option(help="What to compile to; tracr for the first machine only.")]
FinetuneOption = Annotated[
    int, typer.Option(min=0, help="Steps of training from compiled weights, on the first machine. 0: none.")
]
FromOption = Annotated[
    Path | None, typer.Option("--from", help="Measure nothing: print from this results.json, and draw if -o is given.")
]
OutputOption = Annotated[Path | None, typer.Option("-o", "--output", help="Folder of the page.", show_default="report")]
WorkersOption = Annotated[int | None, typer.Option(min=1, help="Processes. Default: one per core, at most 4.")]


def register(app: typer.Typer) -> None:
    app.command(
        epilog="Examples:  turing-programs compare --shipped --open  ·  turing-programs compare runs/tm-cpu  ·  "
        "turing-programs compare --machine random:15x5:0 --lengths 20,40 --examples 48  ·  "
        "turing-programs compare --from report/results.json --markdown"
    )(compare)


def compare(
    checkpoints: CheckpointsArgument = None,
    shipped: Annotated[bool, typer.Option("--shipped", help="All machines that come with this repository.")] = False,
    machine: MachineOption = None,
    lengths: LengthsOption = None,
    steps: Annotated[int, typer.Option("--steps", "-t", min=1, help="Steps in a row, at 2x the length.")] = 10,
    examples: ExamplesOption = 288,
    seeds: Annotated[str, typer.Option(help="Of the tapes, such as 0 or 0,1,2.")] = "0",
    n: NsOption = "1,2,3,4",
    backends: BackendsOption = "hard_alibi,lean,tracr",
    finetune: FinetuneOption = 60,
    workers: WorkersOption = None,
    threads: ThreadsOption = None,
    output: OutputOption = None,
    source: FromOption = None,
    open_: Annotated[bool, typer.Option("--open", help="Open the page in the browser.")] = False,
    markdown: Annotated[bool, typer.Option("--markdown", help="Print the README's table.")] = False,
    json: JsonOption = False,
) -> None:
    """Put the true machine, the RASP program, compiled and learned transformers on the same tapes, and show on one page
    where they agree, where each breaks, what each costs, and whether training found the compiled algorithm.
    """
    if open_ and source is not None and output is None:
        raise ValueError("--from draws no page unless -o says where; give it, or leave out --open")
    from experiments.comparison.requests import ComparisonRequest, run_comparison
    from experiments.comparison.subjects import Settings

    settings = Settings(
        lengths=read_numbers(lengths),
        steps=steps,
        seeds=_read_seeds(seeds),
        examples=examples,
        finetune=finetune,
        ns=read_numbers(n),
        backends=tuple(backends.split(",")),
    )
    request = ComparisonRequest(
        checkpoints=tuple(checkpoints or ()),
        shipped=shipped,
        machine=machine,
        settings=settings,
        source=source,
        output=output,
        workers=workers,
        threads=threads,
        command=shlex.join(["turing-programs", *sys.argv[1:]]),
    )
    with progress_bar("parts") as progress:
        found = run_comparison(request, progress)
    _say(found.results, found.page, markdown, json)
    if open_ and found.page is not None:
        import webbrowser

        webbrowser.open(found.page.resolve().as_uri())


def _read_seeds(text: str) -> tuple[int, ...]:
    parts = text.replace(" ", "").split(",")
    if not all(part.isdigit() for part in parts):
        raise ValueError(f"{text!r} is not a list of seeds such as 0,1,2")
    return tuple(map(int, parts))


def _say(results: dict[str, Any], page: Path | None, markdown: bool, json: bool) -> None:
    if json:
        print_json(results)
        return
    from experiments.comparison.findings import findings, headline
    from experiments.comparison.summary import as_markdown, caption, digits, label, summary_table

    if markdown:
        typer.echo(as_markdown(results))
        return
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    found, console = summary_table(results), screen()
    table = Table(box=SIMPLE_HEAD)
    for heading in ("tapes right", *found.columns):
        table.add_column(heading, justify="left" if heading == "tapes right" else "right")
    for family, cells in found.rows:
        table.add_row(label(results, family), *("" if cell is None else digits(cell.mean) for cell in cells))
    console.print(headline(results), style="bold", markup=False)
    console.print(table)
    for text in (*findings(results), caption(results)):
        console.print(text, markup=False)
    if page is not None:
        typer.echo(f"wrote {page}")
