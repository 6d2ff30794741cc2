"""A person's own machine, program and task, wherever a command takes a shipped one; and what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from experiments.cli import app
from experiments.compilations import CompilationRequest, run_compilation
from experiments.imports import imported, is_import
from experiments.inspections import InspectionRequest, inspect_request
from experiments.own_programs import ProgramRun, compile_named, run_program
from experiments.program_list import listed_programs
from experiments.programs import read_program
from experiments.tasks import make_task, own_task_name
from experiments.training.presets import preset
from experiments.training.variations import Variation
from proofs_check.one_machine import exhaust_machine, verify_machine
from rasp import load_machine, save_machine

PROGRAMS = """
from rasp import cumsum, indices, induct, tok_map

def majority(x):
    ones = cumsum(x == 1)
    return tok_map(2 * ones - indices(x), lambda d: d > 1)

def induction(x):
    return induct(x, x, 1)

def broken(x):
    return x + undefined

def nothing():
    return 1

number = 3
"""
TASK = '''
from __future__ import annotations
from dataclasses import dataclass
import numpy as np
from experiments.tasks import Samples, Task
from experiments.tasks.base import lay_out
from rasp import tok_map

@dataclass(frozen=True, kw_only=True)
class Echo(Task):
    """`$ab|ab.`"""

    @property
    def vocabulary(self):
        return (*"ab", *"$|.")

    def generate(self, rng, lengths) -> Samples:
        letters = rng.integers(2, size=(len(lengths), int(lengths.max())))
        word = np.where(np.arange(lengths.max()) < lengths, letters, -1)
        return lay_out([self.const("$"), word, self.const("|")], [word, self.const(".")])

    def program(self, x, n):
        return tok_map(x, lambda z: z)

class NoTask:
    pass
'''


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my.py").write_text(PROGRAMS)
    (tmp_path / "task.py").write_text(TASK)
    return tmp_path


# --- programs ---------------------------------------------------------------------------------------------------------


def test_what_names_an_import() -> None:
    assert all(map(is_import, ("my.py:f", "a/b.py:f", "rasp.library:induct")))
    assert not any(map(is_import, ("random:12x16:0", "bb4", "1RB1LB_1LA1RZ", "addition", "C:/x.json")))


def test_a_program_runs_interpreted_and_compiled(own: Path) -> None:
    found = run_program(ProgramRun(program="my.py:majority", tokens="1 0 1,1 0 0 0", on="compiled"))
    assert found.correct and found.said.tolist() == [1, 0, 1, 1, 1, 0, 0]


def test_a_compiled_model_that_differs_is_not_called_right() -> None:
    from experiments.own_programs import ProgramAnswer

    assert not ProgramAnswer(np.array([1, 2]), np.array([1, 1]), np.array([1, 0])).correct


def test_a_program_that_predicts_no_next_token_is_inspected_against_itself(own: Path) -> None:
    page, scene, _ = inspect_request(InspectionRequest(model="my.py:induction", machine="1 2 3 1 2 3 1 2"))
    assert scene.says is not None and page.data["truth"] == list(scene.says)
    assert page.data["models"][0]["predictions"] == list(scene.says)  # 8 of 8, though only few are the next token


def test_a_task_is_inspected_with_heads_labelled() -> None:
    page, scene, _ = inspect_request(InspectionRequest(model="compiled", machine="addition", tape="43+9", n=1))
    predicted = page.data["models"][0]["predictions"]
    assert predicted[scene.given - 1 : -1] == scene.trace[scene.given :].tolist()
    labels = json.dumps(page.data["models"][0])
    assert "line" in labels and "carry before" in labels


def test_a_program_is_compiled_on_request(own: Path) -> None:
    made = run_compilation(CompilationRequest(machine="my.py:majority", tokens=2, positions=8, steps=8, check=False))
    assert made.model.predict([1, 1, 0]).tolist() == [1, 1, 1] and made.report["layers"] >= 1
    with pytest.raises(ValueError, match="--tokens 8"):
        compile_named("my.py:majority")
    with pytest.raises(ValueError, match="--tags is for machines"):
        CompilationRequest(machine="my.py:majority", tags=3)
    with pytest.raises(ValueError, match="for programs of one's own"):
        CompilationRequest(machine="bb4", tokens=3)


def test_every_listed_program_can_be_read() -> None:
    for listed in listed_programs():
        assert len(read_program(listed.name).trace()) > 20 and listed.contract
    found = CliRunner().invoke(app, ["programs", "--json"])
    assert [row["name"] for row in json.loads(found.stdout)["programs"]][:3] == [
        "next_token_turing", "universal", "addition"
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("no.py:f", "there is no file"),
        ("no_such_module:f", "there is no module"),
        ("my.py:none", "has no function 'none'; there are majority, induction"),
        ("my.py:number", "no function but int"),
        ("my.py:broken", "is not a RASP-L program: NameError"),
        ("my.py:nothing", "takes no sequence"),
        ("raises.py:f", "cannot be loaded: ZeroDivisionError"),
        ("wrong.py:f", "cannot be loaded: SyntaxError"),
    ],
)
def test_what_is_no_program_is_refused_in_a_sentence(own: Path, name: str, said: str) -> None:
    (own / "raises.py").write_text("1 / 0")
    (own / "wrong.py").write_text("def f(:")
    with pytest.raises(ValueError, match=said):
        read_program(name).trace()


def test_a_file_is_loaded_once(own: Path) -> None:
    (own / "counted.py").write_text(
        "from pathlib import Path\nPath('loads').open('a').write('x')\ndef f(x): return x\n"
    )
    assert imported("counted.py:f") is imported("counted.py:f")
    assert (own / "loads").read_text() == "x"


@pytest.mark.parametrize("tokens", [None, "", "a b", "1 2.5", "1" * 12])
def test_what_are_no_tokens_is_refused(own: Path, tokens: str | None) -> None:
    with pytest.raises(ValueError, match="token"):
        run_program(ProgramRun(program="my.py:majority", tokens=tokens))


# --- machines ---------------------------------------------------------------------------------------------------------


def test_load_machine_accepts_what_the_command_line_accepts(tmp_path: Path) -> None:
    save_machine(load_machine("random:3x2:1"), tmp_path / "my.json")
    assert load_machine("random:3x2:1").transitions == load_machine(tmp_path / "my.json").transitions
    with pytest.raises(ValueError, match="random:SYMBOLSxSTATES:SEED"):
        load_machine("random:x")


def test_the_theorem_on_one_machine() -> None:
    machine = load_machine("bb2")
    sampled = verify_machine(machine, 60, (3, 5), 12)
    assert sampled.holds and sampled.tapes == 60 and 0 < sampled.correct < 60
    assert sampled.no_repeat > sampled.correct and "past step 9, which is base**n" in sampled.render()
    every = exhaust_machine(machine, 2, steps=8)
    assert every.holds and every.tapes == 3 * (2 + 2 * 3 + 4 * 4)
    assert every.no_repeat == every.correct and "base**n" not in every.render()
    wrong = verify_machine(machine, 40, (4, 5), 12, program="mutant:the head never moves")
    assert not wrong.holds and wrong.first is not None
    told = wrong.first.render()
    assert "it writes" in told and any(f"writes {name} where" in told for name in machine.vocabulary)  # not token ids
    with pytest.raises(ValueError, match="smaller --length"):
        exhaust_machine(load_machine("random:12x16:0"), 9)


def test_a_rule_that_is_missing_or_doubled_is_refused(tmp_path: Path) -> None:
    text = json.loads(Path(_saved(tmp_path)).read_text())
    state = next(iter(text["transitions"]))
    first = next(iter(text["transitions"][state]))
    del text["transitions"][state][first]
    (tmp_path / "missing.json").write_text(json.dumps(text))
    with pytest.raises(ValueError, match="missing.json.*(rule|transition)"):
        load_machine(tmp_path / "missing.json")
    doubled = Path(_saved(tmp_path)).read_text().replace('"transitions": {', '"transitions": {"A": {}, ', 1)
    (tmp_path / "doubled.json").write_text(doubled)
    with pytest.raises(ValueError, match="doubled.json"):
        load_machine(tmp_path / "doubled.json")


def _saved(folder: Path) -> Path:
    save_machine(load_machine("bb2"), folder / "bb2.json")
    return folder / "bb2.json"


# --- training ---------------------------------------------------------------------------------------------------------


def test_a_recipe_holds_the_machine_itself(tmp_path: Path) -> None:
    recipe = Variation(machine=str(_saved(tmp_path))).of(preset("tm-tiny"))
    (tmp_path / "bb2.json").unlink()
    assert make_task(json.loads(json.dumps(recipe.to_dict()))["task"]).machine == load_machine("bb2")
    with pytest.raises(ValueError, match="presets that train on Turing machines"):
        Variation(machine="bb2").of(preset("addition-cpu"))
    with pytest.raises(ValueError, match="give one of them"):
        Variation(machine="bb2", machine_seed=1).of(preset("tm-tiny"))


def test_a_task_of_ones_own_is_part_of_a_recipe(own: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    recipe = Variation(task="task.py:Echo").of(preset("tm-tiny"))
    monkeypatch.chdir("/")
    task = make_task(json.loads(json.dumps(recipe.to_dict()))["task"])
    assert task.text(task.sample(np.random.default_rng(0), 3, count=1).row(0))[0] == "$"
    assert recipe.make_model().config.vocabulary == 5
    for name, said in ((f"{own}/task.py:NoTask", "is no task"), (f"{own}/task.py:Echoo", "has no class"), ("x", "not")):
        with pytest.raises(ValueError, match=said):
            own_task_name(name)


def test_a_task_of_ones_own_is_compared(own: Path) -> None:
    from experiments.comparison.report import render
    from experiments.comparison.tasks.study import study_task
    from experiments.comparison.tasks.subjects import LearnedModel, TaskSettings, task_subject
    from experiments.evaluation.checkpoints import Checkpoint

    recipe = Variation(task="task.py:Echo").of(preset("tm-tiny"))
    checkpoint = Checkpoint("mine", recipe.make_model().eval(), recipe.make_task(), (1, 3), 64)
    found = study_task(task_subject(None, [LearnedModel(checkpoint)]), TaskSettings(examples=12, ns=(1,)))
    assert {sim["kind"] for sim in found["machines"][0]["simulators"]} == {"program", "learned"}
    assert found["task"] == "Echo" and "in length" in str(found["unit"]) and "<h1>" in render(found)
