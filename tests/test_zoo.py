"""The zoo: every model does what its files say, and its circuit is the whole of what its answers depend on."""

from __future__ import annotations

import copy
import json
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

from compile.circuits import Circuit, Edge, Patching, Wiring, find_circuit
from compile.circuits.ablation import BatchRun, Move, padded
from compile.circuits.circuit import EdgeWitness, circuit_data, read_circuit
from compile.circuits.finding import _Search
from compile.circuits.hunting import hunt
from compile.errors import REFUSED
from compile.transformer import InvalidModel, Transformer
from experiments.cli import app
from experiments.zoo.building import INDEX, build_zoo, write_index
from experiments.zoo.catalogue import catalogue, chosen
from experiments.zoo.compiling import compile_entry
from experiments.zoo.loading import WrongAnswer, ZooModel, load_zoo
from experiments.zoo.scoring import METHODS, Inputs, auroc, find_method, score, score_one
from rasp.gallery import gallery

SAMPLE = ("induct", "copy-unique", "cumsum-ones", "detect-pattern", "firsts-position", "sum-modulo-4", "bb3-lean")
FRESH = 1  # seed of inputs that circuits were not found on


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("zoo")


@pytest.fixture(scope="module")
def induct(folder: Path) -> ZooModel:
    return load_zoo("induct", folder)


@pytest.fixture(scope="module")
def firsts(folder: Path) -> ZooModel:
    """A model that has a guard."""
    return load_zoo("firsts-position", folder)


def verify(name: str, folder: Path) -> None:
    """Load it, replay its vectors, run its source, and ablate everything outside and each thing inside its circuit."""
    zoo = load_zoo(name, folder)
    zoo.check()
    assert len(zoo.model.predict(zoo.example)) > 4
    assert len(zoo.vectors) >= 1 and not zoo.circuit.unwitnessed
    assert (zoo.learned is None) == (catalogue()[name].twin is None)
    source_says(zoo)
    compiled = compile_entry(catalogue()[name])
    fresh = compiled.inputs(FRESH)
    compiled.check(fresh)
    zoo.check_circuit(fresh)


def source_says(zoo: ZooModel) -> None:
    """The text of the program, run by itself, gives the answers of the vectors wherever the model does not refuse."""
    names: dict[str, Any] = {"__file__": str(zoo.folder / "program.py")}
    exec(compile_text(zoo), names)
    program = names.get("program") or next(v for k, v in names.items() if f"def {k}(" in zoo.source)
    for vector in zoo.vectors:
        expected = np.asarray(program(vector.tokens))
        assert np.array_equal(np.where(vector.answers == REFUSED, expected, vector.answers), expected)


def compile_text(zoo: ZooModel) -> Any:
    return compile(zoo.source, "program.py", "exec")


@pytest.mark.parametrize("name", SAMPLE)
def test_a_model_and_its_circuit(name: str, folder: Path) -> None:
    verify(name, folder)


@pytest.mark.slow
@pytest.mark.timeout(1800)  # the largest take minutes of a quiet core
@pytest.mark.parametrize("name", [name for name in catalogue() if name not in SAMPLE])
def test_every_model_and_its_circuit(name: str, folder: Path) -> None:
    verify(name, folder)


def test_what_is_in_the_zoo() -> None:
    names = chosen(())
    assert len(names) >= 60 and set(gallery()) <= set(names)
    assert {"induct", "addition", "multiplication1", "universal-2x2", "count-to", "add-with-hints"} <= set(names)
    assert sum(entry.twin is not None for entry in catalogue().values()) >= 10
    with pytest.raises(ValueError, match="the zoo has no 'induckt': did you mean induct"):
        chosen(["induckt"])


