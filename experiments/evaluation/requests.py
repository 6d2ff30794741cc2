"""Whole evaluations on request: of checkpoints by name, as a figure of the paper's, or on the way to being shipped."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from experiments.devices import BF16, autocast, choose_device, use_threads
from experiments.evaluation.checkpoints import Checkpoint, load_checkpoint
from experiments.evaluation.evaluate import EXAMPLES, evaluate
from experiments.evaluation.figures import FIGURES, Figure, draw, draw_curves
from experiments.evaluation.results import Result, band
from experiments.evaluation.shipped import (
    FOLDER,
    find,
    keep_results,
    kept_results,
    read_recipe_of,
    read_record,
    shipped,
    shipping,
)
from experiments.files import output_folder, write_json
from experiments.models import use_precision
from experiments.versions import versions
from rasp.progress import Progress


@dataclass(frozen=True, kw_only=True)
class EvaluationRequest:
    """Which checkpoints are asked what. Without lengths, each is asked for its usual ones."""

    checkpoints: tuple[str, ...] = ()  # folders of runs, or names of shipped ones
    shipped: bool = False  # all of them, too
    lengths: tuple[int, ...] = ()
    rollout: int = 0  # machine steps in a row
    gram: int = 0  # split by whether the tape repeats an n-gram of this size
    grid: tuple[int, ...] = ()  # operand lengths to cross
    examples: int = EXAMPLES
    seed: int = 0
    context: int | None = None  # tokens that a model sees at once; None: as many as in training
    as_band: bool = False  # the checkpoints are seeds of one experiment
    ship: str | None = None  # keep the one run among the shipped, under this name
    weights: bool = True  # with its weights
    keep: bool = False  # the results, beside the shipped checkpoints they are of
    output: Path | None = None  # folder for figures and results.json
    device: str = "auto"
    precision: str = "float32"
    threads: int | None = None

    def __post_init__(self) -> None:
        if self.context is not None and (self.keep or self.ship is not None):
            raise ValueError("results are kept of models that see as many tokens as in training; leave --context out")
        if self.precision == BF16 and (self.keep or self.ship is not None):
            raise ValueError(
                "results are kept of models that compute in float32 or float64; leave --precision bf16 out"
            )
        if not self.weights and self.ship is None:
            raise ValueError("--no-weights says how a run is shipped; give it a name with --ship")

    @property
    def folders(self) -> list[Path]:
        found = [find(name) for name in self.checkpoints] + (shipped() if self.shipped else [])
        if not found:
            raise ValueError("nothing to evaluate; name a folder written by `train`, or use --shipped")
        if self.ship is not None and len(found) != 1:
            raise ValueError(f"--ship keeps one run under one name; {len(found)} were given")
        if self.as_band and len({folder.resolve() for folder in found}) < 2:
            raise ValueError("--seeds takes the mean over several checkpoints; name at least two")
        strangers = [str(folder) for folder in found if self.keep and folder.resolve().parent != FOLDER]
        if strangers:
            raise ValueError(f"--keep stores results beside shipped checkpoints; {strangers[0]} is none of them")
        return found

    def ask(self, checkpoint: Checkpoint, alone: bool) -> list[Result]:
        """Of one checkpoint alone, everything; of several, each is asked what it can answer."""
        machine, pairs = alone or checkpoint.is_machine, alone or checkpoint.task.operands == 2
        return evaluate(
            checkpoint,
            self.lengths,
            self.rollout * machine,
            examples=self.examples,
            seed=self.seed,
            gram=self.gram * machine,
            grid=self.grid * pairs,
        )


@dataclass(frozen=True)
class Evaluation:
    """What was found; `trained` is the longest problem that each was trained on."""

    results: list[Result]
    trained: dict[str, int]
    report: dict[str, Any]  # as results.json has it


def run_evaluation(request: EvaluationRequest, progress: Progress = lambda *_: None) -> Evaluation:
    with output_folder(request.output):
        return _evaluation(request, progress)


def _evaluation(request: EvaluationRequest, progress: Progress) -> Evaluation:
    use_threads(request.threads)
    device, folders = choose_device(request.device), request.folders
    results: list[Result] = []
    trained: dict[str, int] = {}
    with shipping(folders[0], request.ship, request.weights) if request.ship is not None else nullcontext() as staged:
        for checkpoint in loaded([staged.folder] if staged else folders, device, progress):
            trained[checkpoint.name] = checkpoint.lengths[1]
            use_precision("float32" if request.precision == BF16 else request.precision, checkpoint.model)
            seeing = checkpoint if request.context is None else replace(checkpoint, context=request.context)
            with autocast(device, request.precision):
                found = request.ask(seeing, alone=len(folders) == 1)
            results += found
            if request.keep:
                keep_results(checkpoint.name, found)
        if staged:
            staged.note(results)
    if request.as_band:
        results, trained = as_one_band(results, trained)
    about = {"examples": request.examples, "seed": request.seed, "precision": request.precision}
    about |= {} if request.context is None else {"context": request.context}
    report = {"results": [r.to_dict() for r in results], **about, "versions": versions()}
    if request.output is not None:
        draw(results, request.output)
        write_json(request.output / "results.json", report)
    return Evaluation(results, trained, report)


def as_one_band(results: Sequence[Result], trained: dict[str, int]) -> tuple[list[Result], dict[str, int]]:
    if len(set(trained.values())) > 1:
        told = ", ".join(f"{name} to {longest}" for name, longest in trained.items())
        raise ValueError(f"--seeds takes the mean over seeds of one experiment; these differ in length: {told}")
    name = f"{len(trained)} seeds"
    return band(results, name), {name: max(trained.values())}


def loaded(folders: Sequence[Path], device: str, progress: Progress) -> Iterator[Checkpoint]:
    """One checkpoint after the other. Those of the same name go by path."""
    names = Counter(folder.resolve().name for folder in folders)
    for done, folder in enumerate(folders):
        progress(done, len(folders))
        checkpoint = load_checkpoint(folder, device)
        yield checkpoint if names[checkpoint.name] == 1 else replace(checkpoint, name=str(folder))


# --- figures of the paper's


@dataclass(frozen=True, kw_only=True)
class FigureRequest:
    name: str
    output: Path
    again: bool = False  # measure anew, instead of drawing what is kept beside the checkpoints
    examples: int = EXAMPLES
    seed: int = 0
    device: str = "auto"
    precision: str = "float32"
    threads: int | None = None


@dataclass(frozen=True)
class DrawnFigure:
    about: str
    files: list[Path]
    results: list[Result]
    trained: dict[str, int]  # the longest problem that each was trained on
    report: dict[str, Any]  # as results.json has it


def run_figure(request: FigureRequest, progress: Progress = lambda *_: None) -> DrawnFigure:
    """One of the paper's figures, from the checkpoints that are shipped, or from what is kept of their results."""
    figure = find_figure(request.name)
    with output_folder(request.output):
        if request.again:
            measured = measure_figure(request, figure, progress)
            results, trained, about = measured.results, measured.trained, measured.report
        else:
            results, trained = kept_for(request.name, figure)
            about = {"results": [r.to_dict() for r in results], "kept": True, "versions": versions()}
        files = draw(results, request.output)
        if figure.curves:
            curves = {name: read_record(FOLDER / name)["curve"] for name in figure.checkpoints}
            files.append(draw_curves(curves, request.output / "curves.png"))
        report = {"figure": request.name, "about": figure.about, **about}
        write_json(request.output / "results.json", report)
    return DrawnFigure(figure.about, [*files, request.output / "results.json"], results, trained, report)


