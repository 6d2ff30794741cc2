"""What a model is made of, as far as circuits go: the embedding, heads, groups of MLP units, and the unembedding.

Units of a layer that write the same registers form one component: they compute the same operations. A component reads
through ports (a head has a query, a key and a value), and an edge leads from a component to a port of a later one. An
edge is *wired* if some dimension of the residual stream is written by the one and read by the other; what is not wired
cannot carry anything, because every weight on the way is zero.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from compile.transformer import Transformer
from compile.transformer.annotations import Fact, Register

HEAD_PORTS = ("q", "k", "v")


class Edge(NamedTuple):
    source: str
    target: str
    port: str  # q, k or v of a head; "in" of anything else


@dataclass(frozen=True)
class Component:
    name: str
    kind: str  # embed, positions, head, units or unembed
    time: int  # -1 for the embedding; layer l attends at 2l and computes at 2l + 1
    fact: Fact
    head: int | None = None
    units: tuple[int, ...] = ()

    @property
    def layer(self) -> int:
        return self.time // 2

    @property
    def ports(self) -> tuple[str, ...]:
        if self.kind in ("embed", "positions"):
            return ()
        return HEAD_PORTS if self.kind == "head" else ("in",)


class Wiring:
    """The components of a model without norms, and which dimensions each port reads and each component writes."""

    def __init__(self, model: Transformer) -> None:
        if model.config.norm != "none":
            raise ValueError(
                f"this model has norm {model.config.norm!r}, and so no edges that could be cut one by one; "
                "give a compiled model"
            )
        self.model = model
        self.components = tuple(_components(model))
        self.by_name = {c.name: c for c in self.components}

    @cached_property
    def writes(self) -> dict[str, np.ndarray]:
        """Of every component, the dimensions it writes."""
        return {c.name: _written(self.model, c) for c in self.components if c.kind != "unembed"}

    @cached_property
    def reads(self) -> dict[tuple[str, str], np.ndarray]:
        """Of every port, the dimensions it reads."""
        return {(c.name, port): _read(self.model, c, port) for c in self.components for port in c.ports}

    @cached_property
    def read_places(self) -> dict[tuple[str, str], Tensor]:
        """The same as indices."""
        return {port: torch.from_numpy(np.flatnonzero(read)) for port, read in self.reads.items()}

    @cached_property
    def edges(self) -> tuple[Edge, ...]:
        """Every edge there could be: from each component to each port of a later one."""
        return tuple(
            Edge(a.name, b.name, port)
            for b in self.components
            for port in b.ports
            for a in self.components
            if a.time < b.time
        )

    @cached_property
    def wired(self) -> tuple[Edge, ...]:
        return tuple(edge for edge in self.edges if self.carried(edge).any())

    def carried(self, edge: Edge) -> np.ndarray:
        """The dimensions that its source writes and its target reads."""
        return self.writes[edge.source] & self.reads[edge.target, edge.port]

    def registers(self, dimensions: np.ndarray) -> list[Register]:
        """Those that the dimensions lie in."""
        return [r for r in self.model.config.annotations.registers if dimensions[r.start : r.stop].any()]


# --- components -------------------------------------------------------------------------------------------------------


def _components(model: Transformer) -> Iterable[Component]:
    known = model.config.annotations
    inputs = _fact_of((r for r in known.registers if r.role == "tokens"), "tokens", "the input")
    yield Component("embed", "embed", -1, inputs)
    if model.embed_position is not None:
        yield Component("positions", "positions", -1, Fact(label="positions"))
    for layer, shape in enumerate(model.config.shapes):
        for head in range(shape.heads):
            fact = known.heads[layer][head] if known.heads else Fact()
            yield Component(f"L{layer}.H{head}", "head", 2 * layer, fact, head)
        if shape.d_mlp:
            yield from _unit_groups(model, layer)
    output = () if known.program is None else (known.program.output,)
    yield Component("unembed", "unembed", 2 * len(model.config.shapes), Fact(label="the answer", nodes=output))


def _unit_groups(model: Transformer, layer: int) -> Iterable[Component]:
    """Units by the registers they write, in order of their first unit; those that write nothing are unused."""
    registers = model.config.annotations.registers
    down = _nonzero(model.blocks[layer].mlp.down.weight)  # (d_model, units)
    touched = np.array([down[r.start : r.stop].any(axis=0) for r in registers]).reshape(len(registers), -1)
    groups: dict[tuple[int, ...], list[int]] = {}
    for unit in range(down.shape[1]):
        groups.setdefault(tuple(np.flatnonzero(touched[:, unit]).tolist()), []).append(unit)
    for index, (places, units) in enumerate(groups.items()):
        fact = _fact_of((registers[p] for p in places), "compute", "unused")
        yield Component(f"L{layer}.M{index}", "units", 2 * layer + 1, fact, units=tuple(units))


def _fact_of(registers: Iterable[Register], role: str, otherwise: str) -> Fact:
    found = list(registers)
    label = "; ".join(r.name for r in found) or otherwise
    return Fact(role if found else "", label, tuple(sorted({node for r in found for node in r.nodes})))


# --- dimensions -------------------------------------------------------------------------------------------------------


def _nonzero(weight: Tensor) -> np.ndarray:
    return np.asarray(weight.detach().cpu().numpy() != 0)


def _columns(weight: Tensor) -> np.ndarray:
    """The columns of a matrix that are not all zero."""
    return np.asarray(_nonzero(weight).any(axis=0))


def _written(model: Transformer, component: Component) -> np.ndarray:
    if component.kind == "embed":
        return _columns(model.embed.weight)
    if component.kind == "positions":
        return _columns(model.get_parameter("embed_position.weight"))
    block = model.blocks[component.layer]
    if component.kind == "units":
        return _columns(block.mlp.down.weight[:, list(component.units)].T)
    assert component.head is not None, "what is left are heads"
    return _columns(block.attn.head(component.head).o.T)


def _read(model: Transformer, component: Component, port: str) -> np.ndarray:
    if component.kind == "unembed":
        return _columns(model.unembed.weight)
    block = model.blocks[component.layer]
    if component.kind == "units":
        return _columns(block.mlp.up.weight[list(component.units)])
    assert component.head is not None, "what is left are heads"
    return _columns(getattr(block.attn.head(component.head), port))
