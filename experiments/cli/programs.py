"""`turing-programs programs`: what is written in RASP-L here, and what is promised of it."""

from __future__ import annotations

import typer

from experiments.cli.common import JsonOption, print_json, screen


def register(app: typer.Typer) -> None:
    app.command(epilog="Examples:  turing-programs programs  ·  turing-programs programs --json")(programs)


def programs(json: JsonOption = False) -> None:
    """List the RASP-L programs: what each writes, where exactly it is right, how that is known, and how to try it."""
    from experiments.program_list import listed_programs

    rows = listed_programs()
    if json:
        print_json({"programs": [row.to_dict() for row in rows]})
        return
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    table = Table(box=SIMPLE_HEAD)
    table.add_column("name", no_wrap=True)
    table.add_column("what it writes, where it is right, and how that is known")
    for row in rows:
        words = Text(f"{row.writes}\n").append(f"{row.contract}\n{row.checked}\n", style="dim")
        table.add_row(Text(row.name, "bold cyan"), words.append(row.example, style="green"))
    screen().print(table)
