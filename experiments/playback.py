"""One run of a Turing machine by whoever is asked to do it, compared with what the machine really does.

`Playback` is what `turing-programs run` shows: the tapes as they were written, and the first token that is wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np

from rasp import TuringMachine

Writer = Callable[[np.ndarray, int], Iterable[int]]  # (prompt, count) -> the next tokens, one after the other
Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class Divergence:
    """The first wrong token: on tape `step`, at `position`, `written` stands where `expected` belongs."""

    step: int
    position: int
    expected: int
    written: int


@dataclass(frozen=True)
class Playback:
    """`tapes` are as written, up to and with the one that goes wrong. `true_tape` is what that one should be."""

    machine: TuringMachine
    tapes: list[list[int]]
    true_tape: list[int]
    halted: bool
    divergence: Divergence | None

    @property
    def correct(self) -> bool:
        return self.divergence is None

    @property
    def steps(self) -> int:
        """Steps carried out correctly."""
        return len(self.tapes) - 1 - (self.divergence is not None)


def play(
    machine: TuringMachine, tape: list[int], steps: int, write: Writer | None = None, progress: Progress | None = None
) -> Playback:
    """Run `steps` steps (or to a final state). `write` continues a prompt; without one the machine itself runs."""
    truth = machine.trace(tape, steps)
    width = len(tape) + 1
    written = truth if write is None else _written(write, truth, width, progress)
    wrong = np.flatnonzero(written != truth[: len(written)])
    divergence = None
    if len(wrong):
        at = int(wrong[0])
        divergence = Divergence(at // width, at % width, int(truth[at]), int(written[at]))
    shown = divergence.step if divergence else len(truth) // width - 1
    tapes = [written[t * width : (t + 1) * width - 1].tolist() for t in range(shown + 1)]
    last = truth[shown * width : (shown + 1) * width - 1].tolist()
    halted = divergence is None and any(token in machine.final_tokens for token in last)
    return Playback(machine, tapes, last, halted, divergence)


def _written(write: Writer, truth: np.ndarray, width: int, progress: Progress | None) -> np.ndarray:
    """The prompt and what is written after it: all, or to the end of the first tape that goes wrong."""
    tokens, end = truth[:width].tolist(), len(truth)
    for token in write(truth[:width], len(truth) - width):
        at = len(tokens)
        if token != truth[at]:
            end = min(end, (at // width + 1) * width)
        tokens.append(int(token))
        if progress:
            progress(len(tokens), len(truth))
        if len(tokens) >= end:
            break
    return np.array(tokens)


def explain(playback: Playback, n: int, packing: str) -> str:
    """Why the RASP program went wrong where it did: the repeated gram, or the two keys that collide."""
    from proofs_check.hypotheses import Repeat, first_wrong_step, repeat_on

    machine, divergence = playback.machine, playback.divergence
    assert divergence is not None

    def names(gram: tuple[int, ...]) -> str:
        return " ".join(machine.vocabulary[token] for token in gram) or "sep"

    found = first_wrong_step(machine, playback.tapes[0], divergence.step, n, packing)
    if found is None or found.step != divergence.step:
        return "The theorem does not predict this failure: please report it."
    asked, answered = found.asked, found.answered
    if asked.step == answered.step:
        where = repeat_on(playback.true_tape, n + 1)
        assert where is not None
        repeat = Repeat(found.step, *where, gram=tuple(playback.true_tape[where[0] : where[0] + n + 1]))
        return (
            f"Tape {repeat.step} holds the {n + 1}-gram `{names(repeat.gram)}` twice (positions {repeat.first} and "
            f"{repeat.second}): asked what follows it, the program takes the larger of the two answers. "
            f"A larger n tells them apart, as does --tags."
        )
    return (
        f"Two keys collide: `{names(asked.gram)}` on tape {asked.step} and `{names(answered.gram)}` on tape "
        f"{answered.step} are both {found.key}. The paper's packing is good for {machine.base**n} steps at n = {n}; "
        f"use a larger n, or --packing unbounded."
    )


def count_written(machine: TuringMachine, tape: list[int]) -> int:
    """How many cells are not blank."""
    return sum(token in machine.symbol_tokens and token != machine.blank_token for token in tape)


