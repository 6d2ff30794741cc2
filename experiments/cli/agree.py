"""`turing-programs agree`: the sparse engine against torch, token by token."""

from __future__ import annotations

from typing import Annotated

import typer

from experiments.cli.common import JsonOption, SeedOption, print_json, progress_bar, screen, versions


def register(app: typer.Typer) -> None:
    app.command(
        epilog="Examples:  turing-programs agree --tokens 100000  ·  turing-programs agree --tokens 2000000 --seed 1"
    )(agree)


def agree(
    tokens: Annotated[int, typer.Option(min=1, max=10**12, help="Tokens to compare, over all models.")] = 2_000_000,
    seed: SeedOption = 0,
    json: JsonOption = False,
) -> None:
    """Decode compiled transformers by both engines: every gallery machine, random machines, random tokens; n = 1 to 4.

    Exit code 1 if they differ at any token.
    """
    from experiments.engine_agreement import check_agreement

    with progress_bar("tokens", tokens) as progress:
        found = check_agreement(tokens, seed, progress)
    if json:
        print_json({**found.to_dict(), "versions": versions()})
    else:
        console = screen()
        console.print(
            f"{found.tokens:,} tokens of {found.texts:,} texts ({found.repeating:,} with repeats, {found.soup:,} "
            f"of random tokens), {found.models} models, seed {seed}: {len(found.disagreements)} differences"
        )
        console.print(
            f"both refuse at {found.refused:,} tokens; at most {found.left_out:.1g} of any attention left out"
        )
        for wrong in found.disagreements:
            console.print(f"{wrong.subject}: {wrong.reason or f'torch {wrong.torch}, sparse {wrong.sparse}'}")
            console.print(f"after {wrong.tokens} (position {wrong.at})")
    if found.disagreements:
        raise typer.Exit(1)
