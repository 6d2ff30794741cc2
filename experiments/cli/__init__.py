"""The command `turing-programs`. One thin file per group of commands; the work is done elsewhere.

Bad input ends with one sentence and exit code 2. Set TURING_PROGRAMS_DEBUG=1 to see the traceback instead.
"""

from __future__ import annotations

import io
import os
import sys
from typing import Annotated, Any

import typer

from experiments.cli import (
    agree,
    bench,
    compare,
    compile,
    doctor,
    evaluate,
    exact,
    export,
    graph,
    inspect,
    machines,
    playground,
    programs,
    prove,
    run,
    train,
    verify,
    zoo,
)
from experiments.cli.common import INTERRUPTED

app = typer.Typer(
    name="turing-programs",
    help="RASP-L, Turing machines, the theorem about them, and transformers compiled from both.",
    epilog="Examples:  turing-programs verify  ·  turing-programs run bb4 --on compiled  ·  turing-programs machines",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(wanted: bool) -> None:
    if wanted:
        from rasp import __version__

        typer.echo(f"turing-programs {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True, help="Show it.")] = False,
) -> None:
    pass


for _group in (
    verify,
    prove,
    run,
    compile,
    agree,
    exact,
    train,
    evaluate,
    compare,
    inspect,
    playground,
    programs,
    machines,
    graph,
    doctor,
    zoo,
):
    _group.register(app)
app.add_typer(bench.app, name="bench")
app.add_typer(export.app, name="export")


LONGEST = 600  # characters of an error
_BadUsage: Any = typer.BadParameter.__mro__[2]  # click's ClickException, wherever this version of typer keeps it


def main() -> None:
    """Run the command line; what is wrong with the input is said in one sentence."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # where the locale has no UTF-8, a ? instead of an error
            stream.reconfigure(errors="replace")
    try:
        code = app(standalone_mode=False) or 0  # typer turns Ctrl-C into this code, and a closed pipe into an exit
        if code == INTERRUPTED:
            typer.echo("interrupted", err=True)
        sys.exit(code)
    except _BadUsage as error:
        _explain_usage(error)
        sys.exit(2)
    except typer.Abort:
        typer.echo("error: nobody said yes, so nothing was done; --yes says it beforehand", err=True)
        sys.exit(2)
    except (ValueError, OverflowError, OSError, ImportError, MemoryError, RuntimeError) as error:
        if isinstance(error, RuntimeError) and not _is_about_room(error):
            raise
        if os.environ.get("TURING_PROGRAMS_DEBUG"):
            raise
        typer.echo(f"error: {on_one_line(_sentence(error))}", err=True)
        sys.exit(2)


def _explain_usage(error: Any) -> None:
    """One line for a wrong option; the help text where a command was called with nothing."""
    if type(error).__name__ == "NoArgsIsHelpError":
        error.show()
        return
    path = error.ctx.command_path if getattr(error, "ctx", None) else "turing-programs"
    typer.echo(f"error: {on_one_line(error.format_message()).rstrip('.')}; see {path} --help", err=True)


def on_one_line(text: str) -> str:
    """A sentence that a terminal can show, whatever was given: no control characters, and no more than a few lines."""
    plain = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in " ".join(text.split()))
    return plain if len(plain) <= LONGEST else f"{plain[: LONGEST // 2]} ... {plain[-LONGEST // 2 :]}"


def _is_about_room(error: RuntimeError) -> bool:
    """What torch says where memory ends, and Python where calls are too deep."""
    out_of_memory = type(error).__name__ == "OutOfMemoryError" or "allocate memory" in str(error)
    return isinstance(error, RecursionError) or out_of_memory


def _sentence(error: Exception) -> str:
    if isinstance(error, RecursionError):
        return "this is nested too deeply to be followed; give something flatter"
    if isinstance(error, RuntimeError):
        return "not enough memory for this; ask for less"
    if isinstance(error, ModuleNotFoundError):
        from rasp.extras import missing

        return str(missing("this command", error))
    if isinstance(error, MemoryError):
        return f"not enough memory for this{f' ({error})' if str(error) else ''}; ask for less"
    if isinstance(error, OSError) and error.filename is not None:
        return f"{error.filename}: {error.strerror}"
    return str(error) or type(error).__name__
