"""What a person sees of a run: a bar in a terminal, lines in a log, and TensorBoard."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol

from experiments.training.recipe import Recipe

LINE_SECONDS = 20.0


class Reporter(Protocol):
    def step(self, done: int, loss: float, norm: float, seconds: float) -> None: ...

    def probing(self, lengths: Sequence[int]) -> None: ...

    def probe(self, done: int, accuracy: Mapping[str, float]) -> None: ...


class Display:
    """Loss, tokens per second and time left; probes of longer lengths as they come."""

    def __init__(self, recipe: Recipe, folder: Path, show: bool) -> None:
        self.recipe, self.folder, self.show = recipe, folder, show
        self.loss, self.last_line, self.first = 0.0, 0.0, (0, 0.0)
        self.bar: Any = None
        self.curves = Curves(folder / "tensorboard")

    def __enter__(self) -> Display:
        if self.show:
            self.bar = make_bar(self.recipe.steps) if sys.stderr.isatty() else None
        return self

    def __exit__(self, *_: object) -> None:
        if self.bar is not None:
            self.bar.stop()
        self.curves.close()

    def step(self, done: int, loss: float, norm: float, seconds: float) -> None:
        if not self.show:
            return
        self.loss = loss if done == 1 or not self.loss else 0.95 * self.loss + 0.05 * loss
        if not self.first[0]:
            self.first = done, seconds  # a resumed run, and the first step's start-up, do not count in the speed
        pace = (seconds - self.first[1]) / max(1, done - self.first[0])
        speed = self.recipe.batch * self.recipe.context / pace if pace else 0.0
        if done % 10 == 0:
            self.curves.add({"loss": loss, "gradient norm": norm, "tokens per second": speed}, done)
        if self.bar is not None:
            self.bar.update(self.bar.task_ids[0], completed=done, loss=f"{self.loss:.4f}", speed=f"{speed:,.0f}")
        elif time.monotonic() - self.last_line >= LINE_SECONDS or done == self.recipe.steps:
            self.last_line = time.monotonic()
            left = pace * (self.recipe.steps - done) / 60
            at = f"step {done}/{self.recipe.steps}  loss {self.loss:.4f}"
            self.line(f"{at}  {speed:,.0f} tokens/s  {left:.1f} min left" if pace else at)

    def probing(self, lengths: Sequence[int]) -> None:
        """Before what may take minutes: the bar stands still then."""
        if self.show:
            self.line(f"trying it at length {', '.join(map(str, lengths))} ...")

    def probe(self, done: int, accuracy: Mapping[str, float]) -> None:
        if not self.show:
            return
        self.curves.add({f"accuracy/length {length}": value for length, value in accuracy.items()}, done)
        self.line(f"step {done}  exact at " + "  ".join(f"{length}: {value:.3f}" for length, value in accuracy.items()))

    def say(self, text: str) -> None:
        """What a person should know, if there is something."""
        if self.show and text:
            self.line(text)

    def line(self, text: str) -> None:
        if self.bar is not None:
            self.bar.console.print(text, highlight=False)
        else:
            print(text, file=sys.stderr, flush=True)


class Curves:
    """TensorBoard's file, from the first point on. Where there is no room for it, the run goes on without."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.wanted = folder, True
        self.writer: Any = None

    def add(self, values: Mapping[str, float], step: int) -> None:
        try:
            if self.wanted and self.writer is None:
                self.writer = make_writer(self.folder)
                self.wanted = self.writer is not None
            for name, value in values.items() if self.wanted else ():
                self.writer.add_scalar(name, value, step)
        except OSError:
            self.close()

    def close(self) -> None:
        writer, self.writer, self.wanted = self.writer, None, False
        if writer is not None:
            with suppress(OSError):
                writer.close()


def make_bar(steps: int) -> Any:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    bar = Progress(
        MofNCompleteColumn(),
        BarColumn(),
        TextColumn("loss {task.fields[loss]}"),
        TextColumn("{task.fields[speed]} tokens/s"),
        TimeRemainingColumn(),
        console=Console(stderr=True),
    )
    bar.add_task("training", total=steps, loss="", speed="")
    bar.start()
    return bar


def make_writer(folder: Path) -> Any:
    """TensorBoard's, or none where it is not installed: curves are in training.json too."""
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError:
        return None
    return SummaryWriter(str(folder))
