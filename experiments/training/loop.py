"""The loop: a trainer at work on a folder with weights, recipe, record and state.

folder/model.safetensors + config.json   the (averaged) weights, for `evaluate` and `Transformer.from_pretrained`
folder/recipe.json                       what it was trained by
folder/training.json                     curve, probes, time, versions
folder/state.safetensors                 everything that --resume needs; state-before.safetensors: the one before it
folder/tensorboard/                      curves to look at while it runs
"""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch

from compile.transformer.saving import CONFIG, WEIGHTS, save_weights_and_config
from experiments.evaluation.evaluate import accuracy
from experiments.evaluation.shipped import RECIPE, RECORD
from experiments.files import write_fields, write_json
from experiments.training.progress import Reporter
from experiments.training.state import Interrupted, NotFinite, TrainingError, explained, write_state
from experiments.training.trainer import Trainer

PROBE_EXAMPLES = 64


class TrainingRun:
    """A trainer at work: it reports, probes, saves, and says why when it must end early."""

    def __init__(self, trainer: Trainer, folder: Path, report: Reporter, save_seconds: float, command: str) -> None:
        self.trainer, self.folder, self.report, self.command = trainer, folder, report, command
        self.save_seconds, self.saved = save_seconds, time.monotonic()
        self.saved_step = trainer.steps_done
        self.main = trainer.accelerator.is_main_process

    def to_the_end(self) -> dict[str, Any]:
        if self.trainer.steps_done == 0:
            self.begin()
        with deferred_interrupt() as interrupted:
            while self.trainer.steps_done < self.trainer.recipe.steps and not interrupted():
                self.guarded(self.one_step)
            self.save()
            if self.trainer.steps_done < self.trainer.recipe.steps:
                raise Interrupted(
                    f"stopped after step {self.trainer.steps_done}, which is kept in {self.folder}; "
                    "continue with --resume"
                )
        self.trainer.accelerator.wait_for_everyone()
        return {"recipe": self.trainer.recipe.to_dict(), **self.record()}

    def begin(self) -> None:
        """The first save, which shows whether there is room; if there is not, it leaves nothing."""
        try:
            self.save()
        except TrainingError:
            for name in (WEIGHTS, CONFIG, RECIPE, RECORD):
                (self.folder / name).unlink(missing_ok=True)
            raise

    def guarded(self, work: Callable[[], None]) -> None:
        last = f"; the last good checkpoint is of step {self.saved_step} in {self.folder}"
        try:
            work()
        except NotFinite as error:
            raise TrainingError(f"{error}{last}: begin anew with another --seed or with lower rates") from None
        except (MemoryError, RuntimeError) as error:
            if not is_out_of_memory(error):
                raise
            raise TrainingError(
                f"out of memory in step {self.trainer.steps_done + 1}{last}: "
                "try a smaller --batch or --context, in another folder (-o)"
            ) from None

    def one_step(self) -> None:
        trainer, started = self.trainer, time.monotonic()
        loss, norm = trainer.step()
        trainer.seconds += time.monotonic() - started
        done, recipe = trainer.steps_done, trainer.recipe
        trainer.curve = thinned([*trainer.curve, {"step": done, "loss": round(loss, 5)}])
        self.report.step(done, loss, norm, trainer.seconds)
        if recipe.probes and (done % recipe.probe_every == 0 or done == recipe.steps):
            self.probe()
        if time.monotonic() - self.saved >= self.save_seconds:
            self.save()

    def probe(self) -> None:
        if not self.main:
            return
        trainer, recipe = self.trainer, self.trainer.recipe
        self.report.probing(recipe.probes)
        model, task = trainer.averaged(), recipe.make_task()
        found = {
            str(length): accuracy(
                model, task, length, PROBE_EXAMPLES, seed=recipe.seed + 1, context=recipe.context
            ).accuracy
            for length in recipe.probes
        }
        trainer.probes.append({"step": trainer.steps_done, "accuracy": found})
        self.report.probe(trainer.steps_done, found)

    def save(self) -> None:
        """Only the first process writes. The others do not wait here: clocks differ, and they meet in the next step."""
        if self.main:
            with explained(self.folder, self.folder / f"{WEIGHTS}.partial"):
                save_weights_and_config(self.trainer.averaged(), self.folder)  # the Hub's save drops the old first
                write_fields(self.folder / RECIPE, self.trainer.recipe.to_dict())
                write_json(self.folder / RECORD, self.record())
            write_state(self.folder, self.trainer.tensors(), self.trainer.notes())
        self.saved, self.saved_step = time.monotonic(), self.trainer.steps_done

    def record(self) -> dict[str, Any]:
        """What training.json tells of the run, beside its recipe."""
        trainer, recipe = self.trainer, self.trainer.recipe
        return {
            "command": self.command,
            **{name: value for name, value in trainer.notes().items() if name != "recipe"},
            "tokens": trainer.steps_done * recipe.batch * recipe.context,
            "finished": trainer.steps_done == recipe.steps,
            "parameters": trainer.model.parameter_count(),
            "torch": torch.__version__,
            "threads": torch.get_num_threads(),
        }


@contextmanager
def deferred_interrupt() -> Iterator[Callable[[], bool]]:
    """Ctrl-C waits until a step is whole; the second one does not. Says whether there was one."""
    received: list[int] = []
    if threading.current_thread() is not threading.main_thread():  # where Python allows no handlers
        yield lambda: False
        return

    def note(number: int, frame: Any) -> None:
        received.append(number)
        signal.signal(signal.SIGINT, before)

    before = signal.signal(signal.SIGINT, note)
    try:
        yield lambda: bool(received)
    finally:
        signal.signal(signal.SIGINT, before)


def is_out_of_memory(error: BaseException) -> bool:
    return isinstance(error, MemoryError | torch.OutOfMemoryError) or "can't allocate memory" in str(error)


def thinned(curve: list[dict[str, Any]], most: int = 400) -> list[dict[str, Any]]:
    """At most so many points, evenly spaced, and the last; always the same points for the same steps."""
    last, every = curve[-1]["step"], 1
    while last > (most - 1) * every:
        every *= 2
    return [point for point in curve if (point["step"] - 1) % every == 0 or point["step"] == last]
