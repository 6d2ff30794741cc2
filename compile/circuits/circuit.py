"""The edges that a model's answers depend on, each with an input and a position at which cutting it changes the answer.

Of the wired edges, an edge is

- *needed* if cutting it alone changes an answer on some input tried: that input and position are its witness;
- *idle* if the weights show that no answer to any input depends on it (`compile.circuits.idle`);
- *backup* if no witness was found, but cutting all edges without one changes an answer unless this one is kept: its
  witness is an input and a position at which it does;
- *unwitnessed* if it is none of these: it may carry something that matters on an input nobody tried.

The circuit is what is needed, backup and unwitnessed. All else (idle edges, and those not wired) can be cut at once and
no answer to any input changes: that rests on the weights, not on the inputs tried.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from torch import Tensor

from compile.circuits.components import Component, Edge, Wiring
from compile.circuits.idle import idle_edges
from compile.circuits.patching import Patching

FORMAT = 2


@dataclass(frozen=True)
class EdgeWitness:
    """Where cutting an edge changes the answer: the place of an input among the test vectors, and the position."""

    input: int
    position: int


@dataclass(frozen=True)
class Circuit:
    needed: dict[Edge, EdgeWitness]
    backup: dict[Edge, EdgeWitness]
    unwitnessed: tuple[Edge, ...]
    idle: tuple[Edge, ...]

    @property
    def witnessed(self) -> frozenset[Edge]:
        return frozenset(self.needed) | frozenset(self.backup)

    @property
    def edges(self) -> frozenset[Edge]:
        return self.witnessed | frozenset(self.unwitnessed)

    @property
    def components(self) -> frozenset[str]:
        return frozenset(name for edge in self.edges for name in (edge.source, edge.target))


def padded(inputs: Sequence[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Inputs as rows of one length, and which places are theirs; what is added on the right no earlier token sees."""
    longest = max(len(x) for x in inputs)
    rows = np.stack([np.pad(x, (0, longest - len(x)), mode="edge") for x in inputs])
    return rows, np.arange(longest) < np.array([len(x) for x in inputs])[:, None]


Place = tuple[int, int]  # of an input: which batch, which row
Shown = dict[Edge, dict[Place, int]]  # where cutting an edge changes an answer, and the first such position


def find_circuit(wiring: Wiring, batches: Sequence[Sequence[np.ndarray]]) -> tuple[Circuit, list[np.ndarray]]:
    """The circuit, and the few of the inputs that its witnesses need."""
    idle = idle_edges(wiring)
    possible = [edge for edge in wiring.wired if edge not in idle]
    needed = _needed_alone(wiring, batches, possible)
    together: list[Edge] = []
    for batch in batches:
        rest = [edge for edge in possible if edge not in needed and edge not in together]
        together += _needed_together(BatchRun(wiring, batch), [*needed, *together], rest)
    backup = _backup(wiring, batches, list(needed), together)
    shown = needed | backup
    chosen = _few_places(shown)
    witnesses = {edge: _witness(shown[edge], chosen) for edge in possible if edge in shown}
    circuit = Circuit(
        {edge: witness for edge, witness in witnesses.items() if edge in needed},
        {edge: witness for edge, witness in witnesses.items() if edge in backup},
        tuple(edge for edge in possible if edge not in shown),
        idle,
    )
    return circuit, [batches[number][row] for number, row in chosen]


def _needed_alone(wiring: Wiring, batches: Sequence[Sequence[np.ndarray]], edges: Sequence[Edge]) -> Shown:
    """Every edge is cut on the first batch; on the later ones only those that nothing has shown to be needed yet."""
    shown: Shown = {}
    for number, batch in enumerate(batches):
        run = BatchRun(wiring, batch)  # one at a time: of a large model, memory holds no more
        for edge, logits in run.patching.without([edge for edge in edges if edge not in shown]):
            _note(shown, edge, number, run.changed(logits))
    return shown


