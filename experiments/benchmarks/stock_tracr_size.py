"""How large the transformer is that stock tracr would build for a program: computed, not built.

tracr keeps a one-hot of every intermediate value in the residual stream and gives every layer as many heads, keys and
hidden units as the largest needs. At the paper's size that is terabytes, so it is counted here instead; the count is
equal to what tracr builds where it can (tests/test_tracr_stock.py).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from experiments.benchmarks.stock_tracr_program import to_tracr
from rasp.graph import Graph

SOURCES = ("tokens", "indices")


@dataclass(frozen=True)
class StockSize:
    """The shape of the transformer tracr would build."""

    layers: int
    heads: int
    key_size: int
    mlp: int
    d_model: int
    embedded: int  # rows of the two embedding tables

    @property
    def parameters(self) -> int:
        width = self.heads * self.key_size
        attention = 4 * self.d_model * width + 3 * width + self.d_model  # weights and biases
        dense = 2 * self.d_model * self.mlp + self.mlp + self.d_model
        return self.embedded * self.d_model + self.layers * (attention + dense)


def stock_size(graph: Graph, vocabulary: Iterable[int], max_seq_len: int) -> StockSize:
    vocabulary = set(vocabulary)
    sops = _inferred(graph, vocabulary, max_seq_len)
    blocks = {label: _block(label, sops) for label in _operations(sops)}
    layer_of = _place(sops, blocks)
    members = [[blocks[b] for b in layer_of if layer_of[b] == layer] for layer in range(max(layer_of.values()) + 1)]
    embedded = len(vocabulary) + 2 + max_seq_len + 1  # with tracr's own bos and pad, and a position for bos
    return StockSize(
        layers=len(members),
        heads=max(1, max(sum(b.attends for b in layer) for layer in members)),
        key_size=max(1, max(b.key_size for b in blocks.values())),
        mlp=max(1, max(sum(b.hidden for b in layer) + any(b.counts for b in layer) for layer in members)),
        d_model=sum(b.written for b in blocks.values()) + any(b.uses_one for b in blocks.values()) + embedded - 1,
        embedded=embedded,
    )


@dataclass(frozen=True)
class _Block:
    """What one operation asks for: dimensions of keys and queries, hidden units, directions of the residual stream."""

    written: int
    key_size: int = 0
    hidden: int = 0
    counts: bool = False
    uses_one: bool = True

    @property
    def attends(self) -> bool:
        return self.key_size > 0


def _inferred(graph: Graph, vocabulary: set[int], max_seq_len: int) -> Any:
    """tracr's own graph of the program, with its own value sets."""
    from tracr.compiler import basis_inference, rasp_to_graph

    extracted = rasp_to_graph.extract_rasp_graph(to_tracr(graph))
    basis_inference.infer_bases(extracted.graph, extracted.sink, vocabulary, max_seq_len)
    return extracted.graph


def _operations(sops: Any) -> list[str]:
    """The labels of everything that becomes a block: all sequences but the tokens and their positions."""
    from tracr.rasp import rasp

    return [label for label, node in sops.nodes.items() if isinstance(node["EXPR"], rasp.SOp) and label not in SOURCES]


def _block(label: str, sops: Any) -> _Block:
    from tracr.rasp import rasp

    def values(sop: Any) -> int:
        return len(sops.nodes[sop.label]["VALUE_SET"])

    expr = sops.nodes[label]["EXPR"]
    own = values(expr)
    if isinstance(expr, rasp.Map):
        return _Block(own, hidden=own, uses_one=False)
    if isinstance(expr, rasp.SequenceMap):
        return _Block(own, hidden=values(expr.fst) * values(expr.snd))
    # queries are joined by tracr's bos and one, keys by its bos
    key_size = max(values(expr.selector.queries) + 2, values(expr.selector.keys) + 1)
    if isinstance(expr, rasp.SelectorWidth):
        return _Block(own + 1, key_size, hidden=2 * own - 1, counts=True)  # two units a threshold; 1/(1 + count)
    return _Block(own, key_size)


def _place(sops: Any, blocks: dict[str, _Block]) -> dict[str, int]:
    """Which layer each block goes to: by longest path, where attention alone and then MLPs alone share a layer."""
    rows = _rows(_depths(sops, blocks))
    merged: list[list[str]] = []
    for row in rows:
        if merged and all(not blocks[b].hidden for b in merged[-1]) and all(not blocks[b].attends for b in row):
            merged[-1] = merged[-1] + row
        else:
            merged.append(row)
    return {label: layer for layer, row in enumerate(merged) for label in row}


def _rows(depths: dict[str, int]) -> list[list[str]]:
    return [[label for label in depths if depths[label] == depth] for depth in range(1, max(depths.values()) + 1)]


def _depths(sops: Any, blocks: dict[str, _Block]) -> dict[str, int]:
    """The longest path to each block; selectors do not count."""
    import networkx as nx

    depth: dict[str, int] = {}
    for label in nx.topological_sort(sops):
        before = max((depth[p] for p in sops.predecessors(label)), default=0)
        depth[label] = before + (label in blocks)
    return {label: depth[label] for label in blocks}
