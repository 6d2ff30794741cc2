"""Attention patterns as matplotlib figures, for papers."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from rasp.errors import check_whole
from rasp.files import save_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from compile.transformer.transformer import Prompts, Transformer

SUFFIXES = (".pdf", ".svg", ".png")
MOST_LABELS = 60  # tokens named on an axis; beyond it they would overlap
MOST_LETTERS = 10
PANEL = 2.3  # inches


def attention_figure(
    model: Transformer,
    tokens: Prompts,
    heads: Sequence[tuple[int, int]] | None = None,
    path: str | Path | None = None,
    *,
    columns: int = 4,
    cmap: str = "Blues",
    log: bool = False,
) -> Figure:
    """A matplotlib figure of the given (layer, head) pairs, by default all; written to a .pdf, .svg or .png `path`.

    One head gets its tokens on both axes. Any scale from light to dark, such as `Blues`, suits all eyes and grey print.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ValueError("figures need matplotlib: pip install 'turing-programs[draw]'") from error
    from compile.inspector.collect import record

    check_whole("columns", columns, "panels stand side by side")
    wanted = _checked_heads(model, heads)
    row = np.asarray(tokens)
    _, seen = record(model, row)
    across = min(columns, len(wanted))
    down = -(-len(wanted) // across)
    alone = len(wanted) == 1
    size = _size_alone(len(row)) if alone else PANEL
    figure = Figure(figsize=(size * across + 0.8, (size + 0.35) * down + 0.2), layout="constrained")
    panels = figure.subplots(down, across, squeeze=False).ravel()
    image: Any = None
    for panel, (layer, head) in zip(panels, wanted, strict=False):
        image = _draw(panel, seen.patterns[layer][head], cmap, log)
        panel.set_title(_title(model, layer, head), fontsize=9 if alone else 7)
        if alone:
            _name_axes(panel, model, row)
    for panel in panels[len(wanted) :]:
        panel.set_axis_off()
    bar = figure.colorbar(image, ax=panels.tolist(), shrink=0.7)
    bar.set_label("log10 weight" if log else "attention weight", fontsize=8)
    bar.ax.tick_params(labelsize=7)
    if path is not None:
        _save(figure, Path(path))
    return figure


def _checked_heads(model: Transformer, heads: Sequence[tuple[int, int]] | None) -> list[tuple[int, int]]:
    known = [(layer, head) for layer, shape in enumerate(model.config.shapes) for head in range(shape.heads)]
    if heads is None:
        heads = known
    wrong = [pair for pair in heads if tuple(pair) not in known]
    if wrong or not heads:
        shapes = [shape.heads for shape in model.config.shapes]
        raise ValueError(f"no head is {wrong[:1] or 'given'}; this model has {shapes} heads per layer, counted from 0.")
    return [(layer, head) for layer, head in heads]


def _size_alone(tokens: int) -> float:
    return float(np.clip(0.16 * tokens, 3.0, 7.5))


def _draw(panel: Any, pattern: np.ndarray, cmap: str, log: bool) -> Any:
    values = np.log10(np.maximum(pattern, 1e-4)) if log else pattern
    image = panel.imshow(
        values,
        cmap=cmap,
        vmin=-4 if log else 0,
        vmax=0 if log else 1,
        interpolation="nearest",
        aspect="auto",
        rasterized=True,
    )
    panel.tick_params(labelsize=6, length=2)
    return image


def _title(model: Transformer, layer: int, head: int) -> str:
    facts = model.config.annotations.heads
    label = facts[layer][head].label if facts else ""
    window = model.config.shapes[layer].windows[head]
    sees = "all tokens" if window is None else f"window {window}"
    text = label if len(label) <= 34 else label[:31] + "..."
    return f"layer {layer}, head {head} ({sees})\n{text}".strip().replace("$", r"\$")


def _name_axes(panel: Any, model: Transformer, row: np.ndarray) -> None:
    panel.set_ylabel("token that looks")
    panel.set_xlabel("token that is looked at")
    if len(row) > MOST_LABELS or not model.config.token_names:
        return
    names = [_short(model.config.name_of(t)) for t in row.tolist()]
    start = [_short(model.config.name_of(model.config.prepend or 0))] * model.prepended
    panel.set_yticks(range(len(row)), names, fontsize=6, parse_math=False)
    panel.set_xticks(range(len(row) + model.prepended), [*start, *names], fontsize=6, rotation=90, parse_math=False)


def _short(name: str) -> str:
    return name if len(name) <= MOST_LETTERS else name[: MOST_LETTERS - 1] + "…"


def _save(figure: Any, path: Path) -> None:
    if path.suffix.lower() not in SUFFIXES:
        raise ValueError(f"cannot draw to {str(path)!r}: the name must end in one of {', '.join(SUFFIXES)}")
    save_figure(figure, path, dpi=200, metadata={"Date": None} if path.suffix == ".svg" else None)
