"""A model's circuit: every wired edge, with an input on which ablating it changes an answer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from compile.circuits.ablation import BatchRun, Move
from compile.circuits.circuit import Circuit, EdgeWitness
from compile.circuits.components import Edge
from compile.circuits.hunting import hunt
from compile.circuits.wiring import Wiring

ROWS = 24  # inputs at once: what every component of a large model writes on more does not fit in memory
ROUNDS = 8  # moves that are tried of every edge and input
HUNTS = 3  # for every edge that no input given shows to matter
SHORT = 32  # tokens of the inputs on which pairs of ablations are tried anew

Inputs = Sequence[np.ndarray]
Place = tuple[int, int]  # of an input: which batch, which row
Shown = dict[Edge, dict[Place, int]]  # where cutting an edge changes an answer, and the first such position


def find_circuit(wiring: Wiring, batches: Sequence[Inputs], hunting: bool = True) -> tuple[Circuit, list[np.ndarray]]:
    """The circuit, and the few inputs that its witnesses need: of the batches, or with `hunting`, bred from these."""
    search = _Search(wiring)
    search.cut(batches)
    for batch in (*_parts(search.inputs), *batches):
        search.move(batch)
    if hunting:
        search.hunt([x for batch in batches for x in batch])
    search.find_guards()
    search.find_guards_of_moves([x for batch in batches for x in batch if len(x) <= SHORT])
    found = search.witnesses
    ordered = {edge: found[edge] for edge in wiring.wired if edge in found}
    return Circuit(ordered, tuple(edge for edge in wiring.wired if edge not in found)), search.inputs


def _parts(inputs: Inputs) -> list[Inputs]:
    return [inputs[first : first + ROWS] for first in range(0, len(inputs), ROWS)]


class _Search:
    """The witnesses found so far, and the inputs that they need."""

    def __init__(self, wiring: Wiring) -> None:
        self.wiring, self.rng = wiring, np.random.default_rng(0)
        self.witnesses: dict[Edge, EdgeWitness] = {}
        self.inputs: list[np.ndarray] = []

    @property
    def left(self) -> list[Edge]:
        return [edge for edge in self.wiring.wired if edge not in self.witnesses]

    def note(self, edge: Edge, tokens: np.ndarray, changed: np.ndarray, move: Move | None) -> None:
        """The first answer that changes is the witness."""
        known = [k for k, other in enumerate(self.inputs) if np.array_equal(tokens, other)]
        if not known:
            self.inputs.append(tokens)
        number = known[0] if known else len(self.inputs) - 1
        self.witnesses[edge] = EdgeWitness(number, int(changed.argmax()), move)

    def cut(self, batches: Sequence[Inputs]) -> None:
        """Every edge is cut on the first batch; on the later ones only those that nothing has shown to matter yet."""
        shown: Shown = {}
        for number, batch in enumerate(batches):
            run = BatchRun(self.wiring, batch)  # one at a time: of a large model, memory holds no more
            for edge, changed in run.cut([edge for edge in self.left if edge not in shown]):
                rows = np.flatnonzero(changed.any(axis=1)).tolist()
                if rows:
                    shown[edge] = {(number, row): int(changed[row].argmax()) for row in rows}
        chosen = _few_places(shown)
        self.inputs = [batches[number][row] for number, row in chosen]
        for edge, places in shown.items():
            number = next(k for k, place in enumerate(chosen) if place in places)
            self.witnesses[edge] = EdgeWitness(number, places[chosen[number]])

    def move(self, batch: Inputs) -> None:
        """Random moves along every edge that is left."""
        edges = self.left
        if not edges:
            return
        run = BatchRun(self.wiring, batch)
        kinds = {edge: run.kinds(edge) for edge in edges}
        for _ in range(ROUNDS):
            moves = {edge: run.drawn(kinds[edge], self.rng) for edge in edges if edge not in self.witnesses}
            for edge, changed in run.moved(moves.items()):
                if changed.any():
                    row = int(changed.any(axis=1).argmax())
                    self.note(edge, batch[row], changed[row], moves[edge][row])

    def hunt(self, known: Inputs) -> None:
        for edge in self.left:
            for _ in range(HUNTS):
                some = self.rng.permutation(len(known))[:ROWS]
                found = hunt(self.wiring, edge, [known[k] for k in some], self.rng)
                if found is not None:
                    self.note(edge, *found)
                    break

    def find_guards(self) -> None:
        """Of the edges that are left, those that matter once another one is ablated as its witness says."""
        near = {edge.target for edge in self.left}  # a guard's partner mostly leads to the same component
        for given, witness in sorted(self.witnesses.items(), key=lambda found: found[0].target not in near):
            edges = self.left
            if not edges:
                return
            run = BatchRun(self.wiring, [self.inputs[witness.input]] * ROUNDS)
            first = {given: [witness.move] * ROUNDS}
            before = run.ablated(first)
            for edge in edges:
                moves = [None, *run.drawn(run.kinds(edge), self.rng)[1:]]
                changed = run.changed(run.ablated({**first, edge: moves}), before)
                if changed.any():
                    row = int(changed.any(axis=1).argmax())
                    position = int(changed[row].argmax())
                    self.witnesses[edge] = EdgeWitness(witness.input, position, moves[row], given)

    def find_guards_of_moves(self, inputs: Inputs) -> None:
        """Of the edges that are still left, those that matter once something is moved along another, into a reader of
        what their target writes; that move then becomes the other's witness."""
        for batch in _parts(inputs):
            if not self.left:
                return
            run = BatchRun(self.wiring, batch)
            for edge in self.left:
                for given in self.beside(edge):
                    moves = run.drawn(run.kinds(given), self.rng)
                    before = run.ablated({given: moves})
                    after = run.ablated({given: moves, edge: [None] * len(batch)})
                    shown, changed = run.changed(before), run.changed(after, before)
                    rows = np.flatnonzero(shown.any(axis=1) & changed.any(axis=1))
                    if len(rows):
                        row = int(rows[0])
                        self.note(given, batch[row], shown[row], moves[row])
                        number = self.witnesses[given].input
                        self.witnesses[edge] = EdgeWitness(number, int(changed[row].argmax()), None, given)
                        break

    def beside(self, edge: Edge) -> list[Edge]:
        """The edges into the readers of what its target writes, but for those that a guard is told by."""
        readers = {other.target for other in self.wiring.wired if other.source == edge.target}
        told = {witness.given for witness in self.witnesses.values()}
        alone = {other for other, witness in self.witnesses.items() if witness.given is None}
        return [other for other in self.wiring.wired if other.target in readers and other in alone - told]


def _few_places(shown: Shown) -> list[Place]:
    """Inputs that show every edge, chosen greedily: each time the one that shows most of those left."""
    left, chosen = dict(shown), []
    while left:
        times = Counter(place for places in left.values() for place in places)
        best = min(times, key=lambda place: (-times[place], place))
        chosen.append(best)
        left = {edge: places for edge, places in left.items() if best not in places}
    return sorted(chosen)
