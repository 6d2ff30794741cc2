"""The figures of the theorem's page."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from proofs_check.page.findings import LENGTHS, bounds, rates, sizes
from rasp.files import save_figure

if TYPE_CHECKING:
    from proofs_check.page.findings import Findings
    from proofs_check.sampled.report import Report

COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7")  # told apart by colour-blind readers too


def _figure(width: float = 6.4) -> Any:
    from matplotlib.figure import Figure  # not pyplot: no window system, no global state

    return Figure(figsize=(width, 4), dpi=150, layout="constrained")


def _axes(figure: Any, title: str, x: str, y: str, place: int = 111) -> Any:
    axes = figure.add_subplot(place)
    axes.set(title=title, xlabel=x, ylabel=y)
    axes.grid(alpha=0.3)
    axes.spines[["top", "right"]].set_visible(False)
    return axes


def draw_rates(findings: Findings, path: Path) -> None:
    figure = _figure()
    axes = _axes(
        figure,
        "How often random runs satisfy the hypothesis (12 x 16, 32 steps)",
        "cells on the tape",
        "share without a repeated (n+1)-gram",
    )
    for (n, row), colour in zip(rates(findings).items(), COLOURS, strict=False):
        axes.plot(LENGTHS, row, "o-", color=colour, label=f"n = {n}")
    axes.set(xscale="log", xticks=LENGTHS, xticklabels=LENGTHS, ylim=(-0.03, 1.03))
    axes.minorticks_off()
    axes.legend()
    save_figure(figure, path)


def draw_survival(findings: Findings, path: Path) -> None:
    figure = _figure()
    axes = _axes(figure, "Runs still right after so many steps (12 x 16, 6 cells, n = 1)", "step", "share of runs")
    samples = {packing: findings.sample(steps=64, length=6, packing=packing) for packing in ("unbounded", "paper")}
    for (packing, report), colour in zip(samples.items(), COLOURS, strict=False):
        axes.plot(range(65), _surviving(report), color=colour, label=f"{packing} packing")
    axes.axvline(32, color="grey", linestyle=":", label="bound: base**n = 32")
    axes.set(ylim=(0, 1.03), xlim=(0, 64))
    axes.legend()
    save_figure(figure, path)


def _surviving(report: Report) -> np.ndarray:
    """The share of runs that are right through step 0, 1, .. steps."""
    lost = np.zeros(report.sweep.steps + 1)
    for step, runs in report.tally.wrong_at.items():
        lost[int(step)] = runs
    return 1 - np.cumsum(lost) / report.tally.machines


def draw_bound(findings: Findings, path: Path) -> None:
    figure = _figure()
    axes = _axes(
        figure, "First wrong step of runs without repeats, paper's packing", "base (number of token ids)", "step"
    )
    for n, colour in zip((1, 2), COLOURS, strict=False):
        rows = [row for row in bounds(findings) if row.n == n and row.earliest is not None]
        bases = [row.base for row in rows]
        axes.plot(bases, [row.bound + 1 for row in rows], color=colour, label=f"base**{n} + 1")
        steps = [row.earliest.step for row in rows if row.earliest]
        axes.plot(bases, steps, "o", color=colour, label=f"found, n = {n}")
    axes.set(xscale="log", yscale="log", xticks=bases, xticklabels=bases)
    axes.minorticks_off()
    axes.legend()
    save_figure(figure, path)


def draw_size(findings: Findings, path: Path) -> None:
    figure = _figure(8)
    rows = sizes(findings)
    ns = [row.n for row in rows]
    for place, title, printed, rewritten in (
        (121, "operations", [r.nodes for r in rows], [r.rewritten_nodes for r in rows]),
        (122, "attention depth", [r.depth for r in rows], [r.rewritten_depth for r in rows]),
    ):
        axes = _axes(figure, f"The program's {title}", "n", title, place)
        axes.plot(ns, printed, "o-", color=COLOURS[0], label="as printed")
        axes.plot(ns, rewritten, "o-", color=COLOURS[1], label="rewritten")
        axes.set(ylim=(0, 1.1 * max(printed)), xticks=ns)
        axes.legend(loc="lower right")
    save_figure(figure, path)


FIGURES: dict[str, Callable[[Findings, Path], None]] = {
    "survival": draw_survival,
    "bound": draw_bound,
    "rates": draw_rates,
    "size": draw_size,
}
