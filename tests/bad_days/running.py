"""Commands run in this process, and what a refusal looks like."""

from __future__ import annotations

import contextlib
import inspect
import io
import itertools
import os
import sys
import typing
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import typer

from experiments.cli import app, main

TESTS = Path(__file__).parents[1]


@dataclass(frozen=True)
class Ended:
    """How a command ended, and what it said."""

    code: Any
    out: str
    err: str

    @property
    def refused(self) -> bool:
        """With one sentence, exit code 2, and nothing else."""
        sentence = self.err.strip().removeprefix("error: ")
        whole = self.err.startswith("error: ") and "\n" not in sentence and 10 < len(sentence) < 1000
        return self.code == 2 and self.out == "" and whole and sentence.isprintable() and "Traceback" not in sentence


def run(*arguments: str) -> Ended:
    """As if typed, in this process; whatever is raised is raised here too."""
    out, err, before = io.StringIO(), io.StringIO(), sys.argv
    sys.argv = ["turing-programs", *arguments]
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            main()
    except SystemExit as ended:
        return Ended(ended.code, out.getvalue(), err.getvalue())
    finally:
        sys.argv = before
    return Ended(0, out.getvalue(), err.getvalue())


def started(*arguments: str, **environment: str) -> tuple[list[str], dict[str, str]]:
    """Command and environment of a process of its own."""
    return [sys.executable, "-m", "experiments.cli", *arguments], {**os.environ, **environment}


# --- what there is ----------------------------------------------------------------------------------------------------


def commands(group: typer.Typer = app, before: tuple[str, ...] = ()) -> Iterator[tuple[str, Callable[..., Any]]]:
    """Every command by its name, with the function that it calls."""
    for one in group.registered_commands:
        assert one.callback is not None
        yield " ".join((*before, one.name or one.callback.__name__.replace("_", "-"))), one.callback
    for inner in group.registered_groups:
        assert inner.typer_instance is not None and inner.name is not None
        yield from commands(inner.typer_instance, (*before, inner.name))


@dataclass(frozen=True)
class Parameter:
    """An argument or option of a command that takes a value of a kind: int, float, Path or str."""

    name: str
    kind: type
    option: str | None  # how it is given; None: by its `place` among the arguments
    place: int = 0

    def given(self, base: Sequence[str], value: str) -> list[str]:
        """The command's arguments with this value instead of the one that they have for it, if they do."""
        plain = list(itertools.takewhile(lambda word: not word.startswith("-"), base))
        if self.option is None:
            return [*plain[: self.place], value, *base[len(plain) :]]
        kept = list(base)
        for name in {self.option, *SHORT.get(self.option, ())} & set(base):
            at = kept.index(name)
            del kept[at : at + 2]
        return [*kept, f"{self.option}={value}"]


SHORT = {"--output": ("-o",), "--machines": ("-m",)}


def parameters(command: Callable[..., Any]) -> list[Parameter]:
    """Those with a value, in order."""
    plain, annotated = typing.get_type_hints(command), typing.get_type_hints(command, include_extras=True)
    found: list[Parameter] = []
    for name in inspect.signature(command).parameters:
        if plain[name] is typer.Context:
            continue
        kinds = {plain[name], *typing.get_args(plain[name])}
        kinds |= {inner for kind in kinds for inner in typing.get_args(kind)}
        kind = next((kind for kind in (int, float, Path, str) if kind in kinds), None)
        about = next(a for a in typing.get_args(annotated[name]) if hasattr(a, "param_decls"))
        if kind is not None:
            names = [*(about.param_decls or ()), f"--{name.rstrip('_').replace('_', '-')}"]
            is_argument = "Argument" in type(about).__name__
            option = None if is_argument else next(one for one in names if one.startswith("--"))
            found.append(Parameter(name, kind, option, sum(one.option is None for one in found)))
    return found
