"""One self-contained page on which fixed transformers run what a person types: no network, no libraries."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from string import Template
from typing import Any

from compile.html_page import HtmlPage
from compile.inspector.page import embed
from compile.inspector.page import static as inspector_static
from compile.markup import shown
from compile.playground.weights import model_data
from compile.tasks import compile_task, compile_universal
from compile.transformer import Transformer
from rasp.formats.json import to_json
from rasp.gallery import entry, gallery, machine
from rasp.machines.machine import TuringMachine

VIEWS = ("data", "colour", "tape", "matrix", "arcs", "graph", "registers", "pane")  # of the inspector
SCRIPTS = ("machine", "jobs", "live", "strip", "setup", "changes", "engine", "report", "app")
WORKER = ("forward", "worker")
TASKS = ("addition", "multiplication1")
TITLE = "One fixed transformer runs your machine"


@dataclass(frozen=True)
class Sizes:
    """How large the machines and problems are that the page's transformers are compiled for."""

    symbols: int = 16
    states: int = 10
    n: int = 3
    steps: int = 250
    lines: int = 128  # of the texts of addition and multiplication
    task_n: int = 4

    def fits(self, machine: TuringMachine) -> bool:
        return len(machine.symbols) <= self.symbols and len(machine.states) <= self.states


@dataclass(frozen=True)
class Playground(HtmlPage):
    """The page: `html`, and `save(path)`."""

    data: dict[str, Any]

    @property
    def html(self) -> str:
        return render(self.data)


def playground_models(
    sizes: Sizes | None = None, tasks: Sequence[str] = TASKS, tell: Callable[[str], None] = lambda _: None
) -> list[Transformer]:
    """The weights of the page: every machine up to a size, and these tasks."""
    sizes = sizes or Sizes()
    tell("the universal transformer")
    models = [compile_universal(sizes.symbols, sizes.states, sizes.n, sizes.steps, check=False)]
    for task in tasks:
        tell(task)
        models.append(compile_task(task, sizes.task_n, sizes.lines, check=False))
    return models


def playground(models: Sequence[Transformer] | None = None, tell: Callable[[str], None] = lambda _: None) -> Playground:
    """The page with these models (made by `playground_models`, which are the default)."""
    chosen = playground_models(tell=tell) if models is None else models
    return Playground({"models": [model_data(m, _name(m)) for m in chosen], "gallery": [_entry(n) for n in gallery()]})


def _name(model: Transformer) -> str:
    extra = model.config.extra
    return "universal transformer" if "universal" in extra else str(extra["task"])


def _entry(name: str) -> dict[str, Any]:
    known = entry(name)
    return {
        "name": name,
        "description": known.description,
        "tape": known.tape,
        "steps": known.steps,
        "machine": json.loads(to_json(machine(name))),
    }


@cache
def static(name: str) -> str:
    return (files("compile.playground") / "static" / name).read_text(encoding="utf-8")


def render(data: dict[str, Any]) -> str:
    return Template(static("playground.html")).substitute(
        title=shown(TITLE),
        styles=inspector_static("page.css") + static("playground.css"),
        scripts="\n".join([inspector_static(f"{n}.js") for n in VIEWS] + [static(f"{n}.js") for n in SCRIPTS]),
        worker="\n".join(static(f"{n}.js") for n in WORKER),
        data=embed(data),
    )
