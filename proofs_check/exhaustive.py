"""Nothing left out: every machine of a size on every tape up to a length, and every input up to a length.

A machine with s symbols and q states has (2 s q)**(s q) sets of rules and q**(2 q) ways to come back from the end
markers, which belong to it as well: 4,096 x 16 = 65,536 machines with 2 symbols and 2 states. All are run, none is left
out for symmetry, because the program is not symmetric: of two matches it takes the larger token.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from proofs_check.programs import Predictions, first_errors, predictions
from proofs_check.sampled import batched
from proofs_check.shrink import Counterexample, counterexample
from rasp.engines.dispatch import ENGINES
from rasp.engines.turing import predict
from rasp.machines.machine import TuringMachine
from rasp.machines.simulate import Tables, batch_traces, machine_from_tables
from rasp.machines.tape import bos, eos
from rasp.programs.turing import check_packing
from rasp.progress import StageProgress

CHUNK = 1 << 13  # machines run at once: their traces stay in the cache
MOST_MACHINES = 1 << 24
MOST_RULES = 64
MOST_TAPES = 1 << 22
MOST_RUNS = 10**11  # days
USUAL_STEPS = 64  # at most, where nobody says how many


# --- every machine ----------------------------------------------------------------------------------------------------


def count_machines(symbols: int, states: int) -> int:
    return int((2 * symbols * states) ** (symbols * states) * states ** (2 * states))


def numbered_machines(symbols: int, states: int, numbers: np.ndarray) -> Tables:
    """The tables of machines by their number: its digits are what the machine does, one place of the tables each."""
    low, base = 4 + symbols, 4 + symbols + states
    tables = Tables(*(np.zeros((len(numbers), base, base), dtype=np.int8) for _ in range(3)))
    tables.next_symbol[:, :, bos], tables.next_symbol[:, :, eos], tables.move[:, :, bos] = bos, eos, 1
    rest = np.asarray(numbers, dtype=np.int64)
    for q, end in product(range(low, base), (bos, eos)):
        rest, digit = np.divmod(rest, states)
        tables.next_state[:, q, end] = low + digit
    for q, a in product(range(low, base), range(4, low)):
        rest, tables.move[:, q, a] = np.divmod(rest, 2)
        rest, digit = np.divmod(rest, symbols)
        tables.next_symbol[:, q, a] = 4 + digit
        rest, digit = np.divmod(rest, states)
        tables.next_state[:, q, a] = low + digit
    return tables


def all_tapes(symbols: int, states: int, length: int) -> Iterator[list[int]]:
    """Every tape of that many cells: all contents, all states, the head on every cell and on both end markers."""
    for cells in product(range(4, 4 + symbols), repeat=length):
        for head, state in product(range(1, length + 3), range(4 + symbols, 4 + symbols + states)):
            tape = [bos, *cells, eos]
            tape.insert(head, state)
            yield tape


def count_tapes(symbols: int, states: int, length: int) -> int:
    """How many `all_tapes` has of up to `length` cells; refused if they are more than can be run one by one."""
    total = 0
    for cells in range(length + 1):
        total += symbols**cells * (cells + 2) * states
        if total > MOST_TAPES:
            raise ValueError(
                f"{symbols} symbols and {states} states have over {MOST_TAPES:,} tapes of up to {length} cells, and "
                f"no more can be run one by one; give a smaller --length than {cells}, or draw some with `verify`"
            )
    return total


@dataclass(frozen=True)
class MachineSpace:
    """Which machines, and which program."""

    symbols: int
    states: int
    n: int
    packing: str

    @property
    def base(self) -> int:
        return 4 + self.symbols + self.states

    @property
    def bound(self) -> int | None:
        """Steps up to which only a repeat makes the program wrong; None: there is no end to them."""
        return self.base**self.n if self.packing == "paper" else None

    def horizon(self, steps: int | None) -> int:
        """`steps`, or as many as the sharp theorem reaches, up to the usual. Refuses an n that does not fit."""
        check_packing(self.n, self.base, self.packing)
        batched.check_gram(self.n, self.base)
        if steps is not None:
            return steps
        return min(self.base ** min(self.n, USUAL_STEPS.bit_length()), USUAL_STEPS)


@dataclass(frozen=True)
class MachineReport:
    """Every run was checked: the program's first wrong token is where the theorem says, or nowhere if it says so."""

    size: MachineSpace
    length: int
    steps: int
    machines: int
    tapes: int
    runs: int
    correct: int
    violations: int
    first: Counterexample | None

    @property
    def holds(self) -> bool:
        return self.violations == 0


def every_machine(
    symbols: int = 2,
    states: int = 2,
    length: int = 3,
    n: int = 1,
    steps: int | None = None,
    packing: str = "paper",
    program: str | Predictions | None = None,
    progress: StageProgress | None = None,
    engine: str = "jit",
) -> MachineReport:
    """Every machine of a size on every tape of up to `length` cells, for `steps` steps (default base**n, at most 64).

    Checks the sharp theorem: a run is right through step t if and only if none of its tapes 1 to t has a
    repeated (n+1)-gram, and the first wrong token is the one for which a twin gram promises a larger token.
    """
    size = MachineSpace(symbols, states, n, packing)
    _check(size, length)
    horizon = size.horizon(steps)
    _check_steps(size, horizon)
    machines = count_machines(symbols, states)
    tapes = [tape for cells in range(length + 1) for tape in all_tapes(symbols, states, cells)]
    correct = violations = 0
    first: Counterexample | None = None
    chunks = [np.arange(i, min(i + CHUNK, machines)) for i in range(0, machines, CHUNK)]
    for done, numbers in enumerate(chunks):
        if progress:
            progress(f"machines from {numbers[0]:,}", done, len(chunks))
        tables = numbered_machines(symbols, states, numbers)
        for tape in tapes:
            right, differ = _run(size, tables, tape, horizon, program, engine)
            correct, violations = correct + right, violations + len(differ)
            if len(differ) and first is None:
                first = _shrunk(size, tables, int(differ[0]), tape, horizon, program)
    runs = machines * len(tapes)
    return MachineReport(size, length, horizon, machines, len(tapes), runs, correct, violations, first)


