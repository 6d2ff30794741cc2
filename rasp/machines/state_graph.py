"""The state graph of a machine: states are nodes, and edges say what is read, written, and where the head goes."""

from __future__ import annotations

import math
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rasp.draw import quoted
from rasp.files import save_figure, write_whole
from rasp.machines.machine import TuringMachine
from rasp.machines.partial import STUCK, explicit_rules
from rasp.machines.validation import InvalidMachine, listed

if TYPE_CHECKING:
    import networkx as nx

SUFFIXES = (".svg", ".png", ".dot")
MAX_LABEL_LINES = 6
MAX_LABELLED_EDGES = 80  # beyond this a picture's labels would hide each other; .dot keeps them


def state_graph(machine: TuringMachine) -> nx.DiGraph[str]:
    """Nodes carry `start` and `final`; an edge carries `rules`, a list of (read, write, direction).

    Holes in a table, filled with `stuck` when it was read, are left out.
    """
    import networkx as nx

    graph: nx.DiGraph[str] = nx.DiGraph(name=machine.name)
    for state in machine.states:
        graph.add_node(state, start=state == machine.start, final=state in machine.final)
    for state, row in explicit_rules(machine).items():
        for read, (write, direction, target) in row.items():
            if not graph.has_edge(state, target):
                graph.add_edge(state, target, rules=[])
            graph.edges[state, target]["rules"].append((read, write, direction))
    if STUCK in graph and machine.start != STUCK and graph.degree(STUCK) == 0:
        graph.remove_node(STUCK)
    return graph


def draw_machine(machine: TuringMachine, path: str | os.PathLike[str]) -> None:
    """Draw the state graph to a .svg, .png or .dot file. The start state is blue, final states have a double ring."""
    path = Path(path)
    if path.suffix not in SUFFIXES:
        raise InvalidMachine(f"cannot draw to {str(path)!r}: use one of {listed(SUFFIXES)}")
    if path.suffix == ".dot":
        write_whole(path, to_dot(machine))
    else:
        save_figure(_figure(machine), path, bbox_inches="tight")


def to_dot(machine: TuringMachine) -> str:
    """The state graph in the language of Graphviz."""
    graph = state_graph(machine)
    lines = [f"digraph {quoted(machine.name or 'machine')} {{", "  rankdir=LR;", "  node [shape=circle];"]
    for state, data in graph.nodes(data=True):
        shape = " [shape=doublecircle]" if data["final"] else ""
        lines.append(f"  {quoted(state)}{shape};")
    lines += ['  "" [shape=none];', f'  "" -> {quoted(machine.start)};']
    for state, target, data in graph.edges(data=True):
        lines.append(f"  {quoted(state)} -> {quoted(target)} [label={quoted(*_label(data['rules']))}];")
    return "\n".join(lines) + "\n}\n"


def _label(rules: list[tuple[str, str, str]]) -> list[str]:
    """`read / write, direction`, one line each; symbols that are only passed over share a line."""
    rules = [(read.replace(" ", "␣"), write.replace(" ", "␣"), direction) for read, write, direction in rules]
    lines = [f"{read} / {write}, {direction}" for read, write, direction in rules if read != write]
    for direction in "LR":
        kept = [read for read, write, move in rules if read == write and move == direction]
        lines += [f"{' '.join(kept)}, {direction}"] if kept else []
    hidden = len(lines) - MAX_LABEL_LINES
    return lines if hidden <= 0 else [*lines[: MAX_LABEL_LINES - 1], f".. {hidden + 1} more"]


# --- the picture ------------------------------------------------------------------------------------------------------

RING = 0.32  # radius of a state, in inches
INK, START, PAPER = "#334155", "#bfdbfe", "#ffffff"


