"""The program behind a compiled model, as it was saved with it, laid out for the page."""

from __future__ import annotations

from typing import Any

from compile.transformer.annotations import ProgramGraph
from rasp.layout import layered

COLUMN, LINE, PAD, GAP, ROW_GAP = 6.7, 14, 12, 14, 34  # pixels: a character, a line, space in and between boxes


def graph_data(program: ProgramGraph) -> dict[str, Any]:
    """Boxes (centre, size, lines of text) and the points that edges pass through, in pixels."""
    texts = [list(operation.lines) for operation in program.operations]
    sizes = [(PAD + COLUMN * max(map(len, text)), PAD + LINE * len(text)) for text in texts]
    layout = layered([operation.inputs for operation in program.operations], [w for w, _ in sizes], float, gap=GAP)
    tops = _rows(layout.layers, [h for _, h in sizes])

    def place(point: tuple[float, float]) -> list[float]:
        return [round(point[0], 1), round(tops[int(point[1])], 1)]

    return {
        "output": program.output,
        "nodes": [
            {
                "at": place(layout.places[i]),
                "size": [round(s, 1) for s in sizes[i]],
                "lines": texts[i],
                "op": operation.kind,
            }
            for i, operation in enumerate(program.operations)
        ],
        "edges": [{"from": j, "to": i, "route": [place(p) for p in route]} for (j, i), route in layout.routes.items()],
    }


def _rows(layers: list[list[int]], heights: list[float]) -> list[float]:
    """How far down the middle of each layer is."""
    tops, down = [], 0.0
    for layer in layers:
        tall = max((heights[i] for i in layer), default=0.0)
        tops.append(down + tall / 2)
        down += tall + ROW_GAP
    return tops
