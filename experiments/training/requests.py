"""Training on request: a new run, or one that goes on."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from compile.transformer.saving import WEIGHTS
from experiments.devices import use_threads
from experiments.files import LOCK, only_user_of
from experiments.training.loop import TrainingRun
from experiments.training.progress import Display
from experiments.training.recipe import Recipe
from experiments.training.sizing import least_bytes
from experiments.training.state import PREVIOUS, STATE, RunState, read_state
from experiments.training.timing import choose_precision, steps_in
from experiments.training.trainer import Trainer, make_accelerator
from experiments.training.variations import with_steps
from rasp.memory import need_memory

if TYPE_CHECKING:
    from accelerate import Accelerator


@dataclass(frozen=True, kw_only=True)
class TrainingRequest:
    """What to train, where, for how long. A run that is resumed keeps its own length and precision."""

    recipe: Recipe
    folder: Path
    device: str = "auto"
    precision: str | None = None  # instead of the recipe's
    threads: int | None = None
    minutes: float | None = None  # choose the number of steps to take about so long
    steps: int | None = None  # with `resume`: end at this one
    resume: bool = False
    save_minutes: float = 2.0
    command: str = ""
    quiet: bool = False

    def __post_init__(self) -> None:
        if self.minutes is not None and self.steps is not None:
            raise ValueError("--minutes and --steps both say how long to train; give one of them")
        if self.steps is not None and self.steps < 1:
            raise ValueError(f"--steps is {self.steps}; expected at least 1")
        if self.resume and self.minutes is not None:
            raise ValueError(
                "--minutes is for a new run; one that is resumed ends where it was meant to, or at --steps"
            )

    def new_recipe(self) -> Recipe:
        """Of a run that begins."""
        recipe = self.recipe if self.precision is None else self.recipe.changed(precision=self.precision)
        if self.steps is not None:
            return with_steps(recipe, self.steps)
        return recipe if self.minutes is None else steps_in(recipe, self.minutes, self.device)

    def resumed_recipe(self, state: RunState) -> Recipe:
        """Of a run that goes on: what changes on its way is as it was planned, except for a new end."""
        begun = state.recipe
        if self.steps is not None:
            begun = begun.ending(self.steps, state.notes["steps_done"])
        return self.recipe.changed(
            steps=begun.steps,
            rate_factor=begun.rate_factor,
            slope_scale=begun.slope_scale,
            practice=begun.practice,
            precision=begun.precision if self.precision is None else self.precision,
        )


def train(request: TrainingRequest) -> dict[str, Any]:
    """Train into the folder; returns the recipe and what training.json says."""
    use_threads(request.threads)
    folder, accelerator = request.folder, make_accelerator(request.device)
    state = read_state(folder) if request.resume else None
    if state is None:
        if accelerator.is_main_process:
            take_folder(folder)
        accelerator.wait_for_everyone()
    try:
        with only_user_of(folder) if accelerator.is_main_process else nullcontext():
            return train_in_folder(request, accelerator, state)
    finally:
        leave_no_empty_folder(folder)


def train_in_folder(request: TrainingRequest, accelerator: Accelerator, state: RunState | None) -> dict[str, Any]:
    folder = request.folder
    need_room(request.recipe, accelerator)
    recipe = request.new_recipe() if state is None else request.resumed_recipe(state)
    with Display(recipe, folder, show=accelerator.is_main_process and not request.quiet) as display:
        if state is None:
            chosen = choose_precision(recipe, accelerator)
            display.say(chosen.reason)
            trainer = Trainer(recipe, accelerator, chosen.precision)
        else:
            display.say(state.warning)
            trainer = Trainer(recipe, accelerator, state.notes["precision"], fresh=True)
            trainer.load(state)
            accelerator.wait_for_everyone()
            if accelerator.is_main_process:
                state.set_damaged_aside()
        return TrainingRun(trainer, folder, display, request.save_minutes * 60, request.command).to_the_end()


def need_room(recipe: Recipe, accelerator: Accelerator) -> None:
    """Refuse a step that the computer has no memory for; what a GPU has, its own errors tell."""
    if accelerator.device.type == "cpu":
        what = f"a step of {recipe.batch} rows of {recipe.context} tokens"
        size = least_bytes(recipe, accelerator.num_processes) * accelerator.num_processes
        need_memory(what, size, "give a smaller --batch or --context, or more parts with --accumulate")


def take_folder(folder: Path) -> None:
    """Make it, unless there is a run in it."""
    if folder.exists() and not folder.is_dir():
        raise ValueError(f"{folder} is a file; name a folder for the run")
    if any((folder / name).exists() for name in (STATE, PREVIOUS, WEIGHTS)):
        resumable = (folder / STATE).exists() or (folder / PREVIOUS).exists()
        how = "continue it with --resume" if resumable else "remove it"
        raise ValueError(f"{folder} already holds a run; {how}, or name another folder with -o")
    folder.mkdir(parents=True, exist_ok=True)


def leave_no_empty_folder(folder: Path) -> None:
    """What is refused before its first step leaves nothing behind."""
    if folder.is_dir() and {path.name for path in folder.iterdir()} <= {LOCK}:
        (folder / LOCK).unlink(missing_ok=True)
        folder.rmdir()
