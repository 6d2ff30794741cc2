"""Every command with every option: missing, empty, huge, malformed, binary and hostile values end with one sentence.

A new command fails here until it has a row in COMMANDS; a new option is tried at once.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from bad_days.running import Parameter, commands, parameters, run

# What is typed where nothing is wrong; little work, should a value be taken after all.
COMMANDS: dict[str, list[str]] = {
    "run": ["bb2"],
    "verify": ["-m", "5", "--no-corners"],
    "exhaust": ["--symbols", "1", "--states", "1"],
    "prove": ["where", "--no-mutants"],
    "theorem": ["-o", "out"],
    "compile": ["bb2", "--backend", "lean", "--steps", "2"],
    "agree": ["--tokens", "1"],
    "exact": ["addition", "--digits", "1", "--problems", "1", "--n", "1"],
    "train": ["tm-tiny", "--steps", "1", "-o", "out"],
    "reproduce": ["tm-0", "-o", "out"],
    "evaluate": ["tm-0", "--examples", "1", "--lengths", "3"],
    "figure": ["machines", "-o", "out"],
    "compare": ["tm-0", "--examples", "2", "--lengths", "3", "--finetune", "0", "-o", "out"],
    "inspect": ["compiled", "bb2", "-o", "out.html"],
    "playground": ["-o", "out.html"],
    "programs": [],
    "machines": ["bb2"],
    "graph": ["next_token_turing"],
    "doctor": [],
    "table": [],
    "zoo": ["out", "--only", "induct"],
    "bench interpreters": [],
    "bench verify": [],
    "bench compile": [],
    "bench decode": [],
    "bench train": [],
    "export onnx": ["tm-0", "-o", "out.onnx"],
    "export hugging-face": ["tm-0", "-o", "out"],
}
VALUES: dict[type, dict[str, str]] = {
    int: {"empty": "", "huge": "9" * 40, "malformed": "1x", "hostile": "-1"},
    float: {"empty": "", "huge": "1e400", "malformed": "x", "hostile": "nan"},
    str: {"empty": "", "huge": "x" * 4000, "malformed": "{", "binary": "\udcff\x01", "hostile": "../[/]\x1b[2J<b>"},
    Path: {"empty": "", "huge": "x" * 4000, "malformed": "a-file/inside", "binary": "a-file/\udcff\x01"},
}
# Taken as they are: any whole number is a seed, a machine that halts may be given any number of steps, ...
FINE: dict[str, dict[str, set[str]]] = {
    "run": {"tape": {"empty"}, "steps": {"huge"}},
    "verify": {"seed": {"huge", "hostile"}, "resume": {"malformed", "binary"}, "program": {"empty"}},
    "exhaust": {"program": {"empty"}},
    "inspect": {"tape": {"empty"}, "steps": {"huge"}},
    "train": {"steps": {"huge"}, "save_minutes": {"huge"}},
    "reproduce": {"save_minutes": {"huge"}},
}
# Tried elsewhere: they belong to another use of the command, or wait for a network.
IDLE: dict[str, set[str]] = {"figure": {"examples"}, "compare": {"source"}, "verify": {"dask"}, "evaluate": {"ship"}}


@pytest.fixture(autouse=True)
def in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.chdir(tmp_path)
    Path("a-file").write_text("x")
    yield
    assert sorted(os.listdir()) == ["a-file"], "something was left behind"


def test_every_command_has_a_row() -> None:
    assert set(COMMANDS) == {name for name, _ in commands()}
    known = {name: {one.name for one in parameters(function)} for name, function in commands()}
    assert all(set(named) <= known[name] for table in (FINE, IDLE) for name, named in table.items())


def tried(name: str, one: Parameter) -> Iterator[tuple[str, list[str]]]:
    if one.name not in IDLE.get(name, set()):
        for what, value in VALUES[one.kind].items():
            if what not in FINE.get(name, {}).get(one.name, set()):
                yield what, [*name.split(), *one.given(COMMANDS[name], value)]


@pytest.mark.parametrize(("name", "function"), [pytest.param(n, f, id=n) for n, f in commands()])
def test_no_value_of_an_option_ends_in_a_traceback(name: str, function: Callable[..., Any]) -> None:
    for one in parameters(function):
        for what, arguments in tried(name, one):
            ended = run(*arguments)
            assert ended.refused, (what, [a[:40] for a in arguments], ended)


@pytest.mark.parametrize("name", COMMANDS)
def test_what_no_command_knows_is_refused(name: str) -> None:
    for more in (["--no-such-option"], ["--json=1x"], ["one", "word", "too", "many"]):
        arguments = [*name.split(), *COMMANDS[name], *more]
        several = "evaluate", "compare", "prove"  # take any number of names
        if more[0] != "one" or name not in several:
            assert run(*arguments).refused, arguments
