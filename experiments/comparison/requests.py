"""A whole comparison on request: measured and written down as a page, or drawn again from its results."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from experiments.comparison.report import write_report, write_results
from experiments.comparison.study import study
from experiments.comparison.subjects import Settings, Subject, learned_subject, machine_subjects, shipped_subjects
from experiments.devices import use_threads
from experiments.evaluation.shipped import find
from experiments.files import need_folder
from experiments.machines import read_machine
from experiments.versions import versions
from proofs_check.sampled.pool import available_cores
from rasp.progress import Progress

MOST_WORKERS = 4  # each holds the models of one machine


@dataclass(frozen=True, kw_only=True)
class ComparisonRequest:
    """Who is compared, on what; or `source`, results to draw a page from. Without `output` nothing is drawn."""

    checkpoints: tuple[str, ...] = ()  # folders of runs, or names of shipped ones
    shipped: bool = False
    machine: str | None = None
    settings: Settings = Settings()
    source: Path | None = None
    output: Path | None = None
    workers: int | None = None
    threads: int | None = None
    command: str = ""

    @property
    def subjects(self) -> list[Subject]:
        """What a person asked for: models by name, all that are shipped, or a machine."""
        found = [learned_subject(find(name)) for name in self.checkpoints]
        found += shipped_subjects() if self.shipped else []
        found += machine_subjects(read_machine(self.machine), self.machine) if self.machine is not None else []
        if not found:
            raise ValueError("nothing to compare; name a folder written by `train`, a --machine, or use --shipped")
        return found


@dataclass(frozen=True)
class WrittenComparison:
    results: dict[str, Any]
    page: Path | None


def run_comparison(request: ComparisonRequest, progress: Progress = lambda *_: None) -> WrittenComparison:
    if request.source is not None:
        results = read_results(request.source, given=bool(request.checkpoints or request.shipped or request.machine))
        return WrittenComparison(results, write_page(results, request.output))
    use_threads(request.threads)
    subjects, folder = request.subjects, request.output or Path("report")
    need_folder(folder)
    results = study(
        subjects,
        request.settings,
        folder=folder,
        workers=request.workers or min(available_cores(), MOST_WORKERS),
        command=request.command,
        versions=versions("torch"),
        progress=progress,
    )
    return WrittenComparison(results, write_page(write_results(results, folder), folder))  # first the numbers


def write_page(results: dict[str, Any], folder: Path | None) -> Path | None:
    if folder is None:
        return None
    need_folder(folder)
    return write_report(results, folder)[0]


def read_results(path: Path, given: bool) -> dict[str, Any]:
    if given:
        raise ValueError("--from measures nothing: leave it out, or name no checkpoints, --machine or --shipped")
    try:
        results = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError, IsADirectoryError) as error:
        raise ValueError(f"{path} is not JSON ({error}); give a results.json written by `compare`") from None
    if not isinstance(results, dict) or not {"machines", "checks", "command", "seed"} <= set(results):
        raise ValueError(f"{path} was not written by `compare`; give its results.json")
    return results
