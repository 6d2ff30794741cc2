"""`turing-programs graph`: a program as a graph, counted or drawn."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from experiments.cli.common import JsonOption, NOption, PackingOption, print_json
from experiments.files import need_output


def register(app: typer.Typer) -> None:
    app.command(
        epilog="Examples:  turing-programs graph next_token_turing -o program.svg  ·  turing-programs graph induct  ·  "
        "turing-programs graph my_programs.py:majority --raw -o majority.dot"
    )(graph)


def graph(
    program: Annotated[
        str, typer.Argument(help="next_token_turing, a library function, or FILE.py:FUNCTION / MODULE:FUNCTION.")
    ],
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="Draw to this file: .svg .png .pdf or .dot")
    ] = None,
    raw: Annotated[bool, typer.Option("--raw", help="As traced, without rewriting.")] = False,
    shallow: Annotated[bool, typer.Option("--shallow", help="Rewrite for least depth, not fewest nodes.")] = False,
    machine: Annotated[str, typer.Option(help="The machine of next_token_turing.")] = "random:12x16:0",
    n: NOption = 1,
    packing: PackingOption = "paper",
    json: JsonOption = False,
) -> None:
    """Trace a RASP-L program: count its operations, and draw it."""
    from rasp import simplify, trace

    need_output(output)
    try:
        function, arity = _program(program, machine, n, packing)
        traced = trace(function, arity)
    except (Exception, SystemExit) as error:  # whatever a person's own file does wrong when it is loaded or run
        if isinstance(error, ValueError | OverflowError | OSError) or ":" not in program:
            raise
        raise ValueError(f"{program} cannot be traced: {type(error).__name__}: {error}") from error
    chosen = traced if raw else simplify(traced, hoist=not shallow)
    if output is not None:
        chosen.draw(str(output))
    report = {
        "program": program,
        "nodes": len(chosen),
        "counts": chosen.counts(),
        "attention_depth": chosen.attention_depth(),
        "traced_nodes": len(traced),
        "output": str(output) if output else None,
    }
    if json:
        print_json(report)
        return
    counts = ", ".join(f"{count} {op}" for op, count in chosen.counts().items())
    typer.echo(f"{program}: {len(chosen)} nodes ({counts}); attention depth {chosen.attention_depth()}")
    if not raw:
        typer.echo(f"as traced: {len(traced)} nodes, attention depth {traced.attention_depth()}")
    if output is not None:
        typer.echo(f"wrote {output}")


def _program(name: str, machine: str, n: int, packing: str) -> tuple[Callable[..., Any], int]:
    """The function, and how many sequences it takes; whole-number parameters of library functions are set to 1."""
    if name in ("next_token_turing", "next_tokens"):
        from experiments.machines import read_machine
        from rasp import next_tokens

        chosen = read_machine(machine)
        return lambda x: next_tokens(x, chosen, n, packing), 1
    function = _imported(name) if ":" in name else _from_library(name)
    required = [p for p in inspect.signature(function).parameters.values() if p.default is p.empty]
    sequences = [p for p in required if p.name not in ("n", "offset", "value", "const")]
    extra = {p.name: 1 for p in required if p not in sequences}
    return lambda *xs: function(*xs, **extra), len(sequences)


def _from_library(name: str) -> Callable[..., Any]:
    import rasp.library

    function = getattr(rasp.library, name, None)
    if not inspect.isfunction(function) or function.__module__ != "rasp.library":
        raise ValueError(f"no program {name!r}: give next_token_turing, a library function, or FILE.py:FUNCTION")
    return function


def _imported(name: str) -> Callable[..., Any]:
    source, _, attribute = name.rpartition(":")
    if not source or not attribute:
        raise ValueError(f"{name!r} is not FILE.py:FUNCTION or MODULE:FUNCTION")
    if source.endswith(".py"):
        spec = importlib.util.spec_from_file_location(Path(source).stem, source)
        if spec is None or spec.loader is None or not Path(source).exists():
            raise ValueError(f"there is no file {source!r}")
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    else:
        try:
            module = importlib.import_module(source)
        except ModuleNotFoundError as error:
            raise ValueError(f"there is no module {source!r} ({error})") from None
    function = getattr(module, attribute, None)
    if not callable(function):
        raise ValueError(f"{source} has no function {attribute!r}")
    return function  # type: ignore[no-any-return]
