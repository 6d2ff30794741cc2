"""Training: it learns, resumes to the same weights after a SIGKILL, shares work, and ends early with a sentence."""

from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from torch import Tensor

from compile.transformer import Transformer
from compile.transformer.encodings import ENCODINGS
from experiments.evaluation.cards import card
from experiments.evaluation.checkpoints import load_checkpoint
from experiments.evaluation.evaluate import accuracy, evaluate
from experiments.evaluation.results import Result
from experiments.evaluation.shipped import (
    CARD,
    FOLDER,
    RECIPE,
    RECORD,
    keep_results,
    kept_results,
    noted_evaluations,
    read_record,
    shipped,
    shipping,
)
from experiments.files import read_json
from experiments.training import state as run_state
from experiments.training import timing, trainer
from experiments.training.loop import thinned
from experiments.training.loss import weighted_cross_entropy
from experiments.training.optimizers import InFloat32, make_optimizers
from experiments.training.packing import Batch, Packing
from experiments.training.presets import preset, preset_names, recipe_of
from experiments.training.recipe import Recipe, read_recipe
from experiments.training.requests import TrainingRequest, train
from experiments.training.state import (
    PREVIOUS,
    SET_ASIDE,
    STATE,
    DamagedState,
    Interrupted,
    TrainingError,
    read_state,
    read_state_file,
    write_state,
)
from experiments.training.timing import choose_precision, steps_in
from experiments.training.trainer import Trainer, make_accelerator
from experiments.training.variations import Variation, with_encoding, with_lengths, with_steps, without_scratchpad

SHORT = with_steps(preset("tm-tiny"), 12)
ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1", "TURING_PROGRAMS_DEBUG": ""}


@pytest.fixture(autouse=True)
def _one_thread() -> None:
    torch.set_num_threads(1)


def cli(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "experiments.cli", *arguments]


def weights(folder: Path) -> dict[str, torch.Tensor]:
    return load_file(folder / STATE)


def problems_in_seconds(folder: Path) -> int:
    """Many where an answer is a tape or a number, few where it is a scratchpad of hundreds or thousands of tokens."""
    task = read_json(folder / RECIPE)["task"]
    if task["name"].startswith("turing") or not task.get("scratchpad", True):
        return 100
    return 10 if task["name"] == "sgd" else 25


def same(a: dict[str, torch.Tensor], b: dict[str, torch.Tensor]) -> bool:
    return a.keys() == b.keys() and all(torch.equal(a[name], b[name]) for name in a)


def run_quietly(recipe: Recipe, folder: Path, **options: Any) -> dict[str, Any]:
    return train(TrainingRequest(recipe=recipe, folder=folder, device="cpu", **{"quiet": True, **options}))


# --- it learns


def test_a_minute_of_training_beats_what_a_broken_model_can_reach(tmp_path: Path) -> None:
    """Whole next tapes of 4 cells: an untrained model is right on none, guessing at random on less than 1 in 10^5."""
    folder = tmp_path / "run"
    run_quietly(preset("tm-tiny"), folder)
    checkpoint = load_checkpoint(folder)
    untrained = preset("tm-tiny").make_model()
    assert accuracy(untrained, checkpoint.task, 4, 100, context=64).accuracy < 0.02
    found = {r.length: r.accuracy for r in evaluate(checkpoint, [2, 4], examples=200, seed=5)}
    assert found[2] > 0.9 and found[4] > 0.8
    record = read_record(folder)
    assert record["finished"] and record["curve"][0]["loss"] > 5 * record["curve"][-1]["loss"]
    assert read_recipe(folder / RECIPE) == preset("tm-tiny")


# --- it resumes


