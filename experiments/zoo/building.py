"""A folder per model: weights, card, source, circuit, test vectors, and a manifest with the hash of each file."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from compile.circuits import Circuit, Wiring, find_circuit
from compile.circuits.circuit import KINDS, circuit_data
from compile.errors import REFUSED
from compile.transformer.files import sum_of_file
from compile.validate import answers
from experiments.evaluation.shipped import FOLDER as CHECKPOINTS
from experiments.files import read_json, write_json, write_whole
from experiments.zoo.cards import card
from experiments.zoo.catalogue import ZooEntry, catalogue
from experiments.zoo.compiling import CompiledEntry, compile_entry

CIRCUIT, VECTORS, SOURCE, MACHINE, CARD = "circuit.json", "vectors.json", "program.py", "machine.json", "README.md"
MANIFEST, INDEX, LEARNED = "manifest.json", "zoo.json", "learned"
FORMAT = 3
SEEDS = (0, 10, 11, 12, 13, 14)  # of the inputs that circuits are found on
MORE = 6  # test vectors beside those that the circuit's witnesses need


def build_zoo(folder: Path, names: Iterable[str]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Write the models that are not there yet, one after the other, and the index of all that are; as each is done,
    its name and manifest."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        entry = catalogue()[name]
        manifest = written(folder / name) or build(entry, folder)
        write_index(folder)
        yield name, manifest


def written(folder: Path) -> dict[str, Any] | None:
    """The manifest of a model that is whole and of this format, or None."""
    if not (folder / MANIFEST).is_file():
        return None
    manifest = read_json(folder / MANIFEST)
    return manifest if manifest.get("format") == FORMAT and not changed_files(folder, manifest) else None


def changed_files(folder: Path, manifest: dict[str, Any]) -> list[str]:
    """Those that are missing, or not as they were written."""
    files = manifest.get("files", {})
    return [name for name, found in files.items() if not _has_sum(folder / name, found)]


def _has_sum(path: Path, expected: str) -> bool:
    return path.is_file() and sum_of_file(path) == expected


def write_index(folder: Path) -> None:
    found = {path.parent.name: read_json(path) for path in sorted(folder.glob(f"*/{MANIFEST}"))}
    models = {name: m for name, m in found.items() if m.get("format") == FORMAT}  # a manifest may be somebody else's
    kept = ("family", "description", "sha256", "layers", "heads", "parameters", "nonzero", "edges", "learned_twin")
    write_json(
        folder / INDEX,
        {"format": FORMAT, "models": {name: {key: m[key] for key in kept} for name, m in models.items()}},
    )


def build(entry: ZooEntry, folder: Path) -> dict[str, Any]:
    """Compile a model, compare it with its program, find its circuit, and write its folder, whole or not at all."""
    compiled = compile_entry(entry)
    inputs = [tokens for seed in SEEDS for tokens in compiled.inputs(seed)]
    compiled.check(inputs)
    wiring = Wiring(compiled.model)
    circuit, shown = find_circuit(wiring, _growing(inputs), hunting=compiled.anything)
    compiled.check(shown)
    with TemporaryDirectory(dir=folder, prefix=".building-") as temporary:
        place = Path(temporary) / entry.name
        compiled.model.save_pretrained(place)
        write_json(place / CIRCUIT, circuit_data(wiring, circuit))
        write_whole(place / VECTORS, _vectors(compiled, [*shown, *_others(inputs, shown)]))
        write_whole(place / SOURCE, entry.source)
        if entry.machine is not None:
            write_whole(place / MACHINE, entry.machine + "\n")
        if entry.twin is not None:
            shutil.copytree(CHECKPOINTS / entry.twin, place / LEARNED)
        write_whole(place / CARD, card(entry, compiled.model, wiring, circuit))
        manifest = _manifest(entry, compiled, wiring, circuit, place)
        write_json(place / MANIFEST, manifest)
        shutil.rmtree(folder / entry.name, ignore_errors=True)
        place.rename(folder / entry.name)
    return manifest


def _growing(inputs: list[np.ndarray], first: int = 6, most: int = 24) -> list[list[np.ndarray]]:
    """Batches, each twice as large as the one before: a few inputs show most edges, and the rest need many."""
    batches, size = [], first
    while inputs:
        batches.append(inputs[:size])
        inputs, size = inputs[size:], min(2 * size, most)
    return batches


def _others(inputs: list[np.ndarray], shown: list[np.ndarray]) -> list[np.ndarray]:
    """Further inputs, the first of which are examples of what the model is for."""
    taken = {x.tobytes() for x in shown}
    return [x for x in inputs if x.tobytes() not in taken][:MORE]


def _vectors(compiled: CompiledEntry, inputs: list[np.ndarray]) -> str:
    """Inputs with the answer at every position, null where the model refuses; a line each."""
    lines = []
    for tokens in inputs:
        ((_, found),) = answers(compiled.model, [tokens])
        said = [None if t == REFUSED else int(t) for t in found]
        lines.append(json.dumps({"input": tokens.tolist(), "answers": said}))
    return "[\n" + ",\n".join(lines) + "\n]\n"


def _manifest(
    entry: ZooEntry, compiled: CompiledEntry, wiring: Wiring, circuit: Circuit, place: Path
) -> dict[str, Any]:
    config = compiled.model.config
    files = {str(p.relative_to(place)): sum_of_file(p) for p in sorted(place.rglob("*")) if p.is_file()}
    whole = hashlib.sha256("".join(f"{name} {found}\n" for name, found in files.items()).encode()).hexdigest()
    return {
        "format": FORMAT,
        "name": entry.name,
        "family": entry.family,
        "description": entry.description,
        "recipe": dict(entry.recipe),
        "layers": config.layers,
        "heads": [shape.heads for shape in config.shapes],
        "parameters": compiled.model.parameter_count(),
        "nonzero": compiled.model.nonzero_count(),
        "edges": {
            **{kind: len(circuit.of_kind(kind)) for kind in KINDS},
            "unwitnessed": len(circuit.unwitnessed),
            "possible": len(wiring.edges),
        },
        "learned_twin": entry.twin,
        "sha256": whole,
        "files": files,
    }
