"""`turing-programs machines`: the gallery, one machine in detail, drawings and conversions."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from experiments.cli.common import JsonOption, path_option, print_json, screen


def register(app: typer.Typer) -> None:
    app.command(
        epilog="Examples:  turing-programs machines  ·  turing-programs machines bb4 -o bb4.svg  ·  "
        "turing-programs machines 1RB1LB_1LA1RZ -o bb2.json"
    )(machines)


def machines(
    machine: Annotated[str | None, typer.Argument(help="Show this machine instead of the gallery.")] = None,
    output: Annotated[
        Path | None,
        path_option("-o", "--output", help="Write it: .json .yaml .txt, or its state graph as .svg .png .pdf .dot"),
    ] = None,
    json: JsonOption = False,
) -> None:
    """List the gallery, or show, convert or draw one machine."""
    if machine is None:
        if output is not None:
            raise ValueError("-o needs a machine: name one, for example `turing-programs machines bb4 -o bb4.svg`")
        _list(json)
        return
    from experiments.machines import read_machine

    chosen = read_machine(machine)
    if output is not None:
        _write(chosen, output)
    if json:
        from rasp.formats.json import to_json

        typer.echo(to_json(chosen))
    elif output is None:
        _show(chosen)
    else:
        typer.echo(f"wrote {output}")


def _list(json: bool) -> None:
    from rasp.gallery import entry, gallery, machine

    rows = [(name, entry(name), machine(name)) for name in gallery()]
    if json:
        print_json({name: {"description": e.description, "tape": e.tape, "result": e.result} for name, e, _ in rows})
        return
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    table = Table(box=SIMPLE_HEAD)
    for heading in ("name", "symbols x states", "tape", "what it does, and what is known of it"):
        table.add_column(heading, no_wrap=heading in ("name", "tape"))
    for name, e, m in rows:
        size = f"{len(m.symbol_tokens)} x {len(m.state_tokens)}"
        table.add_row(Text(name, "bold cyan"), size, Text(e.tape or "(blank)"), Text(f"{e.description}\n{e.result}"))
    screen().print(table)


def _write(machine: object, output: Path) -> None:
    from rasp import TuringMachine, save_machine
    from rasp.machines.state_graph import draw_machine

    assert isinstance(machine, TuringMachine)
    if output.suffix in (".svg", ".png", ".pdf", ".dot"):
        draw_machine(machine, output)
    else:
        save_machine(machine, output)


def _show(machine: object) -> None:
    from rasp import TuringMachine

    assert isinstance(machine, TuringMachine)
    from rich.table import Table
    from rich.text import Text

    table = Table(title=Text(machine.name or "machine"), title_justify="left")
    table.add_column("state")
    for symbol in machine.symbols:
        table.add_column(Text(f"reads {symbol}"))
    for state in machine.states:
        if state in machine.final:
            table.add_row(Text(f"{state} (final)"), *[""] * len(machine.symbols))
        else:
            table.add_row(Text(state), *(Text(" ".join(machine.transitions[state, s])) for s in machine.symbols))
    screen().print(table)
