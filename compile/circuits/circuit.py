"""The edges that a model's answers depend on, each with an input on which ablating it changes an answer.

The circuit is what is wired (`compile.circuits.wiring`): on all other edges no answer to any input depends, whatever
they carry; that rests on the weights, not on inputs tried. An edge of the circuit has a *witness*: an input, how the
edge is ablated (`compile.circuits.ablation`), and the position of an answer that changes. It is cut, or something is
moved along it. A *guard* is an edge of which no input was found that needs it, alone: its witness is one that needs it
once another edge is ablated. What has no witness at all is *unwitnessed*.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from compile.circuits.ablation import Move
from compile.circuits.components import Component, Edge
from compile.circuits.wiring import Wiring

FORMAT = 3
KINDS = ("cut", "moved", "guard")  # of witnesses


@dataclass(frozen=True)
class EdgeWitness:
    """Where ablating an edge changes the answer: the place of an input among the test vectors, and the position.

    The edge is cut, or something is moved. Of a guard, the edge `given` is ablated first, as its own witness says.
    """

    input: int
    position: int
    move: Move | None = None
    given: Edge | None = None

    @property
    def kind(self) -> str:
        if self.given is not None:
            return "guard"
        return "cut" if self.move is None else "moved"


@dataclass(frozen=True)
class Circuit:
    witnesses: dict[Edge, EdgeWitness]
    unwitnessed: tuple[Edge, ...] = ()

    @property
    def edges(self) -> frozenset[Edge]:
        return frozenset(self.witnesses) | frozenset(self.unwitnessed)

    def of_kind(self, kind: str) -> frozenset[Edge]:
        """The edges with such a witness."""
        return frozenset(edge for edge, witness in self.witnesses.items() if witness.kind == kind)

    @property
    def alone(self) -> frozenset[Edge]:
        """The edges that change an answer when nothing else is ablated."""
        return self.of_kind("cut") | self.of_kind("moved")

    @property
    def components(self) -> frozenset[str]:
        return frozenset(name for edge in self.edges for name in (edge.source, edge.target))


# --- as data ----------------------------------------------------------------------------------------------------------


def circuit_data(wiring: Wiring, circuit: Circuit) -> dict[str, Any]:
    """The circuit for people and programs that know nothing of this package."""
    known = wiring.model.config.annotations
    operations = () if known.program is None else known.program.operations
    inside = [c for c in wiring.components if c.name in circuit.components]
    return {
        "format": FORMAT,
        "components": [_component(wiring, c, c.name in circuit.components) for c in wiring.components],
        "registers": [
            {"name": r.name, "start": r.start, "stop": r.stop, "role": r.role, "operations": list(r.nodes)}
            for r in known.registers
        ],
        "operations": [
            {
                "kind": operation.kind,
                "inputs": list(operation.inputs),
                "text": " ".join(operation.lines),
                "components": [c.name for c in inside if place in c.fact.nodes],
            }
            for place, operation in enumerate(operations)
        ],
        "output": None if known.program is None else known.program.output,
        "edges": [{**_edge(wiring, edge), "witness": _witness(witness)} for edge, witness in circuit.witnesses.items()],
        "unwitnessed": [_edge(wiring, edge) for edge in circuit.unwitnessed],
        "possible_edges": len(wiring.edges),
    }


def _component(wiring: Wiring, component: Component, inside: bool) -> dict[str, Any]:
    shapes = wiring.model.config.shapes
    writes = wiring.registers(wiring.written(component.name)) if component.kind != "unembed" else []
    data: dict[str, Any] = {"name": component.name, "kind": component.kind, "in_circuit": inside}
    if component.kind in ("head", "units"):
        data["layer"] = component.layer
    if component.head is not None:
        data |= {"head": component.head, "window": shapes[component.layer].windows[component.head]}
    if component.units:
        data["units"] = _ranges(component.units)
    return data | {
        "role": component.fact.role,
        "label": component.fact.label,
        "operations": list(component.fact.nodes),
        "writes": [r.name for r in writes],
    }


def _witness(witness: EdgeWitness) -> dict[str, Any]:
    data: dict[str, Any] = {"input": witness.input, "position": witness.position}
    if witness.move is not None:
        data |= {"from": witness.move.origin, "at": "all" if witness.move.at is None else witness.move.at}
    return data if witness.given is None else {**data, "given": list(witness.given)}


def _edge(wiring: Wiring, edge: Edge) -> dict[str, Any]:
    carried = wiring.registers(wiring.carried(edge))
    return {
        "from": edge.source,
        "to": edge.target,
        "port": edge.port,
        "registers": [r.name for r in carried],
        "operations": sorted({node for r in carried for node in r.nodes}),
    }


def _ranges(places: Sequence[int]) -> list[list[int]]:
    """[first, last + 1] of every run of neighbours."""
    cuts = [k for k in range(1, len(places)) if places[k] != places[k - 1] + 1]
    return [[int(run[0]), int(run[-1]) + 1] for run in np.split(np.array(places), cuts)]


def read_circuit(data: dict[str, Any]) -> Circuit:
    """As `circuit_data` wrote it."""
    if data.get("format") != FORMAT:
        raise ValueError(f"the circuit is of format {data.get('format')!r}; expected {FORMAT}. Write the zoo again.")

    def edge(entry: dict[str, Any]) -> Edge:
        return Edge(entry["from"], entry["to"], entry["port"])

    def witness(found: dict[str, Any]) -> EdgeWitness:
        at, given = found.get("at"), found.get("given")
        move = None if at is None else Move(None if at == "all" else at, found["from"])
        return EdgeWitness(found["input"], found["position"], move, None if given is None else Edge(*given))

    return Circuit(
        {edge(entry): witness(entry["witness"]) for entry in data["edges"]}, tuple(map(edge, data["unwitnessed"]))
    )
