"""`turing-programs compare addition`: problems written out, promises that are kept, the page, and going on."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from experiments.cli import main
from experiments.comparison import report
from experiments.comparison.checks import Disagreement
from experiments.comparison.findings import findings
from experiments.comparison.requests import ComparisonRequest
from experiments.comparison.summary import as_markdown, learned_of, lookbacks
from experiments.comparison.tasks import study as studies
from experiments.comparison.tasks import subjects
from experiments.comparison.tasks.measure import TaskTrial, anatomy, lookback
from experiments.comparison.tasks.problems import WrittenProblem
from experiments.comparison.tasks.study import check_contract, study_task
from experiments.comparison.tasks.subjects import TaskSettings, TaskSubject, task_subject
from experiments.comparison.tasks.takers import Kept, Taker, program_taker
from experiments.tasks import Multiplication
from rasp.programs.problems import Product, Regression, Sum
from rasp.programs.tasks import task_program

SMALL = TaskSettings(lengths=(3, 5), examples=12, ns=(1, 2))


@pytest.fixture(scope="module")
def addition() -> TaskSubject:
    return task_subject("addition", ())


@pytest.fixture(scope="module")
def results(addition: TaskSubject, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("compared")
    found = study_task(addition, SMALL, folder=folder, command="turing-programs compare addition")
    return report.write_results(found, folder)


def test_every_token_has_its_part() -> None:
    written = WrittenProblem.of(Sum("95", "7"))
    assert "".join(written.words) == "$95+7|9f+h(1,2)|j+^(1,02)|^+^(0,102)|102."
    named = list(zip(written.words, written.parts, strict=True))[6:16]
    assert [part for _, part in named] == [
        "first operand", "first operand", "mark", "second operand", "mark", "carry", "mark", "new digit", "mark", "mark"
    ]  # fmt: skip
    assert written.parts[-4:] == ["answer"] * 3 + ["mark"] and written.parts.count("sum so far") == 1 + 2
    product = WrittenProblem.of(Product("95", "7"))
    assert {"operand", "factor", "digit times factor", "carry", "new digit", "product so far"} < set(product.parts)
    assert "" not in product.parts and "" not in WrittenProblem.of(Regression(((1, 2, 3), (4, 5, 6)))).parts


@pytest.mark.parametrize(("task", "ns"), [("addition", (1, 2)), ("multiplication1", (1,)), ("sgd", (1,))])
def test_the_program_is_right_wherever_its_tokens_settle_what_comes(task: str, ns: tuple[int, ...]) -> None:
    subject = TaskSubject(task, task_subject(task, ()).task, task_program(task).program, task_program(task))
    problems = subject.draw(6, 12, 0) + subject.draw(6, 12, 0, few=True)
    assert subject.program is not None
    for n in ns:
        taker = program_taker(subject.program, n)
        rows = lookback([TaskTrial(taker.about, 6, problems, taker.ask(problems))])
        assert sum(row["wrong"] for row in rows if row["needed"] <= n + 1) == 0
        assert task == "sgd" or sum(row["wrong"] for row in rows if row["needed"] > n + 1) > 0


def test_problems_are_those_of_evaluate(addition: TaskSubject) -> None:
    from experiments.evaluation.evaluate import fresh_rng

    samples = addition.task.sample(fresh_rng(3, 5), 5, count=4)
    drawn = addition.draw(5, 4, 3)
    assert all(np.array_equal(samples.row(i), problem.tokens) for i, problem in enumerate(drawn))


def test_a_program_that_breaks_its_contract_is_reported(addition: TaskSubject) -> None:
    problems = addition.draw(5, 3, 0)
    right = [np.append(p.tokens[1:], 0) for p in problems]
    taker = Taker(program_taker(addition.program, 1).about, lambda ps: right[: len(ps)], 4, "")
    assert check_contract(TaskTrial(taker.about, 5, [WrittenProblem.of(Sum("12", "34"))], [
        np.append(WrittenProblem.of(Sum("12", "34")).tokens[1:], 0)])) == 1  # fmt: skip
    repeating = WrittenProblem.of(Sum("121212", "3"))
    with pytest.raises(Disagreement, match="contract"):
        check_contract(TaskTrial(taker.about, 6, [repeating], [np.append(repeating.tokens[1:], 0)]))


def test_a_compiled_model_that_is_not_its_program_is_reported(
    addition: TaskSubject, monkeypatch: pytest.MonkeyPatch
) -> None:
    compiled = studies.compile_task
    monkeypatch.setattr(studies, "compile_task", lambda name, n, **rest: compiled(name, n=n + 1, **rest))
    with pytest.raises(Disagreement, match="is not program n = 1"):
        study_task(TaskSubject("addition", addition.task, addition.program, addition.paper), TaskSettings(
            lengths=(8,), examples=36, ns=(1,)))  # fmt: skip


def test_the_errors_of_a_made_up_model() -> None:
    written = WrittenProblem.of(Sum("4324", "139"))
    about = program_taker(task_program("addition").program, 1).about

    def row(word: str, said: str) -> dict[str, Any]:
        at = "".join(written.words).index(word) + len(word) - 1
        predicted = np.append(written.tokens[1:], 0)
        predicted[at - 1] = written.names.index(said)
        (found,) = anatomy([TaskTrial(about, 4, [written], [predicted])])
        assert found["wrong"] == 1 and found["examples"][0]["said"][found["examples"][0]["at"]] == said
        return found

    assert row("|432e+13j(1", "0")["kinds"]["wrong computation"] == 1
    assert row("|432e", "2")["kinds"]["ran on"] == 1
    assert row("|43", "+")["kinds"]["early stop"] == 1
    assert row("|43", "7")["kinds"]["other"] == 1 and row("|43", "7")["places"] == {"first operand": 1}


def test_the_results_are_those_of_problems(results: dict[str, Any]) -> None:
    (found,) = results["machines"]
    assert {sim["name"] for sim in found["simulators"]} == {
        "program n=1", "program n=2", "hard_alibi n=1", "hard_alibi n=2", "learned addition"
    }  # fmt: skip
    assert results["checks"]["compiled_equals_program"]["tokens"] > 100
    assert results["checks"]["criterion"]["problems"] == 2 * 2 * (12 + 1)
    learned = [r for r in found["accuracy"] if r["simulator"] == "learned addition" and r["measure"] == "problem"]
    assert [r["examples"] for r in learned] == [2, 2] and all(r["accuracy"] == 1 for r in learned)
    groups = [r for r in found["difficulty"] if r["simulator"] == "program n=1"]
    assert all(r["accuracy"] == (r["group"] == "unique") for r in groups if r["n"] == 1)
    assert {r["group"] for r in groups if r["n"] == 1} == {"unique", "repeated"}


def test_the_page_has_its_sections(results: dict[str, Any]) -> None:
    page = report.render(results)
    for anchor in ("summary", "accuracy", "lookback", "difficulty", "anatomy", "cost", "method"):
        assert f'<section id="{anchor}">' in page
    assert "<script" not in page and "tapes" not in page.split("<body>")[1].replace('class="tapes', "")
    assert "program n = 2 = hard_alibi" in as_markdown(results) and "problems written" in as_markdown(results)
    bad = json.loads(json.dumps(results).replace('"first operand"', '"<script>"').replace('"digits"', '"<script>"'))
    assert "<script>" not in report.render(bad)


def test_what_cannot_be_compiled_or_was_not_learned_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    from compile import CompileError

    def refuse(*_: Any, **__: Any) -> None:
        raise CompileError("a map of 27,534 cases")

    monkeypatch.setattr(studies, "compile_task", refuse)
    monkeypatch.setattr(subjects, "shipped", lambda: [])
    assert task_subject("multiplication3", ()).learned == ()
    paper = task_program("multiplication1")
    alone = TaskSubject(paper.name, Multiplication(digits=1), paper.program, paper)
    found = study_task(alone, TaskSettings(lengths=(3,), examples=4, ns=(1,)))
    assert len(found["without"]) == 2
    assert "no model that learned multiplication1" in found["without"][0] and "27,534" in found["without"][1]
    assert "27,534" in report.render(found) and "errs exactly where the contract says" in report.render(found)


def test_an_interrupted_comparison_goes_on(addition: TaskSubject, tmp_path: Path) -> None:
    problems, asked = addition.draw(3, 6, 0), []

    def ask(part: Any) -> list[np.ndarray]:
        asked.append(len(part))
        if len(asked) == 2:
            raise KeyboardInterrupt
        return [np.append(p.tokens[1:], 0) for p in part]

    taker = Taker(program_taker(addition.program, 1).about, ask, 4, "weights")
    with pytest.raises(KeyboardInterrupt):
        list(Kept(tmp_path / "unfinished").answers(taker, problems))
    said = [row for part in Kept(tmp_path / "unfinished").answers(taker, problems) for row in part]
    assert asked == [4, 2, 2]  # the first four were not asked again
    assert all(np.array_equal(row[:-1], p.tokens[1:]) for row, p in zip(said, problems, strict=True))
    Kept(tmp_path / "unfinished").clear()
    assert list(tmp_path.iterdir()) == []


def test_names_decide_between_machines_and_tasks() -> None:
    assert ComparisonRequest(names=("tm-0",)).task is None
    assert ComparisonRequest(names=("sgd-base",)).task.name == "sgd"
    with pytest.raises(ValueError, match="one at a time"):
        _ = ComparisonRequest(names=("addition", "sgd")).task
    with pytest.raises(ValueError, match="learned multiplication1, not addition"):
        task_subject("addition", task_subject("multiplication1", ()).learned)
    with pytest.raises(ValueError, match="without scratchpad"):
        _ = ComparisonRequest(names=("addition-plain",)).task
    with pytest.raises(ValueError, match="learned a Turing machine"):
        _ = ComparisonRequest(names=("addition", "tm-0")).task


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("addition", "--n", "7"), "n = 1 to 6"),
        (("addition", "--backends", "lean"), "hard_alibi or tracr"),
        (("addition", "--machine", "bb4"), "different comparisons"),
        (("addition", "--lengths", "1000000"), "length 1000000"),
    ],
)
def test_bad_requests_are_refused(
    arguments: tuple[str, ...],
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["turing-programs", "compare", *arguments])
    with pytest.raises(SystemExit) as ended:
        main()
    printed = capsys.readouterr()
    assert ended.value.code == 2 and said in printed.err and len(printed.err.strip().splitlines()) == 1


def test_the_documented_table_and_figures_are_those_of_the_shipped_results() -> None:
    root = Path(__file__).parents[1]
    told = (root / "docs" / "results.md").read_text()
    shipped = json.loads((root / "experiments/report/tasks/addition.json").read_text())
    assert as_markdown(shipped) in told
    counts = lookbacks(shipped, learned_of(shipped))
    for backs in (range(6), range(6, 7), range(7, 9)):
        wrong, of = (sum(counts[back][i] for back in backs) for i in (0, 1))
        assert f"{wrong / of:.1%} of {of:,}" in " ".join(told.split())
    assert "copy like a program that looks about 6 tokens back" in " ".join(findings(shipped))
    assert "<h1>" in report.render(shipped)
