"""The comparison of one task: everyone on the same problems, and what is found as one dictionary, as for machines.

problems -> who takes part -> what each says at every token -> rows. Programs and compiled models are held to their
promises: a program to the contract of its task, a compiled model to its program.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from compile import CompileError, Transformer, compile_task
from experiments.comparison.checks import Disagreement
from experiments.comparison.cost import Cost, generation_cost, with_ratios
from experiments.comparison.tasks import measure
from experiments.comparison.tasks.measure import TaskTrial
from experiments.comparison.tasks.problems import WrittenProblem
from experiments.comparison.tasks.subjects import TaskSettings, TaskSubject
from experiments.comparison.tasks.takers import Kept, Taker, compiled_taker, learned_taker, program_taker
from experiments.models import use_precision
from experiments.tasks import Sgd
from proofs_check.tasks import predicted_first_wrong
from rasp.memory import need_memory
from rasp.progress import Progress

CHECKED = 24  # problems of a length on which programs are held to their contract
COST_ROWS = 8  # problems written together when speed is measured
MOST_TRACR = 500  # tokens of the texts a model through tracr is made for
UNFINISHED = "unfinished"


def study_task(
    subject: TaskSubject,
    settings: TaskSettings,
    *,
    folder: Path | None = None,
    command: str = "",
    versions: Mapping[str, str] | None = None,
    progress: Progress = lambda done, total: None,
) -> dict[str, Any]:
    """All that the page says. With `folder`, learned models' answers are kept there until the results are written."""
    start = time.time()
    run = TaskStudy(subject, settings, Kept(folder / UNFINISHED if folder is not None else None), progress)
    if subject.program is not None:
        run.add_programs(subject.program)
    use_precision(settings.precision, *(model.checkpoint.model for model in subject.learned))
    for model in subject.learned:
        run.add(learned_taker(model.checkpoint))
        run.add_cost(f"learned {model.checkpoint.name}", model.checkpoint.model, model.seconds)
    if not subject.learned:
        run.without.append(f"no model that learned {subject.name} is shipped, and none was given")
    if subject.paper is not None:
        for backend in settings.backends:
            run.add_compiled(backend)
    return {
        "command": command,
        "task": subject.name,
        "unit": subject.task.unit,
        "seed": settings.seed,
        "precision": settings.precision,
        "versions": dict(versions or {}),
        "seconds": time.time() - start,
        "checks": {
            "compiled_equals_program": {"tokens": run.tokens_compared, "mismatches": 0},
            "criterion": {"problems": run.problems_checked, "mismatches": 0},
        },
        "without": run.without,
        "machines": [run.results()],
        "from_compiled": None,
    }


def forget_unfinished(folder: Path) -> None:
    """When the results are written."""
    Kept(folder / UNFINISHED).clear()


