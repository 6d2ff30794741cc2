"""Evaluation, on models whose answers are known: compiled ones are always right, and broken ones by a known share."""

from __future__ import annotations

import json
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from scipy.stats import binomtest

from compile import compile_machine
from compile.transformer import Transformer
from experiments.evaluation import figures, requests, shipped
from experiments.evaluation.checkpoints import Checkpoint, load_checkpoint
from experiments.evaluation.evaluate import (
    EXAMPLES,
    GRID_EXAMPLES,
    accuracy,
    answers,
    by_repeats,
    evaluate,
    fresh_rng,
    has_repeat,
    rollout,
    written_exactly,
)
from experiments.evaluation.results import Result, as_markdown, band, result, wilson
from experiments.tasks import Addition, Sgd, Task, TuringRasp
from experiments.training.presets import preset, recipe_of
from rasp import TuringMachine


@dataclass
class Oracle:
    """Answers from a table of right answers, changed where `wrong` says so."""

    task: Task
    known: dict[tuple[int, ...], np.ndarray]

    def generate(self, prompts: list[list[int]], count: int, **_: Any) -> list[np.ndarray]:
        more = np.zeros(count, dtype=np.int64)
        return [np.concatenate((p, self.known[tuple(p)], more))[: len(p) + count] for p in prompts]


@pytest.fixture(scope="module")
def machine() -> TuringMachine:
    return TuringMachine.random(symbols=3, states=2, seed=1)


@pytest.fixture(scope="module")
def compiled(machine: TuringMachine) -> Transformer:
    return compile_machine(machine, backend="lean", n=3, steps=4)


@pytest.fixture(scope="module")
def untrained() -> Transformer:
    return preset("tm-tiny").make_model()


def test_wilson_is_scipys() -> None:
    for right, total in ((0, 10), (3, 10), (10, 10), (285, 288), (1, 1)):
        theirs = binomtest(right, total).proportion_ci(0.95, method="wilson")
        assert wilson(right, total) == pytest.approx((theirs.low, theirs.high))
    assert wilson(0, 0) == (0.0, 1.0)


def test_a_compiled_model_is_right_on_every_tape(machine: TuringMachine, compiled: Transformer) -> None:
    task = TuringRasp(machine=machine)
    found = accuracy(compiled, task, 4, 50)
    assert (found.accuracy, found.high, found.examples, found.length) == (1.0, 1.0, 50, 4)


def test_an_untrained_model_is_right_on_none(machine: TuringMachine, untrained: Transformer) -> None:
    found = accuracy(untrained, TuringRasp(machine=machine), 6, 50, context=64)
    assert found.accuracy == found.low == 0.0


def test_rollouts_of_a_compiled_model_never_fail(machine: TuringMachine, compiled: Transformer) -> None:
    found = rollout(compiled, TuringRasp(machine=machine), 4, steps=3, examples=20)
    assert [r.rollout for r in found] == [1, 2, 3]
    assert all(r.accuracy == 1.0 for r in found)


def test_rollouts_only_ever_lose_runs(machine: TuringMachine) -> None:
    """A model that errs on half of the tapes, whatever they are: k steps are survived by about 2 ** -k."""

    class Coin:
        def generate(self, prompts: list[list[int]], count: int, **_: Any) -> list[list[int]]:
            return [[*p, *self.next_tape(p)] for p in prompts]

        def next_tape(self, prompt: list[int]) -> list[int]:
            tape = [*machine.step(prompt[:-1]), 0]
            return tape if hash(tuple(prompt)) % 2 else tape[::-1]

    shares = [r.accuracy for r in rollout(Coin(), TuringRasp(machine=machine), 8, 4, 400)]  # type: ignore[arg-type]
    assert shares == sorted(shares, reverse=True)
    assert 0.35 < shares[0] < 0.65 and shares[3] < 0.25


def test_answers_come_back_in_the_order_of_the_prompts() -> None:
    task = Addition()
    samples = task.sample(np.random.default_rng(0), task.draw_lengths(np.random.default_rng(1), 40, 1, 9))
    known = {tuple(samples.prompt(i).tolist()): samples.answer(i) for i in range(40)}
    oracle = Oracle(task, known)
    assert task.check(samples, answers(oracle, samples, None)).all()  # type: ignore[arg-type]


def test_batched_answers_are_those_of_one_at_a_time(untrained: Transformer) -> None:
    task = preset("tm-tiny").make_task()
    samples = task.sample(np.random.default_rng(0), [2, 9, 5, 1, 30])
    together = answers(untrained, samples, 24)
    for i, answer in enumerate(together):
        alone = untrained.generate(samples.prompt(i), len(samples.answer(i)), context=24, advance=20)
        assert answer.tolist() == np.asarray(alone)[len(samples.prompt(i)) :].tolist()


