"""The page: results in, one self-contained HTML file out. No network, no scripts; names are only ever shown as text."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import Any

from compile.markup import Markup, joined, markup, shown
from experiments.comparison.drawing import accuracy_figure, text_only
from experiments.comparison.findings import findings, headline
from experiments.comparison.sections import about, accuracy, costs, difficulty, errors, heads, problems, training
from experiments.comparison.summary import Results
from rasp.files import save_figure, write_whole

RESULTS = "results.json"
PAGE = "report.html"
FIGURE = "figures/accuracy.png"
Sections = tuple[tuple[str, str, Callable[[Results], Markup]], ...]
SECTIONS: Sections = (
    ("summary", "Summary", accuracy.summary),
    ("accuracy", "Accuracy by length", accuracy.accuracy),
    ("rollouts", "Many steps in a row", accuracy.rollout),
    ("difficulty", "By difficulty", difficulty.difficulty),
    ("anatomy", "Anatomy of errors", errors.anatomy),
    ("mechanism", "Mechanism", heads.mechanism),
    ("cost", "Cost", costs.cost),
    ("from-compiled", "Training from compiled weights", training.from_compiled),
    ("inspector", "Look inside", about.inspector),
    ("method", "How this was made", about.method),
)
TASK_SECTIONS: Sections = (
    ("summary", "Summary", accuracy.summary),
    ("accuracy", "Accuracy by length", accuracy.accuracy),
    ("lookback", "How far back", problems.lookback),
    ("difficulty", "By difficulty", difficulty.difficulty),
    ("anatomy", "Anatomy of errors", problems.anatomy),
    ("cost", "Cost", costs.cost),
    ("method", "How this was made", about.method),
)


@cache
def static(name: str) -> str:
    return (files("experiments.comparison") / "static" / name).read_text(encoding="utf-8")


def render(results: Results) -> str:
    """The whole page. Sections for which nothing was measured are left out."""
    sections = TASK_SECTIONS if "task" in results else SECTIONS
    made = [(anchor, title, body) for anchor, title, write in sections if (body := write(results))]
    points = joined(markup("<li>{}</li>", text) for text in findings(results))
    filled = {
        "title": "Learned against compiled",
        "styles": Markup(static("report.css")),
        "headline": headline(results),
        "kicker": about.kicker(results),
        "findings": markup('<ul class="findings">{}</ul>', points),
        "contents": joined(markup('<a href="#{}">{}</a>', anchor, title) for anchor, title, _ in made),
        "sections": joined((markup('<section id="{}"><h2>{}</h2>{}</section>', *one) for one in made), "\n"),
    }
    return Template(static("report.html")).substitute({name: shown(value) for name, value in filled.items()})


def write_results(results: Results, folder: Path) -> Results:
    """The numbers, and with them the results as they were written: what a page should be drawn from."""
    kept: Results = rounded(results)
    write_whole(folder / RESULTS, json.dumps(kept, allow_nan=False) + "\n")
    return kept


def write_report(results: Results, folder: Path) -> list[Path]:
    """The page and the figure for a README."""
    page = write_whole(folder / PAGE, render(results))
    (folder / FIGURE).parent.mkdir(exist_ok=True)
    figure = text_only(accuracy_figure(results))
    return [page, save_figure(figure, folder / FIGURE, dpi=160, facecolor="white")]  # on white, for a README


def rounded(value: Any) -> Any:
    """Six digits after the point say all there is to say, in half the room."""
    if isinstance(value, float):
        return round(value, 6)
    if isinstance(value, dict):
        return {key: rounded(part) for key, part in value.items()}
    return [rounded(part) for part in value] if isinstance(value, list | tuple) else value
