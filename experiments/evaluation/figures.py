"""Figures as in the paper: accuracy against length with its 95% band, rollouts, and the grid of operand lengths."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from experiments.evaluation.results import Result
from rasp.files import save_figure


def seeds_of(name: str) -> tuple[str, ...]:
    """The checkpoint of this name, and those of its other seeds."""
    return (name, *(f"{name}-seed{k}" for k in range(2, 6)))


@dataclass(frozen=True)
class Figure:
    """Which shipped checkpoints a figure of the paper's shows, and at what they are tried."""

    about: str
    checkpoints: tuple[str, ...]
    steps: int = 0
    grid: tuple[int, ...] = ()
    as_band: bool = False
    curves: bool = False  # also how the loss fell in training

    def shows(self, result: Result) -> bool:
        """Of everything that is known of its checkpoints."""
        if isinstance(result.length, str):
            return bool(self.grid)
        return not self.grid and (result.rollout == 1 or result.rollout <= self.steps) and result.group == "all"


_MACHINES = tuple(f"tm-{i}" for i in range(10))
_ENCODINGS = ("hard_alibi", "nope", "alibi", "rope", "absolute", "t5", "fire", "randomized")

FIGURES = {
    "machines": Figure("ten random machines, each learned from one step on short tapes", _MACHINES),
    "rollouts": Figure("the same machines, ten steps in a row", _MACHINES, steps=10),
    "seeds": Figure("addition, five seeds of training: mean and 95% band", seeds_of("addition"), as_band=True),
    "machine-seeds": Figure(
        "one machine, five seeds of training: mean and 95% band", seeds_of("tm-0-hard_alibi"), as_band=True
    ),
    "encodings": Figure(
        "positional encodings on one machine at equal budget",
        tuple(f"tm-0-{encoding}" for encoding in _ENCODINGS),
        curves=True,
    ),
    "addition-encodings": Figure(
        "positional encodings on addition at equal budget",
        tuple(f"addition-{encoding}" for encoding in _ENCODINGS),
        curves=True,
    ),
    "formats": Figure(
        "addition with and without scratchpad at equal budget", ("addition-hard_alibi", "addition-plain"), curves=True
    ),
    "grid": Figure("addition by the lengths of both operands", ("addition",), grid=(8, 16, 24, 32)),
    "multiplication": Figure("multiplication by one and by three digits", ("multiplication1", "multiplication3")),
    "sgd": Figure("SGD on linear regression", ("sgd",)),
}


def draw(results: Sequence[Result], folder: Path) -> list[Path]:
    """Every figure that these results have something for."""
    import matplotlib

    matplotlib.use("Agg")
    folder.mkdir(parents=True, exist_ok=True)
    everything = [r for r in results if r.group == "all"]
    plain = [r for r in everything if r.rollout == 1 and isinstance(r.length, int)]
    rolled = [r for r in everything if r.rollout > 1]
    cells = [r for r in results if isinstance(r.length, str)]
    made = []
    if plain:
        made.append(draw_lengths(plain, folder / "accuracy.png"))
    if rolled:
        made.append(draw_rollouts(rolled, folder / "rollouts.png"))
    for name in dict.fromkeys(r.name for r in cells):
        made.append(draw_grid([r for r in cells if r.name == name], folder / f"grid-{name}.png"))
    return made


def draw_lengths(results: Sequence[Result], path: Path) -> Path:
    figure, axes = _axes("length", "accuracy")
    for name in dict.fromkeys(r.name for r in results):
        _curve(axes, name, {int(r.length): r for r in results if r.name == name})
    return _save(figure, axes, path)


def draw_rollouts(results: Sequence[Result], path: Path) -> Path:
    figure, axes = _axes("steps", "runs without an error")
    for name, length in dict.fromkeys((r.name, r.length) for r in results):
        _curve(
            axes, f"{name}, length {length}", {r.rollout: r for r in results if (r.name, r.length) == (name, length)}
        )
    return _save(figure, axes, path)


def draw_grid(results: Sequence[Result], path: Path) -> Path:
    pairs = {tuple(map(int, str(r.length).split("x"))): r.accuracy for r in results}
    sides = sorted({side for pair in pairs for side in pair})
    table = np.array([[pairs.get((a, b), np.nan) for b in sides] for a in sides])
    figure, axes = _axes("second operand, digits", "first operand, digits")
    axes.grid(False)
    axes.imshow(table, vmin=0, vmax=1, origin="lower", cmap="viridis")
    for a, row in enumerate(table):
        for b, share in enumerate(row):
            axes.text(b, a, f"{share:.2f}", ha="center", va="center", color="white" if share < 0.6 else "black")
    axes.set_xticks(range(len(sides)), sides)
    axes.set_yticks(range(len(sides)), sides)
    return _save(figure, axes, path)


def draw_curves(curves: Mapping[str, Sequence[Mapping[str, float]]], path: Path) -> Path:
    """Of each run the loss by step, as its record tells it."""
    figure, axes = _axes("step", "loss")
    axes.set_yscale("log")
    for name, curve in curves.items():
        axes.plot([point["step"] for point in curve], [point["loss"] for point in curve], label=name)
    return _save(figure, axes, path)


def _axes(across: str, up: str) -> tuple[Any, Any]:
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(5, 3.5), layout="constrained")
    axes.set_xlabel(across)
    axes.set_ylabel(up)
    axes.grid(alpha=0.3)
    return figure, axes


def _curve(axes: Any, label: str, points: dict[int, Result]) -> None:
    x = sorted(points)
    (line,) = axes.plot(x, [points[i].accuracy for i in x], marker="o", markersize=3, label=label)
    axes.fill_between(x, [points[i].low for i in x], [points[i].high for i in x], alpha=0.2, color=line.get_color())
    axes.set_ylim(-0.02, 1.02)


def _save(figure: Any, axes: Any, path: Path) -> Path:
    import matplotlib.pyplot as plt

    if axes.get_legend_handles_labels()[0]:
        axes.legend(fontsize="small")
    save_figure(figure, path, dpi=150)
    plt.close(figure)
    return path
