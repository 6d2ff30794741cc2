"""A trained model with what it was trained on, from its folder."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from compile.transformer import Transformer
from compile.transformer.saving import WEIGHTS
from experiments.evaluation.shipped import RECIPE
from experiments.tasks import Task, TuringRasp, make_task


@dataclass(frozen=True)
class Checkpoint:
    """A trained model with what it was trained on."""

    name: str
    model: Transformer
    task: Task
    lengths: tuple[int, int]
    context: int

    @property
    def is_machine(self) -> bool:
        return isinstance(self.task, TuringRasp)

    @property
    def usual_lengths(self) -> list[int]:
        """The training length and the multiples of it that the task is tried at."""
        return [round(self.lengths[1] * times) for times in self.task.multiples]


def load_checkpoint(folder: Path | str, device: str = "cpu") -> Checkpoint:
    path = Path(folder)
    if not path.is_dir():
        raise ValueError(f"there is no folder {path}; name one written by `turing-programs train`")
    if (path / RECIPE).is_file() and not (path / WEIGHTS).is_file():
        raise ValueError(
            f"of {path.name} results are kept, not weights; train it with `turing-programs reproduce {path.name}`"
        )
    model = Transformer.from_pretrained(path, map_location=device).eval()
    if not {"task", "lengths", "context"} <= set(model.config.extra):
        raise ValueError(f"{path} holds a model that was not trained here: its config.json names no task")
    low, high = model.config.note("lengths", list)
    task = make_task(model.config.note("task", dict))
    return Checkpoint(path.resolve().name, model, task, (low, high), model.config.note("context", int))
