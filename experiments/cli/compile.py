"""`turing-programs compile`: a machine or a program into transformer weights."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from experiments.cli.common import (
    BACKENDS,
    JsonOption,
    MachineOrProgram,
    NOrDefault,
    PrecisionOption,
    ThreadsOption,
    one_of,
    path_option,
    print_json,
    screen,
)

if TYPE_CHECKING:
    from experiments.compilations import Compilation


def register(app: typer.Typer) -> None:
    app.command(
        name="compile",
        epilog="Examples:  turing-programs compile random:12x16:0 -o model/  ·  "
        "turing-programs compile bb4 --tags 14 --backend lean --steps 107 -o bb4/  ·  "
        "turing-programs compile random:3x2:0 --backend tracr --steps 8 --max-seq-len 64  ·  "
        "turing-programs compile addition --steps 32  ·  "
        "turing-programs compile my.py:majority --tokens 2 --positions 32",
    )(compile_command)


def compile_command(
    machine: MachineOrProgram,
    backend: Annotated[str, typer.Option(help="hard_alibi, lean or tracr.", callback=one_of(BACKENDS))] = "hard_alibi",
    n: NOrDefault = None,
    steps: Annotated[
        int, typer.Option("--steps", "-t", help="How many steps, lines of a task, or `sel_width`, the model can count.")
    ] = 64,
    tokens: Annotated[int | None, typer.Option(help="Own programs: input tokens are 0 to this minus 1.")] = None,
    positions: Annotated[int | None, typer.Option(help="Own programs that use `indices`: the longest input.")] = None,
    max_seq_len: Annotated[int | None, typer.Option(help="tracr only: positions of the model.")] = None,
    tags: Annotated[int | None, typer.Option(help="Tag this many cells first, so that no n-gram repeats.")] = None,
    check: Annotated[bool, typer.Option("--check/--no-check", help="Compare with the interpreter.")] = True,
    precision: PrecisionOption = "float32",
    threads: ThreadsOption = None,
    output: Annotated[Path | None, path_option("-o", "--output", help="Folder for the model.")] = None,
    json: JsonOption = False,
) -> None:
    """Compile a machine into a transformer that writes its traces, or a program into one that says what it says: every
    head labelled with what it does.
    """
    from experiments.compilations import CompilationRequest, run_compilation

    request = CompilationRequest(
        machine=machine,
        backend=backend,
        n=n,
        steps=steps,
        tokens=tokens,
        positions=positions,
        max_seq_len=max_seq_len,
        tags=tags,
        check=check,
        precision=precision,
        threads=threads,
        output=output,
    )
    compiled = run_compilation(request)
    if json:
        print_json(compiled.report)
    else:
        _print(compiled)


def _print(compiled: Compilation) -> None:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    table = Table(box=SIMPLE_HEAD)
    for heading in ("layer", "head", "window", "what it does"):
        table.add_column(heading, justify="left" if heading == "what it does" else "right")
    for row in compiled.model.summary():
        is_head = row.head is not None
        window = ("all" if row.window is None else str(row.window)) if is_head else ""
        table.add_row(str(row.layer), str(row.head) if is_head else "MLP", window, Text(row.label))
    console, report = screen(), compiled.report
    console.print(table)
    console.print(
        f"{report['backend']}: {report['layers']} layers, heads {report['heads']}, d_model {report['d_model']}, "
        f"{report['parameters']:,} parameters ({report['nonzero']:,} not zero), {report['seconds']:.1f} s"
    )
    decoding = report["decoding"]
    console.print(
        f"decoded through torch: {decoding['reason']}"
        if decoding["engine"] == "torch"
        else f"decoded by looking up (sparse), leaving out at most {decoding['left_out']:.0e} of any attention"
    )
    if report["output"] is not None:
        typer.echo(f"wrote {report['output']}")
