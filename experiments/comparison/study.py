"""The whole comparison, for one machine or many: everyone on the same tapes, and what is found as one dictionary.

tapes -> who takes part -> trials, one simulator after the other -> rows. The results are JSON; the page is drawn from
them alone.
"""

from __future__ import annotations

import math
import multiprocessing
import time
from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from compile import compile_machine
from compile.transformer import Transformer
from experiments.comparison.checks import Checks
from experiments.comparison.cost import Cost, cost, with_ratios
from experiments.comparison.finetuning import finetune_compiled
from experiments.comparison.measure import Comparison, compare, fresh_tapes, repetitive_tapes
from experiments.comparison.mechanism import mechanism_of
from experiments.comparison.pages import write_pages
from experiments.comparison.simulators import IntArray, ProgramSimulator, Simulator, TrueMachine, steps_needed
from experiments.comparison.subjects import LONG, ROLLOUT_AT, Settings, Subject, distinct
from experiments.devices import use_threads
from experiments.models import use_precision
from proofs_check.sampled.pool import open_pool
from rasp import TuringMachine
from rasp.formats.json import to_json
from rasp.memory import need_memory
from rasp.progress import Progress

COST_TAPES = 16  # written together when speed is measured

Tell = Callable[[str], None]
Work = Callable[[Tell], Any]
Taking = Mapping[str, Simulator]


# --- one machine ------------------------------------------------------------------------------------------------------


def study_machine(
    subject: Subject, settings: Settings, first: bool, folder: Path | None, tell: Tell
) -> tuple[dict[str, Any], Checks]:
    """What the page says about one machine. With `folder`, pages of the inspector are written into it."""
    run = MachineStudy(subject, settings, first, tell)
    run.add("program", programs(subject.machine, settings.ns))
    if subject.checkpoint is not None:  # without the window of its training context: it may look at the whole tape
        run.add("learned", {f"learned {subject.name}": subject.checkpoint.model}, subject.seconds)
    for backend in settings.backends:
        if backend != "tracr" or (first and find_spec("tracr")):
            for n in settings.ns:
                run.add_compiled(backend, n)
    return run.results(folder), run.checks


def programs(machine: TuringMachine, ns: Sequence[int]) -> dict[str, Simulator]:
    return {"machine": TrueMachine(machine), **{f"program n={n}": ProgramSimulator(machine, n) for n in ns}}


def over_seeds(
    seeds: Sequence[int],
    draw: Callable[[TuringMachine, int, int, int], IntArray],
    count: int,
    machine: TuringMachine,
    length: int,
) -> IntArray:
    """`count` tapes, a share from every seed, in turns: so that the first few of them are of all seeds, too."""
    parts = [draw(machine, length, math.ceil(count / len(seeds)), seed) for seed in seeds]
    return np.stack(parts, axis=1).reshape(-1, parts[0].shape[1])[:count]


@cache
def warm_up(backend: str) -> None:
    """Load what a backend needs, which is no part of the time that a compilation takes."""
    room: dict[str, Any] = {"max_seq_len": 12} if backend == "tracr" else {}
    compile_machine(TuringMachine.random(symbols=1, states=1, seed=0), backend, steps=1, check=False, **room)


