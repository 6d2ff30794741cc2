"""Fitting a compiled network into a given architecture: the paper's, whose every layer has the same heads."""

from __future__ import annotations

from dataclasses import dataclass

from compile.errors import CompileError
from compile.hard_alibi.network import Network
from compile.hard_alibi.readings import DraftHead, DraftLayer
from compile.transformer.annotations import Fact


@dataclass(frozen=True)
class Shape:
    """The same in every layer. Heads and units that a network does not use stay zero."""

    windows: tuple[int | None, ...]
    d_head: int
    d_model: int
    d_mlp: int


PAPER = Shape(windows=(*range(1, 9), *([None] * 8)), d_head=64, d_model=1024, d_mlp=4096)


def fit(network: Network, shape: Shape) -> list[DraftLayer]:
    """The network's layers with each head in a place of its own window, or an error that says what is too large."""
    _need("residual dimensions", network.d_model, shape.d_model)
    for layer in network.layers:
        _need("MLP units", len(layer.units), shape.d_mlp)
        _need("dimensions of a head", max((head.width for head in layer.heads), default=0), shape.d_head)
    return [DraftLayer(_placed(layer.heads, shape), layer.units, layer.made) for layer in network.layers]


def _placed(heads: list[DraftHead], shape: Shape) -> list[DraftHead]:
    places: list[DraftHead | None] = [None] * len(shape.windows)
    for head in heads:
        free = [k for k, window in enumerate(shape.windows) if window == head.window and places[k] is None]
        if not free:
            window = "without a window" if head.window is None else f"of window {head.window}"
            raise CompileError(f"the shape has no free head {window} for {head.fact.label!r}; use a smaller n")
        places[free[0]] = head
    unused = Fact("unused", "unused")
    return [head or DraftHead(window, unused) for head, window in zip(places, shape.windows, strict=True)]


def _need(what: str, needed: int, there: int) -> None:
    if needed > there:
        raise CompileError(f"the network needs {needed} {what}, and the shape has {there}; use a smaller machine or n")
