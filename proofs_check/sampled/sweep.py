"""The sharp theorem, on millions of random machines.

For each machine the theorem says at which token the program goes wrong first (or that it never does); the program is
run and must go wrong there and nowhere before. Machine number i of a seed is the same in every run, so the result
depends neither on how the numbers are cut into chunks, nor on who computes them, nor on the engine.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import asdict
from functools import partial
from typing import Any

import numpy as np

from proofs_check.programs import Predictions, first_errors, name_of
from proofs_check.sampled import batched
from proofs_check.sampled.journal import Journal
from proofs_check.sampled.pool import Pool, available_cores, open_pool
from proofs_check.sampled.report import CHUNK, Report, Sweep, Tally
from proofs_check.shrink import counterexample
from rasp.machines.simulate import batch_traces, random_tables, random_tapes
from rasp.memory import need_memory
from rasp.progress import Progress

MOST_TOKENS = 4_000_000  # run at a time: long runs are taken fewer together
CHUNK_BYTES = 500  # of a part that waits or is done
WORTH_A_POOL = 1_000_000  # below this many machines, starting processes takes longer than the work


def verify(
    machines: int = 100_000,
    *,
    symbols: int = 12,
    states: int = 16,
    length: int | Sequence[int] = 10,
    steps: int = 32,
    n: int = 1,
    packing: str = "paper",
    seed: int = 0,
    strict_in_memory: bool = False,
    workers: int | None = None,
    dask: str | None = None,
    resume: str | None = None,
    engine: str = "jit",
    progress: Progress | None = None,
    program: str | Predictions | None = None,
    chunk: int | None = None,
    pool: Pool | None = None,
) -> Report:
    """Run program and machine on random machines and compare with what the sharp theorem says of each.

    `length` is a number of cells, or the least and the most. `program` replaces `next_tokens` (a function of the same
    arguments, or "module:function"), to see that a wrong one is caught. `resume` names a journal: chunks found there
    are not computed again.
    """
    shortest, longest = (length, length) if isinstance(length, int) else (min(length), max(length))
    sweep = Sweep(
        machines=machines,
        symbols=symbols,
        states=states,
        shortest=shortest,
        longest=longest,
        steps=steps,
        n=n,
        packing=packing,
        seed=seed,
        strict_in_memory=strict_in_memory,
        program=name_of(program),
        chunk=chunk or chunk_size(engine),
    )
    return run_sweep(sweep, engine, program, workers=workers, dask=dask, resume=resume, progress=progress, pool=pool)


def chunk_size(engine: str) -> int:
    return CHUNK if engine == "jit" else 64


def run_sweep(
    sweep: Sweep,
    engine: str = "jit",
    program: str | Predictions | None = None,
    *,
    workers: int | None = None,
    dask: str | None = None,
    resume: str | None = None,
    progress: Progress | None = None,
    pool: Pool | None = None,
) -> Report:
    """The same of a sweep that is written down already; `program` is the function that it names, if it names one."""
    sweep.check()
    count = check_workers(workers, sweep.machines, engine, dask)
    what = f"a run of {sweep.longest_run:,} tokens in each of {count} processes"
    need_memory(what, sweep.bytes_of_a_run * count, "give shorter tapes, fewer steps or fewer --workers")
    need_memory(f"a list of {sweep.chunks:,} parts of the work", CHUNK_BYTES * sweep.chunks, "give fewer --machines")
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
        machine, tape = sweep.example(tally.first_violation)
        found = counterexample(machine, tape, sweep.steps, sweep.n, sweep.packing, program)
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
    sweep: Sweep,
    first: int,
    traces: np.ndarray,
    width: int,
    observed: np.ndarray,
    repeat: np.ndarray,
    predicted: np.ndarray,
) -> Tally:
    correct, no_repeat = observed < 0, repeat < 0
    in_memory = batched.marker_steps(traces, width, sweep.base - sweep.states) < 0
    per_tape, in_text = batched.repeats_literally(traces, width, sweep.n, sweep.base)
    held = no_repeat & sweep.within_bound & (in_memory | (not sweep.strict_in_memory))
    literal = (per_tape < 0) & in_memory & sweep.within_bound
    violated = np.flatnonzero(predicted != observed)
    steps, runs = np.unique(batched.steps_of(observed[~correct], width), return_counts=True)
    return Tally(
        machines=len(traces),
        correct=_sum(correct),
        held=_sum(held),
        held_correct=_sum(held & correct),
        no_repeat=_sum(no_repeat),
        no_repeat_correct=_sum(no_repeat & correct),
        in_memory=_sum(in_memory),
        literal=_sum(literal),
        literal_correct=_sum(literal & correct),
        literal_text=_sum((in_text < 0) & in_memory & sweep.within_bound),
        violations=len(violated),
        first_violation=first + int(violated[0]) if len(violated) else -1,
        wrong_at=dict(zip(map(str, steps.tolist()), runs.tolist(), strict=True)),
    )


def _sum(mask: np.ndarray) -> int:
    return int(np.count_nonzero(mask))
