"""`turing-programs compare`: the machine, its program, compiled and learned models on the same tapes; one page."""

from __future__ import annotations

import json as jsonlib
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from experiments.cli.common import JsonOption, need_folder, print_json, progress_bar, read_machine, screen, versions

if TYPE_CHECKING:
    from experiments.comparison.subjects import Settings, Subject

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
MOST_WORKERS = 4  # each holds the models of one machine


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
    if source is not None:
        results = _read(source, given=bool(checkpoints or shipped or machine))
        folder = output
    else:
        from experiments.cli.train import read_numbers
        from experiments.comparison.subjects import Settings

        chosen = Settings(
            lengths=tuple(read_numbers(lengths)), steps=steps, seeds=_read_seeds(seeds), examples=examples,
            finetune=finetune, ns=tuple(read_numbers(n)), backends=tuple(backends.split(",")),
        )  # fmt: skip
        subjects = _subjects(checkpoints or [], shipped, machine)
        folder = output or Path("report")
        need_folder(folder)
        results = _measure(subjects, chosen, folder, workers)
    page = _write(results, folder, measured=source is None)
    _say(results, page, markdown, json)
    if open_ and page is not None:
        import webbrowser

        webbrowser.open(page.resolve().as_uri())


def _read_seeds(text: str) -> tuple[int, ...]:
    parts = text.replace(" ", "").split(",")
    if not all(part.isdigit() for part in parts):
        raise ValueError(f"{text!r} is not a list of seeds such as 0,1,2")
    return tuple(map(int, parts))


def _subjects(names: list[str], shipped: bool, machine: str | None) -> list[Subject]:
    """What a person asked for: models by name, all that are shipped, or a machine."""
    from experiments.comparison.subjects import learned_subject, machine_subjects, shipped_subjects
    from experiments.shipped import find

    found = [learned_subject(find(name)) for name in names]
    found += shipped_subjects() if shipped else []
    found += machine_subjects(read_machine(machine), machine) if machine is not None else []
    if not found:
        raise ValueError("nothing to compare; name a folder written by `train`, a --machine, or use --shipped")
    return found


def _measure(subjects: list[Subject], settings: Settings, folder: Path, workers: int | None) -> dict[str, Any]:
    from experiments.comparison.study import study
    from proofs_check.pool import available_cores

    chosen = workers or min(available_cores(), MOST_WORKERS)
    with progress_bar("parts", len(subjects)) as progress:
        return study(subjects, settings, folder=folder, workers=chosen, command=_command(), versions=_versions(),
                     progress=progress)  # fmt: skip


def _command() -> str:
    return shlex.join(["turing-programs", *sys.argv[1:]])


def _versions() -> dict[str, str]:
    import torch

    return {**versions(), "torch": torch.__version__}


def _write(results: dict[str, Any], folder: Path | None, measured: bool) -> Path | None:
    """The numbers first: whatever happens to the page, they are not lost."""
    if folder is None:
        return None
    from experiments.comparison.report import write_report, write_results

    need_folder(folder)
    return write_report(write_results(results, folder) if measured else results, folder)[0]


def _read(path: Path, given: bool) -> dict[str, Any]:
    if given:
        raise ValueError("--from measures nothing: leave it out, or name no checkpoints, --machine or --shipped")
    try:
        results = jsonlib.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError, IsADirectoryError) as error:
        raise ValueError(f"{path} is not JSON ({error}); give a results.json written by `compare`") from None
    if not isinstance(results, dict) or not {"machines", "checks", "command", "seed"} <= set(results):
        raise ValueError(f"{path} was not written by `compare`; give its results.json")
    return results


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
