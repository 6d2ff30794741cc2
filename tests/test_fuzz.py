"""The fuzzer finds nothing in a sample of the programs of its long runs; and it finds what was made wrong for it."""

from __future__ import annotations

import contextlib
import io
import json
import math
import os
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fuzz.__main__ import as_options, main
from fuzz.cases import Shares, make_case
from fuzz.compare import Figures, Mismatch, Outcome, agree, compare_engines, compare_model
from fuzz.grammar import GRAMMAR, TAME
from fuzz.pieces import run_in_pieces
from fuzz.programs import Program, Tree, variable
from fuzz.session import Session
from fuzz.shrink import again, shrink
from fuzz.ways import ENGINES, REFERENCE, Model, Runner, Subject, Way

import rasp
from rasp.engines.stream import Stream
from rasp.graph import Delay, Graph, Kqv, Node

SAMPLE, PARTS = 500, 5  # of the 100,000 programs of a long run; enough in a part for the shares asked for below
NO_HOUSE = Shares(texts=0, decoded=0, saved=0, files=0)  # tests/test_fuzz_house.py
CHEAP = replace(NO_HOUSE, machine_code=0, hard_alibi=0, tracr=0, level=TAME)


@pytest.mark.parametrize("part", range(PARTS))
def test_a_sample_of_the_programs_and_models(part: int) -> None:
    session = Session(seed=0, shares=replace(NO_HOUSE, machine_code=250, hard_alibi=5, tracr=50))
    session.next = part * SAMPLE // PARTS
    mismatches = session.run(programs=SAMPLE // PARTS)
    assert not mismatches, mismatches[0].script()
    assert session.figures.counts["programs"] == SAMPLE // PARTS and session.models >= SAMPLE // (20 * PARTS)
    for way in (*ENGINES, "hard_alibi"):
        tried, answered = session.figures.tried[way], session.figures.answered[way]
        least = 0.9 if way == REFERENCE else 0.5
        assert answered > least * tried, f"{way} answers {answered} of {tried} inputs\n{session.table()}"


@pytest.mark.slow
def test_a_tenth_of_the_programs_and_models() -> None:
    session = Session(seed=1, shares=NO_HOUSE)
    mismatches = session.run(programs=20 * SAMPLE)
    assert not mismatches, mismatches[0].script()


# --- what programs are made of ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("function", "overwhelms"),
    [("a + (2 ** 4611686018427387904)", True), ("a ** 4611686018427387904", False), ("a + 2 ** 40", False)],
)
def test_no_program_keeps_python_busy_for_ever(function: str, overwhelms: bool) -> None:
    program = Program(("x",), (Tree("sequence", f"tok_map(x, lambda a: {function})"),))
    assert program.overwhelms_python == overwhelms


def test_an_error_that_no_answer_needs_may_be_left_out() -> None:
    """Also where keys are tuples, which are compared by `equals` and nothing else."""
    unused = "seq_map(x, kqv((x, x), (x, tok_map(x, lambda a: [][a])), x, equals), lambda a, b: 0)"
    program = Program(("x",), (Tree("sequence", unused),))
    assert compare_engines(program, [(np.array([0, 1]),)], False, Figures()) == []


def test_every_function_of_the_language_is_used() -> None:
    forms = " ".join(rule.form for rules in GRAMMAR.values() for rule in rules)
    assert not [name for name in rasp.__all__ if name != "np" and f"{name}" not in forms]


def test_every_form_is_drawn() -> None:
    trees = (make_case(0, i).program.lines for i in range(4000))
    drawn = {tree.form for lines in trees for line in lines for tree in line.walk()}
    assert not [rule.form for rules in GRAMMAR.values() for rule in rules if rule.form not in drawn]


def test_a_case_follows_from_its_number() -> None:
    one, two = make_case(3, 7), make_case(3, 7)
    assert one.program.source == two.program.source and repr(one) == repr(two)
    assert make_case(3, 8).program.source != one.program.source != make_case(4, 7).program.source
    lengths = [len(x[0]) for i in range(20) for x in make_case(0, i).inputs]
    assert {0, 1} < set(lengths) and max(lengths) > 20


# --- wrong on purpose: each is caught, and shrunk to a few lines ------------------------------------------------------


def changed(graph: Graph, change: Callable[[Node], Node]) -> Graph:
    return replace(graph, nodes=tuple(change(node) for node in graph.nodes))