def measure_figure(request: FigureRequest, figure: Figure, progress: Progress) -> Evaluation:
    asked = EvaluationRequest(
        checkpoints=tuple(str(FOLDER / name) for name in figure.checkpoints),
        examples=request.examples,
        seed=request.seed,
        device=request.device,
        precision=request.precision,
        threads=request.threads,
        rollout=figure.steps,
        grid=figure.grid,
        as_band=figure.as_band,
    )
    return run_evaluation(asked, progress)


def kept_for(name: str, figure: Figure) -> tuple[list[Result], dict[str, int]]:
    """What is kept of this figure's checkpoints and belongs into it, and how far each was trained."""
    kept = kept_results(figure.checkpoints)
    shown = [r for r in kept if figure.shows(r)]
    if (figure.grid and len(shown) < len(figure.grid) ** 2) or not shown:
        raise ValueError(f"what is kept beside the checkpoints has nothing for the figure {name!r}; use --again")
    trained = {checkpoint: read_recipe_of(FOLDER / checkpoint)["lengths"][1] for checkpoint in figure.checkpoints}
    return as_one_band(shown, trained) if figure.as_band else (shown, trained)


def find_figure(name: str) -> Figure:
    if name not in FIGURES:
        raise ValueError(f"there is no figure {name!r}; choose one of {', '.join(FIGURES)}")
    missing = [c for c in FIGURES[name].checkpoints if not (FOLDER / c).is_dir()]
    if missing:
        raise ValueError(
            f"the figure {name!r} shows {', '.join(missing)}, which is not shipped; train it and keep it with "
            f"`turing-programs evaluate runs/{missing[0]} --ship {missing[0]}`"
        )
    return FIGURES[name]
