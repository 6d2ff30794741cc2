"""What several commands share: machines from the command line, JSON output, tables."""

from __future__ import annotations

import json
import re
import shlex
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from experiments.versions import versions
from rasp.progress import Progress, StageProgress

if TYPE_CHECKING:
    from rich.console import Console

    from experiments.benchmarks.rows import Row


def one_of(known: Sequence[str]) -> Callable[[str], str]:
    """What an option must be, also where nothing comes of it."""

    def check(value: str) -> str:
        if value not in known:
            raise typer.BadParameter(f"{value!r} is not one of {', '.join(known)}")
        return value

    return check


TapeArgument = Annotated[
    str | None, typer.Argument(help="Its cells, the head in brackets: 10[1]10, or 10[q1:1]10 with a state.")
]
StepsOption = Annotated[int, typer.Option("--steps", "-t", help="Stop here if it has not halted.")]
TagsOption = Annotated[
    bool | None, typer.Option("--tags/--no-tags", help="Tag the cells so that no n-gram repeats. Default: if compiled.")
]
MachineOrProgram = Annotated[
    str,
    typer.Argument(
        help="A machine: gallery name, file, bbchallenge text, random:SYMBOLSxSTATES:SEED. Or a program: addition, "
        "multiplication1, .., universal, a library function, FILE.py:FUNCTION.",
        show_default=False,
    ),
]
INTERRUPTED = 130  # exit code
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON object on standard output.")]
DEVICES, PRECISIONS = ("auto", "cpu", "cuda"), ("float32", "float64")
BACKENDS, ENGINES = ("hard_alibi", "lean", "tracr"), ("jit", "stream", "graph", "eager", "reference")
PACKINGS = ("paper", "unbounded", "tuple")
DeviceOption = Annotated[str, typer.Option(help="auto, cpu or cuda.", callback=one_of(DEVICES))]
PrecisionOption = Annotated[str, typer.Option(help="float32 or float64.", callback=one_of(PRECISIONS))]
TrainedPrecisionOption = Annotated[
    str,
    typer.Option(
        help="float32, float64, or bf16 (products only, as in training).", callback=one_of((*PRECISIONS, "bf16"))
    ),
]
ThreadsOption = Annotated[int | None, typer.Option(min=1, max=1024, help="CPU threads.")]
MOST_PROBLEMS = 10**7
ExamplesOption = Annotated[int, typer.Option(min=1, max=MOST_PROBLEMS, help="Problems per length.")]
MOST = 2**32 - 1  # of a seed
SeedOption = Annotated[int, typer.Option(min=0, max=MOST, help="Of the test problems.")]
NOption = Annotated[int, typer.Option("--n", "-n", help="The program hashes n+1 tokens.")]
NOrDefault = Annotated[
    int | None,
    typer.Option("--n", "-n", help="The program looks n+1 tokens back.", show_default="1; of tasks 4"),
]
PackingOption = Annotated[
    str,
    typer.Option(help="How keys are packed: `paper` as printed, `unbounded`, or `tuple`.", callback=one_of(PACKINGS)),
]


def refuse_others(context: typer.Context, doing: str, *known: str) -> None:
    """Refuse what the command line gives beside these parameters: it would change nothing here."""
    for parameter in context.command.params:
        source = context.get_parameter_source(parameter.name or "")
        if source is not None and source.name == "COMMANDLINE" and parameter.name not in (*known, "json"):
            raise ValueError(f"{max(parameter.opts, key=len)} changes nothing in {doing}; leave it out")


def command_line() -> str:
    """As it can be given again."""
    return shlex.join(["turing-programs", *sys.argv[1:]])


def read_path(text: str | Path) -> Path:
    """An empty name would be taken for the folder one is in."""
    if not str(text).strip():
        raise typer.BadParameter("an empty name is no file and no folder")
    return Path(text)


def path_option(*names: str, **settings: Any) -> Any:
    return typer.Option(*names, parser=read_path, metavar="PATH", **settings)


def path_argument(**settings: Any) -> Any:
    return typer.Argument(parser=read_path, metavar="[PATH]", **settings)


def read_range(text: str) -> tuple[int, int]:
    parts = text.split("-")
    if len(parts) != 2 or not all(re.fullmatch(r"\d{1,18}", part) for part in parts):
        raise ValueError(f"{text!r} is not a range of lengths such as 2-20")
    return int(parts[0]), int(parts[1])


def read_numbers(text: str | None, what: str = "lengths such as 20,40,60") -> tuple[int, ...]:
    parts = text.replace(" ", "").split(",") if text is not None else []
    if not all(re.fullmatch(r"\d{1,18}", part) and int(part) > 0 for part in parts):
        raise ValueError(f"{text!r} is not a list of {what}")
    return tuple(int(part) for part in parts)


def open_in_browser(path: Path) -> None:
    import webbrowser

    webbrowser.open(path.resolve().as_uri())


def print_json(value: Any) -> None:
    typer.echo(json.dumps(value, indent=2))


def print_rows(title: str, rows: Sequence[Row], as_json: bool) -> None:
    """A benchmark, as a table or as JSON."""
    if as_json:
        print_json({"rows": [row.__dict__ for row in rows], "versions": versions()})
        return
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    table = Table(title=title, title_justify="left", box=SIMPLE_HEAD)
    for heading in ("", "value", "unit", "ratio", "to"):
        table.add_column(heading, justify="right" if heading in ("value", "ratio") else "left")
    for row in rows:
        ratio = "" if row.ratio is None else f"{_figure(row.ratio)}x"
        table.add_row(row.name, _figure(row.value), row.unit, ratio, row.baseline)
    screen().print(table)


def screen() -> Console:
    """Standard output; wide enough for tables where no terminal says how wide it is."""
    from rich.console import Console

    return Console(width=None if sys.stdout.isatty() else 120, highlight=False, markup=False)


@contextmanager
def progress_bar(what: str, total: int | None = None) -> Iterator[Progress]:
    """A progress bar on standard error, told (done, total); gone when the work is done."""
    with stage_bar(what, total) as tell:
        yield lambda done, of: tell(what, done, of)


@contextmanager
def stage_bar(first: str, total: int | None = None) -> Iterator[StageProgress]:
    """The same for work in stages, told (stage, done, total)."""
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    stage = TextColumn("{task.description}")
    columns = (stage, BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TimeRemainingColumn())
    console = Console(stderr=True)
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task(first, total=total)
        yield lambda what, done, of: bar.update(task, description=what, completed=done, total=of)


def print_verdict(text: str, ok: bool) -> None:
    """A report, its last paragraph in the colour of the verdict."""
    console = screen()
    before, _, verdict = text.rpartition("\n\n")
    console.print(before + "\n", markup=False)
    console.print(verdict, style="bold green" if ok else "bold red", markup=False)


def _figure(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"
