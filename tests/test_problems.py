"""`run` on problems of the paper's tasks, and machines on the universal transformer."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from compile import compile_universal
from experiments.cli import app
from experiments.playback import play
from experiments.problems import work
from experiments.universal import universal_writer
from rasp import TuringMachine


def invoke(*words: str) -> Any:
    return CliRunner().invoke(app, list(words))


@pytest.mark.parametrize("on", ["program", "compiled", "addition"])
def test_a_sum_is_worked_out_as_the_paper_prints_it(on: str) -> None:
    worked = work("addition", "4324+139", on, n=2)
    assert worked.text == "$4324+139|432e+13j(1,3)|43c+1d(0,63)|4d+b(0,463)|e+^(0,4463)|4463."
    assert (worked.answer, worked.correct, worked.lines[1]) == ("4463", True, "432e+13j(1,3)|")


@pytest.mark.parametrize("on", ["program", "compiled"])
def test_a_repeat_is_shown_and_explained(on: str) -> None:
    worked = work("addition", "11111111+11111111", on, n=2)
    assert not worked.correct and worked.true_line == "1111111b+1111111b(0,2)|"
    assert "`111` twice" in worked.explain(2)


def test_a_larger_n_tells_repeats_apart() -> None:
    assert work("addition", "11111111+11111111", n=8).correct


def test_a_checkpoint_of_another_task_is_refused() -> None:
    with pytest.raises(ValueError, match="another task than addition"):
        work("addition", "4324+139", "multiplication1")


@pytest.mark.parametrize("on", ["rasp", "universal", "no-such-run"])
def test_who_can_work_a_problem_out_is_said(on: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # where no folder has such a name
    with pytest.raises(ValueError, match=f"--on is '{on}', which is none: give program, compiled, or the folder"):
        work("addition", "4324+139", on)


def test_looking_no_token_back_is_refused() -> None:
    refused = invoke("run", "addition", "4324+139", "--n", "0")
    assert refused.exit_code != 0 and "n" in str(refused.exception)


def test_the_command_line_prints_and_reports() -> None:
    shown = invoke("run", "multiplication1", "4324*7", "--n", "3")
    assert shown.exit_code == 0 and "answer 30268" in shown.stdout and "e*7(28~3,0268)|" in shown.stdout
    report = json.loads(invoke("run", "addition", "12+34", "--json").stdout)
    assert (report["answer"], report["correct"], report["problem"]) == ("46", True, "$12+34|")


@pytest.mark.parametrize("problem", ["12+", "one+two", "1" * 1_000_000 + "+1", ""])
def test_what_is_no_problem_is_refused_in_a_sentence(problem: str) -> None:
    with pytest.raises(ValueError):
        work("addition", problem)


def test_one_model_runs_different_machines() -> None:
    model = compile_universal(symbols=3, states=2, n=2, steps=12, check=False)
    for seed in range(4):
        machine = TuringMachine.random(symbols=2 + seed % 2, states=2, seed=seed)
        tape = list(machine.encode(list(machine.symbols[:2]), 0))
        playback = play(machine, tape, 10, universal_writer(machine, model))
        assert playback.correct and playback.steps == 10


def test_a_machine_too_large_for_the_model_is_refused() -> None:
    model = compile_universal(symbols=2, states=2, n=1, steps=4, check=False)
    machine = TuringMachine.random(symbols=3, states=2, seed=0)
    with pytest.raises(ValueError, match="take a larger one"):
        list(universal_writer(machine, model)(np.array([*machine.encode(["a1"], 0), 0]), 4))


def test_a_gallery_machine_halts_on_the_universal_transformer() -> None:
    report = json.loads(invoke("run", "bb3", "--on", "universal", "--json").stdout)
    assert report["correct"] and report["halted"] and report["steps"] == 21
