"""The paper's tasks: Turing machines in two formats, addition, multiplication, SGD."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

from experiments.imports import imported, is_import, own_errors
from experiments.tasks.addition import Addition
from experiments.tasks.base import Practice, Samples, Task, UnknownOption
from experiments.tasks.multiplication import Multiplication
from experiments.tasks.sgd import Sgd
from experiments.tasks.turing_paper import TuringPaper
from experiments.tasks.turing_rasp import TuringRasp
from rasp import TuringMachine
from rasp.formats.json import from_json

__all__ = [
    "TASKS",
    "Addition",
    "Multiplication",
    "Practice",
    "Samples",
    "Sgd",
    "Task",
    "TuringPaper",
    "TuringRasp",
    "UnknownOption",
    "make_task",
    "own_task_name",
]


TASKS: dict[str, type[Task]] = {
    "turing_rasp": TuringRasp,
    "turing_paper": TuringPaper,
    "addition": Addition,
    "multiplication": Multiplication,
    "sgd": Sgd,
}
MACHINE = {"symbols": 15, "states": 5, "machine_seed": 0}  # how a description names a random machine


def make_task(description: Mapping[str, Any]) -> Task:
    """The task of a JSON description such as {"name": "turing_rasp", "machine_seed": 3}.

    Instead of a random machine, `machine` may be the text of a machine's JSON. A name such as my.py:MyTask is a
    person's own.
    """
    options = dict(description)
    name = options.pop("name", None)
    if isinstance(name, str) and is_import(name):
        return make_own_task(name, options)
    if name not in TASKS:
        raise ValueError(f"{name!r} is not a task; choose one of {', '.join(TASKS)}, or FILE.py:CLASS")
    known = {f.name for f in fields(TASKS[name])}
    has_machine = "machine" in known
    if has_machine and "machine" not in options:
        known = known - {"machine"} | set(MACHINE)
    for option in options:
        if option not in known:
            raise UnknownOption(f"the task {name}", option, known)
    if has_machine and "machine" in description:
        options["machine"] = from_json(options["machine"])
    elif has_machine:
        symbols, states, seed = (options.pop(key, default) for key, default in MACHINE.items())
        options["machine"] = TuringMachine.random(symbols=symbols, states=states, seed=seed)
    return TASKS[name](**options)


def own_task_name(name: str) -> str:
    """The import path of a person's task, which means the same from everywhere; an error if there is no such task."""
    if not is_import(name):
        raise ValueError(f"{name!r} is not FILE.py:CLASS; name a class derived from experiments.tasks.Task")
    source, _, attribute = name.rpartition(":")
    spelled = f"{Path(source).resolve()}:{attribute}" if source.endswith(".py") else name
    make_own_task(spelled, {})
    return spelled


def make_own_task(name: str, options: Mapping[str, Any]) -> Task:
    kind = imported(name, "class")
    if not isinstance(kind, type) or not issubclass(kind, Task):
        raise ValueError(f"{name} is no task; derive it from experiments.tasks.Task")
    with own_errors(f"{name} cannot be made"):
        return kind(**options)
