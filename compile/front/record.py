"""A program's graph as data, to be saved with the model that was compiled from it."""

from __future__ import annotations

from compile.transformer.annotations import Operation, ProgramGraph
from rasp.draw import kind_of, lines_of
from rasp.graph import Graph


def record_program(graph: Graph) -> ProgramGraph:
    operations = (
        Operation(kind_of(node.op), node.inputs, tuple(lines_of(graph, i))) for i, node in enumerate(graph.nodes)
    )
    return ProgramGraph(tuple(operations), graph.output)