def _figure(machine: TuringMachine) -> Any:
    from matplotlib.figure import Figure

    graph = state_graph(machine)
    places = _places(list(graph), machine.start)
    figure = Figure(figsize=(6, 6), dpi=150)
    axes = figure.add_axes((0.0, 0.0, 1.0, 1.0))
    readable = graph.number_of_edges() <= MAX_LABELLED_EDGES
    for state, target, data in graph.edges(data=True):
        _draw_edge(axes, places[state], places[target], "\n".join(_label(data["rules"])) if readable else "")
    for state, data in graph.nodes(data=True):
        _draw_state(axes, places[state], state, data["start"], data["final"])
    if machine.name:
        axes.set_title(_literal(machine.name), color=INK)
    _fit(figure, axes, list(places.values()))
    return figure


def _places(states: list[str], start: str) -> dict[str, tuple[float, float]]:
    """States around a circle, the start at nine o'clock: every edge is visible, whatever the graph."""
    count = len(states)
    radius = 0.0 if count == 1 else max(1.3, 0.32 * count)
    order = sorted(states, key=lambda q: q != start)
    angles = [math.pi - 2 * math.pi * i / count for i in range(count)]
    return {q: (radius * math.cos(a), radius * math.sin(a)) for q, a in zip(order, angles, strict=True)}


def _draw_state(axes: Any, at: tuple[float, float], name: str, start: bool, final: bool) -> None:
    from matplotlib.patches import Circle

    for radius in (RING, RING - 0.05) if final else (RING,):
        axes.add_patch(Circle(at, radius, facecolor=START if start else PAPER, edgecolor=INK, zorder=3))
    size = 9 if len(name) <= 6 else max(4.0, 54 / len(name))
    axes.text(*at, _literal(name), ha="center", va="center", fontsize=size, color=INK, zorder=4)


def _draw_edge(axes: Any, tail: tuple[float, float], head: tuple[float, float], label: str) -> None:
    from matplotlib.patches import FancyArrowPatch

    if tail == head:
        _draw_loop(axes, tail, label)
        return
    bend = 0.18  # both directions between two states stay apart
    shrink = RING * 72  # points
    axes.add_patch(
        FancyArrowPatch(
            tail,
            head,
            connectionstyle=f"arc3,rad={bend}",
            arrowstyle="-|>",
            color=INK,
            mutation_scale=10,
            shrinkA=shrink,
            shrinkB=shrink,
            linewidth=0.9,
        )
    )
    dx, dy = head[0] - tail[0], head[1] - tail[1]
    along, aside = 0.4, 2 * 0.4 * 0.6 * bend  # a point of the curve off its middle, where fewer edges cross
    _draw_label(axes, (tail[0] + along * dx + aside * dy, tail[1] + along * dy - aside * dx), label)


def _draw_loop(axes: Any, at: tuple[float, float], label: str) -> None:
    """A ring on the outside of the circle of states."""
    from matplotlib.patches import Circle

    length = math.hypot(*at) or 1.0
    out = (at[0] / length, at[1] / length) if at != (0.0, 0.0) else (0.0, 1.0)
    centre = (at[0] + out[0] * RING * 1.4, at[1] + out[1] * RING * 1.4)
    axes.add_patch(Circle(centre, RING * 0.7, fill=False, edgecolor=INK, linewidth=0.9))
    _draw_label(axes, (centre[0] + out[0] * 0.55, centre[1] + out[1] * 0.4), label)


def _draw_label(axes: Any, at: tuple[float, float], label: str) -> None:
    if not label:
        return
    box = {"facecolor": PAPER, "edgecolor": "none", "pad": 0.6, "alpha": 0.85}
    axes.text(*at, _literal(label), ha="center", va="center", fontsize=6.5, color=INK, bbox=box, zorder=2)


def _literal(text: str) -> str:
    """A dollar sign would start a formula."""
    return text.replace("$", r"\$")


def _fit(figure: Any, axes: Any, places: list[tuple[float, float]]) -> None:
    """One unit is one inch, so that rings and letters keep their size however many states there are."""
    reach = max(math.hypot(*at) for at in places) + 1.15
    figure.set_size_inches(2 * reach, 2 * reach)
    axes.set_xlim(-reach, reach)
    axes.set_ylim(-reach, reach)
    axes.set_aspect("equal")
    axes.axis("off")
