"""Which edges lead to the answers, from the weights alone: on the others nothing depends, whatever they carry.

An edge multiplies what its source can write (columns of weights) by what its target's port reads (rows). It is *wired*
if that product is not zero and the rows are such as matter: those of units and values that something later reads, on
the way to the answers, and of queries and keys that meet. A query that meets nothing but the bias of a key changes all
scores alike, and a softmax does not see that. Where values are read twice with opposite signs, the product is zero.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np
import torch
from scipy.sparse import csr_array, vstack
from torch import Tensor

from compile.circuits.components import Component, Edge, components_of
from compile.transformer import Transformer
from compile.transformer.annotations import Register

Port = tuple[str, str]  # a component, and one of its ports


class Wiring:
    """The components of a model without norms, and the edges between them."""

    def __init__(self, model: Transformer) -> None:
        if model.config.norm != "none":
            raise ValueError(
                f"this model has norm {model.config.norm!r}, and so no edges that could be cut one by one; "
                "give a compiled model"
            )
        self.model = model
        self.components = tuple(components_of(model))
        self.by_name = {c.name: c for c in self.components}

    @cached_property
    def columns(self) -> dict[str, csr_array]:
        """Of every component that writes, the directions it can write: (d_model, any)."""
        return {c.name: _columns(self.model, c) for c in self.components if c.kind != "unembed"}

    @cached_property
    def rows(self) -> dict[Port, csr_array]:
        """Of every port, what it reads and can hand on towards an answer: (any, d_model)."""
        found: dict[Port, csr_array] = {}
        for component in reversed(self.components):
            later = [rows for (name, _), rows in found.items() if self.by_name[name].time > component.time]
            for port, rows in _mattering(self.model, component, later).items():
                found[component.name, port] = rows
        return found

    @cached_property
    def read(self) -> dict[Port, np.ndarray]:
        """Of every port, the dimensions on which it has any weight at all."""
        return {(c.name, port): _used(_rows(self.model, c, port), axis=0) for c in self.components for port in c.ports}

    @cached_property
    def read_places(self) -> dict[Port, Tensor]:
        """The same as indices."""
        return {port: torch.from_numpy(np.flatnonzero(read)) for port, read in self.read.items()}

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
        return tuple(edge for edge in self.edges if self._product(edge).nnz)

    def _product(self, edge: Edge) -> csr_array:
        return _product(self.rows[edge.target, edge.port], self.columns[edge.source])

    def carried(self, edge: Edge) -> np.ndarray:
        """The dimensions that its source writes and its target reads, whether that matters or not."""
        return self.written(edge.source) & self.read[edge.target, edge.port]

    def written(self, component: str) -> np.ndarray:
        """The dimensions that it writes."""
        return _used(self.columns[component], axis=1)

    def registers(self, dimensions: np.ndarray) -> list[Register]:
        """Those that the dimensions lie in."""
        return [r for r in self.model.config.annotations.registers if dimensions[r.start : r.stop].any()]


# --- weights ----------------------------------------------------------------------------------------------------------


def _sparse(weight: Tensor) -> csr_array:
    """In double precision, where products of single ones are exact."""
    return csr_array(weight.detach().cpu().double().numpy())


def _product(a: csr_array, b: csr_array) -> csr_array:
    product = csr_array(a @ b)
    product.eliminate_zeros()
    return product


def _used(matrix: csr_array, axis: int) -> np.ndarray:
    """The columns (axis 0) or rows (axis 1) that are not all zero."""
    return np.asarray(abs(matrix).sum(axis=axis) > 0).reshape(-1)


def _columns(model: Transformer, component: Component) -> csr_array:
    if component.kind == "embed":
        return _sparse(model.embed.weight.T)
    if component.kind == "positions":
        return _sparse(model.get_parameter("embed_position.weight").T)
    block = model.blocks[component.layer]
    if component.kind == "units":
        return _sparse(block.mlp.down.weight[:, list(component.units)])
    assert component.head is not None, "what is left are heads"
    return _sparse(block.attn.head(component.head).o)


def _rows(model: Transformer, component: Component, port: str) -> csr_array:
    if component.kind == "unembed":
        return _sparse(model.unembed.weight)
    block = model.blocks[component.layer]
    if component.kind == "units":
        return _sparse(block.mlp.up.weight[list(component.units)])
    assert component.head is not None, "what is left are heads"
    return _sparse(getattr(block.attn.head(component.head), port))


# --- what matters -----------------------------------------------------------------------------------------------------


def _mattering(model: Transformer, component: Component, later: list[csr_array]) -> dict[str, csr_array]:
    """What each port reads, as far as something of `later`, the rows of all later ports, sees what comes of it."""
    rows = {port: _rows(model, component, port) for port in component.ports}
    if component.kind == "unembed" or not rows:
        return rows
    readers = vstack(later, format="csr")
    if component.kind == "units":
        seen = _used(_product(readers, _columns(model, component)), axis=0)
        return {"in": rows["in"][seen]}
    moved = _product(_columns(model, component), rows["v"])[_used(readers, axis=0)]
    if not moved.nnz:
        return {port: matrix[:0] for port, matrix in rows.items()}
    asked = _used(rows["q"], axis=1) | _query_bias(model, component)
    return {"q": rows["q"][_used(rows["k"], axis=1)], "k": rows["k"][asked], "v": moved}


def _query_bias(model: Transformer, component: Component) -> np.ndarray:
    attention = model.blocks[component.layer].attn
    if attention.qkv.bias is None:
        return np.zeros(attention.d_head, dtype=bool)
    return attention.qkv.bias.detach().view(3, attention.heads, -1)[0, component.head].cpu().numpy() != 0
