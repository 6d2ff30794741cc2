"""Every public function with hostile values for each of its arguments: it answers, or says what is wrong with them.

A new public function fails here until it has a row in CALLS.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rasp
from compile import Transformer, compile_machine
from experiments.tasks import make_task
from rasp import TuringMachine
from rasp.formats.json import to_json

PACKAGES = ("rasp", "compile", "proofs_check", "experiments.tasks", "experiments.training", "experiments.evaluation")
SAID = (
    ValueError,
    TypeError,
    OSError,
    OverflowError,
    NotImplementedError,
)  # with a sentence; nothing else may come out
NUMBERS: dict[str, Any] = {
    "none": None, "negative": -1, "zero": 0, "huge": 10**30, "fraction": 0.5, "not a number": float("nan"), "text": "x"
}  # fmt: skip
TEXTS: dict[str, Any] = {"empty": "", "hostile": "\udcff[/]\x1b<b>", "long": "x" * 5000, "null": "\0"}
SEQUENCES: dict[str, Any] = {
    "empty": [],
    "none": None,
    "number": 7,
    "huge numbers": [3, -7, 10**30],
    "nested": [[1], [2, 3]],
    "texts": ["a", None],
    "text": "abc",
    "floats": np.array([0.5, np.nan, 1.0, 2.0]),
    "table": np.zeros((3, 3)),
    "negative": [-1, -2, -3, -4],
}
FUNCTIONS: dict[str, Any] = {"none": None, "number": 3, "of nothing": lambda: 1, "gives text": lambda *_: "text"}


def hostile(good: Any) -> dict[str, Any]:
    """Values near the kind that is asked for; that an object is of the right class is left to type checkers."""
    if isinstance(good, bool):
        return {}
    if isinstance(good, int):
        return NUMBERS
    if isinstance(good, str):
        return TEXTS
    if isinstance(good, (list, tuple, np.ndarray)):
        return SEQUENCES
    return FUNCTIONS if inspect.isroutine(good) else {}


@cache
def machine() -> TuringMachine:
    return TuringMachine.random(symbols=2, states=2, seed=3)


@cache
def model() -> Transformer:
    return compile_machine(machine(), "lean", n=1, steps=4, check=False)


def same(a: Any, b: Any) -> Any:
    return a == b


X, Y = np.array([1, 0, 1, 2]), np.array([0, 1, 1, 2])


def tape() -> list[int]:
    return machine().encode(list(machine().symbols), 1)


def text() -> list[int]:
    return machine().trace(tape(), 2).tolist()


def selected() -> Any:
    return rasp.select(X, Y, same)


OF_ONE = ("indices", "maximum", "minimum", "argmax", "argmin", "mode", "binary_mode")
# What is given where nothing is wrong: {function: arguments}, made when it is tried.
CALLS: dict[str, Callable[[], dict[str, Any]]] = {
    "rasp.full": lambda: {"x": X, "const": 3},
    "rasp.tok_map": lambda: {"x": X, "func": abs},
    "rasp.seq_map": lambda: {"x": X, "y": Y, "func": same},
    "rasp.select": lambda: {"k": X, "q": Y, "pred": same, "causal": True},
    "rasp.aggr": lambda: {"A": selected(), "v": X, "default": 0, "reduction": "max"},
    "rasp.kqv": lambda: {"k": X, "q": Y, "v": X, "pred": rasp.equals, "default": 0, "reduction": "min"},
    "rasp.shift_right": lambda: {"x": X, "n": 2, "default": 0},
    "rasp.where": lambda: {"condition": X, "x_if": X, "y_else": Y},
    "rasp.mask": lambda: {"x": X, "bool_mask": Y, "mask_val": 0},
    "rasp.index_select": lambda: {"x": X, "idx": Y, "default": 0},
    "rasp.first_true": lambda: {"x": X, "default": 0},
    "rasp.induct_kqv": lambda: {"k": X, "q": X, "v": Y, "offset": 1, "default": 0, "null_val": -9},
    "rasp.prefix_fill": lambda: {"x": X, "n": 2, "value": 1},
    "rasp.where3": lambda: {"cond": X, "x": X, "y": Y, "z": X},
    "rasp.named": lambda: {"x": X, "label": "x"},
    "rasp.sel_width": lambda: {"A": selected()},
    **{f"rasp.aggr_{r}": lambda: {"A": selected(), "v": X, "default": 0} for r in ("mean", "max", "min")},
    **{
        f"rasp.{f}": lambda: {"x": X}
        for f in ("indices", "maximum", "minimum", "argmax", "argmin", "mode", "binary_mode")
    },
    **{f"rasp.{f}": lambda: {"x": X, "queries": Y} for f in ("num_prev", "has_seen", "firsts", "lasts")},
    **{
        f"rasp.{f}": lambda: {"k": X, "q": X, "offset": 1, "default": 0, "null_val": -9}
        for f in ("induct", "induct_prev")
    },
    "rasp.cumsum": lambda: {"bool_array": X},
    "rasp.run": lambda: {"program": rasp.cumsum, "engine": "graph"},
    "rasp.trace": lambda: {"program": rasp.cumsum, "arity": 1},
    "rasp.simplify": lambda: {"graph": rasp.trace(rasp.cumsum)},
    "rasp.generate": lambda: {
        "prompt": [*tape(), 0],
        "machine": machine(),
        "count": 3,
        "n": 1,
        "packing": "paper",
        "engine": "stream",
    },
    "rasp.hash_n_gram": lambda: {"x": X, "n": 1, "base": 4},
    "rasp.hash_n_gram_iter": lambda: {"x": X, "n": 1, "base": 4, "packing": "paper"},
    "rasp.load_machine": lambda: {"source": "bb2"},
    "rasp.save_machine": lambda: {"machine": machine(), "path": "machine.json"},
    "rasp.make_simulable": lambda: {
        "machine": machine(),
        "cells": 4,
        "n": 1,
        "tape": machine().symbols,
        "head": 0,
        "state": machine().states[0],
        "steps": 3,
    },
    "rasp.next_tape": lambda: {"x": np.array(text()), "shift": len(tape()), "machine": machine()},
    "rasp.next_token_turing": lambda: {"x": text(), "machine": machine(), "n": 1, "packing": "paper"},
    "rasp.next_tokens": lambda: {"x": text(), "machine": machine(), "n": 1, "packing": "paper"},
    "rasp.universal_prompt": lambda: {"machine": machine(), "tape": tape(), "symbols": 2, "states": 2},
    "compile.attention_figure": lambda: {
        "model": model(),
        "tokens": tape(),
        "heads": [(0, 0)],
        "path": "figure.png",
        "columns": 2,
    },
    "compile.compile_machine": lambda: {
        "machine": machine(),
        "backend": "lean",
        "n": 1,
        "steps": 2,
        "packing": "unbounded",
        "examples": [],
        "check": False,
    },
    "compile.compile_program": lambda: {
        "program": rasp.cumsum,
        "vocabulary": [0, 1],
        "backend": "hard_alibi",
        "examples": [],
        "token_names": ["a", "b"],
        "counts": 3,
        "check": False,
    },
    "compile.compile_task": lambda: {"name": "addition", "n": 1, "lines": 1, "backend": "hard_alibi", "check": False},
    "compile.compile_universal": lambda: {
        "symbols": 1,
        "states": 1,
        "n": 1,
        "steps": 1,
        "backend": "hard_alibi",
        "examples": [],
        "check": False,
    },
    "compile.inspect": lambda: {"model": model(), "tokens": tape(), "against": model(), "truth": tape(), "given": 2},
    "compile.patch": lambda: {
        "model": model(),
        "tokens": tape(),
        "source": tape(),
        "register": model().config.annotations.registers[0].name,
        "position": 1,
        "source_position": 0,
    },
    "compile.reach": lambda: {"model": model(), "heads": [(0, 0)], "registers": []},
    "compile.switch_off": lambda: {"model": model(), "tokens": tape(), "heads": [(0, 0)]},
    "proofs_check.beyond_bound": lambda: {"machine": machine(), "steps": 9, "n": 1, "packing": "paper"},
    "proofs_check.first_on_marker": lambda: {"tokens": text(), "machine": machine()},
    "proofs_check.first_repeat": lambda: {"tokens": text(), "n": 1, "start": 2},
    "proofs_check.first_wrong_step": lambda: {
        "machine": machine(),
        "tape": tape(),
        "steps": 3,
        "n": 1,
        "packing": "paper",
    },
    "proofs_check.make_simulable": lambda: {"machine": machine(), "cells": 4, "n": 1},
    "proofs_check.prove": lambda: {"lemmas": ["where"], "with_mutants": False},
    "proofs_check.verify": lambda: {
        "machines": 2,
        "symbols": 2,
        "states": 2,
        "length": 3,
        "steps": 2,
        "n": 1,
        "packing": "paper",
        "seed": 0,
        "engine": "stream",
        "workers": 1,
    },
    "experiments.tasks.make_task": lambda: {"description": {"name": "addition"}},
    "experiments.tasks.own_task_name": lambda: {"name": "experiments.tasks.addition:Addition"},
    "experiments.training.preset": lambda: {"name": "tm-tiny"},
    "experiments.evaluation.accuracy": lambda: {
        "model": model(),
        "task": make_task({"name": "turing_rasp", "machine": to_json(machine())}),
        "length": 2,
        "examples": 2,
        "seed": 0,
        "context": 64,
    },
    "experiments.evaluation.load_checkpoint": lambda: {"folder": "nowhere", "device": "cpu"},
}
# Long work, and nothing wrong with it: all lemmas, or those of a name of one letter.
LONG = {"proofs_check.prove": {"none", "empty"}}
OF_ENGINES = {"rasp.interpret_arrays_with", "rasp.lazy_names"}
AS_COMMANDS = {  # test_commands.py tries them
    "proofs_check.theorem_page",
    "experiments.training.train",
    "experiments.evaluation.run_evaluation",
    "experiments.evaluation.run_figure",
}


def public() -> Iterator[str]:
    """Functions that the packages hand out."""
    for package in PACKAGES:
        module = importlib.import_module(package)
        for name in dir(module) if package == "rasp" else module.__all__:  # rasp's __all__ is what a program imports
            function = getattr(module, name)
            if inspect.isfunction(function) and not name.startswith("_"):
                yield f"{package}.{name}"


def found(name: str) -> Callable[..., Any]:
    package, _, function = name.rpartition(".")
    return getattr(importlib.import_module(package), function)  # type: ignore[no-any-return]


def call(name: str, given: dict[str, Any]) -> None:
    if name == "rasp.run":
        found(name)(given["program"], X, engine=given["engine"])
    else:
        found(name)(**given)


def complaint(name: str, given: dict[str, Any]) -> str:
    """What is wrong with how it ended, if anything is."""
    try:
        call(name, given)
    except SAID as error:
        return "" if str(error) else f"{type(error).__name__} without a word"
    except BaseException as error:
        return f"{type(error).__name__}: {error}"
    return ""


@pytest.fixture(autouse=True)
def in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_every_public_function_has_a_row() -> None:
    assert set(public()) - OF_ENGINES - AS_COMMANDS == set(CALLS)


@pytest.mark.parametrize("name", CALLS)
def test_hostile_values(name: str) -> None:
    good = CALLS[name]()
    for argument, value in good.items():
        for what, bad in hostile(value).items():
            if what not in LONG.get(name, ()):
                assert complaint(name, {**good, argument: bad}) == "", (argument, what)


def test_good_values_are_good() -> None:
    """Else a row tests nothing but its own mistake."""
    for name in set(CALLS) - {"experiments.evaluation.load_checkpoint"}:
        call(name, CALLS[name]())


def test_what_is_not_said_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    for error, seen in (
        (KeyError("x"), "KeyError: 'x'"),
        (ValueError(), "ValueError without a word"),
        (ValueError("x"), ""),
    ):

        def fails(error: BaseException = error, **_: Any) -> None:
            raise error

        monkeypatch.setattr(rasp, "cumsum", fails)
        assert complaint("rasp.cumsum", {}) == seen
