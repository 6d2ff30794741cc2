"""Every small machine and every short input, and that a wrong program does not get through."""

from __future__ import annotations

import numpy as np
import pytest

from proofs_check.exhaustive import all_tapes, count_machines, every_input, every_machine, numbered_machines
from proofs_check.hypotheses import first_wrong_step
from rasp.machines.machine import TuringMachine
from rasp.machines.simulate import machine_from_tables


def test_every_machine_is_enumerated_once() -> None:
    assert count_machines(2, 2) == 65_536
    tables = numbered_machines(2, 2, np.arange(65_536))
    rows = np.concatenate([t.reshape(65_536, -1) for t in tables], axis=1)
    assert len({row.tobytes() for row in rows}) == 65_536


def test_a_numbered_machine_is_a_machine() -> None:
    tables = numbered_machines(2, 2, np.array([0, 12_345, 65_535]))
    for one in zip(*tables, strict=True):
        machine = machine_from_tables(*one, 2, 2)
        for table, values in zip((machine.next_state, machine.next_symbol, machine.move), one, strict=True):
            assert (table.values == values).all()


def test_every_tape_is_there_once() -> None:
    tapes = [tuple(tape) for tape in all_tapes(2, 2, 3)]
    machine = TuringMachine.random(2, 2, seed=0)
    assert len(set(tapes)) == len(tapes) == 2**3 * 5 * 2  # contents, head positions with both markers, states
    assert all(machine.check_tape(tape) for tape in tapes)


@pytest.mark.parametrize(
    "symbols, states, length, n, packing",
    [(1, 1, 5, 1, "paper"), (2, 1, 5, 1, "paper"), (1, 2, 5, 1, "paper"), (1, 2, 6, 2, "unbounded")],
)
def test_the_theorem_holds_on_every_machine(symbols: int, states: int, length: int, n: int, packing: str) -> None:
    report = every_machine(symbols, states, length, n, packing=packing)
    assert report.holds and report.first is None
    assert report.machines == count_machines(symbols, states)
    assert 0 < report.correct < report.runs  # both sides of the equivalence occur


def test_two_by_two_machines_on_tapes_up_to_one_cell() -> None:
    report = every_machine(2, 2, length=1)
    assert report.holds and report.runs == report.correct == 65_536 * 16  # so short a tape cannot repeat


@pytest.mark.slow
def test_two_by_two_machines() -> None:
    report = every_machine(2, 2, length=4)
    assert report.holds and report.runs == 65_536 * 320 and 0 < report.correct < report.runs


@pytest.mark.slow
def test_two_by_two_machines_with_longer_grams() -> None:
    assert every_machine(2, 2, length=3, n=2, steps=16).holds


@pytest.mark.parametrize(
    "mutant",
    [
        "the tokens of a gram are added up",
        "the mean of the matches is taken",
        "the gram is one token short",
        "the head moves the wrong way",
    ],
)
def test_a_wrong_program_is_caught(mutant: str) -> None:
    report = every_machine(1, 2, length=3, steps=4, program=f"mutant:{mutant}")
    assert not report.holds and report.first is not None
    run = report.first.run
    expected = first_wrong_step(run.machine, run.tape, run.steps)
    assert (expected.index if expected else None) == report.first.theorem != report.first.program
    assert "the theorem says" in report.first.render()


def test_progress_and_sizes_that_make_no_sense() -> None:
    told: list[tuple[str, int, int]] = []
    every_machine(1, 1, 0, steps=1, progress=lambda *what: told.append(what))
    assert told == [("machines from 0", 0, 1)]
    with pytest.raises(ValueError, match=r"at most 16,777,216 can be run"):
        every_machine(3, 3)
    with pytest.raises(ValueError, match=r"beyond 8\*\*1 = 8"):
        every_machine(2, 2, steps=9)
    with pytest.raises(ValueError, match="at least 1"):
        every_machine(2, 2, steps=0)
    with pytest.raises(ValueError, match="n must be"):
        every_machine(2, 2, n=0)


# --- every input ------------------------------------------------------------------------------------------------------


def test_all_interpreters_agree_on_every_input_of_three_tokens() -> None:
    report = every_input(TuringMachine.random(1, 1, seed=0), length=3)
    assert report.holds and report.inputs == 6**3 and report.predictions == 6**3 * 3 * 5


def test_the_quick_interpreters_agree_on_every_input_of_four_tokens() -> None:
    report = every_input(TuringMachine.random(1, 1, seed=0), length=4, engines=("graph", "jit"))
    assert report.holds and report.inputs == 6**4


@pytest.mark.slow
def test_the_quick_interpreters_agree_on_every_input_of_five_tokens() -> None:
    assert every_input(TuringMachine.random(2, 2, seed=3), length=5, engines=("graph", "jit")).holds


@pytest.mark.slow
def test_all_interpreters_agree_on_every_input_of_four_tokens() -> None:
    assert every_input(TuringMachine.random(2, 2, seed=3), length=4).holds


def test_a_wrong_interpreter_is_caught_on_the_shortest_input() -> None:
    machine = TuringMachine.random(1, 1, seed=0)
    wrong = "mutant:the start of the key tape is not filled"
    report = every_input(machine, length=3, engines=("jit", "eager"), program=wrong)
    assert not report.holds and report.first is not None
    *agreed, expected = report.first.reference
    *before, found = report.first.found
    assert agreed == before and expected != found
