"""Compiled tasks on fresh problems: right where promised, wrong where predicted; and a wrong model is noticed."""

from __future__ import annotations

import json

import pytest
import torch
from typer.testing import CliRunner

from compile import compile_task
from experiments.cli import app
from experiments.evaluation.compiled import ExactRequest, evaluate_compiled, fresh_problems
from rasp.programs.tasks import task_program


def test_compiled_addition_keeps_its_contract() -> None:
    found = evaluate_compiled(ExactRequest(task="addition", digits=9, n=2, problems=40, seed=1, workers=2))
    assert found.exact and found.as_predicted == 40
    assert 0 < found.right == found.promised < 40  # both kinds of problems occur


def test_a_wrong_model_is_noticed() -> None:
    model = compile_task("addition", n=2, lines=8, check=False)
    with torch.no_grad():
        model.unembed.weight[[3, 4]] = model.unembed.weight[[4, 3]]
    found = evaluate_compiled(ExactRequest(task="addition", digits=5, n=2, problems=12), model=model)
    assert not found.exact and found.as_predicted < 12


def test_problems_are_fresh_and_of_the_length_asked_for() -> None:
    task = task_program("multiplication3")
    problems = fresh_problems(task, 7, 30, seed=0)
    assert {len(problem.prompt) for problem in problems} == {len("$*|") + 7 + 3}
    assert len({problem.prompt for problem in problems}) == 30
    assert [p.prompt for p in problems] != [p.prompt for p in fresh_problems(task, 7, 30, seed=1)]


def test_the_command_reports(capsys: pytest.CaptureFixture[str]) -> None:
    done = CliRunner().invoke(app, ["exact", "addition", "-d", "4", "-n", "2", "--problems", "5", "--json"])
    report = json.loads(done.stdout)
    assert done.exit_code == 0 and report["as_predicted"] == report["problems"] == 5
