"""The universal program against each machine's own: what both say of every token that the machine's program writes.

A text is a tape and what the machine's program (with unbounded packing) writes after it, right or wrong. The universal
program reads the machine's table, a separator and the same text, and must predict the same at every position.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

from proofs_check.exhaustive import CHUNK, all_tapes, count_machines, numbered_machines
from rasp.engines.turing import turing_graph
from rasp.machines.simulate import Tables, machine_from_tables, random_tables, random_tapes
from rasp.machines.tape import bos, eos, sep
from rasp.programs.universal import Size, next_tokens_universal
from rasp.progress import StageProgress
from rasp.rewrite import simplify
from rasp.tracing import trace

if TYPE_CHECKING:
    from rasp.engines.jit import Kernel
    from rasp.machines.machine import TuringMachine

UniversalProgram = Callable[[Any, int, int, int], Any]  # x, symbols, states, n -> a prediction at every position


@dataclass
class Agreement:
    """How many predictions were compared, and the first that differ."""

    size: Size
    n: int
    machines: int = 0
    runs: int = 0
    predictions: int = 0
    differences: int = 0
    first: tuple[TuringMachine, tuple[int, ...]] | None = None  # a machine, and a text up to where the two differ

    @property
    def holds(self) -> bool:
        return self.differences == 0


def batch_tables(tables: Tables, size: Size) -> np.ndarray:
    """For each machine, its rules and the separator after them, as they stand in a prompt."""
    states = np.array(size.state_tokens)
    q, s = (np.array(side) for side in zip(*product(states, (bos, eos, *size.symbol_tokens)), strict=True))
    then, write, move = (np.asarray(table)[:, q, s].astype(np.int64) for table in tables)
    count = len(then)
    rules = np.stack([np.tile(q, (count, 1)), np.tile(s, (count, 1)), then, write, size.directions[0] + move], axis=2)
    return np.concatenate([rules.reshape(count, -1), np.full((count, 1), sep)], axis=1)


@lru_cache(maxsize=8)
def _kernels(size: Size, n: int, program: UniversalProgram) -> tuple[Kernel, Kernel]:
    from rasp.engines.jit import Kernel

    universal = Kernel(simplify(trace(lambda x: program(x, *size, n))))
    return universal, Kernel(turing_graph(*size, n, "unbounded"))


def compare(agreement: Agreement, tables: Tables, tapes: np.ndarray, steps: int, program: UniversalProgram) -> None:
    """Add what the two programs say of these machines' runs."""
    universal, own = _kernels(agreement.size, agreement.n, program)
    wanted = [getattr(tables, t.name) for t in turing_graph(*agreement.size, agreement.n, "unbounded").tables()]
    prompts = np.concatenate([tapes, np.full((len(tapes), 1), sep)], axis=1).astype(np.int64)
    texts = own.generate_batch(prompts, steps * prompts.shape[1], wanted)
    table = batch_tables(tables, agreement.size)
    expected = own.predict_batch(texts, wanted)
    found = universal.predict_batch(np.concatenate([table, texts], axis=1), [])[:, table.shape[1] :]
    differ = np.argwhere(found != expected)
    agreement.runs += len(tapes)
    agreement.predictions += expected.size
    agreement.differences += len(differ)
    if len(differ) and agreement.first is None:
        row, place = differ[0]
        one = (tables.next_state[row], tables.next_symbol[row], tables.move[row])
        machine = machine_from_tables(*one, *agreement.size)
        agreement.first = machine, tuple(texts[row, : place + 1].tolist())


def sampled_agreement(
    symbols: int = 15,
    states: int = 5,
    machines: int = 1000,
    n: int = 1,
    cells: int = 8,
    steps: int = 4,
    seed: int = 0,
    program: UniversalProgram = next_tokens_universal,
    progress: StageProgress | None = None,
) -> Agreement:
    """Random machines, each on a random tape."""
    result = Agreement(Size(symbols, states), n)
    for first in range(0, machines, CHUNK):
        count = min(CHUNK, machines - first)
        if progress:
            progress("machines", first, machines)
        tables = random_tables(count, symbols, states, seed, first)
        compare(result, tables, random_tapes(count, symbols, states, cells, seed, first), steps, program)
        result.machines += count
    return result


def exhaustive_agreement(
    symbols: int = 2,
    states: int = 2,
    length: int = 2,
    n: int = 1,
    steps: int = 3,
    program: UniversalProgram = next_tokens_universal,
    progress: StageProgress | None = None,
) -> Agreement:
    """Every machine of a size on every tape of up to `length` cells."""
    result = Agreement(Size(symbols, states), n, machines=count_machines(symbols, states))
    tapes = [tape for cells in range(length + 1) for tape in all_tapes(symbols, states, cells)]
    for first in range(0, result.machines, CHUNK):
        if progress:
            progress("machines", first, result.machines)
        tables = numbered_machines(symbols, states, np.arange(first, min(first + CHUNK, result.machines)))
        for tape in tapes:
            compare(result, tables, np.tile(np.array(tape), (len(tables.move), 1)), steps, program)
    return result
