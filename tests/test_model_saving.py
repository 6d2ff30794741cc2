"""Model files: they come back exactly, without network or JAX, and a damaged or changed one is refused."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="the Transformer needs torch")

from safetensors.torch import load_file, save_file  # noqa: E402

from compile.transformer import Transformer, TransformerConfig  # noqa: E402
from compile.transformer.annotations import Annotations, Fact, Operation, ProgramGraph, Register  # noqa: E402
from compile.transformer.encodings import ENCODINGS  # noqa: E402
from compile.transformer.files import CONFIG, WEIGHTS, InvalidModel, sum_of_config, sum_of_file  # noqa: E402

torch.set_num_threads(1)


def make(**changes: Any) -> Transformer:
    torch.manual_seed(0)
    options: dict[str, Any] = {
        "vocabulary": 7,
        "layers": 2,
        "heads": (2, 1),
        "d_model": 8,
        "d_head": (4, 6),
        "d_mlp": (9, 0),
        "norm": "none",
        "windows": ((1, None), (3,)),
        "prepend": 6,
        "outputs": (0, 1, 5),
        "unembed_bias": True,
        "scale": 2.0,
        "annotations": Annotations(
            ((Fact("match", "self"), Fact("count", "count")), (Fact("shift", "shift_right(x, 2)", (1,)),)),
            (Fact("compute", "and"), Fact()),
            (Register("token", 0, 2, ("a", "b"), "tokens", (0,)), Register("count", 2, 3)),
            ProgramGraph((Operation("input", (), ("x",)), Operation("delay", (0,), ("output", "shift"))), 1),
        ),
        "extra": {"machine": {"states": 2, "moves": [1, -1]}, "n": 1},
    }
    return Transformer(TransformerConfig(**(options | changes)))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    make().save_pretrained(tmp_path / "model")
    return tmp_path / "model"


@pytest.fixture
def no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*arguments: Any, **options: Any) -> None:
        raise AssertionError("the network was touched")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)


# ----------------------------------------------------------------------------------------------- round trips


def test_a_saved_model_comes_back_exactly(folder: Path, no_network: None) -> None:
    model, loaded = make(), Transformer.from_pretrained(folder)
    assert loaded.config == model.config and loaded.summary() == model.summary() and not loaded.training
    for name, tensor in model.state_dict().items():
        assert torch.equal(tensor, loaded.state_dict()[name]), name
    rows = np.random.default_rng(0).integers(0, 6, (3, 20))
    assert np.array_equal(model.predict(rows), loaded.predict(rows))
    assert sorted(path.name for path in folder.iterdir()) == ["README.md", CONFIG, WEIGHTS]


@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_every_encoding_is_saved(encoding: str, dtype: str, tmp_path: Path) -> None:
    windows = ((1, None), (3,)) if encoding == "hard_alibi" else ()
    model = make(encoding=encoding, dtype=dtype, windows=windows, max_positions=120, norm="layernorm")
    model.save_pretrained(tmp_path)
    loaded = Transformer.from_pretrained(str(tmp_path))
    rows = torch.randint(0, 6, (2, 15))
    assert loaded.embed.weight.dtype == getattr(torch, dtype)
    assert torch.equal(model(rows), loaded(rows))


def test_saving_twice_replaces(folder: Path) -> None:
    model = make(extra={"n": 2})
    model.reset_parameters(1.0)
    model.save_pretrained(folder)
    loaded = Transformer.from_pretrained(folder)
    assert loaded.config.extra == {"n": 2} and torch.equal(loaded.embed.weight, model.embed.weight)


def test_loading_needs_neither_jax_nor_transformers(folder: Path) -> None:
    program = (
        "import sys; from compile import Transformer; "
        f"print(Transformer.from_pretrained({str(folder)!r}).predict([1, 2]).shape); "
        "print([name for name in ('jax', 'tracr', 'haiku', 'transformers') if name in sys.modules])"
    )
    root = Path(__file__).parents[1]
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, cwd=root, check=True)
    assert result.stdout.split("\n")[:2] == ["(2,)", "[]"]


def test_nothing_is_pickled(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*arguments: Any, **options: Any) -> None:
        raise AssertionError("torch's pickle was used")

    monkeypatch.setattr(torch, "load", refuse)
    monkeypatch.setattr(torch, "save", refuse)
    Transformer.from_pretrained(folder).save_pretrained(folder)


def test_a_model_with_nan_is_not_saved_over_a_good_one(folder: Path) -> None:
    broken = make()
    with torch.no_grad():
        broken.blocks[1].attn.qkv.weight[0, 0] = float("nan")
    with pytest.raises(InvalidModel, match="not finite in blocks.1.attn.qkv.weight"):
        broken.save_pretrained(folder)
    assert torch.equal(Transformer.from_pretrained(folder).embed.weight, make().embed.weight)


# --------------------------------------------------------------------------------- damaged and changed files


def refused(folder: Path, message: str) -> None:
    with pytest.raises(InvalidModel, match=message) as caught:
        Transformer.from_pretrained(folder)
    assert str(caught.value).rstrip(".)").count(" ") > 4, "an error is a sentence"


def rewrite_config(folder: Path, change: Callable[[dict[str, Any]], Any], honest: bool = True) -> None:
    """Change config.json and, if honest, make its sum right again, so that only later checks can object."""
    values = json.loads((folder / CONFIG).read_text())
    change(values)
    if honest:
        values["config_sha256"] = sum_of_config(values)
    (folder / CONFIG).write_text(json.dumps(values))


def rewrite_weights(folder: Path, change: Callable[[dict[str, Any]], Any]) -> None:
    tensors = load_file(folder / WEIGHTS)
    change(tensors)
    save_file(tensors, folder / WEIGHTS)
    rewrite_config(folder, lambda values: values.update(weights_sha256=sum_of_file(folder / WEIGHTS)))


def test_missing_files_are_named(folder: Path, tmp_path: Path, no_network: None) -> None:
    refused(tmp_path / "nowhere" / "at all", "there is no folder")
    refused(tmp_path, "is not a folder with a config.json")
    refused(folder / CONFIG, "is not a folder with a config.json")
    (folder / WEIGHTS).unlink()
    refused(folder, "has no model.safetensors")


@pytest.mark.parametrize("kept", [0, 4, 100, -1])
def test_weights_cut_short(folder: Path, kept: int) -> None:
    content = (folder / WEIGHTS).read_bytes()
    (folder / WEIGHTS).write_bytes(content[:kept])
    refused(folder, "SHA-256")
    rewrite_config(folder, lambda values: values.update(weights_sha256=sum_of_file(folder / WEIGHTS)))
    refused(folder, "not a readable safetensors file")


def test_one_changed_bit_of_the_weights(folder: Path) -> None:
    content = bytearray((folder / WEIGHTS).read_bytes())
    content[-5] ^= 1
    (folder / WEIGHTS).write_bytes(content)
    refused(folder, "SHA-256.*cut or changed")


@pytest.mark.parametrize("text", ["", "{", "[1, 2]", "null", '{"layers": 1e', "[" * 100_000, '{"scale": NaN}', "\x00"])
def test_a_config_that_is_not_one(folder: Path, text: str) -> None:
    (folder / CONFIG).write_text(text)
    refused(folder, "not readable JSON|is not of type")


def test_a_config_that_is_not_text(folder: Path) -> None:
    (folder / CONFIG).write_bytes(b"\xff\xfe\x00")
    refused(folder, "not readable JSON")


def test_any_change_of_the_config(folder: Path) -> None:
    rewrite_config(folder, lambda values: values["windows"].__setitem__(1, [2]), honest=False)
    refused(folder, "was changed after it was saved")


@pytest.mark.parametrize(
    "change, message",
    [
        (lambda v: v.update(surprise=1), "unknown keys .'surprise'"),
        (lambda v: v.pop("layers"), "lacks .'layers'"),
        (lambda v: v.update(layers="two"), "layers is 'two'"),
        (lambda v: v.update(layers=10**9), "expected a whole number from 0"),
        (lambda v: v.update(d_model=10**15), "d_model is"),
        (lambda v: v.update(heads=10**12, windows=[]), "heads is"),
        (lambda v: v.update(scale=10**400), "does not describe a model"),
        (lambda v: v.update(d_model=2**24, d_mlp=2**24), "parameters; at most"),
        (lambda v: v.update(heads=None), "heads is None"),
        (lambda v: v.update(windows=7), "does not describe a model"),
        (lambda v: v["annotations"].update(registers=[3]), "does not describe a model"),
        (lambda v: v["annotations"].update(registers=[["x", 0]]), "does not describe a model"),
        (lambda v: v["annotations"].update(heads=7), "does not describe a model"),
        (lambda v: v["annotations"]["program"]["operations"].pop(), "does not describe a model"),
        (lambda v: v.update(encoding=["rope"]), "choose one of"),
        (lambda v: v.update(extra=[]), "expected a dictionary"),
        (lambda v: v.update(format_version=99), "is not of type"),
        (lambda v: v.pop("model_type"), "is not of type"),
        (lambda v: v.pop("weights_sha256"), "lacks weights_sha256"),
        (lambda v: v.update(d_model=16), "tensor .* is .* calls for"),
        (lambda v: v.update(dtype="float64"), "calls for .*F64"),
        (lambda v: v.update(norm="layernorm"), "lacks blocks"),
        (lambda v: v.update(bias=False), "has unexpected blocks"),
    ],
)
def test_a_config_that_makes_no_sense(folder: Path, change: Callable[[dict[str, Any]], Any], message: str) -> None:
    rewrite_config(folder, change)
    refused(folder, message)


@pytest.mark.parametrize(
    "change, message",
    [
        (lambda t: t.pop("embed.weight"), "lacks embed.weight"),
        (lambda t: t.update(extra=torch.zeros(1)), "has unexpected extra"),
        (lambda t: t.update({"embed.weight": torch.zeros(6, 8)}), r"embed.weight is \(\(6, 8\), 'F32'\)"),
        (lambda t: t.update({"embed.weight": t["embed.weight"].double()}), "F64"),
        (lambda t: t["unembed.bias"].fill_(float("inf")), "not finite in unembed.bias"),
        (lambda t: t.clear(), "and 11 more|lacks"),
    ],
)
def test_weights_that_do_not_fit(folder: Path, change: Callable[[dict[str, Any]], Any], message: str) -> None:
    rewrite_weights(folder, change)
    refused(folder, message)


def test_a_file_of_the_first_format_still_loads(folder: Path) -> None:
    """It has labels where there are facts now."""

    def as_it_was(values: dict[str, Any]) -> None:
        del values["annotations"]
        values.update(
            format_version=1,
            head_labels=[["self", "count"], ["shift_right(x, 2)"]],
            mlp_labels=["and", ""],
            registers=[["token", 0, 2, ["a", "b"]], ["count", 2, 3, []]],
        )

    rewrite_config(folder, as_it_was)
    loaded, model = Transformer.from_pretrained(folder), make()
    assert [row.label for row in loaded.summary()] == [row.label for row in model.summary()]
    assert [r[:4] for r in loaded.config.annotations.registers] == [r[:4] for r in model.config.annotations.registers]
    assert np.array_equal(loaded.predict([1, 2, 3]), model.predict([1, 2, 3]))
    rewrite_config(folder, lambda values: values.update(head_labels=7))
    refused(folder, "does not describe a model")


def test_junk_in_any_field_is_refused_or_harmless(folder: Path) -> None:
    original = (folder / CONFIG).read_text()
    junk: list[Any] = [None, True, -1, 3, 10**30, 1.5, "x", [], {"a": 1}, [None], [["a"]]]
    for key in json.loads(original):
        for value in junk:
            (folder / CONFIG).write_text(original)
            rewrite_config(folder, lambda values, key=key, value=value: values.update({key: value}))
            try:
                loaded = Transformer.from_pretrained(folder)
            except InvalidModel:
                continue
            assert loaded.predict([1, 2]).shape == (2,), (key, value)
