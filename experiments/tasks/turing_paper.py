"""Turing machines in the format of the paper's experiments: the symbol under the head a_j is written b_j.

    $ ( q1 ) a3 b7 a2 | ( q4 a1 R ) a3 a1 b2 |

The paper says that the output of the transition function is emitted before the next tape and prints no whole example,
so this spelling is one reading of it. The head stays where it is when it would leave the tape.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from experiments.tasks.base import IntArray, Samples, lay_out, where_present
from experiments.tasks.symbols import Repetition, SymbolTask
from rasp import TuringMachine


@dataclass(frozen=True, kw_only=True)
class TuringPaper(SymbolTask):
    """Without scratchpad the transition is not spelled out: only the state and the tape follow."""

    machine: TuringMachine = field(default_factory=lambda: TuringMachine.random(symbols=15, states=5, seed=0))

    few: ClassVar[range] = range(5, 11)
    joiner: ClassVar[str] = " "
    multiples: ClassVar[tuple[float, ...]] = (1, 1.5, 2, 3, 5)
    unit: ClassVar[str] = "cells"

    @property
    def vocabulary(self) -> tuple[str, ...]:
        symbols = len(self.machine.symbols)
        heads = (f"b{i + 1}" for i in range(symbols))
        return ("$", "(", ")", "|", "L", "R", *self.machine.states, *(f"a{i + 1}" for i in range(symbols)), *heads)

    def generate_from(self, rng: np.random.Generator, lengths: IntArray, repetition: Repetition | None) -> Samples:
        sizes, kinds = lengths[:, 0], len(self.machine.symbols)
        cells = rng.integers(kinds, size=(len(sizes), int(sizes.max())))
        if repetition is not None:
            cells = repetition.impose(rng, cells, kinds, sizes)
        return self.lay_out_steps(
            cells, sizes, rng.integers(sizes), rng.integers(len(self.machine.states), size=len(sizes))
        )

    def problem(self, cells: list[int], head: int, state: int) -> Samples:
        """The one sample of a tape given by numbers of symbols, from 0."""
        return self.lay_out_steps(np.array([cells]), np.array([len(cells)]), np.array([head]), np.array([state]))

    def lay_out_steps(self, cells: IntArray, sizes: IntArray, head: IntArray, state: IntArray) -> Samples:
        rows = np.arange(len(sizes))
        then, write, right = self.rules(state, cells[rows, head])
        after = cells.copy()
        after[rows, head] = write
        to = np.clip(head + 2 * right - 1, 0, sizes - 1)
        first_state, first_symbol = self.token(self.machine.states[0]), self.token("a1")
        prompt = [
            self.const("$("),
            first_state + state[:, None],
            self.const(")"),
            self.spell(cells, sizes, head),
            self.const("|"),
        ]
        rule = [first_symbol + write[:, None], self.token("L") + right[:, None]] if self.scratchpad else []
        answer = [
            self.const("("),
            first_state + then[:, None],
            *rule,
            self.const(")"),
            self.spell(after, sizes, to),
            self.const("|"),
        ]
        return lay_out(prompt, answer)

    def rules(self, state: IntArray, symbol: IntArray) -> tuple[IntArray, IntArray, IntArray]:
        """Next state, written symbol (both from 0) and whether to go right."""
        machine = self.machine
        at = state + machine.state_tokens.start, symbol + machine.symbol_tokens.start
        tables = (np.asarray(table.values)[at] for table in (machine.next_state, machine.next_symbol, machine.move))
        then, write, right = tables
        return then - machine.state_tokens.start, write - machine.symbol_tokens.start, right

    def spell(self, cells: IntArray, sizes: IntArray, head: IntArray) -> IntArray:
        columns = np.arange(cells.shape[1])
        under = columns == head[:, None]
        tokens = cells + np.where(under, self.token("b1"), self.token("a1"))
        return where_present(columns < sizes[:, None], tokens)