def drop_default(node: Node) -> Node:
    return replace(node, default=0) if isinstance(node, Kqv | Delay) else node


def mean_for_max(node: Node) -> Node:
    return replace(node, reduction="max") if isinstance(node, Kqv) and node.reduction == "mean" else node


def late(node: Node) -> Node:
    return replace(node, distance=node.distance + 1) if isinstance(node, Delay) and node.distance > 2 else node


WRONG: dict[str, tuple[str, Callable[[Subject], Runner]]] = {
    "a stream that takes the mean for the largest": (
        "stream",
        lambda s: Stream(changed(s.fewest_nodes, mean_for_max)).run,
    ),
    "a rewriting that drops defaults": ("graph, least depth", lambda s: changed(s.least_depth, drop_default).run),
    "a rewriting that delays long": ("graph, fewest nodes", lambda s: changed(s.fewest_nodes, late).run),
    "eager in 32 bits": ("eager", lambda s: lambda *a: s.traced.run(*a).astype(np.int32).astype(np.int64)),
    "a result that is no int64": ("eager", lambda s: lambda *a: s.traced.run(*a).astype(np.float64)),
}


@contextlib.contextmanager
def wrong_way(name: str, make: Callable[[Subject], Runner]) -> Iterator[None]:
    right = ENGINES[name]
    ENGINES[name] = Way(make, right.spelled)
    try:
        yield
    finally:
        ENGINES[name] = right


def first_mismatch(way: str, level: int, most: int = 3000) -> Mismatch:
    shares = replace(CHEAP, level=level)
    for i in range(most):
        case = make_case(1, i, shares)
        for mismatch in compare_engines(case.program, case.inputs, False, Figures()):
            if mismatch.way == way:
                return mismatch
    raise AssertionError(f"{way} is wrong, and nothing was found in {most} programs")


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_engine_is_caught_and_shrunk(name: str) -> None:
    way, make = WRONG[name]
    with wrong_way(way, make):
        found = first_mismatch(way, level=2 if "32 bits" in name else TAME)
        small = shrink(found, seconds=10)
        assert again(small) is not None, "what is printed still differs"
        assert small.kind == found.kind and small.program.size <= 9, small.script()
        assert sum(len(x) for x in small.inputs) <= 6, small.script()
    assert again(small) is None, "and only because of what was made wrong"


def test_what_is_printed_can_be_pasted() -> None:
    """The script runs by itself, and prints what its comments say."""
    way, make = WRONG["a rewriting that drops defaults"]
    with wrong_way(way, make):
        small = shrink(first_mismatch(way, TAME), seconds=10)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(small.script(), {})
    right, also_right = (line.split() for line in printed.getvalue().replace("[", "").replace("]", "").splitlines())
    assert right == also_right == [str(v) for v in small.expected.values], "pasted, the engine is the true one"
    assert f"# {list(small.found.values)}" in small.script() and small.found.values != small.expected.values


COUNT = Program(("x",), (Tree("sequence", "num_prev({0}, {0})", (variable("x"),)),))
HARD_ALIBI = Model("hard_alibi", (0, 1), (("counts", 4),))
TOKENS = [np.array(x, dtype=np.int64) for x in ([], [1], [0, 1, 1, 0], [1] * 9)]


def test_a_right_model_agrees_and_refuses_past_its_capacity() -> None:
    figures = Figures()
    assert compare_model(COUNT, HARD_ALIBI, TOKENS, figures) is None
    assert figures.answered["hard_alibi"] == 3 and figures.tried["hard_alibi"] == 4
    assert any("CapacityError" in kind for kind in figures.refusals)


def test_a_model_with_one_wrong_weight_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    import torch

    right = Model.compiled

    def wrong(self: Model, program: Any, check: bool = False) -> Any:
        model = right(self, program, check)
        with torch.no_grad():
            weights = model.embed.weight
            weights[1, torch.argmax(weights[1].abs())] *= -1
        return model

    monkeypatch.setattr(Model, "compiled", wrong)
    padded = Program(("x",), (*COUNT.lines, Tree("sequence", "({0} + {1})", (variable("v0"), variable("x")))))
    found = compare_model(padded, HARD_ALIBI, TOKENS, Figures())
    assert found is not None
    small = shrink(found, seconds=10)
    assert small.program.size <= 2 and sum(len(x) for x in small.inputs) == 1, small.script()
    assert "compile_program(program, " in small.script()