@pytest.mark.parametrize(("name", "length", "context"), [("tm-1", 100, 210), ("tm-1", 100, 130), ("tm-9", 20, None)])
def test_what_is_predicted_rightly_is_what_would_be_written_rightly(
    name: str, length: int, context: int | None
) -> None:
    """Also where the window of what is seen moves on in the course of an answer."""
    checkpoint = load_checkpoint(shipped.find(name), "cpu")
    samples = checkpoint.task.sample(fresh_rng(3, length), length, count=24)
    written = checkpoint.task.check(samples, answers(checkpoint.model, samples, context))
    assert np.array_equal(written_exactly(checkpoint.model, samples, context), written)


@pytest.mark.parametrize("context", [None, 30, 7])
def test_an_answer_with_any_other_token_is_not_the_one_written(untrained: Transformer, context: int | None) -> None:
    task = preset("tm-tiny").make_task()
    samples = task.sample(np.random.default_rng(4), [9] * 12)
    said = answers(untrained, samples, context)
    for i, answer in enumerate(said):  # what is said is made the right answer, and then not quite
        samples.answer(i)[:] = answer
    assert written_exactly(untrained, samples, context).all()
    for i in range(12):
        samples.answer(i)[i] = (samples.answer(i)[i] + 1) % 3
    assert not written_exactly(untrained, samples, context).any()


def test_fresh_problems_for_every_seed_and_the_same_for_one(untrained: Transformer) -> None:
    assert fresh_rng(0, 5).integers(10**9) == fresh_rng(0, 5).integers(10**9)
    assert len({int(fresh_rng(seed, length).integers(10**9)) for seed in range(3) for length in (4, 5)}) == 6


def test_the_split_by_repeats_covers_all_tapes(machine: TuringMachine, compiled: Transformer) -> None:
    groups = by_repeats(compiled, TuringRasp(machine=machine), 5, gram=2, examples=60)
    assert sum(r.examples for r in groups) == 60 and all(r.examples for r in groups)
    assert [r.group for r in groups] == ["repeated 2-gram", "no repeated 2-gram"]


def test_repeats() -> None:
    assert has_repeat(np.array([1, 2, 3, 1, 2]), 2)
    assert not has_repeat(np.array([1, 2, 3, 2, 1]), 2)
    assert not has_repeat(np.array([1, 1]), 2)
    with pytest.raises(ValueError):
        has_repeat(np.array([1]), 0)


def test_a_tolerant_task_counts_near_answers() -> None:
    task = Sgd(scratchpad=False)
    samples = task.sample(np.random.default_rng(0), 3, count=20)
    known = {tuple(samples.prompt(i).tolist()): samples.answer(i) + np.array([0, 2, -2, 0]) for i in range(20)}
    right = task.check(samples, answers(Oracle(task, known), samples, None))  # type: ignore[arg-type]
    assert right.all()


def test_seeds_make_a_band() -> None:
    results = [Result("a", 5, share, 0, 1, 100) for share in (0.8, 0.9, 1.0)]
    (merged,) = band(results, "3 seeds")
    assert merged.accuracy == pytest.approx(0.9) and merged.examples == 300
    assert merged.low == pytest.approx(0.9 - 4.302653 * 0.1 / 3**0.5, abs=1e-5) and merged.high == 1.0
    assert band(results[:1], "1")[0].low == 0.8
    split = [Result("a", 5, share, 0, 1, 10, group=group) for share in (0.2, 0.4) for group in ("all", "repeated")]
    assert [(r.group, r.examples, round(r.accuracy, 9)) for r in band(split, "2")] == [
        ("all", 20, 0.3),
        ("repeated", 20, 0.3),
    ]


def test_evaluate_asks_each_kind_of_question_only_where_it_makes_sense(untrained: Transformer) -> None:
    adder = Checkpoint("adder", untrained, Addition(), (2, 4), 64)
    with pytest.raises(ValueError, match="no Turing machine"):
        evaluate(adder, [3], steps=2, examples=1)
    turing = Checkpoint("tm", untrained, preset("tm-tiny").make_task(), (1, 6), 64)
    with pytest.raises(ValueError, match="one operand"):
        evaluate(turing, [3], grid=[2, 3], examples=1)
    assert turing.usual_lengths == [6, 9, 12, 18, 30]


