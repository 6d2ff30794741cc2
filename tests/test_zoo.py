"""The zoo: every model does what its files say, and its circuit is the whole of what its answers depend on."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from compile.circuits import Circuit, Edge, Patching, Wiring, find_circuit
from compile.circuits.circuit import EdgeWitness, padded
from compile.circuits.idle import idle_edges
from compile.errors import REFUSED
from compile.transformer import InvalidModel, Transformer
from experiments.cli import app
from experiments.zoo.building import build_zoo
from experiments.zoo.catalogue import catalogue, chosen
from experiments.zoo.compiling import compile_entry
from experiments.zoo.loading import WrongAnswer, ZooModel, load_zoo
from experiments.zoo.scoring import METHODS, Inputs, auroc, find_method, score, score_one
from rasp.gallery import gallery

SAMPLE = ("induct", "copy-unique", "cumsum-ones", "detect-pattern", "mode-so-far", "add-with-hints", "bb3-lean")
FRESH = 1  # seed of inputs that circuits were not found on


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("zoo")


@pytest.fixture(scope="module")
def induct(folder: Path) -> ZooModel:
    return load_zoo("induct", folder)


def verify(name: str, folder: Path, every_edge: bool) -> None:
    """Load it, replay its vectors, run its source, and cut everything outside and each thing inside its circuit."""
    zoo = load_zoo(name, folder)
    zoo.check()
    assert len(zoo.model.predict(zoo.example)) > 4
    assert len(zoo.vectors) >= 1 and zoo.circuit.needed
    assert (zoo.learned is None) == (catalogue()[name].twin is None)
    source_says(zoo)
    compiled = compile_entry(catalogue()[name])
    fresh = compiled.inputs(FRESH)
    compiled.check(fresh)
    zoo.check_circuit(fresh, None if every_edge else zoo.wiring.wired)


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
    verify(name, folder, every_edge=name == "induct")


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in catalogue() if name not in SAMPLE])
def test_every_model_and_its_circuit(name: str, folder: Path) -> None:
    verify(name, folder, every_edge=True)


def test_what_is_in_the_zoo() -> None:
    names = chosen(())
    assert len(names) >= 60 and set(gallery()) <= set(names)
    assert {"induct", "addition", "multiplication1", "universal-2x2", "count-to", "add-with-hints"} <= set(names)
    assert sum(entry.twin is not None for entry in catalogue().values()) >= 10
    with pytest.raises(ValueError, match="the zoo has no 'induckt': did you mean induct"):
        chosen(["induckt"])


def test_models_load_and_answer_without_jax(induct: ZooModel) -> None:
    code = (
        "import sys; sys.modules.update(dict.fromkeys(('jax', 'haiku', 'tracr')))\n"
        "from pathlib import Path; from experiments.zoo.loading import read_model\n"
        f"zoo = read_model(Path({str(induct.folder)!r})); zoo.check(); print(len(zoo.circuit.edges))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert int(done.stdout) == len(induct.circuit.edges)


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
    path.write_text(path.read_text().replace('"needed"', '"needed" '))
    path.write_text(path.read_text() + "\n")
    with pytest.raises(InvalidModel, match="was changed or is missing"):
        load_zoo("parity", tmp_path)


def test_a_wrong_answer_is_noticed(induct: ZooModel) -> None:
    first, *rest = induct.vectors
    wrong = replace(first, answers=first.answers + 1)
    with pytest.raises(WrongAnswer, match="expected"):
        replace(induct, vectors=(wrong, *rest)).check()


def test_a_circuit_that_lacks_an_edge_is_noticed(induct: ZooModel) -> None:
    found, tokens = induct.circuit, [vector.tokens for vector in induct.vectors]
    lost, *rest = found.needed
    edges = {edge: found.needed[edge] for edge in rest}
    with pytest.raises(WrongAnswer, match="everything outside the circuit"):
        replace(induct, circuit=Circuit(edges, {}, found.unwitnessed, found.idle))._check_outside(tokens, [])
    with pytest.raises(WrongAnswer, match="each once"):
        replace(induct, circuit=Circuit(edges, {}, found.unwitnessed, found.idle)).check_circuit()
    with pytest.raises(WrongAnswer, match="weights do not show"):
        replace(induct, circuit=Circuit(edges, {}, found.unwitnessed, (*found.idle, lost))).check_circuit()


def test_an_edge_that_changes_nothing_is_noticed(induct: ZooModel) -> None:
    found = induct.circuit
    some, *rest = found.unwitnessed
    claimed = {some: EdgeWitness(0, 3)}
    for needed, backup in (({**found.needed, **claimed}, {}), (found.needed, claimed)):
        circuit = Circuit(needed, backup, tuple(rest), found.idle)
        with pytest.raises(WrongAnswer, match="does not show that it is needed"):
            replace(induct, circuit=circuit).check_circuit()


def test_an_edge_that_only_rare_inputs_need_is_in_the_circuit(induct: ZooModel) -> None:
    """One input shows few edges to be needed, and yet cutting all that is outside the circuit changes no other."""
    few, _ = find_circuit(induct.wiring, [[np.array([1, 2])]])
    assert set(few.needed) < set(induct.circuit.needed) and few.edges == induct.circuit.edges
    rare = tuple(set(induct.circuit.needed) - set(few.needed))
    assert set(rare) <= set(few.unwitnessed) | set(few.backup)
    tokens = [vector.tokens for vector in induct.vectors]
    replace(induct, circuit=few)._check_outside(tokens, [e for e in induct.edges if e not in few.edges])
    with pytest.raises(WrongAnswer, match="everything outside the circuit"):
        replace(induct, circuit=replace(few, unwitnessed=()))._check_outside(tokens, [])
    with pytest.raises(WrongAnswer, match="which is outside the circuit"):
        replace(induct, circuit=few)._check_outside(tokens, list(rare))


def test_marks_of_start_tokens_are_idle_only_if_no_input_has_such_tokens(induct: ZooModel) -> None:
    assert Edge("embed", "unembed", "in") in idle_edges(induct.wiring)
    assert set(induct.circuit.idle) == set(idle_edges(induct.wiring))
    told = Transformer(replace(induct.model.config, refusal=""))
    told.load_state_dict(induct.model.state_dict())
    assert idle_edges(Wiring(told)) == ()


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
    for _, changed in patching.without(induct.wiring.wired, instead=patching):
        assert np.allclose(changed.numpy(), patching.logits.numpy(), atol=1e-4)


def test_cutting_an_edge_is_what_hooks_do(induct: ZooModel) -> None:
    """The edge from the embedding to the keys of a head, cut by hand in the model itself."""
    rows, _ = padded([vector.tokens for vector in induct.vectors])
    edge = next(e for e in induct.circuit.needed if e.source == "embed" and e.port == "k")
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
    assert (best.precision, best.recall, best.auroc) == (1.0, 1.0, 1.0)
    worst = score_one(induct, {edge: -number for edge, number in truth(induct, []).items()})
    assert (worst.precision, worst.recall, worst.auroc) == (0.0, 0.0, 0.0)


def test_patching_beats_chance(folder: Path) -> None:
    models = [load_zoo(name, folder) for name in SAMPLE]
    patched, guessed = (list(score(METHODS[name], models)) for name in ("patching", "random"))
    assert all(s.precision is not None and s.precision > 0.9 for s in patched)
    assert all((s.auroc or 0) > 0.7 for s in patched)
    assert float(np.mean([s.auroc or 0 for s in patched])) > 0.85
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
    with pytest.raises(ValueError, match="cannot be loaded"):
        find_method("nowhere_at_all:method")


def test_the_command(tmp_path: Path) -> None:
    run = CliRunner().invoke
    wrote = json.loads(run(app, ["zoo", str(tmp_path), "--only", "parity", "--json"]).stdout)
    assert wrote["models"]["parity"]["edges"]["needed"] > 0
    found = json.loads(run(app, ["zoo", str(tmp_path), "--only", "parity", "--score", "random", "--json"]).stdout)
    assert found["method"] == "random" and found["models"][0]["model"] == "parity" and 0 <= found["mean"]["auroc"] <= 1
    own = run(app, ["zoo", str(tmp_path), "--only", "parity", "--score", "experiments.zoo.scoring:random_baseline"])
    assert "AUROC" in own.stdout
    listed = json.loads(run(app, ["zoo", "--list", "--json"]).stdout)["models"]
    assert len(listed) == len(catalogue())