def test_a_refusal_that_comes_too_late_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Up to the position where it refuses, a model must be right."""
    right = Model.compiled

    def forgets_to_refuse(self: Model, program: Any, check: bool = False) -> Any:
        model = right(self, program, check)
        predict = type(model).predict
        object.__setattr__(model, "predict", lambda tokens, engine: predict(model, tokens[:4]).repeat(2)[: len(tokens)])
        return model

    monkeypatch.setattr(Model, "compiled", forgets_to_refuse)
    found = compare_model(COUNT, HARD_ALIBI, TOKENS, Figures())
    assert found is not None and len(found.inputs[0]) >= 4


def test_what_agrees_and_what_does_not() -> None:
    value, other = Outcome((1, 2)), Outcome((1, 3))
    refused, crashed = Outcome(error="EngineError", refused=True), Outcome(error="KeyError")
    assert agree(value, value) and agree(value, refused) and agree(crashed, refused) and agree(refused, crashed)
    assert not agree(value, other) and not agree(value, crashed) and not agree(refused, value)


# --- the command ------------------------------------------------------------------------------------------------------


def run_command(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    cheap = as_options(CHEAP)
    monkeypatch.setattr("sys.argv", ["fuzz", *cheap, *arguments])
    monkeypatch.setattr("resource.setrlimit", lambda *_: None)
    monkeypatch.setenv("TURING_PROGRAMS_CACHE", "elsewhere")
    return main()


def test_the_command_goes_on_where_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    state = tmp_path / "figures.json"
    for total in ("12 programs", "24 programs"):
        assert run_command(monkeypatch, "--programs", "12", "--seed", "12", "--state", str(state)) == 0
        assert total in capsys.readouterr().out
    assert json.loads(state.read_text())["next"] == 24
    with pytest.raises(SystemExit, match="is of seed 12"):
        run_command(monkeypatch, "--programs", "12", "--state", str(state), "--seed", "9")


def test_a_long_run_is_made_of_processes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("fuzz.__main__.PIECE", 6)
    monkeypatch.setattr("fuzz.pieces.run_in_pieces.__defaults__", (math.inf, (), 6))
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parent), prepend=os.pathsep)
    state = tmp_path / "figures.json"
    assert run_command(monkeypatch, "--programs", "10", "--seed", "12", "--state", str(state)) == 0
    printed = capfd.readouterr().out
    assert printed.count("seed 12: 10 programs, 0 models") == 1, printed
    whole = json.loads(state.read_text())
    alone = Session(12, shares=CHEAP)
    alone.run(programs=10)
    assert whole["next"] == 10 and whole["tried"] == alone.figures.tried and whole["answered"] == alone.figures.answered


def test_a_process_that_dies_is_a_mismatch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The program it was at is named and counted, and the run goes on after it."""
    state = tmp_path / "figures.json"
    asked: list[int] = []

    def dies_at_3(command: list[str], **_: Any) -> subprocess.CompletedProcess[bytes]:
        session = Session(5, state, CHEAP)
        asked.append(session.next)
        if session.next < 3:
            (tmp_path / "figures.number").write_text("3")
            return subprocess.CompletedProcess(command, -11)
        session.run(programs=int(command[command.index("--programs") + 1]))
        return subprocess.CompletedProcess(command, 0)

    monkeypatch.setattr("fuzz.pieces.subprocess.run", dies_at_3)
    session = run_in_pieces(Session(5, state, CHEAP), math.inf, 8, size=8)
    assert asked == [0, 4] and session.next == 8
    assert session.kinds == {"the process ended with -11": 1} and "1 mismatches" in session.line()
    assert "program 3: the process ended with -11" in capsys.readouterr().out


def test_the_command_ends_with_1_on_a_mismatch(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    way, make = WRONG["a result that is no int64"]
    with wrong_way(way, make):
        assert run_command(monkeypatch, "--programs", "2", "--seed", "3") == 1
        printed = capsys.readouterr().out
        assert "def program(x" in printed and "MISMATCHES, eager: not int64" in printed
    assert run_command(monkeypatch, "--only", "1", "--seed", "3") == 0
    assert "def program(x" in capsys.readouterr().out
