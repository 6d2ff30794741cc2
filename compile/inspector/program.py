"""The RASP graph behind a compiled model, laid out for the page, and which of its nodes each head computes."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from compile.domains import Capacity
from compile.factor import matches
from compile.front import prepare
from compile.model import Transformer
from compile.naming import Names
from rasp.core import named
from rasp.draw import kind_of, lines_of
from rasp.formats import from_json
from rasp.graph import Graph
from rasp.layout import layered
from rasp.turing import next_tokens

COLUMN, LINE, PAD, GAP, ROW_GAP = 6.7, 14, 12, 14, 34  # pixels: a character, a line, space in and between boxes


def program_graph(model: Transformer, program: Callable[[Any], Any] | None = None) -> Graph | None:
    """The graph a model was compiled from: of `program`, else of the machine it carries; None if it has neither."""
    extra, config = model.config.extra, model.config
    tokens = range(config.vocabulary - (config.prepend is not None))
    if program is not None:
        return prepare(program, tokens, Capacity(64, 512)).graph
    if "backend" not in extra or "machine" not in extra:
        return None
    machine, n = from_json(extra["machine"]), extra["n"]
    return prepare(
        lambda x: named(next_tokens(x, machine, n, extra["packing"]), f"next {n + 1}-gram"),
        range(machine.base), Capacity(extra["steps"] + 2),
    ).graph  # fmt: skip


def graph_data(graph: Graph) -> dict[str, Any]:
    """Boxes (centre, size, lines of text) and the points that edges pass through, in pixels."""
    texts = [lines_of(graph, i) for i in range(len(graph))]
    sizes = [(PAD + COLUMN * max(map(len, text)), PAD + LINE * len(text)) for text in texts]
    layout = layered([node.inputs for node in graph.nodes], [w for w, _ in sizes], float, gap=GAP)
    tops = _rows(layout.layers, [h for _, h in sizes])

    def place(point: tuple[float, float]) -> list[float]:
        return [round(point[0], 1), round(tops[int(point[1])], 1)]

    return {
        "output": graph.output,
        "nodes": [{"at": place(layout.places[i]), "size": [round(s, 1) for s in sizes[i]], "lines": texts[i],
                   "op": kind_of(graph.nodes[i].op)} for i in range(len(graph))],
        "edges": [{"from": j, "to": i, "route": [place(p) for p in route]}
                  for (j, i), route in layout.routes.items()],
    }  # fmt: skip


def _rows(layers: list[list[int]], heights: list[float]) -> list[float]:
    """How far down the middle of each layer is."""
    tops, down = [], 0.0
    for layer in layers:
        tall = max((heights[i] for i in layer), default=0.0)
        tops.append(down + tall / 2)
        down += tall + ROW_GAP
    return tops


# --- heads ------------------------------------------------------------------------------------------------------------


def nodes_of_heads(graph: Graph, labels: list[list[str]]) -> list[list[list[int]]]:
    """For every head the nodes its label speaks of."""
    by_label = _labels(graph)
    return [[_nodes(graph, by_label, label) for label in layer] for layer in labels]


def _labels(graph: Graph) -> dict[str, list[int]]:
    names, found = Names(graph), dict[str, list[int]]()
    for i, node in enumerate(graph.nodes):
        if node.op == "delay":
            found.setdefault(names.of(i), []).append(i)
        elif node.op == "width":
            for label in (f"count {names.condition(matches(node))}", names.of(i)):  # Hard-ALiBi's and tracr's
                found.setdefault(label, []).append(i)
        elif node.op == "indices":
            found.setdefault("count positions", []).append(i)
        elif node.op == "kqv":
            found.setdefault(names.attention(i), []).append(i)
    return found


def _nodes(graph: Graph, by_label: dict[str, list[int]], label: str) -> list[int]:
    if label in by_label:
        return by_label[label]
    if label == "count separators":  # the lean model counts them once for both counters of the program
        return [i for i, node in enumerate(graph.nodes) if node.op == "width"]
    found: list[int] = []
    for part in re.split(" and |; ", label):
        found += by_label.get(part) or _as_far_back(graph, part)
    return sorted(set(found))


def _as_far_back(graph: Graph, label: str) -> list[int]:
    """The lean model reads x itself where the program delays something already computed: go by the distance to x."""
    shift = re.fullmatch(r"shift_right\(x, (\d+)\)", label)
    if shift is None:
        return []
    reach: list[int] = []
    for node in graph.nodes:
        reach.append(max((reach[j] for j in node.inputs), default=0) + (node.offset if node.op == "delay" else 0))
    return [i for i, node in enumerate(graph.nodes) if node.op == "delay" and reach[i] == int(shift[1])]
