"""What is asserted of every program and every compiled model that is compared; a mismatch is an error.

A compiled model says at every token what its program says. Program n writes a wrong tape exactly where the theorem's
criterion says so, and its first wrong token is the one that the criterion names.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from experiments.comparison.simulators import Description, IntArray, ProgramSimulator
from proofs_check.sampled.batched import wrong_by_repeat
from rasp import TuringMachine
from rasp.machines.tape import sep


class Disagreement(ValueError):
    """A compiled model differs from its program, or a program from the theorem."""


@dataclass(frozen=True)
class Checks:
    """How much was compared. There are no mismatches to count: the first one is raised."""

    tokens: int = 0  # of compiled models, with their program's
    tapes: int = 0  # of programs and compiled models, with the theorem's criterion

    def __add__(self, other: Checks) -> Checks:
        return Checks(self.tokens + other.tokens, self.tapes + other.tapes)

    def to_dict(self) -> dict[str, Any]:
        return {
            "compiled_equals_program": {"tokens": self.tokens, "mismatches": 0},
            "criterion": {"tapes": self.tapes, "mismatches": 0},
        }


def check_predictions(who: Description, machine: TuringMachine, text: IntArray, said: IntArray) -> Checks:
    """`said` is what a compiled model predicts at every token of `text`."""
    if who.kind != "compiled":
        return Checks()
    return _equal(who, machine, text, said, _program(who, machine).predict(text))


def check_written(who: Description, machine: TuringMachine, truth: IntArray, written: IntArray) -> Checks:
    """`truth` is (tapes, 2, width): each tape and its next, as they should be; `written` is what was written for it."""
    if not who.promises:
        return Checks()
    checks = check_criterion(who, machine, truth, written)
    if who.kind == "compiled":
        width = truth.shape[2]
        text = _program(who, machine).generate(truth[:, 0], width)
        checks += _equal(who, machine, text, np.concatenate((truth[:, 0], written), axis=1), text)
    return checks


def _program(who: Description, machine: TuringMachine) -> ProgramSimulator:
    assert who.n is not None and who.packing is not None
    return ProgramSimulator(machine, who.n, who.packing)


# --- a compiled model is its program ----------------------------------------------------------------------------------


def _equal(who: Description, machine: TuringMachine, text: IntArray, said: IntArray, program: IntArray) -> Checks:
    promised = _promised(who, machine, text)
    wrong = (said != program) & promised
    if wrong.any():
        row, at = np.argwhere(wrong)[0].tolist()
        raise Disagreement(
            f"{who.name} is not program n = {who.n}: at token {at} of {_names(machine, text[row])} it says "
            f"{said[row, at]} and the program {program[row, at]}"
        )
    return Checks(tokens=int(promised.sum()))


def _promised(who: Description, machine: TuringMachine, text: IntArray) -> npt.NDArray[np.bool_]:
    """`lean` is exact on tapes of one head: what comes after a second state on the same tape is not compared."""
    if who.backend != "lean":
        return np.ones(text.shape, dtype=np.bool_)
    states = np.cumsum(machine.is_state(text), axis=1)
    before = np.maximum.accumulate(np.where(text == sep, states, 0), axis=1)  # of the tapes that are complete
    return np.maximum.accumulate(states - before, axis=1) <= 1


# --- a program is wrong where the theorem says ------------------------------------------------------------------------


def check_criterion(who: Description, machine: TuringMachine, truth: IntArray, written: IntArray) -> Checks:
    """The first wrong token of every written tape is the one that the theorem names."""
    assert who.n is not None
    width = truth.shape[2]
    wrong = written != truth[:, 1]
    found = np.where(wrong.any(axis=1), wrong.argmax(axis=1), -1)
    named = wrong_by_repeat(truth.reshape(len(truth), -1), width - 1, who.n, machine.base)
    named = np.where(named < 0, -1, named + 1 - width)  # from where it is predicted to where it stands
    for row in np.flatnonzero(found != named)[:1].tolist():
        raise Disagreement(
            f"{who.name} {_verdict(found[row])} on {_names(machine, truth[row, 0])}, where the theorem says that "
            f"program n = {who.n} {_verdict(named[row])}"
        )
    return Checks(tapes=len(truth))


def _verdict(at: int) -> str:
    return "is right" if at < 0 else f"goes wrong at token {at}"


def _names(machine: TuringMachine, tokens: IntArray) -> str:
    return "`" + " ".join(machine.vocabulary[token] for token in tokens.tolist()) + "`"
