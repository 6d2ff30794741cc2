"""The figures of the page: matplotlib, as SVG whose colours are the page's own, so that they follow its theme."""

from __future__ import annotations

import io
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from compile.markup import Markup, markup
from experiments.comparison.summary import (
    FEW,
    Family,
    Results,
    Share,
    families,
    interval,
    learned_of,
    length_text,
    lookbacks,
    pooled,
    rollout_times,
    rollouts,
    rows_of,
    shares,
    times_of,
    words_of,
)

# Told apart by colour-blind readers, and by lightness alone. report.css has the same names for light and dark.
COLOURS = {
    "text": "#14181f",
    "quiet": "#5b6471",
    "line": "#d5dae2",
    "learned": "#c75001",
    "own": "#9c2f6b",
    "machine": "#7a8391",
    "n1": "#a9cfee",
    "n2": "#62a5da",
    "n3": "#1f76b8",
    "n4": "#0b4272",
    "n5": "#7458ad",
    "n6": "#3a2263",
}
MARKERS = {"n1": "o", "n2": "s", "n3": "^", "n4": "D", "n5": "P", "n6": "X", "learned": "o", "own": "v"}
LEAST = 1e-4  # share of wrong tokens from which on the scale is logarithmic
PIXELS = 100  # of an inch, at most


def accuracy_figure(results: Results) -> Any:
    """Whole tapes and single tokens, by multiple of the training length."""
    figure, (left, right) = _panels(2, width=9.2, height=3.5, ratios=(5, 4))
    words = words_of(results)
    _by_length(left, results, words.whole)
    _by_length(right, results, "token")
    left.set_ylabel(f"{words.wholes} right")
    left.set_ylim(-0.03, 1.03)
    right.set_ylabel("next tokens wrong")
    right.set_yscale("symlog", linthresh=LEAST)  # a logarithm that has a place for none
    right.set_yticks([0, 1e-4, 1e-3, 1e-2, 1e-1, 1], ["0", "0.01%", "0.1%", "1%", "10%", "100%"])
    right.minorticks_off()
    right.set_ylim(bottom=-LEAST / 4)
    _legend(figure, left)
    return figure


def rollout_figure(results: Results) -> Any:
    figure, (axes,) = _panels(1, width=6.4, height=3.4)
    for family in _drawn(results):
        _lines(axes, results, family, "rollout", "step")
        _mean(axes, family, rollouts(results, family))
    axes.set_xlabel("steps in a row, each on the tape it wrote itself")
    axes.set_ylabel(f"runs right so far, at {length_text(results, rollout_times(results) or 1)}")
    axes.set_ylim(-0.03, 1.03)
    axes.xaxis.get_major_locator().set_params(integer=True)
    _legend(figure, axes)
    return figure


def difficulty_figure(results: Results) -> Any | None:
    """The learned models on tapes with and without a repeated gram, length by length."""
    learned = learned_of(results)
    curves = {} if learned is None else {gram: _groups(results, learned, gram) for gram in grams_of(results)}
    shown = [gram for gram, (unique, repeated) in curves.items() if unique and repeated]
    if not shown:
        return None
    figure, panels = _panels(len(shown), width=2.3 * len(shown) + 1, height=2.9, share=True)
    for axes, gram in zip(panels, shown, strict=True):
        for points, style in zip(curves[gram], ("-", "--"), strict=True):
            _points(axes, points, COLOURS["learned"], style, style)
        axes.set_title(f"{gram}-grams", fontsize=10, color=COLOURS["text"])
        _length_axis(axes, results, sorted({t for curve in curves[gram] for t in curve}))
        axes.set_ylim(-0.03, 1.03)
    panels[0].set_ylabel(f"learned: {words_of(results).wholes} right")
    handles = panels[0].get_legend_handles_labels()[0]
    figure.legend(
        handles,
        ["every such gram is unique", "one is repeated"],
        loc="outside upper center",
        ncols=2,
        frameon=False,
        fontsize=9,
        labelcolor=COLOURS["text"],
    )
    return figure


def lookback_figure(results: Results) -> Any | None:
    """Copied tokens that are wrong, by how many tokens one must look back to know them."""
    figure, (axes,) = _panels(1, width=7.4, height=3.4)
    drawn = 0
    for family in _drawn(results):
        counts = {back: (wrong, of) for back, (wrong, of) in lookbacks(results, family).items() if of >= FEW and back}
        drawn += family.kind == "learned" and bool(counts)
        found = {back: interval(wrong, of) for back, (wrong, of) in counts.items()}
        if family.kind == "program":  # known, not estimated
            found = {back: replace(share, low=share.mean, high=share.mean) for back, share in found.items()}
        _points(axes, found, _colour(family), "-", family.label, MARKERS.get(family.colour, "o"))
    axes.set_xlabel("tokens one must look back to know what comes")
    axes.set_ylabel("copied tokens wrong")
    axes.set_yscale("symlog", linthresh=LEAST)
    axes.set_yticks([0, 1e-4, 1e-3, 1e-2, 1e-1, 1], ["0", "0.01%", "0.1%", "1%", "10%", "100%"])
    axes.minorticks_off()
    axes.set_ylim(bottom=-LEAST / 4)
    axes.xaxis.get_major_locator().set_params(integer=True)
    _legend(figure, axes)
    return figure if drawn else None


def grams_of(results: Results) -> list[int]:
    return sorted({row["gram"] for machine in results["machines"] for row in machine["difficulty"]})


