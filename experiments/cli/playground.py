"""`turing-programs playground`: a page on which fixed transformers run the machine or the sum that a person types."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from experiments.cli.common import JsonOption, open_in_browser, path_option, print_json
from experiments.files import need_output

OutputOption = Annotated[Path, path_option("-o", "--output", help="The page.")]


def register(app: typer.Typer) -> None:
    app.command(
        epilog="Examples:  turing-programs playground --open  ·  turing-programs playground -o live.html --symbols 20"
    )(playground)


def playground(
    output: OutputOption = Path("playground.html"),
    symbols: Annotated[int, typer.Option(min=1, max=40, help="Of the largest machine, tags included.")] = 16,
    states: Annotated[int, typer.Option(min=1, max=40, help="Of the largest machine.")] = 10,
    n: Annotated[int, typer.Option("--n", min=1, max=6, help="Machines: looks n+1 tokens back.")] = 3,
    steps: Annotated[int, typer.Option(min=1, max=1000, help="How many tapes can be told apart.")] = 250,
    open_: Annotated[bool, typer.Option("--open", help="Open it in the browser.")] = False,
    json: JsonOption = False,
) -> None:
    """Write one self-contained HTML page with compiled transformers in it that run live, in the browser."""
    need_output(output, (".html",))
    from compile.playground import playground as make_page
    from compile.playground import playground_models
    from compile.playground.page import Sizes

    def tell(what: str) -> None:
        if not json:
            typer.echo(f"compiling {what} ...", err=True)

    models = playground_models(Sizes(symbols=symbols, states=states, n=n, steps=steps), tell=tell)
    path = make_page(models).save(output)
    size = path.stat().st_size
    if json:
        kept = [{"name": m.config.extra, "nonzero": m.nonzero_count()} for m in models]
        print_json({"output": str(path), "bytes": size, "models": kept})
    else:
        typer.echo(f"wrote {path} ({size / 1000:,.0f} KB): open it in a browser; it needs no network")
    if open_:
        open_in_browser(path)