class MachineStudy:
    """The comparison of one machine as it grows, simulator by simulator."""

    def __init__(self, subject: Subject, settings: Settings, first: bool, tell: Tell) -> None:
        self.subject, self.settings, self.first, self.tell = subject, settings, first, tell
        machine, lengths, few = subject.machine, subject.lengths(settings), math.ceil(settings.examples / 4)
        what = f"{settings.examples:,} tapes of up to {max(lengths):,} cells"
        need_memory(what, 16 * settings.examples * sum(lengths), "give fewer --examples or smaller --lengths")
        shared = partial(over_seeds, settings.seeds)
        self.drawn = {length: shared(fresh_tapes, settings.examples, machine, length) for length in lengths}
        self.hard = {
            length: shared(repetitive_tapes, few, machine, length)
            for length in lengths
            if subject.times(length) <= LONG
        }
        self.fresh: list[tuple[str, Comparison]] = []
        self.repetitive: list[Comparison] = []
        self.costs: list[Cost] = []
        self.models: dict[tuple[str, int], Transformer] = {}

    @property
    def checks(self) -> Checks:
        return sum((c.checks for c in (*(c for _, c in self.fresh), *self.repetitive)), Checks())

    # ---- who takes part

    def add(self, kind: str, taking: Taking, seconds: float | None = None, longest: int | None = None) -> None:
        """Let simulators of a kind write; `seconds` it took to make them, `longest` tape they can take."""
        self.tell(f"{self.subject.name}: {', '.join(taking)}")
        use_precision(self.settings.precision, *(one for one in taking.values() if isinstance(one, Transformer)))
        most = max(self.drawn) if longest is None else longest
        for length, tapes in self.drawn.items():
            parts = self.portions(kind, length, tapes) if length <= most else []
            self.fresh += [(kind, compare(taking, self.subject.machine, part, steps)) for part, steps in parts]
        for length, tapes in self.hard.items():
            if kind != "compiled" or length == min(self.hard):
                count = self.settings.tapes(self.subject.times(length), kind, self.first)
                self.repetitive.append(compare(taking, self.subject.machine, tapes[:count]))
        tapes = self.drawn[min(self.drawn)][:COST_TAPES]
        self.costs += [cost(name, simulator, tapes, seconds) for name, simulator in taking.items()]

    def portions(self, kind: str, length: int, tapes: IntArray) -> list[tuple[IntArray, int]]:
        """(tapes, steps): at twice the training length, or the length nearest to it, the first runs go on."""
        count = self.settings.tapes(self.subject.times(length), kind, self.first)
        at = min(self.drawn, key=lambda known: abs(self.subject.times(known) - ROLLOUT_AT))
        runs = min(count, self.settings.runs(kind, self.first)) if length == at else 0
        split = [(tapes[:runs], self.settings.steps), (tapes[runs:count], 1)]
        return [(part, steps) for part, steps in split if len(part)]

    def add_compiled(self, backend: str, n: int) -> None:
        """tracr's models have a position for every token, so they are made for the shortest tapes only."""
        machine, longest = self.subject.machine, min(self.drawn) if backend == "tracr" else None
        tapes = [
            row
            for part in (self.drawn, self.hard)
            for length, rows in part.items()
            if longest is None or length <= longest
            for row in rows
        ]
        room: dict[str, Any] = {"max_seq_len": 2 * (longest + 4)} if longest is not None else {}
        steps = steps_needed(machine, tapes, n)
        warm_up(backend)
        start = time.perf_counter()
        model = compile_machine(machine, backend, n=n, steps=steps, check=False, **room)
        self.models[backend, n] = model
        self.add("compiled", {f"{backend} n={n}": model}, time.perf_counter() - start, longest)

    # ---- what was found

    def results(self, folder: Path | None) -> dict[str, Any]:
        subject, machine = self.subject, self.subject.machine
        everything = _added([c for _, c in self.fresh])
        free = _added([c for kind, c in self.fresh if kind != "compiled"])  # compiled ones err as their programs do
        return {
            "name": subject.name,
            "machine": to_json(machine),
            "symbols": len(machine.symbols),
            "states": len(machine.states),
            "train_lengths": list(subject.trained),
            "simulators": everything.simulators(),
            "accuracy": everything.accuracy(subject.trained[1]),
            "difficulty": _added([*(c for _, c in self.fresh), *self.repetitive]).difficulty(self.settings.ns),
            "anatomy": free.anatomy(shown=2),
            "mechanism": self.mechanism(),
            "cost": with_ratios(self.costs, self.reference()),
            "inspector": self.pages(free, folder),
        }

    def reference(self) -> str:
        """Costs are multiples of the learned model's; without one, of the last compiled model's."""
        names = [known.simulator for known in self.costs]
        return next((name for name in names if name == f"learned {self.subject.name}"), names[-1])

    def mechanism(self) -> dict[str, Any] | None:
        """The learned heads beside those of `lean`, which does with one head what a learned model might."""
        if self.subject.checkpoint is None:
            return None
        self.tell(f"{self.subject.name}: heads")
        n, seed = max(self.settings.ns), self.settings.seeds[0]
        return mechanism_of(self.subject.checkpoint, "lean", n, seed=seed).to_dict()

    def pages(self, free: Comparison, folder: Path | None) -> list[dict[str, Any]]:
        if folder is None:
            return []
        self.tell(f"{self.subject.name}: pages of the inspector")
        learned = self.subject.checkpoint.model if self.subject.checkpoint else None
        return write_pages(folder, self.subject.name, free, self.models, learned)