class TaskStudy:
    """The comparison as it grows, one taker after the other."""

    def __init__(self, subject: TaskSubject, settings: TaskSettings, kept: Kept, progress: Progress) -> None:
        self.subject, self.settings, self.kept, self.progress = subject, settings, kept, progress
        lengths = subject.lengths(settings)
        what = f"{settings.examples:,} problems of up to {max(lengths):,}"
        need_memory(what, 16 * settings.examples * sum(lengths), "give fewer --examples or smaller --lengths")
        self.problems = {length: self.draw(length, settings.examples) for length in lengths}
        few = math.ceil(settings.examples / 12)
        shortest = [length for length in self.problems if subject.times(length) <= 2]
        self.hard = {length: self.draw(length, few, few=True) for length in shortest if subject.paper is not None}
        self.trials: list[TaskTrial] = []
        self.hard_trials: list[TaskTrial] = []
        self.costs: list[Cost] = []
        self.without: list[str] = []
        self.tokens_compared = self.problems_checked = 0
        takers = (len(settings.ns) if subject.program else 0) + len(subject.learned)
        takers += len(settings.ns) * len(settings.backends) if subject.paper else 0
        self.done, self.total = 0, takers * (len(self.problems) + len(self.hard))

    def draw(self, length: int, count: int, few: bool = False) -> list[WrittenProblem]:
        """A share from every seed, in turns."""
        seeds = self.settings.seeds
        parts = [self.subject.draw(length, math.ceil(count / len(seeds)), seed, few) for seed in seeds]
        return [problem for turn in zip(*parts, strict=True) for problem in turn][:count]

    # ---- who takes part

    def add(self, taker: Taker, longest: int | None = None) -> None:
        for drawn, kept in ((self.problems, self.trials), (self.hard, self.hard_trials)):
            for length, problems in drawn.items():
                self.progress(self.done, self.total)
                chosen = problems[: self.settings.problems(self.subject.times(length), taker.about.kind)]
                chosen = [p for p in chosen if longest is None or len(p.tokens) <= longest]
                if chosen:
                    kept.append(self.attempt(taker, length, chosen))
                self.done += 1

    def attempt(self, taker: Taker, length: int, problems: Sequence[WrittenProblem]) -> TaskTrial:
        said = [row for part in self.kept.answers(taker, problems) for row in part]
        task = self.subject.task
        tolerance = task.tolerance if isinstance(task, Sgd) and taker.about.kind == "learned" else 0
        trial = TaskTrial(taker.about, length, problems, said, tolerance)
        if taker.about.kind == "compiled":
            self.tokens_compared += self.check_compiled(trial)
        elif taker.about.kind == "program" and self.subject.paper is not None:
            self.problems_checked += check_contract(trial)
        return trial

    def add_programs(self, program: Callable[[Any, int], Any]) -> None:
        for n in self.settings.ns:
            self.add(program_taker(program, n))

    def add_compiled(self, backend: str) -> None:
        """What cannot be compiled is left out, with the reason."""
        drawn = [p for part in (self.problems, self.hard) for problems in part.values() for p in problems]
        lines = max(p.words.count("|") for p in drawn) + 2
        room = {"max_seq_len": MOST_TRACR} if backend == "tracr" else {}
        for n in self.settings.ns:
            started = time.perf_counter()
            try:
                model = compile_task(self.subject.name, n=n, lines=lines, backend=backend, check=False, **room)
                use_precision(self.settings.precision, model)
            except CompileError as reason:
                self.without.append(f"{backend} n = {n}: {reason}")
                self.done += len(self.problems) + len(self.hard)
                continue
            seconds = time.perf_counter() - started
            self.add(compiled_taker(model, backend, n), MOST_TRACR if backend == "tracr" else None)
            self.add_cost(f"{backend} n={n}", model, seconds)

    def add_cost(self, name: str, model: Transformer, seconds: float | None) -> None:
        problems = self.problems[min(self.problems)][:COST_ROWS]
        count = min(len(p.answer) for p in problems)
        prompts = [p.tokens[: p.given] for p in problems]
        self.costs.append(generation_cost(name, model, prompts, count, min(self.problems), seconds))

    # ---- what was found

    def check_compiled(self, trial: TaskTrial) -> int:
        """At every token what its program says."""
        program = next(
            t
            for t in (*self.trials, *self.hard_trials)
            if (t.about.kind, t.about.n, t.length) == ("program", trial.about.n, trial.length)
            and t.problems[0] is trial.problems[0]
        )
        for problem, said, wanted in zip(trial.problems, trial.said, program.said, strict=False):
            apart = np.flatnonzero(said != wanted)
            if len(apart):
                raise Disagreement(
                    f"{trial.about.name} is not program n = {trial.about.n}: at token {apart[0]} of "
                    f"{''.join(problem.words)} it says {problem.names[int(said[apart[0]])]} and the program "
                    f"{problem.names[int(wanted[apart[0]])]}"
                )
        return sum(map(len, trial.said))

    def results(self) -> dict[str, Any]:
        everyone = [*self.trials, *self.hard_trials]
        free = [t for t in self.trials if t.about.kind != "compiled"]  # compiled ones err as their programs do
        same = [*shared(self.trials), *shared(self.hard_trials)]
        return {
            "name": self.subject.name,
            "train_lengths": list(self.subject.trained),
            "simulators": [about.to_dict() for about in dict.fromkeys(t.about for t in everyone)],
            "accuracy": measure.accuracy(self.trials, self.subject.times),
            "difficulty": measure.difficulty(everyone, self.settings.ns),
            "anatomy": measure.anatomy(free),
            "parts": measure.parts(same),
            "lookback": measure.lookback(same),
            "mechanism": None,
            "cost": with_ratios(self.costs, self.costs[0].simulator) if self.costs else [],
            "inspector": [],
        }


def shared(trials: Sequence[TaskTrial]) -> list[TaskTrial]:
    """The trials of programs and learned models, each cut to the problems that all learned models had."""
    found = []
    for trial in trials:
        counts = [len(t.problems) for t in trials if (t.about.kind, t.length) == ("learned", trial.length)]
        if counts and trial.about.kind != "compiled":
            first = slice(min(counts))
            found.append(replace(trial, problems=trial.problems[first], said=trial.said[first]))
    return found


def check_contract(trial: TaskTrial) -> int:
    """The first wrong token of every problem is the one that the contract of the task names."""
    assert trial.about.n is not None
    for index, written in enumerate(trial.problems[:CHECKED]):
        assert written.problem is not None
        named, found = predicted_first_wrong(written.problem, trial.about.n), trial.first_wrong(index)
        if named != found:
            raise Disagreement(
                f"{trial.about.name} {_verdict(found)} on {written.problem.prompt}, where the contract says that it "
                f"{_verdict(named)}"
            )
    return min(len(trial.problems), CHECKED)


def _verdict(at: int | None) -> str:
    return "is right" if at is None else f"first goes wrong at token {at}"
