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
from compile.errors import REFUSED
from compile.transformer import InvalidModel, Transformer
from compile.validate import answers
from experiments.files import read_json
from experiments.zoo.building import CIRCUIT, LEARNED, MANIFEST, SOURCE, VECTORS, build, changed_files
from experiments.zoo.catalogue import catalogue, chosen

CACHE = "TURING_PROGRAMS_ZOO"  # the environment's name for the folder that models are kept in


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
        """Raise `WrongAnswer` if cutting anything outside the circuit changes an answer, or if cutting something inside
        changes none at its witness. Outside is tried on `inputs` too, all at once and edge by edge (`edges`: only
        these)."""
        tokens = [vector.tokens for vector in self.vectors]
        run = BatchRun(self.wiring, tokens)
        for edge, logits in run.patching.without(self.circuit.needed):
            witness = self.circuit.needed[edge]
            if not run.changed(logits)[witness.input, witness.position]:
                raise WrongAnswer(f"{self.name}: the witness of {edge} does not show that it is needed")
        run = BatchRun(self.wiring, [*tokens, *(inputs or [])])
        if run.changed(run.patching.only(self.circuit.edges)).any():
            raise WrongAnswer(f"{self.name}: answers change when everything outside the circuit is cut")
        others = [e for e in (self.edges if edges is None else edges) if e not in self.circuit.needed]
        for edge, logits in run.patching.without(others):
            if run.changed(logits).any():
                raise WrongAnswer(f"{self.name}: answers depend on {edge}, which the circuit does not call needed")


def load_zoo(name: str, folder: str | Path | None = None) -> ZooModel:
    """A model of the zoo, from `folder` (one that `turing-programs zoo` wrote, or where models are kept; default
    ~/.cache/turing-programs/zoo, or what TURING_PROGRAMS_ZOO names). It is built there if it is not yet."""
    home = zoo_folder() if folder is None else Path(folder)
    (name,) = chosen([name])
    if not (home / name / MANIFEST).is_file():
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
