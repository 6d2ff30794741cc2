"""The paper's tasks: Turing machines in two formats, addition, multiplication, SGD."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from experiments.tasks.addition import Addition
from experiments.tasks.base import Samples, Task
from experiments.tasks.multiplication import Multiplication
from experiments.tasks.sgd import Sgd
from experiments.tasks.turing_paper import TuringPaper
from experiments.tasks.turing_rasp import TuringRasp
from rasp import TuringMachine

__all__ = ["TASKS", "Addition", "Multiplication", "Samples", "Sgd", "Task", "TuringPaper", "TuringRasp", "make_task"]


def _machine(symbols: int = 15, states: int = 5, machine_seed: int = 0) -> TuringMachine:
    return TuringMachine.random(symbols=symbols, states=states, seed=machine_seed)


def _turing(kind: type[TuringRasp] | type[TuringPaper]) -> Callable[..., Task]:
    def make(symbols: int = 15, states: int = 5, machine_seed: int = 0, **options: Any) -> Task:
        return kind(machine=_machine(symbols, states, machine_seed), **options)

    return make


TASKS: dict[str, Callable[..., Task]] = {
    "turing_rasp": _turing(TuringRasp),
    "turing_paper": _turing(TuringPaper),
    "addition": Addition,
    "multiplication": Multiplication,
    "sgd": Sgd,
}


def make_task(description: Mapping[str, Any]) -> Task:
    """The task of a JSON description such as {"name": "turing_rasp", "machine_seed": 3}."""
    options = dict(description)
    name = options.pop("name", None)
    if name not in TASKS:
        raise ValueError(f"{name!r} is not a task; choose one of {', '.join(TASKS)}")
    try:
        return TASKS[name](**options)
    except TypeError as error:
        unknown = str(error).rpartition("unexpected keyword argument ")[2] if "unexpected" in str(error) else ""
        why = f"it has no option {unknown}" if unknown else str(error)
        raise ValueError(f"the task {name} cannot be made from {options}: {why}") from None
