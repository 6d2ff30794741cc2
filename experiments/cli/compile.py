"""`turing-programs compile`: a machine into transformer weights."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated, Any

import typer

from experiments.cli.common import JsonOption, MachineArgument, NOption, print_json, screen, versions
from experiments.files import need_folder


def register(app: typer.Typer) -> None:
    app.command(
        name="compile",
        epilog="Examples:  turing-programs compile random:12x16:0 -o model/  ·  "
        "turing-programs compile bb4 --tags 14 --backend lean --steps 107 -o bb4/  ·  "
        "turing-programs compile random:3x2:0 --backend tracr --steps 8 --max-seq-len 64",
    )(compile_command)


def compile_command(
    machine: MachineArgument,
    backend: Annotated[str, typer.Option(help="hard_alibi, lean or tracr.")] = "hard_alibi",
    n: NOption = 1,
    steps: Annotated[int, typer.Option("--steps", "-t", help="How many steps the model can count.")] = 64,
    max_seq_len: Annotated[int | None, typer.Option(help="tracr only: positions of the model.")] = None,
    tags: Annotated[int | None, typer.Option(help="Tag this many cells first, so that no n-gram repeats.")] = None,
    check: Annotated[bool, typer.Option("--check/--no-check", help="Compare with the interpreter.")] = True,
    output: Annotated[Path | None, typer.Option("-o", "--output", help="Folder for the model.")] = None,
    json: JsonOption = False,
) -> None:
    """Compile a machine into a transformer that writes its traces: every head labelled with what it does."""
    from compile import compile_machine
    from experiments.machines import read_machine
    from rasp import make_simulable

    need_folder(output)
    chosen = read_machine(machine)
    compiled = make_simulable(chosen, tags, n).machine if tags is not None else chosen
    options: dict[str, Any] = {"check": check}
    if max_seq_len is not None:
        if backend != "tracr":
            raise ValueError(f"--max-seq-len is for the tracr backend; {backend} runs at every length")
        options["max_seq_len"] = max_seq_len
    started = time.perf_counter()
    model = compile_machine(compiled, backend=backend, n=n, steps=steps, **options)
    seconds = time.perf_counter() - started
    if output is not None:
        model.save_pretrained(output)
    report = {"machine": machine, "n": n, "steps": steps, **_sizes(model, backend), "seconds": seconds}
    if json:
        print_json(
            {
                **report,
                "summary": [row._asdict() for row in model.summary()],
                "output": str(output) if output else None,
                "versions": versions(),
            }
        )
        return
    _print(model, report)
    if output is not None:
        typer.echo(f"wrote {output}")


def _sizes(model: Any, backend: str) -> dict[str, Any]:
    config = model.config
    return {
        "backend": backend,
        "layers": config.layers,
        "heads": [shape.heads for shape in config.shapes],
        "d_model": config.d_model,
        "parameters": model.parameter_count(),
        "nonzero": model.nonzero_count(),
    }


def _print(model: Any, report: dict[str, Any]) -> None:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    table = Table(box=SIMPLE_HEAD)
    for heading in ("layer", "head", "window", "what it does"):
        table.add_column(heading, justify="left" if heading == "what it does" else "right")
    for row in model.summary():
        is_head = row.head is not None
        window = ("all" if row.window is None else str(row.window)) if is_head else ""
        table.add_row(str(row.layer), str(row.head) if is_head else "MLP", window, Text(row.label))
    console = screen()
    console.print(table)
    console.print(
        f"{report['backend']}: {report['layers']} layers, heads {report['heads']}, d_model {report['d_model']}, "
        f"{report['parameters']:,} parameters ({report['nonzero']:,} not zero), {report['seconds']:.1f} s"
    )