def test_a_run_in_two_parts_ends_with_the_same_weights(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run_quietly(SHORT, tmp_path / "whole")
    steps = Trainer.step

    def dies_after_7(self: Trainer) -> tuple[float, float]:
        if self.steps_done == 7:
            raise KeyboardInterrupt
        return steps(self)

    monkeypatch.setattr(Trainer, "step", dies_after_7)
    with pytest.raises(KeyboardInterrupt):
        run_quietly(SHORT, tmp_path / "parts", save_minutes=0)
    monkeypatch.setattr(Trainer, "step", steps)
    assert json.loads((tmp_path / "parts/training.json").read_text())["steps_done"] == 7
    run_quietly(SHORT, tmp_path / "parts", resume=True)
    assert same(weights(tmp_path / "whole"), weights(tmp_path / "parts"))
    whole, parts = (json.loads((tmp_path / name / "training.json").read_text()) for name in ("whole", "parts"))
    assert whole["curve"] == parts["curve"]


def test_a_run_killed_with_sigkill_resumes_to_the_same_weights(tmp_path: Path) -> None:
    arguments = ["train", "tm-tiny", "--steps", "40", "--device", "cpu", "--threads", "1", "--save-minutes", "0"]
    victim = subprocess.Popen(
        cli(*arguments, "-o", str(tmp_path / "killed")),
        env=ENVIRONMENT,
        stderr=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
    )
    try:
        assert wait_for_step(tmp_path / "killed", 3)
    finally:
        victim.send_signal(signal.SIGKILL)
        victim.wait()
    stopped = json.loads((tmp_path / "killed/training.json").read_text())["steps_done"]
    assert 3 <= stopped < 40
    again = cli("train", "tm-tiny", "--resume", "--device", "cpu", "--threads", "1", "-o", str(tmp_path / "killed"))
    assert subprocess.run(again, env=ENVIRONMENT, capture_output=True).returncode == 0
    run_quietly(with_steps(preset("tm-tiny"), 40), tmp_path / "whole")
    assert same(weights(tmp_path / "whole"), weights(tmp_path / "killed"))


def wait_for_step(folder: Path, step: int, seconds: float = 500) -> bool:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        try:
            if json.loads((folder / "training.json").read_text())["steps_done"] >= step:
                return True
        except (OSError, ValueError):
            pass
        time.sleep(0.02)
    return False


def test_a_run_that_ends_earlier_is_a_recipe_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Decided halfway, it ends with the weights that the recipe it became gives from the start. Its practice changes
    with its progress, and goes on as it was planned."""
    steps, planned = Trainer.step, SHORT.changed(practice={"repetitive": [[0, 0], [12, 1]]})

    def dies_after_6(self: Trainer) -> tuple[float, float]:
        if self.steps_done == 6:
            raise KeyboardInterrupt
        return steps(self)

    monkeypatch.setattr(Trainer, "step", dies_after_6)
    with pytest.raises(KeyboardInterrupt):
        run_quietly(planned, tmp_path / "parts", save_minutes=0)
    monkeypatch.setattr(Trainer, "step", steps)
    became = planned.ending(9, now=6)
    assert became.rate_factor.at(6) == planned.rate_factor.at(6) and became.rate_factor.at(9) == 0
    assert became.practice == planned.practice
    run_quietly(planned, tmp_path / "parts", resume=True, steps=9)
    run_quietly(became, tmp_path / "whole")
    assert same(weights(tmp_path / "whole"), weights(tmp_path / "parts"))
    assert became.differing(planned, 6) == [] and "rate_factor" in became.differing(planned, 9)
    assert became.changed(practice={"repetitive": [[0, 0], [9, 1]]}).differing(planned, 6) == ["practice"]
    with pytest.raises(ValueError, match="has done 6 steps"):
        planned.ending(5, now=6)


def test_a_shorter_run_keeps_the_share_of_everything_that_changes_on_its_way() -> None:
    recipe = preset("sgd-cpu")
    tenth = with_steps(recipe, 900)
    for name in ("rate_factor", "slope_scale"):
        long, short = getattr(recipe, name), getattr(tenth, name)
        assert all(short.at(step) == pytest.approx(long.at(10 * step), abs=0.06) for step in range(0, 900, 7))
    assert recipe.slope_scale.at(5000) == tenth.slope_scale.at(500) == 0.3 != tenth.slope_scale.at(499)
    for name in ("similar", "truncated"):
        assert tenth.practice[name].at(899) == recipe.practice[name].at(8999) > tenth.practice[name].at(200) == 0


def test_another_recipe_is_not_resumed(tmp_path: Path) -> None:
    run_quietly(SHORT, tmp_path)
    with pytest.raises(TrainingError, match="another recipe .*seed"):
        run_quietly(SHORT.changed(seed=1), tmp_path, resume=True)
    with pytest.raises(ValueError, match="already holds a run"):
        run_quietly(SHORT, tmp_path)


def test_a_run_of_two_processes_is_not_resumed_by_one(tmp_path: Path) -> None:
    run_quietly(with_steps(SHORT, 2), tmp_path)
    state = read_state(tmp_path)
    write_state(tmp_path, state.tensors, {**state.notes, "processes": 2})
    with pytest.raises(TrainingError, match="2 processes"):
        run_quietly(with_steps(SHORT, 2), tmp_path, resume=True)


def test_ctrl_c_keeps_the_step_that_was_reached(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It comes in the middle of the third step; that one is finished, kept, and the rest is as if nothing had been."""
    recipe, whole = with_steps(SHORT, 5), Trainer.loss

    def interrupting(self: Trainer, *batch: Tensor) -> Tensor:
        if self.steps_done == 2:
            signal.raise_signal(signal.SIGINT)
        return whole(self, *batch)

    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job inherits it ignored
    try:
        monkeypatch.setattr(Trainer, "loss", interrupting)
        with pytest.raises(Interrupted, match="after step 3.*--resume"):
            run_quietly(recipe, tmp_path / "stopped")
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    finally:
        signal.signal(signal.SIGINT, before)
    monkeypatch.setattr(Trainer, "loss", whole)
    assert read_state(tmp_path / "stopped").notes["steps_done"] == 3
    run_quietly(recipe, tmp_path / "stopped", resume=True)
    run_quietly(recipe, tmp_path / "whole")
    assert same(weights(tmp_path / "stopped"), weights(tmp_path / "whole"))


@pytest.mark.parametrize("damage", ["cut", "junk", "missing", "empty", "nan", "shapes", "no notes", "no task"])
def test_a_damaged_state_is_refused(tmp_path: Path, damage: str) -> None:
    """Where there is no good one before it."""
    run_quietly(with_steps(SHORT, 2), tmp_path)
    state, begun = tmp_path / STATE, read_state(tmp_path)
    (tmp_path / PREVIOUS).unlink()
    if damage == "missing":
        state.unlink()
    elif damage == "empty":
        write_state(tmp_path, {}, begun.notes)
    elif damage in ("nan", "shapes"):
        harm: Callable[[Tensor], Tensor] = (lambda t: t * torch.nan) if damage == "nan" else (lambda t: t[:1, :1])
        write_state(tmp_path, {name: harm(t) if t.dim() == 2 else t for name, t in begun.tensors.items()}, begun.notes)
    elif damage.startswith("no "):
        wrong = {"recipe": begun.notes["recipe"]} if damage == "no notes" else {**begun.notes, "recipe": {}}
        write_state(tmp_path, begun.tensors, wrong)
    else:
        state.write_bytes(state.read_bytes()[:1000] if damage == "cut" else b"junk" * 100)
    if damage not in ("missing", "cut", "junk"):
        (tmp_path / PREVIOUS).unlink()
    with pytest.raises(TrainingError, match="state.safetensors"):
        run_quietly(with_steps(SHORT, 2), tmp_path, resume=True)


def flip(path: Path, bit: int) -> None:
    content = bytearray(path.read_bytes())
    content[bit // 8] ^= 1 << bit % 8
    path.write_bytes(content)


def test_every_flipped_bit_of_a_state_is_seen(tmp_path: Path) -> None:
    """All bits of the lengths and of the beginning and end of the header, and some of everything."""
    run_quietly(with_steps(SHORT, 2).changed(model={**SHORT.model, "layers": 1}), tmp_path)
    path = tmp_path / STATE
    whole = path.read_bytes()
    header = 8 * (8 + int.from_bytes(whole[:8], "little"))
    rng = np.random.default_rng(0)
    bits = [*range(8 * 24), *range(header - 8 * 24, header), *rng.integers(header, size=200)]
    bits += rng.integers(8 * len(whole), size=100).tolist()
    for bit in map(int, bits):
        flip(path, bit)
        with pytest.raises(DamagedState, match=STATE):
            read_state_file(path)
        flip(path, bit)
    assert path.read_bytes() == whole and read_state_file(path)


@pytest.mark.parametrize("damage", ["bit", "missing"])
def test_a_damaged_state_falls_back_to_the_one_before_and_says_so(
    tmp_path: Path, damage: str, capsys: pytest.CaptureFixture[str]
) -> None:
    recipe = with_steps(SHORT, 6)
    run_quietly(recipe, tmp_path / "whole")
    run_quietly(recipe, tmp_path / "parts", save_minutes=0)
    path = tmp_path / "parts" / STATE
    if damage == "bit":
        flip(path, 8 * path.stat().st_size - 999)
    else:
        path.unlink()
    before = read_state(tmp_path / "parts")
    assert before.path.name == PREVIOUS and before.damaged is not None and before.notes["steps_done"] == 6
    run_quietly(recipe, tmp_path / "parts", resume=True, quiet=False)
    said = capsys.readouterr().err
    assert f"{STATE} is damaged" in said and "goes on from step 6" in said
    assert same(weights(tmp_path / "whole"), weights(tmp_path / "parts"))
    assert (tmp_path / "parts" / SET_ASIDE).exists() == (damage == "bit")
    assert all(read_state_file(tmp_path / "parts" / name) for name in (STATE, PREVIOUS))


# --- in which numbers it computes


@pytest.fixture
def cpu_flags(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Pretend to be a CPU with these flags."""

    def pretend(flags: str) -> None:
        (tmp_path / "cpuinfo").write_text(f"processor\t: 0\nmodel name\t: some\nflags\t\t: fpu avx2 {flags}\n\n")
        monkeypatch.setattr("experiments.processor.CPU_INFO", tmp_path / "cpuinfo")

    return pretend


AUTO = with_steps(SHORT, 4).changed(precision="auto")


def measured(monkeypatch: pytest.MonkeyPatch, **seconds: float) -> None:
    monkeypatch.setattr(timing, "seconds_per_step", lambda _, __, precision, *___: seconds[precision])


def test_without_bf16_instructions_auto_is_float32_and_nothing_is_measured(
    cpu_flags: Callable[[str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    cpu_flags("avx512f")
    monkeypatch.setattr(timing, "seconds_per_step", lambda *_: pytest.fail("it was measured"))
    chosen = choose_precision(AUTO, make_accelerator("cpu"))
    assert chosen.precision == "float32" and "no bf16 instructions" in chosen.reason
    asked = choose_precision(AUTO.changed(precision="bf16"), make_accelerator("cpu"))
    assert asked.precision == "bf16" and "may be much faster" in asked.reason  # slow, but not without a word


@pytest.mark.parametrize("flag", ["avx512_bf16", "amx_bf16"])
def test_with_bf16_instructions_auto_takes_what_is_faster(
    flag: str, cpu_flags: Callable[[str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    cpu_flags(flag)
    for seconds, expected in (({"bf16": 0.2, "float32": 0.3}, "bf16"), ({"bf16": 0.3, "float32": 0.2}, "float32")):
        measured(monkeypatch, **seconds)
        chosen = choose_precision(AUTO, make_accelerator("cpu"))
        assert chosen.precision == expected and "0.20 s" in chosen.reason and "0.30 s" in chosen.reason
    assert choose_precision(AUTO.changed(precision="float32"), make_accelerator("cpu")).precision == "float32"


def test_a_step_of_each_precision_can_be_timed() -> None:
    taken = [timing.seconds_per_step(AUTO, make_accelerator("cpu"), name) for name in ("float32", "bf16")]
    assert all(0 < seconds < 60 for seconds in taken)


def test_a_run_records_its_precision_and_goes_on_in_it(
    tmp_path: Path, cpu_flags: Callable[[str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Begun where bf16 is faster, resumed where there is none: the same weights as in one go."""
    cpu_flags("avx512_bf16")
    measured(monkeypatch, bf16=0.1, float32=0.2)
    outcome = run_quietly(AUTO, tmp_path / "whole")
    assert outcome["precision"] == "bf16" and outcome["recipe"]["precision"] == "auto"
    run_quietly(AUTO.ending(2, now=0), tmp_path / "parts")
    cpu_flags("")
    resumed = run_quietly(AUTO, tmp_path / "parts", resume=True, steps=4)
    longer = Recipe.from_dict(resumed["recipe"])
    assert resumed["precision"] == "bf16" and longer.precision == "auto"
    whole = run_quietly(longer.changed(precision="bf16"), tmp_path / "again")
    assert same(weights(tmp_path / "again"), weights(tmp_path / "parts")) and whole["precision"] == "bf16"
    sharp = run_quietly(longer, tmp_path / "sharp")
    assert sharp["precision"] == "float32" and not same(weights(tmp_path / "sharp"), weights(tmp_path / "parts"))
    with pytest.raises(TrainingError, match="a run in bf16"):
        run_quietly(AUTO, tmp_path / "parts", resume=True, precision="float32")
    assert run_quietly(AUTO, tmp_path / "parts", resume=True, precision="bf16")["finished"]


def test_shipped_checkpoints_say_the_same_whatever_the_cpu_has(cpu_flags: Callable[[str], None]) -> None:
    said = []
    for flags in ("avx512_bf16", ""):
        cpu_flags(flags)
        checkpoint = load_checkpoint(FOLDER / "tm-0")
        said.append(accuracy(checkpoint.model, checkpoint.task, 20, 24, context=checkpoint.context))
        assert checkpoint.model(torch.arange(8)[None]).dtype == torch.float32
    assert said[0] == said[1]


# --- it shares work


def test_two_processes_train_together(tmp_path: Path) -> None:
    task = ["experiments.cli", "train", "tm-tiny", "--steps", "8", "--device", "cpu", "-o", str(tmp_path / "two")]
    launch = ["torch.distributed.run", "--standalone", "--nproc_per_node", "2", "-m"]  # gloo, on a CPU
    command = [sys.executable, "-m", *launch, *task]
    done = subprocess.run(command, env=ENVIRONMENT, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-2000:]
    record = json.loads((tmp_path / "two/training.json").read_text())
    assert record["processes"] == 2 and record["finished"]
    assert record["tokens"] == 8 * 16 * 64  # the batch is shared, not doubled
    assert record["curve"][-1]["loss"] < record["curve"][0]["loss"]
    assert Transformer.from_pretrained(tmp_path / "two").config.extra["context"] == 64


def test_a_batch_that_cannot_be_shared_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    accelerator = make_accelerator("cpu")
    monkeypatch.setattr(type(accelerator), "num_processes", property(lambda _: 3))
    with pytest.raises(ValueError, match="16 rows cannot be shared by 3"):
        Trainer(SHORT, accelerator)


# --- it ends with a sentence, and the last good checkpoint stays


def test_nan_ends_with_a_sentence_and_a_good_checkpoint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    original = trainer.weighted_cross_entropy
    calls = iter(range(100))

    def poisoned(*given: Any) -> torch.Tensor:
        return original(*given) * (float("nan") if next(calls) == 5 else 1.0)

    monkeypatch.setattr(trainer, "weighted_cross_entropy", poisoned)
    with pytest.raises(TrainingError, match=r"the loss is nan .* in step 6; the last good checkpoint is of step 5"):
        run_quietly(SHORT, tmp_path, save_minutes=0)
    assert all(bool(torch.isfinite(t).all()) for t in weights(tmp_path).values())
    monkeypatch.setattr(trainer, "weighted_cross_entropy", original)
    run_quietly(SHORT, tmp_path, resume=True)
    run_quietly(SHORT, tmp_path / "whole")
    assert same(weights(tmp_path), weights(tmp_path / "whole"))


def test_a_full_disk_ends_with_a_sentence_and_a_good_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    original = run_state.save_file
    calls = iter(range(100))

    def full(tensors: Any, path: Path, **options: Any) -> None:
        if next(calls) == 3:
            Path(path).write_bytes(b"half")
            raise OSError(errno.ENOSPC, "No space left on device")
        original(tensors, path, **options)

    monkeypatch.setattr(run_state, "save_file", full)
    with pytest.raises(TrainingError, match="the disk is full.*last checkpoint is intact.*--resume"):
        run_quietly(SHORT, tmp_path, save_minutes=0)
    assert not list(tmp_path.glob("*.partial"))
    monkeypatch.setattr(run_state, "save_file", original)
    run_quietly(SHORT, tmp_path, resume=True)
    run_quietly(SHORT, tmp_path / "whole")
    assert same(weights(tmp_path), weights(tmp_path / "whole"))


def test_a_full_disk_while_writing_the_weights(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from compile.transformer import saving

    run_quietly(with_steps(SHORT, 2), tmp_path)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir() if path.is_file()}

    def full(*_: Any, **__: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(saving, "save_file", full)
    with pytest.raises(TrainingError, match="the disk is full"):
        run_quietly(with_steps(SHORT, 2), tmp_path, resume=True, steps=4)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir() if path.is_file()} == before


@pytest.mark.parametrize("error", [MemoryError(), RuntimeError("DefaultCPUAllocator: can't allocate memory")])
def test_out_of_memory_is_a_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    def hungry(self: Trainer) -> tuple[float, float]:
        raise error

    monkeypatch.setattr(Trainer, "step", hungry)
    with pytest.raises(TrainingError, match="out of memory in step 1; .*smaller --batch"):
        run_quietly(SHORT, tmp_path)
    assert (tmp_path / STATE).is_file()


def test_other_errors_are_not_hidden(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(self: Trainer) -> tuple[float, float]:
        raise RuntimeError("shapes do not fit")

    monkeypatch.setattr(Trainer, "step", broken)
    with pytest.raises(RuntimeError, match="shapes"):
        run_quietly(SHORT, tmp_path)


@pytest.mark.parametrize(
    ("arguments", "culprit"),
    [
        (["train", "tm-huge"], "tm-huge"),
        (["train", "tm-tiny", "--device", "cuda"], "cuda"),
        (["train", "tm-tiny", "--device", "tpu"], "tpu"),
        (["train", "tm-tiny", "--lengths", "9-2"], "9, 2"),
        (["train", "tm-tiny", "--lengths", "long"], "long"),
        (["train", "tm-tiny", "--steps", "0"], "steps"),
        (["train", "tm-tiny", "--minutes", "-1"], "minutes"),
        (["train", "tm-tiny", "--encoding", "bert"], "bert"),
        (["train", "addition-cpu", "--machine-seed", "1"], "machine_seed"),
        (["train", "tm-tiny", "--resume", "-o", "/nowhere/at/all"], "/nowhere/at/all"),
        (["train", "tm-tiny", "--context", "1"], "at least 2 tokens"),
        (["train", "tm-tiny", "--context", "4"], "nothing to learn"),
        (["train", "tm-tiny", "--lengths", "6-6", "--context", "10"], "hardly anything"),
        (["train", "tm-tiny", "--start", "bb4"], "bb4"),
        (["train", "tm-tiny", "--start", ""], "--start is empty"),
        (["train", "tm-tiny", "--lengths", "2-²"], "range of lengths"),
        (["train", "tm-tiny", "--start", "sgd-base"], "do not fit"),
        (["train", "tm-tiny", "--seed", "-1"], "seed"),
        (["train", "tm-tiny", "--lengths", ""], "range of lengths"),
        (["train", "tm-tiny", "--threads", "9999"], "threads"),
        (["train", "tm-tiny", "--resume", "--minutes", "3"], "--minutes"),
        (["train", "tm-tiny", "-o", "experiments/checkpoints/tm-0"], "already holds a run"),
        (["train", "tm-tiny", "-o", "pyproject.toml"], "pyproject.toml"),
        (["train", "tm-tiny", "--no-scratchpad"], "no scratchpad to leave out"),
        (["reproduce", "nothing"], "nothing"),
    ],
)
def test_wrong_commands_are_refused_in_a_sentence(
    arguments: list[str],
    culprit: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from experiments.cli import main

    if "cuda" in arguments and torch.cuda.is_available():
        pytest.skip("there is a CUDA device here")
    if "-o" not in arguments and arguments[0] == "train":
        arguments = [*arguments, "-o", str(tmp_path / "run")]
    monkeypatch.setattr(sys, "argv", ["turing-programs", *arguments])
    with pytest.raises(SystemExit) as ended:
        main()
    said = capsys.readouterr().err
    assert ended.value.code == 2 and culprit in said and said.startswith("error: ")


# --- its parts


def test_recipes_survive_json_and_refuse_nonsense() -> None:
    for recipe in map(preset, preset_names()):
        assert Recipe.from_dict(json.loads(json.dumps(recipe.to_dict()))) == recipe
    for wrong in (
        {"optimizer": "sgd"},
        {"steps": 0},
        {"ema": 1.0},
        {"lengths": (5, 2)},
        {"precision": "fp8"},
        {"rate_factor": [[9, 1], [0, 0]]},
        {"rate_factor": -1},
        {"slope_scale": 0},
        {"length_decay": 0.0},
        {"length_decay": 1.5},
        {"whole_rows": 1.5},
        {"context": 0},
    ):
        with pytest.raises(ValueError):
            SHORT.changed(**wrong)
    with pytest.raises(ValueError, match="dropout"):
        Recipe.from_dict({**SHORT.to_dict(), "dropout": 0.1})
    with pytest.raises(ValueError, match="needs task"):
        Recipe.from_dict({name: value for name, value in SHORT.to_dict().items() if name != "task"})


def test_a_run_in_float32_keeps_muon_in_float32_too() -> None:
    def update(dtype: torch.dtype, within: AbstractContextManager[object]) -> torch.Tensor:
        matrix = torch.zeros(24, 40, dtype=dtype, requires_grad=True)
        matrix.grad = torch.from_numpy(np.random.default_rng(0).normal(size=(24, 40))).to(dtype)
        with within:
            torch.optim.Muon([matrix], lr=1.0).step()
        return matrix.detach().double()

    exact = update(torch.float64, InFloat32())
    assert (update(torch.float32, InFloat32()) - exact).abs().max() < 1e-5
    assert (update(torch.float32, nullcontext()) - exact).abs().max() > 1e-3


def test_muon_has_the_matrices_of_the_layers_and_adamw_the_rest() -> None:
    model = SHORT.make_model()
    made = make_optimizers(model, SHORT)
    shapes = [tuple(p.shape) for group in made["muon"].param_groups for p in group["params"]]
    assert len(shapes) == 4 * model.config.layers and all(len(shape) == 2 for shape in shapes)
    total = sum(p.numel() for o in made.values() for group in o.param_groups for p in group["params"])
    assert total == model.parameter_count()
    assert set(make_optimizers(model, SHORT.changed(optimizer="adamw"))) == {"adamw"}


def test_the_loss_is_the_mean_over_tokens_by_their_weight() -> None:
    logits, targets = torch.randn(2, 3, 5), torch.tensor([[1, 0, 2], [3, 0, 4]])
    weights = torch.tensor([[1.0, 0.0, 3.0], [0.0, 0.0, 2.0]])
    each = [-logits[at].log_softmax(-1)[targets[at]] for at in ((0, 0), (0, 2), (1, 2))]
    expected = (each[0] + 3 * each[1] + 2 * each[2]) / 6
    assert torch.allclose(weighted_cross_entropy(logits, targets, weights), expected)
    assert torch.allclose(weighted_cross_entropy(logits, torch.eye(5)[targets], weights), expected)
    assert weighted_cross_entropy(logits, targets, torch.zeros(2, 3)) == 0


def test_a_soft_target_wants_shares_of_tokens() -> None:
    logits, wanted = torch.randn(1, 2, 3), torch.tensor([[[0.25, 0.75, 0.0], [0.0, 0.0, 1.0]]])
    each = [-(wanted[0, t] * logits[0, t].log_softmax(-1)).sum() for t in range(2)]
    assert torch.allclose(weighted_cross_entropy(logits, wanted, torch.ones(1, 2)), torch.stack(each).mean())


def test_weights_of_copied_tokens_change_training_from_their_step_on_only() -> None:
    recipe = with_steps(preset("sgd-cpu"), 4).changed(batch=4, context=128, slope_scale=1)
    weighted = recipe.changed(practice={**recipe.practice, "copy_weight": [[0, 1], [2, 1], [2, 5]]})
    assert weighted.differing(recipe.changed(practice={**recipe.practice, "copy_weight": 1}), 2) == []
    plain, heavy = (Trainer(r, make_accelerator("cpu")) for r in (recipe, weighted))
    losses = [[trainer.step()[0] for _ in range(4)] for trainer in (plain, heavy)]
    assert losses[0][:2] == losses[1][:2] and losses[0][2] != losses[1][2]


def test_the_trainer_uses_the_soft_labels_and_the_length_decay_of_its_recipe() -> None:
    recipe = with_steps(preset("sgd-cpu"), 1).changed(batch=4, context=128)
    widths = (recipe.changed(practice={**recipe.practice, "soft_labels": width}) for width in (3.0, 0.0))
    soft, sharp = (Trainer(r, make_accelerator("cpu")).step()[0] for r in widths)
    assert soft != sharp
    steep = Trainer(recipe.changed(length_decay=0.01), make_accelerator("cpu")).packing
    shortest = len(recipe.make_task().sample(np.random.default_rng(0), 1, count=1).prompt(0))
    assert (steep.draw(np.random.default_rng(0), 200).prompts == shortest).mean() > 0.95


def test_slopes_are_scaled_at_their_step_also_after_a_resume(tmp_path: Path) -> None:
    small = {"batch": 2, "context": 96, "probes": (), "precision": "float32"}
    recipe = with_steps(preset("sgd-cpu"), 4).changed(**small, slope_scale=[[0, 1], [2, 1], [2, 0.5]])

    def slopes(folder: Path) -> tuple[list[float], list[float]]:
        model = Transformer.from_pretrained(folder)
        return model.blocks[1].attn.bias.slopes.tolist(), list(model.config.shapes[1].slopes)

    run_quietly(recipe.ending(2, now=0), tmp_path / "early")
    whole = run_quietly(recipe, tmp_path / "whole")
    (before, same_before), (after, same_after) = slopes(tmp_path / "early"), slopes(tmp_path / "whole")
    assert np.allclose(before, same_before) and np.allclose(after, same_after) and whole["finished"]
    assert min(before) < 0 and np.allclose(after, [s / 2 if s > 0 else s for s in before])
    trainer = Trainer(recipe, make_accelerator("cpu"))
    trainer.load(read_state(tmp_path / "whole"))
    assert np.allclose(trainer.model.blocks[1].attn.bias.slopes.tolist(), after)
    with pytest.raises(ValueError, match="in a model with slopes"):
        SHORT.changed(slope_scale=0.5)


def test_the_last_layer_may_skip_what_does_not_count() -> None:
    for encoding in ("hard_alibi", "rope"):
        model = with_encoding(SHORT, encoding).make_model()
        trainer = Trainer(SHORT, make_accelerator("cpu"))
        inputs, labels, weights = (torch.from_numpy(x) for x in trainer.batch())
        counted = weights > 0
        everywhere, there = model(inputs), model(inputs, counted)
        assert torch.allclose(everywhere[counted], there, atol=1e-6)
        losses = (weighted_cross_entropy(everywhere, labels, weights.float()),)
        losses += (weighted_cross_entropy(there, labels[counted], weights[counted].float()),)
        assert torch.allclose(*losses)


def test_curves_stay_short_and_are_the_same_however_they_grew() -> None:
    curve: list[dict[str, Any]] = []
    for step in range(1, 3001):
        curve = thinned([*curve, {"step": step, "loss": 0.0}], most=50)
    steps = [point["step"] for point in curve]
    assert 25 <= len(steps) <= 50 and steps[0] == 1 and steps[-1] == 3000
    assert set(np.diff(steps[:-1])) == {64}  # evenly from the first to the last
    assert thinned(curve, most=50) == curve


def test_minutes_choose_the_number_of_steps() -> None:
    short, long = (steps_in(SHORT, minutes, "cpu", trial=2).steps for minutes in (0.05, 5))
    assert 1 <= short < long


@pytest.mark.parametrize("name", [name for name in preset_names() if name.startswith("paper-")])
def test_the_papers_settings(name: str) -> None:
    recipe = preset(name)
    model = recipe.model
    assert (model["layers"], model["d_model"], model["heads"], model["d_mlp"]) == (12, 1024, 16, 4096)
    assert (
        recipe.batch == 16 and recipe.lengths == (2, 50) and recipe.rate_factor.at(98) < recipe.rate_factor.at(99) == 1
    )
    masked = {"paper-addition": 6, "paper-tm": 8}.get(name, 7)
    assert model["windows"] == [*range(1, masked + 1), *[None] * (16 - masked)]
    assert recipe.rate == (3e-4 if "multiplication" in name else 7e-5)


def test_a_gpt_neox_of_hugging_face_has_the_same_loss_with_the_same_weights() -> None:
    pytest.importorskip("transformers")
    from experiments.benchmarks.training import training_rows

    difference, theirs, *ours = training_rows(rounds=1)
    assert difference.value < 1e-5
    assert theirs.unit == "tokens/s" and [row.baseline for row in ours] == ["Hugging Face GPT-NeoX"] * 2


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in preset_names() if name.startswith("paper-")])
def test_the_papers_settings_take_a_step(name: str) -> None:
    trainer = Trainer(preset(name).changed(batch=1), make_accelerator("cpu"))
    assert 150e6 < trainer.model.parameter_count() < 153e6
    loss, norm = trainer.step()
    assert np.isfinite(loss) and norm > 0


@pytest.mark.parametrize("name", [name for name in preset_names() if name.endswith("-cpu")])
def test_every_cpu_preset_takes_a_step(name: str) -> None:
    trainer = Trainer(preset(name).changed(batch=2), make_accelerator("cpu"))
    loss, _ = trainer.step()
    guessing = np.log(len(trainer.packing.practice.task.vocabulary))
    assert loss < guessing / 4 if preset(name).start else abs(loss - guessing) < 1


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_every_encoding_trains(encoding: str) -> None:
    trainer = Trainer(with_encoding(SHORT, encoding), make_accelerator("cpu"))
    losses = [trainer.step()[0] for _ in range(12)]
    assert losses[-1] < losses[0]


@pytest.mark.parametrize("name", [name for name in preset_names() if name.endswith("-cpu")])
def test_every_cpu_preset_takes_every_encoding(name: str) -> None:
    for encoding in ENCODINGS:
        assert with_encoding(preset(name), encoding).make_model().config.encoding == encoding


def test_a_shortened_run_with_scaled_slopes_is_resumed_from_the_command_line(tmp_path: Path) -> None:
    small = ["--batch", "2", "--context", "64", "--lengths", "2-3", "--threads", "1"]
    command = cli("train", "sgd-cpu", *small, "-o", str(tmp_path / "run"))
    for more in (["--steps", "2"], ["--resume"]):
        done = subprocess.run([*command, *more], capture_output=True, text=True, env=ENVIRONMENT)
        assert done.returncode == 0, done.stderr


def test_what_is_kept_of_randomized_places_is_what_is_loaded() -> None:
    trainer = Trainer(with_encoding(SHORT, "randomized"), make_accelerator("cpu"))
    trainer.step()
    fresh = with_encoding(SHORT, "randomized").make_model()
    assert torch.equal(trainer.averaged().places, fresh.places) and not torch.equal(trainer.model.places, fresh.places)
    other = Trainer(with_encoding(SHORT, "randomized").changed(seed=1), make_accelerator("cpu"))
    other.step()
    assert not torch.equal(trainer.model.places, other.model.places)


def test_a_run_goes_on_from_a_checkpoint(tmp_path: Path) -> None:
    """It begins with the weights of that one; steps and practice are its own."""
    run_quietly(with_steps(SHORT, 3), tmp_path / "first")
    recipe = with_steps(SHORT, 6).changed(start=str(tmp_path / "first"), seed=5)
    assert same(recipe.make_model().state_dict(), Transformer.from_pretrained(tmp_path / "first").state_dict())
    assert recipe.make_model().config.extra == recipe.changed(start="").make_model().config.extra
    run_quietly(recipe, tmp_path / "whole")
    run_quietly(recipe.changed(start=""), tmp_path / "fresh")
    assert not same(weights(tmp_path / "whole"), weights(tmp_path / "fresh"))
    began_with = read_recipe(tmp_path / "whole" / RECIPE).start
    assert began_with == str(tmp_path / "first") and read_record(tmp_path / "whole")["steps_done"] == 6


def test_a_run_is_resumed_without_what_it_began_with(tmp_path: Path) -> None:
    run_quietly(with_steps(SHORT, 1), tmp_path / "first")
    recipe = with_steps(SHORT, 6).changed(start=str(tmp_path / "first"))
    run_quietly(recipe.ending(2, now=0), tmp_path / "run")
    (tmp_path / "first").rename(tmp_path / "gone")
    assert run_quietly(recipe, tmp_path / "run", resume=True, steps=3)["steps_done"] == 3


def test_a_shipped_checkpoint_is_meant_before_a_folder_of_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    run_quietly(with_steps(SHORT, 1), tmp_path / "sgd-base")
    assert preset("sgd-further-cpu").make_model().parameter_count() > 1e6
    run_quietly(with_steps(SHORT, 1).changed(start=str(tmp_path / "sgd-base")), tmp_path / "second")
    with pytest.raises(ValueError, match="is not shipped"), shipping(tmp_path / "second", "small"):
        pass


def test_a_checkpoint_of_another_shape_is_no_start() -> None:
    with pytest.raises(ValueError, match=r"do not fit.*different: .*vocabulary"):
        SHORT.changed(start="addition").make_model()
    with pytest.raises(ValueError, match=r"different: slopes\)"):
        preset("sgd-cpu").changed(start="sgd-base").make_model()
    with pytest.raises(ValueError, match="no checkpoint 'nobody'"):
        SHORT.changed(start="nobody").make_model()


def test_a_second_stage_may_have_other_windows(tmp_path: Path) -> None:
    run_quietly(with_steps(SHORT, 1), tmp_path / "first")
    heads = SHORT.model["heads"]
    wider = SHORT.changed(start=str(tmp_path / "first"), model={**SHORT.model, "windows": [9] * heads}).make_model()
    assert same(wider.state_dict(), Transformer.from_pretrained(tmp_path / "first").state_dict())
    assert {window for shape in wider.config.shapes for window in shape.windows} == {9}
    with pytest.raises(ValueError, match="windows"):
        SHORT.changed(start=str(tmp_path / "first"), model={**SHORT.model, "windows": [9] * (heads + 1)}).make_model()


def test_probes_follow_the_lengths() -> None:
    assert with_lengths(preset("tm-cpu"), (2, 10)).probes == (10, 20, 30)
    assert with_lengths(preset("sgd-cpu"), (1, 1)).probes == (1, 2)
    assert with_lengths(SHORT, (1, 3)).probes == ()
    assert with_lengths(preset("tm-cpu"), (2, 4000)).probes == (4000, 8000, 10_000)  # no problem is longer


def test_short_answers_to_long_questions_can_be_learned() -> None:
    plain = without_scratchpad(preset("sgd-cpu"))
    Packing(plain.make_practice(), (60, 60), 2, 1200, seed=0)
    with pytest.raises(ValueError, match="nothing"):
        Packing(plain.make_practice(), (60, 60), 2, 200, seed=0)


def test_batches_do_not_depend_on_what_came_before() -> None:
    trainer = Trainer(SHORT, make_accelerator("cpu"))
    first: Batch = trainer.batch()
    trainer.steps_done = 5
    trainer.batch()
    trainer.steps_done = 0
    assert np.array_equal(first.inputs, trainer.batch().inputs)


def test_shipped_are_ten_machines_and_the_other_tasks_and_the_results_of_eight_encodings() -> None:
    names = {folder.name for folder in shipped()}
    tasks = [recipe_of(f"tm-{i}").make_task() for i in range(10)]
    assert len({task.machine for task in tasks}) == 10  # type: ignore[attr-defined]
    encodings = {"hard_alibi", "nope", "alibi", "rope", "absolute", "t5", "fire", "randomized"}
    for prefix in ("tm-0", "addition"):
        assert {recipe_of(f"{prefix}-{encoding}").model["encoding"] for encoding in encodings} == encodings
    assert {"addition", "multiplication1", "multiplication3", "sgd"} <= names
    assert recipe_of("tm-9").task["machine_seed"] == 9


def test_numbers_begin_alike_when_they_are_close() -> None:
    model = preset("sgd-cpu").make_model()
    for table in (model.embed.weight, model.unembed.weight):
        rows = torch.nn.functional.normalize(table.detach(), dim=1)
        alike = (rows[100:150] * rows[101:151]).sum(1).mean()
        far = (rows[100:150] * rows[20:70]).sum(1).abs().mean()
        assert alike > 0.6 > 0.3 > far
        assert torch.isclose(table[:200].std(), table[200:].std(), rtol=0.3)
    plain = with_fourier(0.0).make_model().embed.weight.detach()
    assert (plain[100:150] * plain[101:151]).sum(1).abs().mean() < 0.3 * plain.square().sum(1).mean()
    assert "fourier" not in preset("paper-sgd").practice
    with pytest.raises(ValueError, match="fourier is -0.1"):
        with_fourier(-0.1).make_model()


def with_fourier(share: float) -> Recipe:
    recipe = preset("sgd-cpu")
    return recipe.changed(practice={**recipe.practice, "fourier": share})


@pytest.mark.parametrize("folder", shipped(), ids=lambda path: path.name)
def test_shipped_checkpoints_are_what_their_record_says(folder: Path) -> None:
    record = read_record(folder)
    assert folder.parent == FOLDER and record["finished"] and record["command"].endswith(f"reproduce {folder.name}")
    assert (folder / CARD).read_text() == card(folder.name, read_json(folder / RECIPE), record)
    assert sum(file.stat().st_size for file in folder.iterdir()) < 3e6
    assert load_checkpoint(folder).task == recipe_of(folder.name).make_task()
    is_as_good_as_its_record(folder, problems_in_seconds(folder))


@pytest.mark.slow
@pytest.mark.parametrize("folder", [f for f in shipped() if problems_in_seconds(f) < 100], ids=lambda path: path.name)
def test_those_with_long_answers_are_what_their_record_says_on_more_problems(folder: Path) -> None:
    is_as_good_as_its_record(folder, examples=100)


def is_as_good_as_its_record(folder: Path, examples: int) -> None:
    checkpoint = load_checkpoint(folder)
    claimed = next(r for r in read_record(folder)["evaluation"] if r["rollout"] == 1)
    asked = {"seed": 77, "context": checkpoint.context}
    found = accuracy(checkpoint.model, checkpoint.task, claimed["length"], examples, **asked)
    assert found.high >= claimed["low"] and found.low <= claimed["high"]


def checkout(folder: Path) -> Path:
    """Where the checkpoints of a checkout of the source would be."""
    (folder / "pyproject.toml").touch()
    return folder / "experiments/checkpoints"


def test_a_run_is_shipped_in_half_precision_and_says_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = checkout(tmp_path) / "small"
    for module in ("evaluation.shipped", "training.presets"):
        monkeypatch.setattr(f"experiments.{module}.FOLDER", folder.parent)
    run_quietly(with_steps(SHORT, 2), tmp_path / "run")
    with shipping(tmp_path / "run", "small") as staged:
        assert load_checkpoint(staged.folder).name == "small" and not folder.exists()
        staged.note([Result("small", 6, 0.5, 0.4, 0.6, 100)])
    whole, half = (Transformer.from_pretrained(path) for path in (tmp_path / "run", folder))
    assert (folder / "model.safetensors").stat().st_size < 0.6 * (tmp_path / "run/model.safetensors").stat().st_size
    tokens = torch.arange(6).expand(2, 6)
    assert torch.allclose(whole(tokens), half(tokens), atol=1e-2) and not torch.equal(whole(tokens), half(tokens))
    assert read_record(folder)["command"] == "turing-programs reproduce small"
    assert "| 6 | 1 | 0.500 | 0.400 - 0.600 | 100 |" in (folder / CARD).read_text()
    assert recipe_of("small") == with_steps(SHORT, 2)
    assert noted_evaluations() == ([Result("small", 6, 0.5, 0.4, 0.6, 100)], {"small": SHORT.lengths[1]})


def test_a_run_may_be_kept_without_its_weights(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = checkout(tmp_path) / "small"
    for module in ("evaluation.shipped", "training.presets"):
        monkeypatch.setattr(f"experiments.{module}.FOLDER", folder.parent)
    run_quietly(with_steps(SHORT, 2), tmp_path / "run")
    for weights in (True, False):  # those of before do not stay beside what is known of others
        with shipping(tmp_path / "run", "small", weights) as staged:
            staged.note([Result("small", 6, 0.5, 0.4, 0.6, 100)])
        assert [one.name for one in shipped()] == ["small"] * weights
    assert {path.name for path in folder.iterdir()} == {RECIPE, RECORD, CARD}
    assert "which are not stored" in (folder / CARD).read_text() and recipe_of("small") == with_steps(SHORT, 2)
    assert kept_results(["small"]) == [Result("small", 6, 0.5, 0.4, 0.6, 100)]
    keep_results("small", [Result("small", 9, 0.5, 0.4, 0.6, 100)])
    assert "which are not stored" in (folder / CARD).read_text() and len(kept_results(["small"])) == 2
    with pytest.raises(
        ValueError, match="results are kept, not weights; train it with `turing-programs reproduce small`"
    ):
        load_checkpoint(folder)


def test_nothing_is_shipped_unless_its_evaluation_ends_well(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("experiments.evaluation.shipped.FOLDER", checkout(tmp_path))
    run_quietly(with_steps(SHORT, 1), tmp_path / "run")
    with pytest.raises(KeyboardInterrupt), shipping(tmp_path / "run", "small"):
        raise KeyboardInterrupt
    for name in ("../escaped", "", "a b", ".hidden"):
        with pytest.raises(ValueError, match="no name for a checkpoint"), shipping(tmp_path / "run", name):
            pass
    assert not (tmp_path / "experiments").exists() and not (tmp_path / "escaped").exists()
    with shipping(tmp_path / "run", "small") as staged:
        staged.note([])
    for name, change in (("other", {"machine_seed": 5}), ("plain", {"scratchpad": False})):
        other = SHORT.changed(task={**SHORT.task, **change})
        run_quietly(with_steps(other, 1), tmp_path / name)
        with pytest.raises(ValueError, match="another task"), shipping(tmp_path / name, "small"):
            pass


def test_what_is_shipped_is_not_replaced_by_another_machine_or_by_a_task_of_ones_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("experiments.evaluation.shipped.FOLDER", checkout(tmp_path))
    for name in ("bb2", "bb3"):
        run_quietly(with_steps(Variation(machine=name).of(SHORT), 1), tmp_path / name)
    with shipping(tmp_path / "bb2", "mine") as staged:
        staged.note([])
    with (
        pytest.raises(ValueError, match="mine is the name of a chec.* for another"),
        shipping(tmp_path / "bb3", "mine"),
    ):
        pass
    recipe = json.loads((tmp_path / "bb3" / RECIPE).read_text())
    (tmp_path / "bb3" / RECIPE).write_text(json.dumps({**recipe, "task": {"name": "/home/me/mine.py:Mine"}}))
    with pytest.raises(ValueError, match="mine.py:Mine, a task of one's own"), shipping(tmp_path / "bb3", "third"):
        pass


@pytest.mark.parametrize("text", ["{", "[]", "{}"])
def test_a_run_without_its_record_is_not_shipped(tmp_path: Path, text: str) -> None:
    run_quietly(with_steps(SHORT, 1), tmp_path)
    for name in (RECIPE, RECORD):
        whole = (tmp_path / name).read_text()
        (tmp_path / name).write_text(text)
        with pytest.raises(ValueError, match=name), shipping(tmp_path, "small"):
            pass
        (tmp_path / name).write_text(whole)


def test_a_run_that_is_not_finished_is_not_shipped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("experiments.evaluation.shipped.FOLDER", checkout(tmp_path))
    run_quietly(with_steps(SHORT, 1), tmp_path / "run")
    (tmp_path / "run" / RECORD).write_text(json.dumps({**read_record(tmp_path / "run"), "finished": False}))
    with pytest.raises(ValueError, match="not finished"), shipping(tmp_path / "run", "small"):
        pass