def _groups(results: Results, family: Family, gram: int) -> tuple[dict[float, Share], dict[float, Share]]:
    def curve(group: str) -> dict[float, Share]:
        rows = rows_of(results, family, "difficulty", gram=gram, group=group)
        counts = {t: pooled(row for row in rows if row["times"] == t) for t in sorted({row["times"] for row in rows})}
        return {times: interval(right, of) for times, (right, of) in counts.items() if of >= FEW}

    return curve("unique"), curve("repeated")


# --- curves -----------------------------------------------------------------------------------------------------------


def _drawn(results: Results) -> list[Family]:
    """The true machine is always right and needs no line; learned models come last, on top."""
    return sorted((f for f in families(results) if f.kind != "machine"), key=lambda f: (f.kind != "program", f))


def _by_length(axes: Any, results: Results, measure: str) -> None:
    for family in _drawn(results):
        found = shares(results, family, measure)
        _lines(axes, results, family, measure, "times")
        _mean(axes, family, {times: wrong(share) for times, share in found.items()} if measure == "token" else found)
    _length_axis(axes, results, times_of(results))
    whole = words_of(results).whole
    axes.set_xlabel(f"{whole} length, in training lengths" if learned_of(results) else f"{whole} length")


def wrong(share: Share) -> Share:
    """How often wrong instead of right."""
    return replace(share, mean=1 - share.mean, low=1 - share.high, high=1 - share.low)


def _length_axis(axes: Any, results: Results, times: Sequence[float]) -> None:
    axes.set_xscale("log")
    axes.set_xticks(list(times), [length_text(results, t).partition(" ")[0] for t in times])
    axes.minorticks_off()


def _lines(axes: Any, results: Results, family: Family, measure: str, across: str) -> None:
    """A thin line for each learned model; programs differ little between machines."""
    rows = rows_of(results, family, measure=measure)
    names = list(dict.fromkeys(row["machine"] for row in rows))
    if family.kind == "program" or len(names) < 2:
        return
    for name in names:
        points = sorted(
            (row[across], 1 - row["accuracy"] if measure == "token" else row["accuracy"])
            for row in rows
            if row["machine"] == name
        )
        axes.plot(*zip(*points, strict=True), color=_colour(family), linewidth=0.7, alpha=0.45)


def _mean(axes: Any, family: Family, found: Mapping[Any, Share]) -> None:
    several = any(share.machines > 1 for share in found.values())
    name = f"{family.label}, mean" if several and family.kind == "learned" else family.label
    _points(axes, found, _colour(family), "-", name, MARKERS.get(family.colour, "o"))


def _points(axes: Any, found: Mapping[Any, Share], colour: str, style: str, name: str, marker: str = "o") -> None:
    x = sorted(found)
    look: dict[str, Any] = {"color": colour, "marker": marker, "markersize": 4, "linewidth": 1.8}
    axes.plot(x, [found[i].mean for i in x], style, label=name, **look)
    axes.fill_between(x, [found[i].low for i in x], [found[i].high for i in x], color=colour, alpha=0.16, linewidth=0)


def _colour(family: Family) -> str:
    return COLOURS.get(family.colour, COLOURS["own"])


# --- matplotlib -------------------------------------------------------------------------------------------------------


def _panels(count: int, width: float, height: float, ratios: Sequence[float] | None = None, share: bool = False) -> Any:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    figure.patch.set_alpha(0)
    panels = figure.subplots(1, count, squeeze=False, sharey=share, width_ratios=ratios)[0]
    for axes in panels:
        axes.patch.set_alpha(0)
        axes.grid(color=COLOURS["line"], linewidth=0.7)
        axes.set_axisbelow(True)
        axes.tick_params(colors=COLOURS["quiet"], labelsize=9, length=3)
        axes.xaxis.label.set_color(COLOURS["quiet"])
        axes.yaxis.label.set_color(COLOURS["quiet"])
        for name, spine in axes.spines.items():
            spine.set_color(COLOURS["quiet"])
            spine.set_visible(name in ("left", "bottom"))
    return figure, panels


def _legend(figure: Any, axes: Any) -> None:
    handles, names = axes.get_legend_handles_labels()
    figure.legend(handles, names, loc="outside right center", frameon=False, fontsize=9, labelcolor=COLOURS["text"])


def text_only(figure: Any) -> Any:
    """Names are not read as formulas, whatever dollar signs they have."""
    from matplotlib.text import Text

    for text in figure.findobj(Text):
        text.set_parse_math(False)
    return figure


def as_svg(figure: Any, prefix: str, description: str) -> Markup:
    """An <svg> element to stand in a page: its ids begin with `prefix`, its colours are the page's."""
    import matplotlib

    text = io.StringIO()
    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": prefix, "font.family": "DejaVu Sans"}):
        text_only(figure).savefig(text, format="svg", metadata={"Date": None, "Creator": None})
    svg = text.getvalue()
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    svg = re.sub(r'(\bid="|url\(#|href="#)', rf"\g<1>{prefix}-", svg)
    svg = re.sub(r"font: ([^;\"]*?)'DejaVu Sans'[^;\"]*", r"font: \1 system-ui, sans-serif", svg)
    for name, colour in COLOURS.items():
        svg = svg.replace(colour, f"var(--{name})")
    width = figure.get_figwidth() * PIXELS
    start = markup('<svg role="img" aria-label="{}" style="max-width: {:.0f}px" ', description, width)
    return Markup(start + svg.removeprefix("<svg "))  # matplotlib has escaped what it was given
