"""The doors: a model in another library says what it says here, at every position of 1,000 inputs."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

from compile import compile_machine, compile_program
from compile.doors.text import encode, names_of
from compile.errors import CapacityError
from compile.transformer import Transformer
from experiments.cli import app
from experiments.models import load_model
from experiments.zoo.catalogue import catalogue
from experiments.zoo.compiling import compile_entry
from rasp import induct
from rasp.gallery import machine

INPUTS, LENGTH = 1_000, 12
BB3 = machine("bb3")


def tape(cells: int) -> np.ndarray:
    return np.array([*BB3.encode([BB3.symbols[0]] * cells, cells // 2), 0])


@pytest.fixture(scope="module")
def models() -> dict[str, Transformer]:
    """Compiled with windows, learned, and (without windows, with positions) through tracr."""
    return {
        "compiled": compile_machine(BB3, "lean", 1, 12, check=False),
        "induct": compile_program(lambda x: induct(x, x, 1), range(8), positions=LENGTH, check=False),
        "learned": load_model("tm-0"),
        "tracr": compile_entry(catalogue()["copy-unique-tracr"]).model,
    }


def inputs(model: Transformer, count: int = INPUTS) -> np.ndarray:
    """Random token ids, all but the start token."""
    most = model.config.vocabulary - (model.config.prepend is not None)
    return np.random.default_rng(0).integers(most, size=(count, LENGTH))


def expected(model: Transformer, rows: np.ndarray) -> np.ndarray:
    """What it says here, refusals included."""
    with torch.no_grad():
        return model.output_tokens[model(model.as_input(rows)).argmax(dim=-1)].numpy()


# --- TransformerLens --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["compiled", "induct", "learned", "tracr"])
def test_transformer_lens_says_the_same(name: str, models: dict[str, Transformer]) -> None:
    lens_door = pytest.importorskip("compile.doors.transformer_lens")
    model = models[name]
    lens, rows = lens_door.to_transformer_lens(model), inputs(models[name])
    assert isinstance(lens, lens_door.TransformerBridge if name == "tracr" else lens_door.LensModel)
    with torch.no_grad():
        logits = lens(model.with_prepended(torch.from_numpy(rows)))
    found = model.output_tokens[logits[:, model.prepended :].argmax(dim=-1)].numpy()
    assert np.array_equal(found, expected(model, rows))


@pytest.mark.parametrize("name", ["compiled", "learned"])
def test_transformer_lens_sees_and_changes_the_same(name: str, models: dict[str, Transformer]) -> None:
    door = pytest.importorskip("compile.doors.transformer_lens")
    from transformer_lens import ActivationCache, patching

    model = models[name]
    lens, rows = door.LensModel(model), inputs(models[name])[:4]
    tokens = lens.to_tokens(rows)
    _, cache = lens.run_with_cache(tokens)
    _, own = model.run_with_cache(rows)
    assert isinstance(cache, ActivationCache) and set(cache.keys()) == set(own)
    assert all(torch.equal(cache[key], own[key]) for key in own)
    assert torch.equal(cache["pattern", 0], own["blocks.0.attn.hook_pattern"])

    def nothing(value: Any, hook: Any = None) -> Any:
        return torch.zeros_like(value)

    changed = lens.run_with_hooks(tokens, fwd_hooks=[("blocks.0.hook_attn_out", nothing)])
    here = model.run_with_hooks(rows, {"blocks.0.hook_attn_out": nothing})
    assert torch.equal(changed[:, model.prepended :], here)
    patched = patching.get_act_patch_resid_pre(lens, tokens[:1], lens.run_with_cache(tokens[1:2])[1], lambda x: x.max())
    assert patched.shape == (model.config.layers, tokens.shape[1])


def test_transformer_lens_reads_text(models: dict[str, Transformer]) -> None:
    door = pytest.importorskip("compile.doors.transformer_lens")
    model = models["compiled"]
    lens = door.LensModel(model)
    text = "bos 0 0 A 0 eos sep"
    tokens = lens.to_tokens(text)
    assert tokens.shape == (1, 7 + model.prepended) and lens.to_str_tokens(text)[-7:] == text.split()
    assert lens.answers(lens(text)).tolist() == [model.predict(tokens[0, model.prepended :].numpy()).tolist()]
    with pytest.raises(ValueError, match="begin with .* start tokens"):
        lens(torch.zeros((1, 9), dtype=torch.long))
    with pytest.raises(ValueError, match="'B0' is none of this model's tokens"):
        lens.to_tokens("bos B0")


# --- Hugging Face -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["compiled", "learned", "tracr"])
def test_hugging_face_says_the_same(name: str, models: dict[str, Transformer], tmp_path: Path) -> None:
    door = pytest.importorskip("compile.doors.hugging_face")
    from transformers import AutoModelForCausalLM, AutoTokenizer

    model = models[name]
    door.save_for_hugging_face(model, tmp_path)
    loaded, rows = AutoModelForCausalLM.from_pretrained(tmp_path), inputs(model, 2 * INPUTS)
    answers = expected(model, rows)
    whole = (answers >= 0).all(axis=1)  # it raises an error where the model refuses
    rows, right = rows[whole][:INPUTS], answers[whole][:INPUTS]
    with torch.no_grad():
        found = loaded(torch.from_numpy(rows)).logits.argmax(dim=-1).numpy()
    assert len(right) == INPUTS and np.array_equal(found, right)
    names = names_of(model.config)
    tokenizer = AutoTokenizer.from_pretrained(tmp_path)
    text = " ".join(names[token] for token in rows[0])
    assert tokenizer(text)["input_ids"] == rows[0].tolist() and tokenizer.decode(rows[0]) == text


def test_hugging_face_generates_our_tokens(models: dict[str, Transformer]) -> None:
    door = pytest.importorskip("compile.doors.hugging_face")
    model = models["compiled"]
    loaded, tokenizer = door.TuringProgramsForCausalLM.wrap(model), door.make_tokenizer(model.config)
    prompts = [tape(3), tape(6)]
    batch = tokenizer.pad({"input_ids": [prompt.tolist() for prompt in prompts]}, return_tensors="pt")
    written = loaded.generate(**batch, max_new_tokens=40)
    for prompt, row in zip(prompts, written.numpy(), strict=True):
        assert row[-40 - len(prompt) :].tolist() == list(model.generate(prompt, 40))
    with pytest.raises(CapacityError, match="a count ran over"):
        loaded.generate(torch.from_numpy(tape(1))[None], max_new_tokens=100)


def test_hugging_face_refuses_a_model_that_writes_no_text(tmp_path: Path) -> None:
    door = pytest.importorskip("compile.doors.hugging_face")
    counts = compile_entry(catalogue()["cumsum-ones"]).model
    with pytest.raises(ValueError, match="answers numbers such as 5 that are none of its"):
        door.save_for_hugging_face(counts, tmp_path)


# --- ONNX -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["compiled", "induct", "learned", "tracr"])
def test_onnx_says_the_same(name: str, models: dict[str, Transformer], tmp_path: Path) -> None:
    pytest.importorskip("onnxscript")
    runtime = pytest.importorskip("onnxruntime")
    from compile.doors import save_onnx

    model = models[name]
    save_onnx(model, tmp_path / "model.onnx")
    session = runtime.InferenceSession(tmp_path / "model.onnx")
    rows = inputs(model)
    _, found = session.run(None, {"tokens": rows})
    assert np.array_equal(found, expected(model, rows))
    most = LENGTH + 2 if name == "tracr" else 4 * LENGTH  # it has 14 positions
    longer = np.tile(rows[:3], 4)[:, :most]
    assert np.array_equal(session.run(["answers"], {"tokens": longer})[0], expected(model, longer))


# --- all of them ------------------------------------------------------------------------------------------------------


def test_text_by_names() -> None:
    assert encode("$4+1", ["$", "+", "1", "4", "start"]) == [0, 3, 1, 2]
    assert encode("a1 a12 a1", ["a1", "a12"]) == [0, 1, 0]
    with pytest.raises(ValueError, match="'x' is none of this model's tokens"):
        encode("4x", ["4", "+"])


@pytest.mark.parametrize(
    ("library", "door"),
    [
        ("transformer_lens", "compile.doors.transformer_lens"),
        ("transformers", "compile.doors.hugging_face"),
        ("onnxscript", "compile.doors.onnx"),
    ],
)
def test_a_missing_library_is_named(library: str, door: str) -> None:
    """In a process of its own, where the library cannot be found: the rest works, and the door says what to install."""
    code = (
        f"import sys; sys.modules[{library!r}] = None\n"
        "from compile import compile_program; from rasp import shift_right\n"
        "m = compile_program(lambda x: shift_right(x, 1), range(3), check=False)\n"
        "assert list(m.predict([1, 2])) == [0, 1]\n"
        "try:\n"
        f"    import {door} as door\n"
        "    door.save_onnx(m, 'never.onnx')\n"
        "except ImportError as error:\n"
        "    print(error)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert f"needs {library}; install it with: pip install 'turing-programs[doors]'" in done.stdout


def test_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("compile.doors.hugging_face")
    run: Callable[..., Any] = CliRunner().invoke
    done = run(app, ["export", "hugging-face", "tm-1", "-o", str(tmp_path / "tm-1"), "--json"])
    assert json.loads(done.stdout)["model"] == "tm-1" and (tmp_path / "tm-1" / "tokenizer.json").exists()
    monkeypatch.setenv("TURING_PROGRAMS_ZOO", str(tmp_path / "zoo"))
    monkeypatch.chdir(tmp_path)
    done = run(app, ["export", "hugging-face", "copy-unique", "-o", "copy-unique"])  # a folder named as the model is
    assert "wrote" in done.stdout and (tmp_path / "copy-unique" / "config.json").exists()
    wrong = run(app, ["export", "onnx", "tm-1", "-o", str(tmp_path / "model.txt")])
    assert isinstance(wrong.exception, ValueError) and "ending in .onnx" in str(wrong.exception)
