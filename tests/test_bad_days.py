"""Hostile, huge and unlucky: each ends with one sentence, before anything large is allocated, and breaks nothing."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from rasp import TuringMachine, load_machine, make_simulable
from rasp.files import write_whole
from rasp.machines.tape import InvalidTape
from rasp.machines.validation import InvalidMachine

SMALL = TuringMachine.random(symbols=2, states=2, seed=0)


def run_cli(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "experiments.cli", *arguments]
    return subprocess.run(command, capture_output=True, text=True, env={**os.environ, **environment}, timeout=300)


# --- memory before sense


@pytest.mark.skipif(not Path("/dev/zero").exists(), reason="no /dev/zero here")
def test_a_file_without_end_is_no_machine() -> None:
    with pytest.raises(InvalidMachine, match="larger than"):
        load_machine("/dev/zero")


@pytest.mark.parametrize("cells", [10**7, 10**9, 10**30])
def test_a_tape_beyond_all_bounds_is_refused_by_arithmetic(cells: int) -> None:
    with pytest.raises(InvalidTape, match=f"{cells} cells"):
        make_simulable(SMALL, cells=cells)


def test_tags_beyond_the_vocabulary_are_refused_by_arithmetic() -> None:
    many = TuringMachine.random(symbols=1000, states=2, seed=0)
    with pytest.raises(InvalidTape, match="3 tags of each of the 1000 symbols"):
        make_simulable(many, cells=9)


def test_long_grams_need_no_more_tags_than_cells() -> None:
    """The whole sequence of which these are the first 60 tags has 2**41 of them."""
    assert make_simulable(SMALL, cells=60, n=40).certify().head_positions == 62


# --- models


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    pytest.importorskip("torch")
    from compile import compile_machine

    compile_machine(SMALL, backend="lean", n=1, steps=2).save_pretrained(tmp_path / "model")
    return tmp_path / "model"


def test_weights_are_as_readable_as_their_configuration(saved: Path) -> None:
    modes = {path.name: path.stat().st_mode for path in saved.iterdir()}
    assert modes["model.safetensors"] == modes["config.json"]


@pytest.mark.parametrize(("key", "value"), [("stored_dtype", []), ("stored_dtype", {}), ("prepend_count", 100_000)])
def test_a_configuration_with_nonsense_is_refused(saved: Path, key: str, value: Any) -> None:
    from compile.transformer import Transformer
    from compile.transformer.files import InvalidModel, sum_of_config

    config = json.loads((saved / "config.json").read_text()) | {key: value}
    (saved / "config.json").write_text(json.dumps({**config, "config_sha256": sum_of_config(config)}))
    with pytest.raises(InvalidModel, match="stored as|prepend_count"):
        Transformer.from_pretrained(saved)


# --- disks and folders


def test_a_full_disk_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = tmp_path / "page.html"
    write_whole(target, "old")

    def full(self: Path, data: bytes) -> int:
        with open(self, "wb") as file:
            file.write(data[:2])
        raise OSError(28, "No space left on device", str(self))

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(OSError, match="No space left"):
        write_whole(target, "new and longer")
    assert [path.name for path in tmp_path.iterdir()] == ["page.html"] and target.read_text() == "old"


def test_two_runs_do_not_share_a_folder(tmp_path: Path) -> None:
    from experiments.files import only_user_of

    with (
        only_user_of(tmp_path),
        pytest.raises(ValueError, match="another process is training"),
        only_user_of(tmp_path),
    ):
        pytest.fail("the second was let in")
    with only_user_of(tmp_path):
        pass  # the first has left


def test_a_refused_training_leaves_no_folder(tmp_path: Path) -> None:
    pytest.importorskip("accelerate")
    from experiments.training import TrainingRequest, preset, train

    recipe = preset("tm-tiny").changed(batch=15, accumulate=2)
    with pytest.raises(ValueError, match="cannot be shared"):
        train(TrainingRequest(recipe=recipe, folder=tmp_path / "run", device="cpu", quiet=True))
    assert not (tmp_path / "run").exists()


def test_checkpoints_are_not_shipped_into_an_installed_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("torch")
    from experiments.evaluation import shipped

    monkeypatch.setattr(shipped, "FOLDER", tmp_path / "site-packages/experiments/checkpoints")
    with pytest.raises(ValueError, match="installed package"), shipped.shipping(tmp_path, "name"):
        pytest.fail("it began")


# --- the screen


@pytest.mark.parametrize("name", ["[/]", "[bold]", "[red]x"])
def test_names_are_text_and_no_markup(tmp_path: Path, name: str) -> None:
    rules = {(q, a): (a, "R", q) for q in ("q0", "q1") for a in (name, "b")}
    machine = TuringMachine(states=["q0", "q1"], symbols=[name, "b"], transitions=rules, start="q0", blank=name)
    from rasp.loading import save_machine

    save_machine(machine, tmp_path / "odd.json")
    found = run_cli("run", str(tmp_path / "odd.json"), "--on", "rasp", "--steps", "2", "--engine", "stream")
    assert "Traceback" not in found.stderr and found.returncode == 0, found.stderr
    assert name in found.stdout


def test_without_utf8_the_help_is_printed_all_the_same() -> None:
    found = run_cli("--help", LC_ALL="C", PYTHONUTF8="0", PYTHONCOERCECLOCALE="0", PYTHONIOENCODING="ascii")
    assert found.returncode == 0 and "verify" in found.stdout
