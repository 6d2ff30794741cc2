"""Pictures of traced programs: SVG, PNG and PDF by matplotlib, or DOT as text.

Inputs are at the top and the output at the bottom, so that height is depth. Colours (Okabe and Ito's, which the
colour-blind can tell apart) say what kind of operation a node is; attention is drawn with rounded, darker boxes.
"""

from __future__ import annotations

import os
import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from rasp.files import save_figure, write_whole
from rasp.layout import Layout, Point, layered

SUFFIXES = (".svg", ".png", ".pdf", ".dot")
KINDS = {  # operations: (name in the legend, fill, border)
    "input": ("input", "#FFFFFF", "#000000"),
    "full": ("constant, indices", "#EEEEEE", "#777777"),
    "map": ("map: a function of each token", "#D6ECF8", "#0072B2"),
    "delay": ("delay: an earlier token", "#FBE7C0", "#B86E00"),
    "select": ("selector", "#FBF8C8", "#8A8300"),
    "width": ("counter: how many were selected", "#CDEBDF", "#00734F"),
    "kqv": ("attention: what was selected", "#F6D3E2", "#A63A74"),
}
SAME_KIND = {"indices": "full", "aggr": "kqv"}
ATTENTION = ("delay", "width", "kqv")
LINE, COLUMN, PAD = 0.155, 0.0735, 0.16  # inches: height of a line, width of a character, space around the text
WRAP = 36  # characters in a line of a box
LAYER_GAP = 0.42


class DrawnNode(Protocol):
    @property
    def op(self) -> str: ...
    @property
    def inputs(self) -> tuple[int, ...]: ...


class Drawable(Protocol):
    """What is drawn: operations in topological order, in words."""

    @property
    def nodes(self) -> Sequence[DrawnNode]: ...
    @property
    def output(self) -> int: ...
    @property
    def names(self) -> Mapping[int, str]: ...
    def describe(self, i: int) -> str: ...


def draw_graph(graph: Drawable, path: str | os.PathLike[str]) -> None:
    """Draw a program to a .svg, .png, .pdf or .dot file."""
    path = Path(path)
    suffix = path.suffix.lower()
    if suffix not in SUFFIXES:
        raise ValueError(f"cannot draw to {str(path)!r}: the name must end in one of {', '.join(SUFFIXES)}")
    try:
        if suffix == ".dot":
            write_whole(path, to_dot(graph))
        else:
            save_figure(_figure(graph), path, metadata={"Date": None} if suffix == ".svg" else None)
    except OSError as error:
        raise ValueError(f"cannot write {str(path)!r}: {error.strerror or error}") from error


def kind_of(op: str) -> str:
    return SAME_KIND.get(op, op)


def lines_of(graph: Drawable, i: int) -> list[str]:
    """What is written in the box of a node: its name, and what it computes."""
    name = graph.names.get(i, f"n{i}")
    text = graph.describe(i)
    head = "output" if i == graph.output and i not in graph.names else name
    return [head] if text == name else [head, *textwrap.wrap(text, WRAP, break_long_words=True)]


# --- DOT --------------------------------------------------------------------------------------------------------------


def to_dot(graph: Drawable) -> str:
    """The program in the language of Graphviz."""
    lines = ["digraph program {", "  rankdir=TB;"]
    lines.append('  node [shape=box, style=filled, fontname="monospace", fontsize=10];')
    for i, node in enumerate(graph.nodes):
        _, fill, border = KINDS[kind_of(node.op)]
        thick = ", penwidth=3" if i == graph.output else ""
        style = ', style="filled,rounded"' if kind_of(node.op) in ATTENTION else ""
        label = quoted(*lines_of(graph, i))
        lines.append(f'  n{i} [label={label}, fillcolor="{fill}", color="{border}"{style}{thick}];')
    lines += [f"  n{j} -> n{i};" for i, node in enumerate(graph.nodes) for j in dict.fromkeys(node.inputs)]
    return "\n".join(lines) + "\n}\n"


def quoted(*lines: str) -> str:
    """A string of Graphviz's; several lines are centred."""
    return '"' + "\\n".join(line.replace("\\", "\\\\").replace('"', '\\"') for line in lines) + '"'


# --- the picture ------------------------------------------------------------------------------------------------------