def answered_without_jax(folder: Path, names: Sequence[str]) -> None:
    """In a process of its own, where JAX cannot be imported: every model passes its test vectors."""
    for name in names:
        load_zoo(name, folder)
    code = (
        "import sys; sys.modules.update(dict.fromkeys(('jax', 'haiku', 'tracr')))\n"
        "from pathlib import Path; from experiments.zoo.loading import read_model\n"
        f"for name in {list(names)!r}: read_model(Path({str(folder)!r}) / name).check(); print(name)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == list(names)


def test_models_load_and_answer_without_jax(folder: Path) -> None:
    """Also one that was built with it."""
    answered_without_jax(folder, ["induct", "cumsum-ones-tracr"])


@pytest.mark.slow
def test_every_model_loads_and_answers_without_jax(folder: Path) -> None:
    answered_without_jax(folder, list(catalogue()))


def test_the_files_of_a_model(induct: ZooModel) -> None:
    manifest = json.loads((induct.folder / "manifest.json").read_text())
    assert {"README.md", "circuit.json", "config.json", "model.safetensors", "program.py", "vectors.json"} == set(
        manifest["files"]
    )
    card = (induct.folder / "README.md").read_text()
    assert 'load_zoo("induct")' in card and "kqv" in card and "induct(x, x, offset=1)" in card
    data = induct.data
    assert data["possible_edges"] == len(induct.edges)
    heads = [c for c in data["components"] if c["kind"] == "head"]
    assert all(c["label"] and c["operations"] for c in heads)
    output = data["operations"][data["output"]]
    assert output["components"], "the last operation is computed by some component"
    assert any(data["output"] in e["operations"] for e in data["edges"] if e["to"] == "unembed")


def test_a_zoo_is_the_same_each_time_and_goes_on_where_it_stopped(tmp_path: Path, induct: ZooModel) -> None:
    ((_, first),) = build_zoo(tmp_path, ["induct"])
    stamp = (tmp_path / "induct" / "model.safetensors").stat().st_mtime_ns
    names = [name for name, _ in build_zoo(tmp_path, ["induct", "parity"])]
    assert names == ["induct", "parity"]
    assert (tmp_path / "induct" / "model.safetensors").stat().st_mtime_ns == stamp
    assert first["sha256"] == json.loads((induct.folder / "manifest.json").read_text())["sha256"]
    assert set(json.loads((tmp_path / "zoo.json").read_text())["models"]) == {"induct", "parity"}


# --- checks that must fail --------------------------------------------------------------------------------------------


def test_a_changed_file_is_refused(tmp_path: Path) -> None:
    list(build_zoo(tmp_path, ["parity"]))
    path = tmp_path / "parity" / "circuit.json"
    path.write_text(path.read_text().replace('"edges"', '"edges" '))
    path.write_text(path.read_text() + "\n")
    with pytest.raises(InvalidModel, match="was changed or is missing"):
        load_zoo("parity", tmp_path)


def test_a_wrong_answer_is_noticed(induct: ZooModel) -> None:
    first, *rest = induct.vectors
    wrong = replace(first, answers=first.answers + 1)
    with pytest.raises(WrongAnswer, match="expected"):
        replace(induct, vectors=(wrong, *rest)).check()


@pytest.mark.parametrize("kind", ["cut", "moved"])
def test_a_circuit_that_lacks_an_edge_is_noticed(kind: str, induct: ZooModel) -> None:
    """By the weights, by cutting all that is outside, and by ablating the edge: what no cut shows, a move does."""
    found, tokens = induct.circuit.witnesses, [vector.tokens for vector in induct.vectors]
    lost = sorted(induct.circuit.of_kind(kind))[0]
    wrong = replace(induct, circuit=Circuit({edge: found[edge] for edge in found if edge != lost}))
    with pytest.raises(WrongAnswer, match="are not the wired edges"):
        wrong.check_circuit()
    if kind == "cut":
        with pytest.raises(WrongAnswer, match="everything outside the circuit"):
            wrong._check_outside(tokens, [])
    with pytest.raises(WrongAnswer, match=f"answers depend on {re.escape(str(lost))}, which is outside"):
        induct._check_outside(tokens * 8, [lost])


def test_a_witness_that_shows_nothing_is_noticed(induct: ZooModel) -> None:
    """Of an edge that is not wired; a move that changes nothing; a position before the change."""
    found = induct.circuit.witnesses
    outside = next(edge for edge in induct.edges if edge not in found)
    some = next(edge for edge in found if found[edge].input == 0 and found[edge].position > 0)
    for edge, wrong in (
        (outside, EdgeWitness(0, 3)),
        (some, EdgeWitness(0, 3, Move(3, 3))),
        (some, replace(found[some], position=0)),
    ):
        with pytest.raises(WrongAnswer, match="does not show that it matters"):
            replace(induct, circuit=Circuit({**found, edge: wrong}))._check_witnesses(wrong.input)


def test_a_guard_matters_only_once_another_edge_is_ablated(firsts: ZooModel) -> None:
    ((guard, witness),) = [(e, w) for e, w in firsts.circuit.witnesses.items() if w.kind == "guard"]
    assert guard == Edge("embed", "unembed", "in") and witness.given in firsts.circuit.alone
    alone = Circuit({**firsts.circuit.witnesses, guard: replace(witness, given=None)})
    with pytest.raises(WrongAnswer, match="does not show that it matters"):
        replace(firsts, circuit=alone)._check_witnesses(witness.input)


def test_a_guard_is_found_by_moving_something_along_an_edge_beside_it(induct: ZooModel) -> None:
    """Its witness forgotten, an edge is shown to matter given another, whose witness is then the move that was made."""
    found, tokens = induct.circuit.witnesses, [vector.tokens for vector in induct.vectors]
    edge = next(edge for edge in found if edge.target != "unembed" and found[edge].kind == "cut")
    search = _Search(induct.wiring)
    search.inputs, search.witnesses = list(tokens), {other: found[other] for other in found if other != edge}
    search.find_guards_of_moves(tokens)
    guard = search.witnesses[edge]
    assert guard.kind == "guard" and guard.given is not None and not search.left
    assert search.witnesses[guard.given].input == guard.input and search.witnesses[guard.given].move is not None
    replace(induct, circuit=Circuit(search.witnesses))._check_witnesses(guard.input)


def test_an_edge_without_a_witness_stays_in_the_circuit(induct: ZooModel) -> None:
    """One input shows few edges to matter, and yet ablating what is outside the circuit changes no other."""
    few, inputs = find_circuit(induct.wiring, [[np.array([1, 2])]], hunting=False)
    assert few.alone < induct.circuit.alone and few.edges == induct.circuit.edges and len(inputs) == 1
    replace(induct, circuit=few).check_circuit([vector.tokens for vector in induct.vectors])
    assert few.unwitnessed and read_circuit(circuit_data(induct.wiring, few)) == few


def test_inputs_are_bred_for_an_edge_that_few_inputs_need(induct: ZooModel) -> None:
    """The last index that can be told: only an input that looks for it there shows that the unit is read."""
    edge = Edge("L0.M1", "L2.H0", "k")
    assert induct.circuit.witnesses[edge].kind == "moved"
    rng = np.random.default_rng(0)
    few = [rng.integers(5, size=16) for _ in range(8)]
    found = hunt(induct.wiring, edge, few, rng)
    assert found is not None
    tokens, expected, move = found
    ((_, changed),) = BatchRun(induct.wiring, [tokens]).moved([(edge, [move])])
    assert changed.any() and np.array_equal(changed[0], expected[: len(tokens)])
    assert hunt(induct.wiring, Edge("embed", "L1.H0", "v"), few, rng) is None, "it is not wired"


# --- wiring -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["induct", "bb3-lean"])
def test_whatever_an_edge_outside_carries_changes_nothing(name: str, folder: Path) -> None:
    """Not only what it does carry: anything that its source can write."""
    zoo, rng = load_zoo(name, folder), np.random.default_rng(0)
    rows, _ = padded([vector.tokens for vector in zoo.vectors])
    patching = Patching(zoo.wiring, rows)

    def anything(edge: Edge) -> torch.Tensor:
        columns, shape = zoo.wiring.columns[edge.source], patching.parts[edge.source].shape
        amounts = rng.normal(size=(shape[0] * shape[1], columns.shape[1]))
        return torch.from_numpy((columns @ amounts.T).T.reshape(shape)).float()

    outside = [edge for edge in zoo.edges if edge not in zoo.circuit.edges]
    for edge, logits in patching.replaced((edge, anything(edge)) for edge in outside):
        assert np.allclose(logits.numpy(), patching.logits.numpy(), atol=1e-3), edge


def test_what_is_written_and_not_read_is_not_wired(induct: ZooModel) -> None:
    """The default of a look-up is a value that the next look-up does not know; once it does, the edge is wired."""
    default = Edge("embed", "L1.H0", "v")
    assert default not in induct.wiring.wired
    model = copy.deepcopy(induct.model)
    with torch.no_grad():
        model.unembed.weight += 1.0
    assert default in Wiring(model).wired


def test_a_query_that_meets_only_biases_is_not_wired(induct: ZooModel) -> None:
    """It adds the same to all scores."""
    asked = next(edge for edge in induct.wiring.wired if edge.port == "q")
    layer, head = (int(part[1:]) for part in asked.target.split("."))
    model = copy.deepcopy(induct.model)
    with torch.no_grad():
        model.blocks[layer].attn.head(head).k[:] = 0.0
    assert not [edge for edge in Wiring(model).wired if edge.target == asked.target and edge.port in "qk"]


def test_learned_models_have_no_such_edges(induct: ZooModel) -> None:
    normed = replace(induct.model.config, norm="layernorm")
    with pytest.raises(ValueError, match="norm 'layernorm'"):
        Wiring(Transformer(normed))


# --- patching ---------------------------------------------------------------------------------------------------------


def test_patching_computes_what_the_model_computes(induct: ZooModel) -> None:
    rows, _ = padded([vector.tokens for vector in induct.vectors])
    patching = Patching(induct.wiring, rows)
    logits, _ = induct.model.run_with_cache(rows)
    assert np.allclose(patching.logits.numpy(), logits.detach().numpy(), atol=1e-4)
    assert np.allclose(patching.only(induct.edges).numpy(), patching.logits.numpy(), atol=1e-4)
    for _, same in patching.replaced((edge, patching.parts[edge.source]) for edge in induct.wiring.wired):
        assert np.allclose(same.numpy(), patching.logits.numpy(), atol=1e-4)
    for edge, cut in patching.without(induct.wiring.wired):
        assert np.allclose(cut.numpy(), patching.ablated({edge: torch.zeros_like}).numpy(), atol=1e-3)


def test_cutting_an_edge_is_what_hooks_do(induct: ZooModel) -> None:
    """The edge from the embedding to the keys of a head, cut by hand in the model itself."""
    rows, _ = padded([vector.tokens for vector in induct.vectors])
    edge = next(e for e in sorted(induct.circuit.of_kind("cut")) if e.source == "embed" and e.port == "k")
    layer, head = (int(part[1:]) for part in edge.target.split("."))
    patching = Patching(induct.wiring, rows)
    ((_, found),) = patching.without([edge])
    key = induct.model.blocks[layer].attn.head(head).k

    def cut(keys: Any) -> Any:
        keys = keys.clone()
        keys[:, :, head] -= patching.parts["embed"] @ key.T
        return keys

    expected = induct.model.run_with_hooks(rows, {f"blocks.{layer}.attn.hook_k": cut})
    assert np.allclose(found.numpy(), expected.detach().numpy(), atol=1e-4)
    assert not np.allclose(found.numpy(), patching.logits.numpy(), atol=1e-1)


# --- scoring ----------------------------------------------------------------------------------------------------------


def truth(zoo: ZooModel, inputs: Inputs) -> Mapping[Edge, float]:
    return {edge: 1.0 if edge in zoo.circuit.edges else -1.0 for edge in zoo.edges}


def test_the_truth_scores_one_and_its_opposite_zero(induct: ZooModel) -> None:
    (best,) = score(truth, [induct])
    assert (best.precision, best.recall, best.recall_cut, best.auroc) == (1.0, 1.0, 1.0, 1.0)
    assert (best.circuit, best.cut) == (len(induct.circuit.alone), len(induct.circuit.of_kind("cut")))
    worst = score_one(induct, {edge: -number for edge, number in truth(induct, []).items()})
    assert (worst.precision, worst.recall, worst.auroc) == (0.0, 0.0, 0.0)


def test_patching_beats_chance(folder: Path) -> None:
    models = [load_zoo(name, folder) for name in SAMPLE]
    patched, guessed = (list(score(METHODS[name], models)) for name in ("patching", "random"))
    assert all(s.precision is not None and s.precision > 0.9 for s in patched)
    assert all((s.auroc or 0) > 0.6 and (s.recall_cut or 0) >= (s.recall or 1) for s in patched)
    assert float(np.mean([s.auroc or 0 for s in patched])) > 0.8
    assert 0.3 < float(np.mean([s.auroc or 0 for s in guessed])) < 0.7


def test_auroc_by_hand() -> None:
    assert auroc(np.array([3, 1, 2]), np.array([True, False, True])) == 1.0
    assert auroc(np.array([1, 1]), np.array([True, False])) == 0.5
    assert auroc(np.array([2, 3, 1, 0]), np.array([True, False, True, False])) == 0.5
    assert auroc(np.array([1, 2]), np.array([True, True])) is None


def test_a_method_must_number_every_edge(induct: ZooModel) -> None:
    with pytest.raises(ValueError, match="gives no number for"):
        score_one(induct, {})
    with pytest.raises(ValueError, match="nan"):
        score_one(induct, dict.fromkeys(induct.edges, float("nan")))
    with pytest.raises(ValueError, match="no method; choose patching, random"):
        find_method("patchign")
    with pytest.raises(ValueError, match="no module 'nowhere_at_all'.*; a file is named nowhere_at_all.py:NAME"):
        find_method("nowhere_at_all:method")


def test_a_method_of_ones_own_is_read_from_its_file(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("def method(model, inputs):\n    return {}\nnumber = 3\n")
    (tmp_path / "broken.py").write_text("def method(model, inputs:\n")
    assert find_method(f"{tmp_path}/mine.py:method")(None, []) == {}  # type: ignore[arg-type]
    for name, wrong in (("mine.py:number", "no function"), ("broken.py:method", "cannot be loaded: SyntaxError")):
        with pytest.raises(ValueError, match=wrong):
            find_method(f"{tmp_path}/{name}")


def test_a_manifest_of_somebody_else_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "manifest.json").write_text("{}")
    write_index(tmp_path)
    assert json.loads((tmp_path / INDEX).read_text())["models"] == {}


def test_the_command(tmp_path: Path) -> None:
    run = CliRunner().invoke
    wrote = json.loads(run(app, ["zoo", str(tmp_path), "--only", "parity", "--json"]).stdout)
    assert wrote["models"]["parity"]["edges"]["cut"] > 0
    found = json.loads(run(app, ["zoo", str(tmp_path), "--only", "parity", "--score", "random", "--json"]).stdout)
    assert found["method"] == "random" and found["models"][0]["model"] == "parity" and 0 <= found["mean"]["auroc"] <= 1
    own = run(app, ["zoo", str(tmp_path), "--only", "parity", "--score", "experiments.zoo.scoring:random_baseline"])
    assert "AUROC" in own.stdout
    listed = json.loads(run(app, ["zoo", "--list", "--json"]).stdout)["models"]
    assert len(listed) == len(catalogue())