def _added(comparisons: Sequence[Comparison]) -> Comparison:
    total = comparisons[0]
    for comparison in comparisons[1:]:
        total = total + comparison
    return total


# --- many -------------------------------------------------------------------------------------------------------------


def study(
    subjects: Sequence[Subject],
    settings: Settings,
    *,
    folder: Path | None = None,
    workers: int = 1,
    threads: int | None = None,
    command: str = "",
    versions: Mapping[str, str] | None = None,
    tell: Tell = lambda _: None,
    progress: Progress = lambda done, total: None,
) -> dict[str, Any]:
    """All machines, `workers` at a time in processes of their own. Raises if a promise does not hold."""
    if not subjects:
        raise ValueError("there is nothing to compare; name a checkpoint or a machine")
    start, named = time.time(), distinct(subjects)
    work: list[Work] = [partial(study_machine, one, settings, index == 0, folder) for index, one in enumerate(named)]
    trained = next((subject for subject in named if subject.recipe), None)
    if trained is not None and settings.finetune:
        work.insert(1, partial(from_compiled, trained, settings))  # takes long, so it begins early
    found = in_parallel(work, min(workers, len(work)), threads, tell, progress)
    machines = [one for one in found if isinstance(one, tuple)]
    return {
        "command": command,
        "seed": settings.seed,
        "precision": settings.precision,
        "versions": dict(versions or {}),
        "seconds": time.time() - start,
        "checks": sum((checked for _, checked in machines), Checks()).to_dict(),
        "machines": [rows for rows, _ in machines],
        "from_compiled": next((one for one in found if isinstance(one, dict)), None),
    }


def from_compiled(subject: Subject, settings: Settings, tell: Tell) -> dict[str, Any]:
    """What training makes of the compiled model of a machine that another model has learned."""
    assert subject.recipe is not None
    tell(f"{subject.name}: training from compiled weights")
    found = finetune_compiled(subject.recipe, steps=settings.finetune, tell=tell)
    return {"machine": subject.name, **found.to_dict()}


def in_parallel(work: Sequence[Work], workers: int, threads: int | None, tell: Tell, progress: Progress) -> list[Any]:
    """What each piece of work gives, in order. With several workers nobody is told of their steps."""
    found = {}
    do = partial(_do, work, threads, tell if workers == 1 else None)
    before = set(multiprocessing.active_children())
    try:
        with open_pool(workers) as pool:
            for index, done in pool.map(do, range(len(work))):
                found[index] = done
                progress(len(found), len(work))
    except BaseException:
        for process in set(multiprocessing.active_children()) - before:  # nobody waits for them any more
            process.terminate()
        raise
    return [found[index] for index in range(len(work))]


def _do(work: Sequence[Work], threads: int | None, tell: Tell | None, index: int) -> Any:
    apart = multiprocessing.parent_process() is not None
    use_threads(threads or 1 if apart else threads)  # there is a process for every core
    return work[index](tell or (lambda _: None))
