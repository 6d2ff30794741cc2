"""Models of the zoo by name: from a folder, or built on the spot."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from compile.circuits import Circuit, Edge, Wiring
from compile.circuits.ablation import BatchRun
from compile.circuits.circuit import read_circuit
from compile.circuits.finding import ROWS
from compile.errors import REFUSED
from compile.transformer import InvalidModel, Transformer
from compile.validate import answers
from experiments.files import read_json
from experiments.zoo.building import CIRCUIT, FORMAT, LEARNED, MANIFEST, SOURCE, VECTORS, build, changed_files
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

    def check_circuit(self, inputs: Sequence[np.ndarray] = ()) -> None:
        """Raise `WrongAnswer` if the circuit is not what is wired, if an edge inside it changes no answer where its
        witness says so, or if ablating anything outside changes one: on the test vectors and on `inputs`, all of it at
        once and edge by edge, cut and with something moved."""
        if sorted([*self.circuit.witnesses, *self.circuit.unwitnessed]) != sorted(self.wiring.wired):
            raise WrongAnswer(f"{self.name}: the edges of the circuit are not the wired edges, each once")
        for number in sorted({witness.input for witness in self.circuit.witnesses.values()}):
            self._check_witnesses(number)
        tokens = [*(vector.tokens for vector in self.vectors), *inputs]
        outside = [edge for edge in self.edges if edge not in self.circuit.edges]
        for first in range(0, len(tokens), ROWS):
            self._check_outside(tokens[first : first + ROWS], outside)

    def _check_witnesses(self, number: int) -> None:
        """Of the edges whose witness is this test vector."""
        run = BatchRun(self.wiring, [self.vectors[number].tokens])
        here = {edge: witness for edge, witness in self.circuit.witnesses.items() if witness.input == number}
        shown = dict(run.cut(edge for edge, witness in here.items() if witness.kind == "cut"))
        shown |= run.moved((edge, [w.move]) for edge, w in here.items() if w.kind == "moved")
        for edge, witness in here.items():
            if witness.given is not None:
                first = {witness.given: [self.circuit.witnesses[witness.given].move]}
                shown[edge] = run.changed(run.ablated({**first, edge: [witness.move]}), run.ablated(first))
            if not shown[edge][0, witness.position]:
                raise WrongAnswer(f"{self.name}: the witness of {edge} does not show that it matters")

    def _check_outside(self, tokens: Sequence[np.ndarray], edges: Sequence[Edge]) -> None:
        run, rng = BatchRun(self.wiring, tokens), np.random.default_rng(0)
        if run.changed(run.patching.only(self.circuit.edges)).any():
            raise WrongAnswer(f"{self.name}: answers change when everything outside the circuit is cut")
        moves = ((edge, run.drawn(run.kinds(edge), rng)) for edge in edges if self.wiring.carried(edge).any())
        for edge, changed in chain(run.cut(edges), run.moved(moves)):
            if changed.any():
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