def _figure(graph: Drawable) -> Any:
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ValueError("this needs matplotlib: pip install 'turing-programs[draw]', or draw to .dot") from error

    texts = [lines_of(graph, i) for i in range(len(graph.nodes))]
    sizes = [_size(text) for text in texts]
    layout = _laid_out(graph, sizes)
    left = min(x - w / 2 for (x, _), (w, _) in zip(layout.places, sizes, strict=True)) - 0.4
    right = max(x + w / 2 for (x, _), (w, _) in zip(layout.places, sizes, strict=True)) + 0.4
    bottom = max(y + h / 2 for (_, y), (_, h) in zip(layout.places, sizes, strict=True)) + 0.3
    used = [kind for kind in KINDS if any(kind_of(node.op) == kind for node in graph.nodes)]
    right = max(right, left + 4.2)
    figure = Figure(figsize=(right - left, bottom + 0.3 + 0.3 * len(used)), dpi=110)
    axes = figure.add_axes((0.0, 0.0, 1.0, 1.0))
    axes.set_xlim(left, right)
    axes.set_ylim(bottom + 0.3 * len(used), -0.3)
    axes.axis("off")
    for (j, i), route in layout.routes.items():
        _draw_edge(axes, route, sizes[j][1] / 2, sizes[i][1] / 2, KINDS[kind_of(graph.nodes[j].op)][2])
    for i, text in enumerate(texts):
        _draw_box(axes, layout.places[i], sizes[i], text, kind_of(graph.nodes[i].op), i == graph.output)
    _draw_legend(axes, left, bottom, used)
    return figure


def _size(lines: list[str]) -> tuple[float, float]:
    return max(len(line) for line in lines) * COLUMN + PAD, len(lines) * LINE + PAD


def _laid_out(graph: Drawable, sizes: list[tuple[float, float]]) -> Layout:
    """Layers as far apart as their tallest boxes need."""
    inputs = [tuple(dict.fromkeys(node.inputs)) for node in graph.nodes]
    widths = [width for width, _ in sizes]
    flat = layered(inputs, widths, height=float)
    tallest = [max((sizes[v][1] for v in layer), default=LINE) for layer in flat.layers]
    down = [0.0]
    for a, b in zip(tallest, tallest[1:], strict=False):
        down.append(down[-1] + (a + b) / 2 + LAYER_GAP)
    return layered(inputs, widths, height=lambda level: down[level] + tallest[0] / 2)


def _draw_box(axes: Any, at: Point, size: tuple[float, float], lines: list[str], kind: str, is_output: bool) -> None:
    from matplotlib.patches import FancyBboxPatch

    _, fill, border = KINDS[kind]
    (x, y), (width, height) = at, size
    style = "round,pad=0,rounding_size=0.12" if kind in ATTENTION else "square,pad=0"
    corner = (x - width / 2, y - height / 2)
    line = 2.6 if is_output else 1.1
    axes.add_patch(
        FancyBboxPatch(corner, width, height, style, facecolor=fill, edgecolor=border, linewidth=line, zorder=3)
    )
    for k, text in enumerate(lines):
        down = y + (k - (len(lines) - 1) / 2) * LINE
        weight = "bold" if k == 0 else "normal"
        axes.text(
            x,
            down,
            text.replace("$", r"\$"),
            ha="center",
            va="center",
            fontsize=8,
            family="monospace",
            fontweight=weight,
            color="#111111",
            zorder=4,
        )


def _draw_edge(axes: Any, route: list[Point], above: float, below: float, color: str) -> None:
    """A curve that leaves downwards, passes through the layers between, and arrives from above."""
    from matplotlib.patches import FancyArrowPatch
    from matplotlib.path import Path as Curve

    points = [(route[0][0], route[0][1] + above), *route[1:-1], (route[-1][0], route[-1][1] - below - 0.02)]
    vertices, codes = [points[0]], [Curve.MOVETO]
    for (x0, y0), (x1, y1) in zip(points, points[1:], strict=False):
        vertices += [(x0, (y0 + y1) / 2), (x1, (y0 + y1) / 2), (x1, y1)]
        codes += [Curve.CURVE4] * 3
    axes.add_patch(
        FancyArrowPatch(
            path=Curve(vertices, codes),
            arrowstyle="-|>",
            mutation_scale=7,
            linewidth=0.9,
            color=color,
            alpha=0.75,
            zorder=2,
            shrinkA=0,
            shrinkB=0,
        )
    )


def _draw_legend(axes: Any, left: float, bottom: float, kinds: list[str]) -> None:
    for k, kind in enumerate(kinds):
        at = (left + 0.45, bottom + 0.15 + 0.3 * k)
        _draw_box(axes, at, (0.4, 0.18), [""], kind, False)
        axes.text(at[0] + 0.3, at[1], KINDS[kind][0], ha="left", va="center", fontsize=8, color="#111111")