def _check(size: MachineSpace, length: int) -> None:
    if min(size.symbols, size.states) < 1 or length < 0:
        raise ValueError(
            f"symbols and states must be at least 1 and the length at least 0, got {size.symbols}, {size.states} and "
            f"{length}"
        )
    few = size.symbols * size.states <= MOST_RULES  # the number of machines grows faster than any power
    machines = count_machines(size.symbols, size.states) if few else MOST_MACHINES + 1
    if machines > MOST_MACHINES:
        many = f"{machines:,}" if few else f"over {MOST_MACHINES:,}"
        raise ValueError(
            f"there are {many} machines with {size.symbols} symbols and {size.states} states: at "
            f"most {MOST_MACHINES:,} can be run one by one; `verify` draws from larger ones"
        )
    runs = machines * count_tapes(size.symbols, size.states, length)
    if runs > MOST_RUNS:
        raise ValueError(
            f"{machines:,} machines on every tape of up to {length} cells are {runs:,} runs: at most {MOST_RUNS:,} are "
            "made one by one; give a smaller --length, or draw some with `verify`"
        )


def _check_steps(size: MachineSpace, steps: int) -> None:
    if steps < 1:
        raise ValueError(f"{steps} steps leave nothing to check; give at least 1")
    if size.bound is not None and steps > size.bound:
        raise ValueError(
            f"{steps} steps are beyond {size.base}**{size.n} = {size.bound}, where the sharp "
            "theorem ends for the paper's packing; use packing unbounded"
        )


def _run(
    size: MachineSpace, tables: Tables, tape: list[int], steps: int, program: str | Predictions | None, engine: str
) -> tuple[int, np.ndarray]:
    """How many machines are right on this tape, and which do not do as the theorem says."""
    width = len(tape)
    tapes = np.tile(np.array(tape, dtype=np.int64), (len(tables.move), 1))
    traces = batch_traces(*tables, tapes, steps)
    observed = first_errors(size, engine, program, traces, tables, start=width - 1)
    expected = batched.wrong_by_repeat(traces, width, size.n, size.base)
    return int((observed < 0).sum()), np.flatnonzero(observed != expected)


def _shrunk(
    size: MachineSpace, tables: Tables, row: int, tape: list[int], steps: int, program: str | Predictions | None
) -> Counterexample | None:
    one = (tables.next_state[row], tables.next_symbol[row], tables.move[row])
    machine = machine_from_tables(*one, size.symbols, size.states)
    return counterexample(machine, tape, steps, size.n, size.packing, program)


# --- every input ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class InputDifference:
    """An input on which two interpreters say different things."""

    tokens: tuple[int, ...]
    engine: str
    reference: tuple[int, ...]
    found: tuple[int, ...]


@dataclass(frozen=True)
class InputReport:
    machine: TuringMachine
    length: int
    engines: tuple[str, ...]
    inputs: int
    predictions: int
    differences: int
    first: InputDifference | None

    @property
    def holds(self) -> bool:
        return self.differences == 0


def every_input(
    machine: TuringMachine,
    length: int = 4,
    n: int = 1,
    packing: str = "paper",
    engines: Sequence[str] = tuple(ENGINES),
    program: str | Predictions | None = None,
    progress: StageProgress | None = None,
) -> InputReport:
    """All token sequences up to a length, tapes or not: every interpreter predicts what the first one predicts.

    Inputs of exactly `length` tokens are enough: the program is causal, and all their prefixes are among what it
    predicts. `program` is put in place of the last interpreter, to see that a wrong one is noticed.
    """
    inputs = product(range(machine.base), repeat=length)
    total, differences, first = machine.base**length, 0, None
    for done, tokens in enumerate(inputs):
        if progress and done % 1024 == 0:
            progress("inputs", done, total)
        swapped = {engines[-1]: program}
        found = {e: _predictions(tokens, machine, n, packing, e, swapped.get(e)) for e in engines}
        for engine in engines[1:]:
            if found[engine] != found[engines[0]]:
                differences += 1
                first = first or _smallest(tokens, engine, found[engines[0]], found[engine])
    return InputReport(machine, length, tuple(engines), total, total * length * len(engines), differences, first)


def _predictions(
    tokens: tuple[int, ...], machine: TuringMachine, n: int, packing: str, engine: str, program: Any
) -> tuple[int, ...]:
    x = np.array(tokens, dtype=np.int64)
    out = predictions(x, machine, n, packing, program) if program else predict(x, machine, n, packing, engine)
    return tuple(out.tolist())


def _smallest(tokens: tuple[int, ...], engine: str, a: tuple[int, ...], b: tuple[int, ...]) -> InputDifference:
    """Cut after the first position where the two differ: nothing later plays a part."""
    size = 1 + next(i for i, (s, t) in enumerate(zip(a, b, strict=True)) if s != t)
    return InputDifference(tokens[:size], engine, a[:size], b[:size])
