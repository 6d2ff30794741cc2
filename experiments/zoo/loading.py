"""Models of the zoo by name: from a folder, or built on the spot."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from compile.circuits import Circuit, Edge, Wiring
from compile.circuits.circuit import BatchRun, read_circuit
from compile.circuits.idle import idle_edges
from compile.errors import REFUSED
from compile.transformer import InvalidModel, Transformer
from compile.validate import answers
from experiments.files import read_json
from experiments.zoo.building import CIRCUIT, FORMAT, LEARNED, MANIFEST, SOURCE, VECTORS, build, changed_files
from experiments.zoo.catalogue import catalogue, chosen

CACHE = "TURING_PROGRAMS_ZOO"  # the environment's name for the folder that models are kept in
ROWS = 24  # inputs at once: what every component of a large model writes on more does not fit in memory


class WrongAnswer(ValueError):
    """A model of the zoo that does not do what its files say."""


@dataclass(frozen=True)
class Vector:
    """An input, and what the model answers at every position (REFUSED where it refuses)."""

    tokens: np.ndarray
    answers: np.ndarray


@dataclass(frozen=True)
class ZooModel:
    """A model, its circuit, and the inputs that show both to be right."""

    name: str
    folder: Path
    model: Transformer
    circuit: Circuit
    vectors: tuple[Vector, ...]
    source: str
    data: dict[str, Any] = field(repr=False)  # circuit.json, with what every component and edge is for

    @cached_property
    def wiring(self) -> Wiring:
        return Wiring(self.model)

    @property
    def edges(self) -> tuple[Edge, ...]:
        """Every edge there could be: what a method that looks for circuits has to tell apart."""
        return self.wiring.edges

    @cached_property
    def learned(self) -> Transformer | None:
        """The trained model of the same task, where there is one."""
        folder = self.folder / LEARNED
        return Transformer.from_pretrained(folder) if folder.is_dir() else None

    @property
    def example(self) -> np.ndarray:
        """The longest of the test vectors' inputs, each up to where the model would refuse."""
        answered = [v.tokens[np.logical_and.accumulate(v.answers != REFUSED)] for v in self.vectors]
        return max(answered, key=len)

    def check(self) -> None:
        """Raise `WrongAnswer` if the model fails a test vector."""
        for vector in self.vectors:
            ((_, found),) = answers(self.model, [vector.tokens])
            wrong = np.flatnonzero(found != vector.answers)
            if len(wrong):
                at = int(wrong[0])
                raise WrongAnswer(
                    f"{self.name} says {found[at]} at position {at} of a test vector; expected {vector.answers[at]}"
                )

    def check_circuit(self, inputs: list[np.ndarray] | None = None, edges: tuple[Edge, ...] | None = None) -> None:
        """Raise `WrongAnswer` if an edge is in no class or in two, if cutting anything outside the circuit changes an
        answer, or if cutting something inside that has a witness changes none there. Outside is tried on `inputs` too,
        all at once and edge by edge (`edges`: only these)."""
        self._check_classes()
        tokens = [vector.tokens for vector in self.vectors]
        for first in range(0, len(tokens), ROWS):
            self._check_witnesses(first, tokens[first : first + ROWS])
        outside = [e for e in (self.edges if edges is None else edges) if e not in self.circuit.edges]
        tokens += inputs or []
        for first in range(0, len(tokens), ROWS):
            self._check_outside(tokens[first : first + ROWS], outside)

    def _check_classes(self) -> None:
        found = self.circuit
        classed = [*found.needed, *found.backup, *found.unwitnessed, *found.idle]
        if sorted(classed) != sorted(self.wiring.wired):
            raise WrongAnswer(f"{self.name}: the classes of the circuit are not the wired edges, each once")
        if set(found.idle) - set(idle_edges(self.wiring)):
            raise WrongAnswer(f"{self.name}: the weights do not show that every edge called idle is")

    def _check_witnesses(self, first: int, tokens: list[np.ndarray]) -> None:
        """Of the edges whose witnesses are among these vectors, `first` and those after it."""
        run, found = BatchRun(self.wiring, tokens), self.circuit
        here = range(first, first + len(tokens))
        alone = [edge for edge, witness in found.needed.items() if witness.input in here]
        shown = {edge: run.changed(logits) for edge, logits in run.patching.without(alone)}
        for edge, witness in found.backup.items():
            if witness.input in here:
                shown[edge] = run.changed(run.patching.only(found.witnessed - {edge}))
        for edge, changed in shown.items():
            witness = (found.needed | found.backup)[edge]
            if not changed[witness.input - first, witness.position]:
                raise WrongAnswer(f"{self.name}: the witness of {edge} does not show that it is needed")

    def _check_outside(self, tokens: list[np.ndarray], edges: list[Edge]) -> None:
        run = BatchRun(self.wiring, tokens)
        if run.changed(run.patching.only(self.circuit.edges)).any():
            raise WrongAnswer(f"{self.name}: answers change when everything outside the circuit is cut")
        for edge, logits in run.patching.without(edges):
            if run.changed(logits).any():
                raise WrongAnswer(f"{self.name}: answers depend on {edge}, which is outside the circuit")


def load_zoo(name: str, folder: str | Path | None = None) -> ZooModel:
    """A model of the zoo, from `folder` (one that `turing-programs zoo` wrote, or where models are kept; default
    ~/.cache/turing-programs/zoo, or what TURING_PROGRAMS_ZOO names). It is built there if it is not yet."""
    home = zoo_folder() if folder is None else Path(folder)
    (name,) = chosen([name])
    manifest = home / name / MANIFEST
    if not manifest.is_file() or read_json(manifest).get("format") != FORMAT:
        home.mkdir(parents=True, exist_ok=True)
        build(catalogue()[name], home)
    return read_model(home / name)


def zoo_folder() -> Path:
    return Path(os.environ.get(CACHE) or Path.home() / ".cache" / "turing-programs" / "zoo")


def read_model(folder: Path) -> ZooModel:
    """From its own folder, if no file in it was changed."""
    changed = changed_files(folder, read_json(folder / MANIFEST))
    if changed:
        raise InvalidModel(f"{folder / changed[0]} was changed or is missing; delete {folder} and write the zoo again")
    vectors = [
        Vector(
            np.array(entry["input"], dtype=np.int64),
            np.array([REFUSED if a is None else a for a in entry["answers"]], dtype=np.int64),
        )
        for entry in json.loads((folder / VECTORS).read_text())
    ]
    data = read_json(folder / CIRCUIT)
    return ZooModel(
        folder.name,
        folder,
        Transformer.from_pretrained(folder),
        read_circuit(data),
        tuple(vectors),
        (folder / SOURCE).read_text(),
        data,
    )