def _backup(
    wiring: Wiring, batches: Sequence[Sequence[np.ndarray]], needed: Sequence[Edge], together: Sequence[Edge]
) -> Shown:
    """Of the edges that are needed together, those without which the rest of these and the needed do not suffice."""
    shown: Shown = {}
    for number, batch in enumerate(batches):
        rest = [edge for edge in together if edge not in shown]
        run = BatchRun(wiring, batch) if rest else None
        for edge in rest:
            assert run is not None, "there is one where something is left"
            kept = [*needed, *(other for other in together if other != edge)]
            _note(shown, edge, number, run.changed(run.patching.only(kept)))
    return shown


def _note(shown: Shown, edge: Edge, number: int, changed: np.ndarray) -> None:
    rows = np.flatnonzero(changed.any(axis=1)).tolist()
    if rows:
        shown[edge] = {(number, row): int(changed[row].argmax()) for row in rows}


class BatchRun:
    """A batch of inputs through the model, to be compared with runs of which something was cut."""

    def __init__(self, wiring: Wiring, inputs: Sequence[np.ndarray]) -> None:
        rows, self.own = padded(inputs)
        self.patching = Patching(wiring, rows)
        self.right = self.patching.answers(self.patching.logits)

    def changed(self, logits: Tensor) -> np.ndarray:
        return (self.patching.answers(logits) != self.right) & self.own


def _witness(places: dict[Place, int], chosen: Sequence[Place]) -> EdgeWitness:
    number = next(k for k, place in enumerate(chosen) if place in places)
    return EdgeWitness(number, places[chosen[number]])


def _needed_together(run: BatchRun, needed: Sequence[Edge], rest: Sequence[Edge]) -> list[Edge]:
    """Of the edges that no answer needs alone, those that are still needed once others are cut: first come, first cut.

    Halves of what is left are cut at once, so that a model without any takes one run.
    """
    kept: list[Edge] = list(rest)

    def cut(some: Sequence[Edge]) -> None:
        nonlocal kept
        left = [edge for edge in kept if edge not in some]
        if not some or not run.changed(run.patching.only([*needed, *left])).any():
            kept = left
        elif len(some) > 1:
            cut(some[: len(some) // 2])
            cut(some[len(some) // 2 :])

    cut(rest)
    return kept


def _few_places(shown: Shown) -> list[Place]:
    """Inputs that show every edge, chosen greedily: each time the one that shows most of those left."""
    left, chosen = dict(shown), []
    while left:
        times = Counter(place for places in left.values() for place in places)
        best = min(times, key=lambda place: (-times[place], place))
        chosen.append(best)
        left = {edge: places for edge, places in left.items() if best not in places}
    return sorted(chosen)


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
        "edges": [_witnessed(wiring, *entry) for entry in circuit.needed.items()],
        "backup": [_witnessed(wiring, *entry) for entry in circuit.backup.items()],
        "unwitnessed": [_edge(wiring, edge) for edge in circuit.unwitnessed],
        "idle": [_edge(wiring, edge) for edge in circuit.idle],
        "possible_edges": len(wiring.edges),
    }


def _component(wiring: Wiring, component: Component, inside: bool) -> dict[str, Any]:
    shapes = wiring.model.config.shapes
    writes = wiring.registers(wiring.writes[component.name]) if component.kind != "unembed" else []
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


def _witnessed(wiring: Wiring, edge: Edge, witness: EdgeWitness) -> dict[str, Any]:
    return {**_edge(wiring, edge), "witness": [witness.input, witness.position]}


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

    def witnessed(entries: list[dict[str, Any]]) -> dict[Edge, EdgeWitness]:
        return {edge(entry): EdgeWitness(*entry["witness"]) for entry in entries}

    return Circuit(
        witnessed(data["edges"]),
        witnessed(data["backup"]),
        tuple(map(edge, data["unwitnessed"])),
        tuple(map(edge, data["idle"])),
    )
