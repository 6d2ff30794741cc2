"""Where to put the nodes of an acyclic graph: in layers from top to bottom, with few crossings and short edges.

The steps are Sugiyama's. Edges that span several layers pass through a point in each of them, so that they are ordered
and kept apart like nodes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

SWEEPS = 12  # passes over the layers, for the order and again for the places: more change little

Point = tuple[float, float]


@dataclass(frozen=True)
class Layout:
    """Places of nodes (centres), and of the points that each edge (from, to) passes through, its ends included."""

    places: list[Point]
    routes: dict[tuple[int, int], list[Point]]
    layers: list[list[int]]  # the nodes of each layer, from left to right


def layered(
    inputs: Sequence[Sequence[int]], widths: Sequence[float], height: Callable[[int], float], gap: float = 0.3
) -> Layout:
    """Lay out nodes 0..n-1, where `inputs[i]` (all smaller than i) point to i; layer l is `height(l)` down."""
    level = _levels(inputs)
    edges = sorted({(j, i) for i, sources in enumerate(inputs) for j in sources})
    chains, level = _through_layers(edges, level)
    width = [*widths, *[gap] * (len(level) - len(widths))]
    above: list[list[int]] = [[] for _ in level]
    below: list[list[int]] = [[] for _ in level]
    for chain in chains.values():
        for a, b in zip(chain, chain[1:], strict=False):
            above[b].append(a)
            below[a].append(b)
    layers = _ordered(level, above, below)
    x = _placed(layers, above, below, width, gap)
    points = [(x[v], height(level[v])) for v in range(len(level))]
    routes = {edge: [points[v] for v in chain] for edge, chain in chains.items()}
    real = [[v for v in layer if v < len(inputs)] for layer in layers]
    return Layout(points[: len(inputs)], routes, real)


def _levels(inputs: Sequence[Sequence[int]]) -> list[int]:
    """Below all inputs; what has no inputs stands just above its first reader."""
    level: list[int] = []
    for sources in inputs:
        level.append(1 + max((level[j] for j in sources), default=-1))
    readers: list[list[int]] = [[] for _ in inputs]
    for i, sources in enumerate(inputs):
        for j in sources:
            readers[j].append(i)
    for j in reversed(range(len(inputs))):
        if not inputs[j] and readers[j]:
            level[j] = min(level[i] for i in readers[j]) - 1
    return level


def _through_layers(
    edges: list[tuple[int, int]], level: list[int]
) -> tuple[dict[tuple[int, int], list[int]], list[int]]:
    """Each edge as a chain of nodes, one per layer; new ones are numbered on, and edges from one node share them."""
    level = list(level)
    chains: dict[tuple[int, int], list[int]] = {}
    made: dict[tuple[int, int], int] = {}
    for j, i in edges:
        chain = [j]
        for layer in range(level[j] + 1, level[i]):
            if (j, layer) not in made:
                made[j, layer] = len(level)
                level.append(layer)
            chain.append(made[j, layer])
        chains[j, i] = [*chain, i]
    return chains, level


def _ordered(level: list[int], above: list[list[int]], below: list[list[int]]) -> list[list[int]]:
    """Nodes of each layer in an order with few crossings: repeatedly by the mean position of their neighbours."""
    layers: list[list[int]] = [[] for _ in range(max(level, default=-1) + 1)]
    for v, layer in enumerate(level):
        layers[layer].append(v)
    position = {v: float(k) for layer in layers for k, v in enumerate(layer)}
    for sweep in range(SWEEPS):
        down = sweep % 2 == 0
        near = above if down else below
        for layer_nodes in layers if down else layers[::-1]:
            layer_nodes.sort(key=lambda v: _mean([position[u] for u in near[v]], position[v]))
            position.update({v: float(k) for k, v in enumerate(layer_nodes)})
    return layers


def _placed(
    layers: list[list[int]], above: list[list[int]], below: list[list[int]], width: list[float], gap: float
) -> list[float]:
    """Each node as near to its neighbours as the order and the widths allow."""
    x = [0.0] * len(width)
    for layer in layers:
        for k, v in enumerate(layer):
            x[v] = sum(width[u] + gap for u in layer[:k]) + width[v] / 2
    for sweep in range(SWEEPS):
        for layer in layers if sweep % 2 == 0 else layers[::-1]:
            wanted = [_mean([x[u] for u in (*above[v], *below[v])], x[v]) for v in layer]
            apart = [(width[a] + width[b]) / 2 + gap for a, b in zip(layer, layer[1:], strict=False)]
            for v, place in zip(layer, _keep_apart(wanted, apart), strict=True):
                x[v] = place
    return x


def _keep_apart(wanted: list[float], apart: list[float]) -> list[float]:
    """The places nearest to those wanted (least squares) with at least these distances between neighbours.

    Less the distances this is monotone regression: neighbours in the wrong order are pooled at their mean.
    """
    offsets = [0.0]
    for distance in apart:
        offsets.append(offsets[-1] + distance)
    pools: list[list[float]] = []
    for want, offset in zip(wanted, offsets, strict=False):
        pools.append([want - offset])
        while len(pools) > 1 and _mean(pools[-2], 0) > _mean(pools[-1], 0):
            pools[-2:] = [pools[-2] + pools[-1]]
    flat = [_mean(pool, 0) for pool in pools for _ in pool]
    return [place + offset for place, offset in zip(flat, offsets, strict=False)]


def _mean(values: list[float], otherwise: float) -> float:
    return sum(values) / len(values) if values else otherwise
