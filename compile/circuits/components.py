"""What a model is made of, as far as circuits go: the embedding, heads, groups of MLP units, and the unembedding.

Units of a layer that write the same registers form one component: they compute the same operations. A component reads
through ports (a head has a query, a key and a value), and an edge leads from a component to a port of a later one.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

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


def components_of(model: Transformer) -> Iterable[Component]:
    """In the order in which they compute."""
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
    down = model.blocks[layer].mlp.down.weight.detach().cpu().numpy() != 0  # (d_model, units)
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
