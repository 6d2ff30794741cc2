"""`turing-programs bench`: speeds, as ratios measured side by side in one run."""

from __future__ import annotations

import typer

from experiments.cli.common import JsonOption, print_rows

app = typer.Typer(help="Speeds, as ratios measured side by side in one run.", no_args_is_help=True)


@app.command(epilog="Example:  turing-programs bench interpreters --json")
def interpreters(json: JsonOption = False) -> None:
    """The five ways to run one program, against each other and against a Turing machine written by hand."""
    from experiments.benchmarks.interpreters import bench_interpreters

    print_rows("interpreters: next_token_turing, 12 symbols x 16 states, n = 1, one core", bench_interpreters(), json)
