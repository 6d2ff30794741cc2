"""Turing machines in the format of the paper's RASP program: `bos s .. q s .. eos sep <next tape> sep ..`.

The tokens are those of the machine itself, so what is trained here and what is compiled read the same sequences.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from experiments.tasks.base import IntArray, Samples, lay_out, where_present
from experiments.tasks.symbols import Repetition, SymbolTask
from rasp import TuringMachine
from rasp.machines.simulate import batch_traces, stack_tables
from rasp.machines.tape import bos, eos, sep


@dataclass(frozen=True, kw_only=True)
class TuringRasp(SymbolTask):
    """Without scratchpad, the tape after `steps` steps follows the first one at once."""

    machine: TuringMachine = field(default_factory=lambda: TuringMachine.random(symbols=15, states=5, seed=0))
    steps: int = 1

    few: ClassVar[range] = range(5, 11)
    separator: ClassVar[str] = "sep"
    joiner: ClassVar[str] = " "
    multiples: ClassVar[tuple[float, ...]] = (1, 1.5, 2, 3, 5)
    unit: ClassVar[str] = "cells"

    def __post_init__(self) -> None:
        if self.steps < 1:
            raise ValueError(f"steps is {self.steps}; a sample shows at least 1 step")

    @property
    def vocabulary(self) -> tuple[str, ...]:
        return self.machine.vocabulary

    def generate_from(self, rng: np.random.Generator, lengths: IntArray, repetition: Repetition | None) -> Samples:
        return self.lay_out_traces(draw_tapes(rng, self.machine, lengths[:, 0], repetition), lengths[:, 0])

    def lay_out_traces(self, tapes: IntArray, lengths: IntArray) -> Samples:
        """`tapes` are (samples, longest + 3), filled up with sep."""
        traces = follow(self.machine, tapes, self.steps)
        inside = np.arange(traces.shape[2]) < lengths[:, None] + 4  # bos, state, eos, sep
        lines = [where_present(inside, traces[:, t]) for t in range(self.steps + 1)]
        return lay_out(lines[:1], lines[1:] if self.scratchpad else lines[-1:])


def draw_tapes(
    rng: np.random.Generator, machine: TuringMachine, lengths: IntArray, repetition: Repetition | None = None
) -> IntArray:
    """Random symbols and state, head on a random cell or end marker (runs get there); after the tape comes sep."""
    count, longest = len(lengths), int(lengths.max())
    columns, ends = np.arange(longest + 2), lengths[:, None] + 1
    plain = rng.integers(machine.symbol_tokens.start, machine.symbol_tokens.stop, size=(count, longest + 2))
    if repetition is not None:
        first = machine.symbol_tokens.start
        kinds = len(machine.symbol_tokens)
        plain[:, 1:] = first + repetition.impose(rng, plain[:, 1:] - first, kinds, lengths)
    plain = np.select([columns == 0, columns == ends, columns > ends], [bos, eos, sep], plain)
    head = rng.integers(lengths + 2)[:, None] + 1  # where the state stands: right of what it reads
    states = rng.integers(machine.state_tokens.start, machine.state_tokens.stop, size=(count, 1))
    padded, places = np.pad(plain, ((0, 0), (0, 1))), np.arange(longest + 3)
    return np.where(places < head, padded, np.where(places == head, states, np.roll(padded, 1, axis=1)))


def follow(machine: TuringMachine, tapes: IntArray, steps: int) -> IntArray:
    """(samples, steps + 1, width + 1): what stands after eos is carried along untouched, sep by sep."""
    state, symbol, move = (np.repeat(table, len(tapes), axis=0) for table in stack_tables([machine]))
    return batch_traces(state, symbol, move, tapes, steps).reshape(len(tapes), steps + 1, -1)
