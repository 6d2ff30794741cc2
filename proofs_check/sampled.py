"""The sharp theorem, on millions of random machines.

For each machine the theorem says at which token the program goes wrong first (or that it never does); the program is
run and must go wrong there and nowhere before. Machine number i of a seed is the same in every run, so the result
depends neither on how the numbers are cut into chunks, nor on who computes them, nor on the engine.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass, field, fields
from functools import partial
from typing import Any

import numpy as np

from proofs_check import batched
from proofs_check.intervals import clopper_pearson
from proofs_check.journal import Journal
from proofs_check.pool import Pool, available_cores, open_pool
from proofs_check.programs import Predictions, first_errors, name_of
from proofs_check.shrink import Counterexample, counterexample
from rasp.machine import TuringMachine
from rasp.simulate import batch_traces, machine_from_tables, random_tables, random_tapes
from rasp.tape import MARKERS, InvalidTape
from rasp.turing import check_packing
from rasp.validation import check_size

STRETCH = 256  # machines run at once; their traces fit the cache
MIXED_STRETCH = 8  # the same where lengths vary: consecutive machines that get tapes of one length
LONGEST_RUN = 50_000_000  # tokens of one run
MOST_TOKENS = 4_000_000  # run at a time: long runs are taken fewer together
CHUNK = 16384  # machines between two entries of the journal
WORTH_A_POOL = 1_000_000  # below this many machines, starting processes takes longer than the work

Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class Sweep:
    """Which machines and tapes, how long, and which program. `shortest` to `longest` are numbers of cells."""

    machines: int
    symbols: int = 12
    states: int = 16
    shortest: int = 10
    longest: int = 10
    steps: int = 32
    n: int = 1
    packing: str = "paper"
    seed: int = 0
    strict_in_memory: bool = False
    program: str = ""
    chunk: int = CHUNK

    @property
    def base(self) -> int:
        return len(MARKERS) + self.symbols + self.states

    @property
    def bound(self) -> int | None:
        """Up to how many steps the theorem's hypotheses reach; None: any number."""
        return self.base**self.n if self.packing == "paper" else None

    @property
    def within_bound(self) -> bool:
        return self.bound is None or self.steps <= self.bound

    @property
    def chunks(self) -> int:
        return -(-self.machines // self.chunk)

    def length(self, machine: int) -> int:
        """How many cells the tape of this machine has: stretch after stretch, spread evenly over the range.

        Multiples of the golden ratio, cut to fractions, cover an interval evenly however many of them are taken.
        """
        fraction = machine // self.stretch * 0x9E3779B97F4A7C15 % 2**64
        return self.shortest + (fraction * (self.longest - self.shortest + 1) >> 64)

    @property
    def stretch(self) -> int:
        return STRETCH if self.shortest == self.longest else MIXED_STRETCH

    def example(self, machine: int) -> tuple[TuringMachine, list[int]]:
        """Machine and tape of this number."""
        state, symbol, move = (t[0] for t in random_tables(1, self.symbols, self.states, self.seed, machine))
        tape = random_tapes(1, self.symbols, self.states, self.length(machine), self.seed, machine)[0]
        name = f"number {machine} of seed {self.seed}"
        return machine_from_tables(state, symbol, move, self.symbols, self.states, name), tape.tolist()

    def check(self) -> None:
        check_size(self.symbols, self.states)
        if self.machines < 1:
            raise ValueError(f"{self.machines} machines were asked for: at least one is needed")
        if self.steps < 1:
            raise ValueError(f"{self.steps} steps were asked for: at least one is needed")
        if not 1 <= self.shortest <= self.longest:
            raise InvalidTape(f"length {self.shortest} to {self.longest}: expected 1 <= shortest <= longest")
        tokens = (self.longest + 4) * (self.steps + 1)
        if tokens > LONGEST_RUN:
            raise InvalidTape(f"{self.longest} cells for {self.steps} steps are {tokens:,} tokens a run: at most "
                              f"{LONGEST_RUN:,} are run; give shorter tapes or fewer steps")  # fmt: skip
        if self.machines > 10**12:
            raise ValueError(f"{self.machines} machines would take years: expected at most 10**12")
        check_packing(self.n, self.base, self.packing, tokens)


@dataclass
class Tally:
    """What was counted. Adding the tallies of the chunks gives the tally of the run.

    `held`: all hypotheses of the sharp theorem; `no_repeat`: no tape written repeats an (n+1)-gram; `literal`: the
    paper's words with its n as the program's n: no tape, the input included, repeats an n-gram, and the head never
    leaves the memory; `literal_text`: read over the whole text instead of tape by tape.
    """

    machines: int = 0
    correct: int = 0
    held: int = 0
    held_correct: int = 0
    no_repeat: int = 0
    no_repeat_correct: int = 0
    in_memory: int = 0
    literal: int = 0
    literal_correct: int = 0
    literal_text: int = 0
    violations: int = 0
    first_violation: int = -1
    wrong_at: dict[str, int] = field(default_factory=dict)  # step -> runs that first go wrong there

    def add(self, other: Tally) -> None:
        seen = [i for i in (self.first_violation, other.first_violation) if i >= 0]
        for name in (f.name for f in fields(self) if f.type == "int"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.first_violation = min(seen, default=-1)
        steps = sorted({*self.wrong_at, *other.wrong_at}, key=int)
        self.wrong_at = {step: self.wrong_at.get(step, 0) + other.wrong_at.get(step, 0) for step in steps}


@dataclass(frozen=True)
class Report:
    """The outcome of a run; `computed` of its machines were run now, the others came from the resume file."""

    sweep: Sweep
    tally: Tally
    computed: int
    seconds: float
    workers: int
    counterexample: Counterexample | None
    damaged_lines: int = 0

    @property
    def ok(self) -> bool:
        return self.tally.violations == 0

    @property
    def machines_per_minute(self) -> float:
        return self.computed / self.seconds * 60 if self.seconds else 0.0

    @property
    def contingency(self) -> dict[str, dict[str, int]]:
        t = self.tally
        failed, failed_correct = t.machines - t.held, t.correct - t.held_correct
        return {"held": {"correct": t.held_correct, "wrong": t.held - t.held_correct},
                "failed": {"correct": failed_correct, "wrong": failed - failed_correct}}  # fmt: skip

    def result(self) -> dict[str, Any]:
        """What depends on the sweep alone, not on how it was computed."""
        t = self.tally
        parameters = {name: value for name, value in asdict(self.sweep).items() if name != "chunk"}
        return {
            **parameters, "bound": self.sweep.bound, **asdict(t),
            "hypothesis_held": t.held, "contingency": self.contingency,
            "violation_rate": clopper_pearson(t.violations, t.machines),
            "held_rate": clopper_pearson(t.held, t.machines),
            "correct_rate": clopper_pearson(t.correct, t.machines),
        }  # fmt: skip

    def to_json(self) -> dict[str, Any]:
        shown = None if self.counterexample is None else self.counterexample.render()
        return {**self.result(), "computed": self.computed, "seconds": self.seconds, "workers": self.workers,
                "machines_per_minute": self.machines_per_minute, "damaged_lines": self.damaged_lines,
                "counterexample": shown}  # fmt: skip

    def render(self) -> str:
        from proofs_check.verify_text import render

        return render(self)


def verify(
    machines: int = 100_000, *, symbols: int = 12, states: int = 16, length: int | Sequence[int] = 10,
    steps: int = 32, n: int = 1, packing: str = "paper", seed: int = 0, strict_in_memory: bool = False,
    workers: int | None = None, dask: str | None = None, resume: str | None = None, engine: str = "jit",
    progress: Progress | None = None, program: str | Predictions | None = None, chunk: int | None = None,
    pool: Pool | None = None,
) -> Report:  # fmt: skip
    """Run program and machine on random machines and compare with what the sharp theorem says of each.

    `length` is a number of cells, or the least and the most. `program` replaces `next_tokens` (a function of the same
    arguments, or "module:function"), to see that a wrong one is caught. `resume` names a journal: chunks found there
    are not computed again.
    """
    shortest, longest = (length, length) if isinstance(length, int) else (min(length), max(length))
    size = chunk or (CHUNK if engine == "jit" else 64)
    sweep = Sweep(machines, symbols, states, shortest, longest, steps, n, packing, seed, strict_in_memory,
                  name_of(program), size)  # fmt: skip
    sweep.check()
    count = check_workers(workers, machines, engine, dask)
    if sweep.program.startswith("__main__:") and (count > 1 or dask or pool):
        raise ValueError(f"program {sweep.program} is unknown to other processes: put it in a module, or use 1 worker")
    work = partial(run_chunk, sweep, engine, program)
    started = time.perf_counter()
    with nullcontext(pool) if pool else open_pool(count, dask) as opened:
        tally, computed, damaged = _collect(sweep, work, opened, resume, progress)
        used = opened.workers
    seconds = time.perf_counter() - started
    found = None
    if tally.first_violation >= 0:
        found = counterexample(*sweep.example(tally.first_violation), steps, n, packing, program)
    return Report(sweep, tally, computed, seconds, used, found, damaged)


def check_workers(workers: int | None, machines: int, engine: str, dask: str | None) -> int:
    if workers is not None and workers < 1:
        raise ValueError(f"{workers} workers were asked for: at least one is needed")
    small = engine == "jit" and machines < WORTH_A_POOL
    return workers or (1 if small or dask else available_cores())


def _collect(
    sweep: Sweep, work: Callable[[int], dict[str, Any]], pool: Pool, resume: str | None, progress: Progress | None
) -> tuple[Tally, int, int]:
    """The tally of all chunks, how many machines were run for it, and how many lines of the journal were damaged."""
    if resume is None:
        results = dict(_watched(sweep, pool.map(work, range(sweep.chunks)), 0, progress))
        return _total(results), sweep.machines, 0
    with Journal(resume, journal_parameters(sweep)) as journal:
        sizes = {c: _size(sweep, c) for c in range(sweep.chunks)}
        kept = {c: r for c, r in journal.finished.items() if c in sizes and r["machines"] == sizes[c]}
        done = sum(sizes[c] for c in kept)
        for c, result in _watched(sweep, pool.map(work, [c for c in sizes if c not in kept]), done, progress):
            journal.add(c, result)
            kept[c] = result
        return _total(kept), sweep.machines - done, journal.damaged


def journal_parameters(sweep: Sweep) -> dict[str, Any]:
    """What must agree for a chunk to be reused: all but the number of machines, so that a run can be made longer."""
    return {name: value for name, value in asdict(sweep).items() if name != "machines"}


def _size(sweep: Sweep, chunk: int) -> int:
    return min(sweep.chunk, sweep.machines - chunk * sweep.chunk)


def _watched(
    sweep: Sweep, results: Iterator[tuple[int, Any]], done: int, progress: Progress | None
) -> Iterator[tuple[int, Any]]:
    if progress:
        progress(done, sweep.machines)
    for chunk, result in results:
        yield chunk, result
        done += _size(sweep, chunk)
        if progress:
            progress(done, sweep.machines)


def _total(results: dict[int, dict[str, Any]]) -> Tally:
    total = Tally()
    for chunk in sorted(results):
        total.add(Tally(**results[chunk]))
    return total


# --- one chunk --------------------------------------------------------------------------------------------------------


def run_chunk(sweep: Sweep, engine: str, program: str | Predictions | None, chunk: int) -> dict[str, Any]:
    """The tally of machines number `chunk * sweep.chunk` and on, as plain data."""
    tally = Tally()
    first = chunk * sweep.chunk
    end = min(first + sweep.chunk, sweep.machines)
    while first < end:
        rows = max(1, MOST_TOKENS // ((sweep.length(first) + 4) * (sweep.steps + 1)))
        stop = min(end, (first // sweep.stretch + 1) * sweep.stretch, first + rows)
        tally.add(_stretch(sweep, engine, program, first, stop - first))
        first = stop
    return asdict(tally)


def _stretch(sweep: Sweep, engine: str, program: str | Predictions | None, first: int, count: int) -> Tally:
    length = sweep.length(first)
    tables = random_tables(count, sweep.symbols, sweep.states, sweep.seed, first)
    tapes = random_tapes(count, sweep.symbols, sweep.states, length, sweep.seed, first)
    width = tapes.shape[1]
    traces = batch_traces(*tables, tapes, sweep.steps)
    observed = first_errors(sweep, engine, program, traces, tables, start=width - 1)
    repeat = batched.wrong_by_repeat(traces, width, sweep.n, sweep.base)
    predicted = repeat if sweep.within_bound else batched.wrong_by_key(traces, width, sweep.n, sweep.base)
    return _count(sweep, first, traces, width, observed, repeat, predicted)


def _count(
    sweep: Sweep, first: int, traces: np.ndarray, width: int,
    observed: np.ndarray, repeat: np.ndarray, predicted: np.ndarray,
) -> Tally:  # fmt: skip
    correct, no_repeat = observed < 0, repeat < 0
    in_memory = batched.marker_steps(traces, width, sweep.base - sweep.states) < 0
    per_tape, in_text = batched.repeats_literally(traces, width, sweep.n, sweep.base)
    held = no_repeat & sweep.within_bound & (in_memory | (not sweep.strict_in_memory))
    literal = (per_tape < 0) & in_memory & sweep.within_bound
    violated = np.flatnonzero(predicted != observed)
    steps, runs = np.unique(batched.steps_of(observed[~correct], width), return_counts=True)
    return Tally(
        machines=len(traces), correct=_sum(correct), held=_sum(held), held_correct=_sum(held & correct),
        no_repeat=_sum(no_repeat), no_repeat_correct=_sum(no_repeat & correct), in_memory=_sum(in_memory),
        literal=_sum(literal), literal_correct=_sum(literal & correct),
        literal_text=_sum((in_text < 0) & in_memory & sweep.within_bound),
        violations=len(violated), first_violation=first + int(violated[0]) if len(violated) else -1,
        wrong_at=dict(zip(map(str, steps.tolist()), runs.tolist(), strict=True)),
    )  # fmt: skip


def _sum(mask: np.ndarray) -> int:
    return int(np.count_nonzero(mask))
