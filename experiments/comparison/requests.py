"""A whole comparison on request: measured and written down as a page, or drawn again from its results."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from experiments.comparison.report import write_report, write_results
from experiments.comparison.shape import check_results
from experiments.comparison.study import study
from experiments.comparison.subjects import Settings, Subject, learned_subject, machine_subjects, shipped_subjects
from experiments.comparison.tasks.study import forget_unfinished, study_task
from experiments.comparison.tasks.subjects import TaskSettings, TaskSubject, learned_task, task_subject
from experiments.devices import use_threads
from experiments.evaluation.checkpoints import load_checkpoint
from experiments.evaluation.shipped import find
from experiments.files import output_folder, read_json
from experiments.machines import read_machine
from experiments.shapes import Misshapen
from experiments.tasks import TuringPaper, TuringRasp
from experiments.versions import versions
from proofs_check.sampled.pool import available_cores
from rasp.programs.tasks import is_task
from rasp.progress import Progress

MOST_WORKERS = 4  # each holds the models of one machine


@dataclass(frozen=True, kw_only=True)
class ComparisonRequest:
    """Who is compared, on what; or `source`, results to draw a page from. Without `output` nothing is drawn."""

    names: tuple[str, ...] = ()  # a task of the paper; folders of runs, or names of shipped ones
    shipped: bool = False
    machine: str | None = None
    lengths: tuple[int, ...] = ()
    steps: int = 10
    seeds: tuple[int, ...] = (0,)
    examples: int = 288
    ns: tuple[int, ...] = ()  # none: 1 to 4 of machines, 1 to 6 of tasks
    backends: tuple[str, ...] = ()  # none: all that there are for machines, hard_alibi for tasks
    finetune: int = 60
    source: Path | None = None
    output: Path | None = None
    workers: int | None = None
    precision: str = "float32"
    threads: int | None = None
    command: str = ""

    @property
    def settings(self) -> Settings:
        """Of a comparison of machines."""
        chosen: dict[str, Any] = {"ns": self.ns, "backends": self.backends}
        return Settings(
            lengths=self.lengths,
            steps=self.steps,
            seeds=self.seeds,
            examples=self.examples,
            finetune=self.finetune,
            precision=self.precision,
            **{name: value for name, value in chosen.items() if value},
        )

    @property
    def task_settings(self) -> TaskSettings:
        chosen: dict[str, Any] = {"ns": self.ns, "backends": self.backends}
        return TaskSettings(
            lengths=self.lengths,
            seeds=self.seeds,
            examples=self.examples,
            precision=self.precision,
            **{name: value for name, value in chosen.items() if value},
        )

    @property
    def task(self) -> TaskSubject | None:
        """What a person asked for, if it is a task; None: machines."""
        tasks = [name for name in self.names if is_task(name)]
        if len(tasks) > 1:
            raise ValueError(f"{' and '.join(tasks)} are different tasks; compare one at a time")
        folders = [find(name) for name in self.names if name not in tasks]
        if not tasks and (not folders or is_machine_run(folders[0])):
            return None
        if self.machine is not None or self.shipped:
            raise ValueError("a task and machines are different comparisons; leave out --machine and --shipped")
        return task_subject(tasks[0] if tasks else None, [learned_task(folder) for folder in folders])

    @property
    def subjects(self) -> list[Subject]:
        """What a person asked for: models by name, all that are shipped, or a machine."""
        found = [learned_subject(find(name)) for name in self.names]
        found += shipped_subjects() if self.shipped else []
        found += machine_subjects(read_machine(self.machine), self.machine) if self.machine is not None else []
        if not found:
            raise ValueError(
                "nothing to compare; name a task such as addition, a folder written by `train`, a --machine, or use "
                "--shipped"
            )
        return found


@dataclass(frozen=True)
class WrittenComparison:
    results: dict[str, Any]
    page: Path | None


def run_comparison(request: ComparisonRequest, progress: Progress = lambda *_: None) -> WrittenComparison:
    if request.source is not None:
        results = read_results(request.source, given=bool(request.names or request.shipped or request.machine))
        return WrittenComparison(results, write_page(results, request.output))
    use_threads(request.threads)
    folder, task = request.output or Path("report"), request.task
    if task is not None:
        return run_task_comparison(request, task, folder, progress)
    subjects, settings = request.subjects, request.settings
    with output_folder(folder):
        results = study(
            subjects,
            settings,
            folder=folder,
            workers=request.workers or min(available_cores(), MOST_WORKERS),
            threads=request.threads,
            command=request.command,
            versions=versions("torch"),
            progress=progress,
        )
        return WrittenComparison(results, write_page(write_results(results, folder), folder))  # first the numbers


def run_task_comparison(
    request: ComparisonRequest, task: TaskSubject, folder: Path, progress: Progress
) -> WrittenComparison:
    settings = request.task_settings
    with output_folder(folder):
        results = study_task(
            task, settings, folder=folder, command=request.command, versions=versions("torch"), progress=progress
        )
        kept = write_results(results, folder)
        forget_unfinished(folder)
        return WrittenComparison(kept, write_page(kept, folder))


def is_machine_run(folder: Path) -> bool:
    """Whether a run learned a machine (a folder that is none is refused where machines are read)."""
    return not folder.is_dir() or isinstance(load_checkpoint(folder).task, TuringRasp | TuringPaper)


def write_page(results: dict[str, Any], folder: Path | None) -> Path | None:
    if folder is None:
        return None
    with output_folder(folder):
        return write_report(results, folder)[0]


def read_results(path: Path, given: bool) -> dict[str, Any]:
    if given:
        raise ValueError("--from measures nothing: leave it out, or name no checkpoints, --machine or --shipped")
    try:
        return check_results(read_json(path))
    except Misshapen as error:
        raise ValueError(f"{path} was not written by `compare`: {error}; give its results.json") from None