def test_the_grid_crosses_operand_lengths(tmp_path: Path) -> None:
    recipe = preset("addition-cpu").changed(model=preset("tm-tiny").model)
    adder = Checkpoint("adder", recipe.make_model(), recipe.make_task(), (2, 12), 320)
    results = evaluate(adder, [2], grid=[1, 2], examples=2, grid_examples=2)
    assert [r.length for r in results] == [2, "1x1", "1x2", "2x1", "2x2"]
    made = figures.draw(results, tmp_path)
    assert {path.name for path in made} == {"accuracy.png", "grid-adder.png"}


def test_a_model_of_no_task_is_refused(tmp_path: Path, compiled: Transformer) -> None:
    compiled.save_pretrained(tmp_path)
    with pytest.raises(ValueError, match="not trained here"):
        load_checkpoint(tmp_path)
    with pytest.raises(ValueError, match="no folder"):
        load_checkpoint(tmp_path / "nothing")


@pytest.fixture
def folder(tmp_path: Path, untrained: Transformer) -> Path:
    untrained.save_pretrained(tmp_path / "model")
    return tmp_path / "model"


def run_cli(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    from experiments.cli import main

    monkeypatch.setattr(sys, "argv", ["turing-programs", *arguments])
    with pytest.raises(SystemExit) as ended:
        main()
    return int(ended.value.code or 0)


def test_the_command_prints_json_and_draws(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["--lengths", "3,5", "--rollout", "2", "--gram", "2", "--examples", "4", "--json"]
    assert run_cli(monkeypatch, "evaluate", str(folder), *arguments, "-o", str(tmp_path / "out")) == 0
    report = json.loads(capsys.readouterr().out)
    assert {"name", "length", "accuracy", "low", "high", "examples", "rollout"} <= set(report["results"][0])
    assert len(report["results"]) == 2 + 2 * (1 + 2)  # lengths; at each the second step, and two kinds of tapes
    assert {p.name for p in (tmp_path / "out").iterdir()} == {"accuracy.png", "rollouts.png", "results.json"}


@pytest.mark.parametrize(
    ("arguments", "culprit"),
    [
        (["--lengths", "0"], "'0'"),
        (["--lengths", "x"], "'x'"),
        (["--lengths", "99999"], "99999"),
        (["--device", "cuda"], "cuda"),
        (["--examples", "0"], "examples"),
        (["--grid", "2,3"], "two"),
    ],
)
def test_wrong_questions_are_refused(
    folder: Path,
    arguments: list[str],
    culprit: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    if "cuda" in arguments and torch.cuda.is_available():
        pytest.skip("there is a CUDA device here")
    given = arguments if "--lengths" in arguments else [*arguments, "--lengths", "2"]
    given = given if "--examples" in given else [*given, "--examples", "2"]
    assert run_cli(monkeypatch, "evaluate", str(folder), *given) == 2
    assert culprit in capsys.readouterr().err


def test_checkpoints_of_the_same_name_are_told_apart(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(folder, tmp_path / "again/model")
    given = [str(folder), str(tmp_path / "again/model")]
    assert run_cli(monkeypatch, "evaluate", *given, "--lengths", "3", "--examples", "2", "--json") == 0
    assert [r["name"] for r in json.loads(capsys.readouterr().out)["results"]] == given


def test_what_cannot_be_written_is_refused_before_the_work(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setattr("experiments.evaluation.requests.evaluate", lambda *_, **__: pytest.fail("it was evaluated"))
    assert run_cli(monkeypatch, "evaluate", str(folder), "-o", str(tmp_path / "file/out")) == 2
    assert run_cli(monkeypatch, "evaluate", str(folder), "--seeds") == 2
    assert "at least two" in capsys.readouterr().err


def test_the_readme_table_has_a_row_per_model_and_the_longest_rollout() -> None:
    results = [Result("tm-0", 20, 0.99, 0.98, 1.0, 288), Result("tm-0", 40, 0.97, 0.95, 0.99, 288)]
    results += [Result("tm-0", 40, 0.9**k, 0.5, 1.0, 288, k) for k in (1, 2, 3)]
    assert as_markdown(results, {"tm-0": 20}).splitlines() == [
        "|  | to | 1x | 2x | 2x, 3 steps in a row |",
        "| --- | --- | --- | --- | --- |",
        "| `tm-0` | 20 | 0.990 [0.980, 1.000] | 0.970 [0.950, 0.990] | 0.729 [0.500, 1.000] |",
    ]


def test_rollouts_are_at_twice_the_training_length_unless_lengths_are_asked_for(untrained: Transformer) -> None:
    turing = Checkpoint("tm", untrained, preset("tm-tiny").make_task(), (1, 6), 64)
    assert {r.length for r in evaluate(turing, steps=2, examples=2) if r.rollout == 2} == {12}
    assert {r.length for r in evaluate(turing, [3, 5], steps=2, examples=2) if r.rollout == 2} == {3, 5}


def test_results_without_examples_say_so() -> None:
    nothing = result("x", 3, np.zeros(0, dtype=bool))
    assert (nothing.accuracy, nothing.low, nothing.high) == (0.0, 0.0, 1.0)


def test_a_figure_is_drawn_from_shipped_checkpoints(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for module in (shipped, requests):
        monkeypatch.setattr(module, "FOLDER", folder.parent)
    monkeypatch.setitem(figures.FIGURES, "one", figures.Figure("one model", ("model",), steps=2))
    arguments = ("figure", "one", "--again", "--examples", "2", "-o", str(tmp_path / "drawn"))
    assert run_cli(monkeypatch, *arguments) == 0
    assert {path.name for path in (tmp_path / "drawn").iterdir()} == {"accuracy.png", "rollouts.png", "results.json"}
    assert run_cli(monkeypatch, "figure", "none") == 2
    assert run_cli(monkeypatch, "figure", "sgd") == 2
    assert "--ship sgd" in capsys.readouterr().err
    assert run_cli(monkeypatch, *arguments, "--markdown") == 0
    assert capsys.readouterr().out.startswith("|  | to | 1x |")
    assert run_cli(monkeypatch, "evaluate", str(folder), "--no-weights") == 2
    assert "give it a name with --ship" in capsys.readouterr().err
    for refused, said in ((("--ship", "x"), "nothing to evaluate"), ((str(folder), "--ship", "[/]"), "no name")):
        assert run_cli(monkeypatch, "evaluate", *refused) == 2
        err = capsys.readouterr().err
        assert said in err and "Write the checkpoint" not in err


@pytest.mark.parametrize("name", sorted(set(figures.FIGURES) - {"grid"}))
def test_figures_are_drawn_from_kept_results_without_running_a_model(
    name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(requests, "evaluate", lambda *_, **__: pytest.fail("a model was run"))
    drawn = requests.run_figure(requests.FigureRequest(name=name, output=tmp_path))
    shown, figure = {r["name"] for r in drawn.report["results"]}, figures.FIGURES[name]
    assert shown == ({"5 seeds"} if figure.as_band else set(figure.checkpoints))
    assert shown == drawn.trained.keys() and all(
        f"| `{one}` | " in as_markdown(drawn.results, drawn.trained) for one in shown
    )
    assert all(path.stat().st_size for path in drawn.files)
    assert (tmp_path / "curves.png" in drawn.files) == figure.curves


def test_a_figure_of_which_nothing_is_kept_says_how_to_measure_it(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="--again"):
        requests.kept_for("other", figures.Figure("a grid nobody measured", ("tm-0",), grid=(1, 2)))


def test_results_are_kept_beside_a_shipped_checkpoint(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    checkpoints = tmp_path / "experiments" / "checkpoints"
    shutil.copytree(shipped.FOLDER / "tm-0", checkpoints / "tm-0")
    (tmp_path / "pyproject.toml").touch()  # a checkout of the source
    for module in (shipped, requests):
        monkeypatch.setattr(module, "FOLDER", checkpoints)
    before = {shipped.asked(r.to_dict()): r for r in shipped.kept_results(["tm-0"])}
    assert run_cli(monkeypatch, "evaluate", "tm-0", "--lengths", "20,7", "--examples", "3", "--keep") == 0
    after = {shipped.asked(r.to_dict()): r for r in shipped.kept_results(["tm-0"])}
    assert after.keys() == before.keys() | {(7, 1, "all")} and after[20, 1, "all"].examples == 3
    assert all(after[key] == before[key] for key in before if key != (20, 1, "all"))
    assert "| 7 | 1 |" in (checkpoints / "tm-0" / shipped.CARD).read_text()


def test_results_of_a_run_are_not_kept_among_the_shipped(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_cli(monkeypatch, "evaluate", str(folder), "--lengths", "3", "--keep") == 2
    assert "beside shipped checkpoints" in capsys.readouterr().err


def test_the_figures_name_checkpoints_that_can_be_trained() -> None:
    named = {name for figure in figures.FIGURES.values() for name in figure.checkpoints}
    assert all(recipe_of(name).steps for name in named)


def test_the_table_is_what_was_found_when_the_checkpoints_were_shipped() -> None:
    results, trained = shipped.noted_evaluations()
    told = (Path(__file__).parents[1] / "docs" / "results.md").read_text()
    assert as_markdown(results, trained) in told
    for name in ("encodings", "addition-encodings", "seeds", "machine-seeds"):
        assert as_markdown(*requests.kept_for(name, figures.FIGURES[name])) in told
    assert all(r.examples == (EXAMPLES if isinstance(r.length, int) else GRID_EXAMPLES) for r in results)


def test_a_model_is_asked_in_the_precision_and_on_the_threads_asked_for(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    seen = []
    monkeypatch.setattr(requests, "evaluate", lambda checkpoint, *_, **__: seen.append(checkpoint.model) or [])
    for precision in ("float32", "float64"):
        assert run_cli(monkeypatch, "evaluate", str(folder), "--precision", precision, "--threads", "1") == 0
        assert seen[-1].embed.weight.dtype == getattr(torch, precision) and torch.get_num_threads() == 1
    assert run_cli(monkeypatch, "evaluate", str(folder), "--precision", "float16") == 2
    assert "is not one of float32, float64, bf16" in capsys.readouterr().err


def test_bf16_takes_products_in_it_and_is_not_kept(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[torch.dtype] = []

    def watched(linear: torch.nn.Linear, _: object, out: torch.Tensor) -> None:
        seen.append(out.dtype)

    load = requests.load_checkpoint

    def loading(*given: Any) -> Checkpoint:
        checkpoint = load(*given)
        checkpoint.model.unembed.register_forward_hook(watched)
        return checkpoint

    monkeypatch.setattr(requests, "load_checkpoint", loading)
    asked = requests.EvaluationRequest(checkpoints=(str(folder),), lengths=(4,), examples=8, precision="bf16")
    (one,) = requests.run_evaluation(asked).results
    assert one.examples == 8 and set(seen) == {torch.bfloat16}
    with pytest.raises(ValueError, match="leave --precision bf16 out"):
        requests.EvaluationRequest(checkpoints=(str(folder),), precision="bf16", keep=True)


# --- the paper's table ------------------------------------------------------------------------------------------------


def test_the_readme_has_the_table_that_the_command_prints() -> None:
    from experiments.evaluation.table import paper_table, table_markdown

    assert table_markdown(paper_table()) in (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")


def test_the_table_tells_what_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    from experiments.evaluation import table

    kept = [table.Result("addition", 16, 0.99, 0.9, 1.0, 288), table.Result("addition", 32, 0.9997, 0.93, 1.0, 288)]
    monkeypatch.setattr(table, "kept_results", lambda names: kept)
    monkeypatch.setattr(table, "read_recipe_of", lambda folder: {"lengths": [2, 16]})
    monkeypatch.setattr(table.PaperRow, "here", lambda self: ["addition"] if self.task == "addition" else [])
    addition, one_digit, *_ = table.paper_table()
    assert addition.learned == "16 to 32 digits: 99.9% [93%, 100%]" and one_digit.learned == "not learned here"
    monkeypatch.setattr(table.PaperRow, "here", lambda self: ["addition", "addition-seed2"])
    assert table.paper_table()[0].learned == "16 to 32 digits: 99.9% (2 models, the worst 99.9%)"
    monkeypatch.setattr(table, "kept_results", lambda names: kept[:1])
    assert table.paper_table()[0].learned == "not measured"


def test_kept_runs_of_exact_are_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from experiments.evaluation import table
    from experiments.evaluation.compiled import CompiledResult, ExactRequest

    monkeypatch.setattr(table, "EXACT", tmp_path / "exact.json")
    asked = ExactRequest(task="addition", digits=100, n=6)
    table.keep_exact(CompiledResult(asked, 287, 287, 288, 1, 5, 1), {})
    assert table.paper_table()[0].compiled == "100 digits, n = 6: 287 of 288 promised, all 287 right"
    table.keep_exact(CompiledResult(asked, 287, 285, 288, 1, 5, 1), {})
    assert table.paper_table()[0].compiled == "100 digits, n = 6: 287 of 288 promised, 285 right"


def test_a_model_may_see_more_than_in_training(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    seen: list[int] = []

    def ask(checkpoint: requests.Checkpoint, *_: object, **__: object) -> list[Result]:
        seen.append(checkpoint.context)
        return []

    monkeypatch.setattr(requests, "evaluate", ask)
    assert run_cli(monkeypatch, "evaluate", str(folder), "--lengths", "3") == 0
    capsys.readouterr()
    assert run_cli(monkeypatch, "evaluate", str(folder), "--lengths", "3", "--context", "999", "--json") == 0
    assert seen[0] != 999 and seen[1] == 999 and json.loads(capsys.readouterr().out)["context"] == 999
    assert run_cli(monkeypatch, "evaluate", "tm-0", "--context", "999", "--keep") == 2
    assert "leave --context out" in capsys.readouterr().err
