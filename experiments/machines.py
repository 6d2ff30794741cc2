"""Machines that a person names, and the tapes they begin with, plain or over tagged symbols."""

from __future__ import annotations

import difflib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from rasp import TuringMachine, load_machine, make_simulable
from rasp.loading import default_tape
from rasp.machines.machine import Configuration
from rasp.machines.simulable import tag_row
from rasp.machines.validation import InvalidMachine
from rasp.memory import free_bytes

if TYPE_CHECKING:
    from compile import Transformer

SHORT = 10_000  # steps: for more, machine code is loaded
BYTES_PER_TOKEN = 40  # of a run that is shown: its text, the same as lists, what was written, its tapes


def read_machine(source: str) -> TuringMachine:
    """The machine a person named; where that is nearly a task's name, the error says so."""
    try:
        return load_machine(source)
    except InvalidMachine as error:
        tasks = difflib.get_close_matches(source, ("addition", "sgd", "multiplication1", "multiplication3"), n=1)
        if not tasks or Path(source).exists():
            raise
        raise InvalidMachine(f"{error}; or do you mean the task {tasks[0]!r}?") from None


def first_tape(chosen: TuringMachine, name: str, tape: str | None, steps: int, room: bool | None) -> list[int]:
    """Where a run of `steps` begins. With `room` it has blanks so that the head stays on it; None: if it can halt."""
    if tape is None and name.startswith("random"):
        cells = [chosen.symbols[(7 * i + 3) % len(chosen.symbols)] for i in range(8)]
        start = chosen.encode(cells, head=4)
    else:
        start = chosen.parse_tape(default_tape(name) if tape is None else tape)
    wants_room = bool(chosen.final) if room is None else room
    return roomy(chosen, start, steps) if wants_room else start


def roomy(machine: TuringMachine, tape: list[int], steps: int) -> list[int]:
    """The tape with blanks so that the head stays on it."""
    if steps <= SHORT:
        return machine.with_room(tape, steps)
    from rasp.machines import simulate

    given = machine.decode(tape)
    most = min(steps, free_bytes() // (BYTES_PER_TOKEN * len(tape)))  # more would be refused as a text
    return machine.with_room(tape, steps, simulate.run(machine, given.cells, given.head, most, given.state))


def text_of_run(machine: TuringMachine, tape: list[int], steps: int) -> npt.NDArray[np.int64]:
    """The machine's trace; refused if there is no memory for it."""
    if steps <= SHORT:
        return machine.trace(tape, steps)
    from rasp.machines import simulate

    return simulate.trace(machine, tape, steps, BYTES_PER_TOKEN)


@dataclass(frozen=True)
class MachineStart:
    """A machine at the beginning of a run; `decode` reads its tapes as those of the machine that a person named."""

    machine: TuringMachine
    tape: list[int]
    decode: Callable[[list[int]], Configuration]


def plain_start(chosen: TuringMachine, tape: list[int]) -> MachineStart:
    return MachineStart(chosen, tape, chosen.decode)


def tagged_start(chosen: TuringMachine, tape: list[int], n: int, kinds: int) -> MachineStart:
    """Over tagged symbols, so that no n-gram repeats; with at least so many kinds of tags."""
    cells = len(tape) - 3
    while kinds > 1 and max(tag_row(cells, n)) + 1 < kinds:
        cells += 1
    tagged, at = make_simulable(chosen, cells, n), chosen.decode(tape)
    return MachineStart(tagged.machine, tagged.encode(at.cells, at.head, at.state), tagged.decode)


def tags_of(model: Transformer | None, chosen: TuringMachine) -> int:
    """How many kinds of tags the machine that a model carries has, beside the one that was named (1: none)."""
    if model is None:  # then torch is not needed
        return 1
    from compile.machine import machine_of

    own = machine_of(model)
    return 1 if own is None else len(own.symbols) // len(chosen.symbols)
