"""The sharp theorem on one machine that a person brings: on random tapes, or on every tape up to a length."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from proofs_check.exhaustive import MachineSpace, all_tapes, count_tapes
from proofs_check.programs import Predictions, first_errors
from proofs_check.sampled import batched
from proofs_check.shrink import Counterexample, counterexample
from rasp.machines.machine import TuringMachine
from rasp.machines.simulate import Tables, batch_traces, random_tapes, stack_tables
from rasp.progress import Progress

MOST_TOKENS = 2_000_000  # run at a time


@dataclass(frozen=True)
class TapeReport:
    """Every run was checked: the program's first wrong token is where the theorem says, or nowhere if it says so."""

    machine: TuringMachine
    which: str  # tapes
    n: int
    packing: str
    steps: int
    tapes: int
    no_repeat: int  # runs in which no tape written repeats an (n+1)-gram
    correct: int
    violations: int
    first: Counterexample | None

    @property
    def holds(self) -> bool:
        return self.violations == 0

    def to_json(self) -> dict[str, Any]:
        return {
            "machine": self.machine.name,
            "which": self.which,
            "n": self.n,
            "packing": self.packing,
            "steps": self.steps,
            "tapes": self.tapes,
            "no_repeat": self.no_repeat,
            "correct": self.correct,
            "violations": self.violations,
            "first": self.first.render() if self.first else None,
            "holds": self.holds,
        }

    def render(self) -> str:
        m = self.machine
        found = f"\n{self.first.render()}" if self.first else ""
        return (
            f"{m.name or 'machine'}, {len(m.symbols)} symbols x {len(m.states)} states, on {self.which}: "
            f"{self.tapes:,}; {self.steps} steps, n = {self.n}, {self.packing} packing\n"
            f"{self.no_repeat:,} runs write no tape with a repeated {self.n + 1}-gram, {self.correct:,} are right to "
            f"the end\n{self._past_the_bound()}\n{self.violations:,} violations of the sharp theorem{found}"
        )

    def _past_the_bound(self) -> str:
        """Why a run without a repeat may be wrong all the same."""
        bound = _space(self.machine, self.n, self.packing).bound
        if bound is None or self.steps <= bound:
            return ""
        return (
            f"(past step {bound:,}, which is base**n, a key can be held by a place of an earlier tape, too: there the "
            "theorem names the first wrong token)\n"
        )


def _space(machine: TuringMachine, n: int, packing: str) -> MachineSpace:
    return MachineSpace(len(machine.symbols), len(machine.states), n, packing)


def verify_machine(
    machine: TuringMachine,
    tapes: int = 10_000,
    lengths: tuple[int, int] = (10, 10),
    steps: int = 32,
    n: int = 1,
    packing: str = "paper",
    seed: int = 0,
    engine: str = "jit",
    program: str | Predictions | None = None,
    progress: Progress = lambda done, total: None,
) -> TapeReport:
    """On so many random tapes of these lengths, in equal shares."""
    if tapes < 1 or not 0 <= lengths[0] <= lengths[1]:
        raise ValueError(
            f"{tapes} tapes of {lengths[0]} to {lengths[1]} cells: give at least one, and lengths in order"
        )
    size = _space(machine, n, packing)
    each = np.diff(np.linspace(0, tapes, lengths[1] - lengths[0] + 2).round().astype(int))
    groups = (
        random_tapes(int(count), size.symbols, size.states, cells, seed)
        for cells, count in zip(range(lengths[0], lengths[1] + 1), each, strict=True)
        if count
    )
    cells = f"{lengths[0]} cells" if lengths[0] == lengths[1] else f"{lengths[0]} to {lengths[1]} cells"
    which = f"random tapes of {cells}, seed {seed}"
    return _check(machine, size, groups, which, steps, tapes, engine, program, progress)


def exhaust_machine(
    machine: TuringMachine,
    length: int = 3,
    n: int = 1,
    steps: int | None = None,
    packing: str = "paper",
    engine: str = "jit",
    program: str | Predictions | None = None,
    progress: Progress = lambda done, total: None,
) -> TapeReport:
    """On every tape of up to `length` cells, each state and place of the head; `steps`: default base**n, at most 64."""
    size = _space(machine, n, packing)
    if length < 0:
        raise ValueError(f"the length is {length}; a tape has at least 0 cells")
    total = count_tapes(size.symbols, size.states, length)
    groups = (np.array(list(all_tapes(size.symbols, size.states, cells))) for cells in range(length + 1))
    horizon = size.horizon(steps)
    which = f"every tape of up to {length} cells, head and state"
    return _check(machine, size, groups, which, horizon, total, engine, program, progress)


def _check(
    machine: TuringMachine,
    size: MachineSpace,
    groups: Iterator[np.ndarray],
    which: str,
    steps: int,
    total: int,
    engine: str,
    program: str | Predictions | None,
    progress: Progress,
) -> TapeReport:
    size.horizon(steps)
    if steps < 1:
        raise ValueError(f"{steps} steps leave nothing to check; give at least 1")
    done = no_repeat = correct = violations = 0
    first: Counterexample | None = None
    for tapes in _parts(groups, steps):
        progress(done, total)
        repeats, right, differ = _run(machine, size, tapes, steps, engine, program)
        done, no_repeat, correct = done + len(tapes), no_repeat + repeats, correct + right
        violations += len(differ)
        if len(differ) and first is None:
            tape = tapes[differ[0]].tolist()
            first = counterexample(machine, tape, steps, size.n, size.packing, program)
    progress(done, total)
    return TapeReport(machine, which, size.n, size.packing, steps, done, no_repeat, correct, violations, first)


def _parts(groups: Iterator[np.ndarray], steps: int) -> Iterator[np.ndarray]:
    for tapes in groups:
        rows = max(1, MOST_TOKENS // ((tapes.shape[1] + 1) * (steps + 1)))
        yield from (tapes[i : i + rows] for i in range(0, len(tapes), rows))


def _run(
    machine: TuringMachine,
    size: MachineSpace,
    tapes: np.ndarray,
    steps: int,
    engine: str,
    program: str | Predictions | None,
) -> tuple[int, int, np.ndarray]:
    """How many runs repeat no gram, how many are right, and which do not do as the theorem says."""
    width = tapes.shape[1]
    tables = Tables(*(np.repeat(table, len(tapes), axis=0) for table in stack_tables([machine])))
    traces = batch_traces(*tables, tapes, steps)
    observed = first_errors(size, engine, program, traces, tables, start=width - 1)
    repeat = batched.wrong_by_repeat(traces, width, size.n, size.base)
    bounded = size.bound is not None and steps > size.bound
    expected = batched.wrong_by_key(traces, width, size.n, size.base) if bounded else repeat
    return int((repeat < 0).sum()), int((observed < 0).sum()), np.flatnonzero(observed != expected)
