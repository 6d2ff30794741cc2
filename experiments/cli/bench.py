"""`turing-programs bench`: speeds, as ratios measured side by side in one run."""

from __future__ import annotations

from typing import Annotated

import typer

from experiments.cli.common import JsonOption, print_rows

app = typer.Typer(help="Speeds, as ratios measured side by side in one run.", no_args_is_help=True)


@app.command(epilog="Example:  turing-programs bench interpreters --json")
def interpreters(json: JsonOption = False) -> None:
    """The five ways to run one program, against each other and against a Turing machine written by hand."""
    from experiments.benchmarks.interpreters import bench_interpreters

    print_rows("interpreters: next_token_turing, 12 symbols x 16 states, n = 1, one core", bench_interpreters(), json)


@app.command(epilog="Example:  turing-programs bench verify --machines 200000")
def verify(
    machines: Annotated[int, typer.Option(min=1, max=10**10, help="Machines in each measurement.")] = 1_000_000,
    dask: Annotated[bool, typer.Option("--dask/--no-dask", help="Also a Dask cluster on this machine.")] = True,
    json: JsonOption = False,
) -> None:
    """Sampled verification end to end: one worker, two workers, Dask."""
    from experiments.benchmarks.verify import bench_verify

    print_rows("verify: 12 symbols x 16 states, 10 cells, 32 steps, n = 1", bench_verify(machines, dask=dask), json)


@app.command(epilog="Example:  turing-programs bench compile --no-stock")
def compile(
    stock: Annotated[bool, typer.Option("--stock/--no-stock", help="Also let stock tracr compile: minutes.")] = True,
    json: JsonOption = False,
) -> None:
    """Size, speed and correctness of the compiled transformers, and of stock tracr where it can compile at all."""
    from experiments.benchmarks.compiling import bench_compile

    print_rows("compile: 12 symbols x 16 states, n = 1, one core", bench_compile(stock), json)


@app.command(epilog="Example:  turing-programs bench decode --longest 100000")
def decode(
    longest: Annotated[int, typer.Option(min=1_000, max=10**8, help="Tokens of the longest context.")] = 1_000_000,
    json: JsonOption = False,
) -> None:
    """How fast compiled transformers write: the sparse engine beside torch, contexts of up to a million tokens."""
    from experiments.benchmarks.decoding import bench_decode

    print_rows("decode: compiled weights, one sequence, CPU time of one core", bench_decode(longest), json)


@app.command(epilog="Example:  turing-programs bench train --json")
def train(json: JsonOption = False) -> None:
    """Tokens per second against Hugging Face's GPT-NeoX, and batched evaluation against one example at a time."""
    from experiments.benchmarks.training import bench_train

    print_rows("train: 3 layers, 128 wide, 16 x 256 tokens, float32, one thread", bench_train(), json)
