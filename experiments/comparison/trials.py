"""What one simulator does with tapes of one length: it predicts, it writes the next tape, and it goes on from there.

Programs and compiled models are held to their promises (`checks.py`) at every answer they give.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from experiments.comparison.anatomy import Failure, first_failure
from experiments.comparison.checks import Checks, check_predictions, check_written
from experiments.comparison.simulators import Description, IntArray, Simulator
from experiments.evaluation.evaluate import TOKENS_TOGETHER
from rasp import TuringMachine

BoolArray = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Trial:
    """B tapes of W tokens. `written` and `expected` are the next tape with its separator, (B, W + 1); `predicted` is
    what was said at each of these tokens after the right ones before it; `alive` (steps, B): no error up to step k,
    each step on the tape that the simulator wrote itself."""

    simulator: str
    tapes: IntArray
    expected: IntArray
    written: IntArray
    predicted: IntArray
    alive: BoolArray

    @property
    def length(self) -> int:
        """Cells of the tape: without end markers and state."""
        return self.tapes.shape[1] - 3

    @property
    def right(self) -> BoolArray:
        return (self.written == self.expected).all(axis=1)

    def failures(self, machine: TuringMachine) -> list[Failure]:
        texts = (part.tolist() for part in (self.tapes, self.expected, self.written))
        found = (first_failure(machine, *row) for row in zip(*texts, strict=True))
        return [failure for failure in found if failure]


def attempt(who: Description, simulator: Simulator, machine: TuringMachine, truth: IntArray) -> tuple[Trial, Checks]:
    """What a simulator writes for tapes of one width; `truth` is (tapes, steps + 1, width)."""
    text = truth[:, :2].reshape(len(truth), -1)
    said = predict(who, simulator, text)
    checks = check_predictions(who, machine, text, said)
    alive: list[BoolArray] = [np.ones(len(truth), dtype=np.bool_)]
    first: IntArray | None = None
    for step in range(1, truth.shape[1]):
        rows = np.flatnonzero(alive[-1])  # a run that went wrong stays wrong; the others are on the true tape
        pairs, now = truth[rows, step - 1 : step + 1], np.zeros(len(truth), dtype=np.bool_)
        if len(rows):
            written = write(who, simulator, pairs[:, 0])
            checks += check_written(who, machine, pairs, written)
            now[rows] = (written == pairs[:, 1]).all(axis=1)
            first = written if first is None else first
        alive.append(now)
    assert first is not None
    width = truth.shape[2]
    predicted = said[:, width - 1 : -1]  # a token is predicted at the one before it
    return Trial(who.name, truth[:, 0, :-1], truth[:, 1], first, predicted, np.array(alive[1:])), checks


def predict(who: Description, simulator: Simulator, text: IntArray) -> IntArray:
    """What it says at every token of `text` about the next one."""
    return ask(f"{who.name}.predict", simulator.predict, text, text.shape[1])


def write(who: Description, simulator: Simulator, prompts: IntArray) -> IntArray:
    """As many tokens after each prompt as it has itself."""
    width, name = prompts.shape[1], f"{who.name}.generate"
    said = ask(name, lambda rows: simulator.generate(rows, width), prompts, 2 * width)
    if (said[:, :width] != prompts).any():
        raise ValueError(
            f"{name} returns other prompts than it was given; expected each prompt and what comes after it"
        )
    return said[:, width:]


def ask(name: str, answer: Callable[[IntArray], Any], rows: IntArray, width: int) -> IntArray:
    """The answers to all rows, `width` tokens each; so many rows at a time as memory allows."""
    together = max(1, TOKENS_TOGETHER // (2 * rows.shape[1]))
    with torch.inference_mode():
        parts = [answer(rows[i : i + together]) for i in range(0, len(rows), together)]
    said = [np.asarray(row) for part in parts for row in part]
    if [row.shape for row in said] != [(width,)] * len(rows):
        sizes = sorted({row.shape for row in said})
        raise ValueError(f"{name} returns {len(said)} rows of shapes {sizes}; expected {len(rows)} of {width} tokens")
    return np.array(said, dtype=np.int64)
