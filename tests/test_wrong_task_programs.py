"""Every wrong variant of the arithmetic programs and of the universal one is caught by what checks the right one."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np
import pytest
from wrong_task_programs import PROGRAMS, WRONG_TASKS, WRONG_UNIVERSAL, Wrong

from proofs_check.tasks import check_contract
from rasp import TuringMachine, next_tokens
from rasp.programs.problems import Problem, Product, Regression, Sum
from rasp.programs.universal import next_tokens_universal, universal_prompt
from rasp.rewrite import simplify
from rasp.tracing import trace

LOOKS_BACK = (1, 3)  # repeats are common with the one and rare with the other


@lru_cache
def problems(program: str) -> list[Problem]:
    """A few problems that reach every case: unequal lengths, carries, repeats, ends of the number range."""
    if program == "addition":
        pairs = "4324+139 5+7 0+95 12125+5 99999+1 3333+2121341 5+5 123123+0 1231234+0 12341234+5"
        return [Sum.read(pair) for pair in pairs.split()]
    if program == "multiplication":
        pairs = "4324*135 5*700 12125*907 3333*003 9*999 80*125 0*000 123123*001 12341234*001"
        return [Product.read(pair) for pair in pairs.split()]
    rng = np.random.default_rng(0)
    rows = [rng.integers(200, size=(size, 3)) for size in (1, 2, 5)]
    rows += [rng.choice([0, 1, 198, 199], size=(size, 3)) for size in (2, 3, 3, 4)]
    rows += [rng.choice([85, 115, 150], size=(size, 3)) for size in (2, 2, 3, 3)]
    rows += [rng.choice([100, 99], size=(6, 3)) for _ in range(4)]
    rows.append(np.array([(120, 110, 130), (140, 120, 50)]))  # the step is the other example's input
    return [Regression(tuple((int(a), int(b), int(c)) for a, b, c in examples)) for examples in rows]


def is_caught(program: str, changed: Callable[..., Any]) -> bool:
    graphs = ((n, simplify(trace(lambda x, n=n: changed(x, n=n)))) for n in LOOKS_BACK)
    return any(check_contract(problems(program), n, graph.run, most=1).exceptions for n, graph in graphs)


@pytest.mark.parametrize("program", ["addition", "multiplication", "sgd"])
def test_the_right_programs_pass(program: str) -> None:
    assert not is_caught(program, getattr(PROGRAMS[program], f"next_tokens_{program}"))


@pytest.mark.parametrize("wrong", WRONG_TASKS, ids=str)
def test_wrong_tasks_are_caught(wrong: Wrong) -> None:
    assert is_caught(wrong.program, wrong.make())


# --- the universal program --------------------------------------------------------------------------------------------


def differs(program: Callable[..., Any]) -> bool:
    """Whether a program for 3 symbols and 2 states differs from the machine's own on a few traces."""
    graph = simplify(trace(lambda x: program(x, 3, 2, 1)))
    for seed in range(6):
        m = TuringMachine.random(symbols=3, states=2, seed=seed)
        tape = m.encode(["a1", "a2", "a3", "a1", "a2", "a1", "a3"][: seed + 2], head=seed % 2)
        prompt, text = universal_prompt(m, tape), m.trace(tape, 5)
        table = prompt[: prompt.index(0) + 1]
        predicted = graph.run(np.array([*table, *text]))[len(table) :]
        if predicted.tolist() != next_tokens(text, m, 1, "unbounded").tolist():
            return True
    return False


def test_the_right_universal_program_passes() -> None:
    assert not differs(next_tokens_universal)


@pytest.mark.parametrize("wrong", WRONG_UNIVERSAL, ids=str)
def test_wrong_universal_programs_are_caught(wrong: Wrong) -> None:
    assert differs(wrong.make())
