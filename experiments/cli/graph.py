"""`turing-programs graph`: a program as a graph, counted or drawn."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from experiments.cli.common import JsonOption, NOption, PackingOption, path_option, print_json, refuse_others


def register(app: typer.Typer) -> None:
    app.command(
        epilog="Examples:  turing-programs graph next_token_turing -o program.svg  ·  turing-programs graph induct  ·  "
        "turing-programs graph addition --n 4 -o addition.svg  ·  "
        "turing-programs graph my_programs.py:majority --raw -o majority.dot"
    )(graph)


def graph(
    context: typer.Context,
    program: Annotated[
        str,
        typer.Argument(
            help="next_token_turing, addition, multiplication1, .., sgd, universal, a library function, or "
            "FILE.py:FUNCTION / MODULE:FUNCTION."
        ),
    ],
    output: Annotated[
        Path | None, path_option("-o", "--output", help="Draw to this file: .svg .png .pdf or .dot")
    ] = None,
    raw: Annotated[bool, typer.Option("--raw", help="As traced, without rewriting.")] = False,
    shallow: Annotated[bool, typer.Option("--shallow", help="Rewrite for least depth, not fewest nodes.")] = False,
    machine: Annotated[str, typer.Option(help="The machine of next_token_turing.")] = "random:12x16:0",
    n: NOption = 1,
    packing: PackingOption = "paper",
    json: JsonOption = False,
) -> None:
    """Trace a RASP-L program: count its operations, and draw it."""
    from experiments.imports import is_import
    from experiments.programs import OF_A_MACHINE, GraphRequest, make_graph

    if program not in OF_A_MACHINE:
        own = () if is_import(program) else ("n",)
        refuse_others(context, f"a graph of {program}", "program", "output", "raw", "shallow", *own)
    request = GraphRequest(
        program=program, raw=raw, shallow=shallow, machine=machine, n=n, packing=packing, output=output
    )
    made = make_graph(request)
    if json:
        print_json(made.report)
        return
    shown, traced = made.graph, made.traced
    counts = ", ".join(f"{count} {op}" for op, count in shown.counts().items())
    typer.echo(f"{program}: {len(shown)} nodes ({counts}); attention depth {shown.attention_depth()}")
    if not raw:
        typer.echo(f"as traced: {len(traced)} nodes, attention depth {traced.attention_depth()}")
    if output is not None:
        typer.echo(f"wrote {output}")
