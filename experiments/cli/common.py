"""What several commands share: machines from the command line, JSON output, tables."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from rich.console import Console

    from experiments.benchmarks.rows import Row
    from rasp import TuringMachine

MachineArgument = Annotated[
    str,
    typer.Argument(
        help="A gallery name (see `turing-programs machines`), a file (.json .yaml .txt), bbchallenge text, "
        "or random:SYMBOLSxSTATES:SEED.",
        show_default=False,
    ),
]
INTERRUPTED = 130  # exit code
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON object on standard output.")]
NOption = Annotated[int, typer.Option("--n", "-n", help="The program hashes n+1 tokens.")]
PackingOption = Annotated[str, typer.Option(help="How keys are packed: `paper` as printed, or `unbounded`.")]


def read_machine(source: str) -> TuringMachine:
    """The machine a person named."""
    from rasp import TuringMachine, load_machine

    size = re.fullmatch(r"random(?::(\d+)x(\d+))?(?::(\d+))?", source)
    if size:
        symbols, states, seed = (int(g) if g else d for g, d in zip(size.groups(), (12, 16, 0), strict=True))
        return TuringMachine.random(symbols=symbols, states=states, seed=seed)
    if source.startswith("random:"):
        raise ValueError(f"{source!r} is not random:SYMBOLSxSTATES:SEED, for example random:12x16:0")
    return load_machine(source)


def need_output(path: Path | None, suffixes: Sequence[str] = ()) -> None:
    """Refuse an output that cannot be written before the work is done, not after it."""
    if path is None:
        return
    if suffixes and path.suffix not in suffixes:
        raise ValueError(f"cannot write {str(path)!r}: expected a name ending in {' or '.join(suffixes)}")
    if path.is_dir() or not os.access(path if path.exists() else path.absolute().parent, os.W_OK):
        raise ValueError(f"cannot write {str(path)!r}: it is a folder, or its folder is missing or not writable")


def need_folder(folder: Path | None) -> None:
    """Make it, or refuse it before the work is done, not after it."""
    if folder is None:
        return
    above = next(path for path in (folder.absolute(), *folder.absolute().parents) if path.exists())
    if not above.is_dir() or not os.access(above, os.W_OK):
        raise ValueError(f"cannot write into {str(folder)!r}: {above} is not a folder, or not writable")
    folder.mkdir(parents=True, exist_ok=True)


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

    return Console(width=None if sys.stdout.isatty() else 120, highlight=False)


@contextmanager
def progress_bar(what: str, total: int | None = None) -> Iterator[Callable[[int, int], None]]:
    """A progress bar on standard error, told (done, total); gone when the work is done."""
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    columns = (TextColumn(what), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TimeRemainingColumn())
    console = Console(stderr=True)
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task(what, total=total)
        yield lambda done, of: bar.update(task, completed=done, total=of)


def _figure(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def versions() -> dict[str, str]:
    """What a result depends on."""
    import platform
    from importlib.metadata import PackageNotFoundError, version

    found = {"python": platform.python_version()}
    for name in ("turing-programs", "numpy", "numba"):
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "not installed"
    return found
