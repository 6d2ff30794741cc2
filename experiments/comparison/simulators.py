"""Who can be compared: anything that predicts and generates. What is made here are the machine itself, the RASP program
and a learned checkpoint with its sliding window; compiled (and learned) `Transformer`s need no wrapper.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from compile.transformer import Transformer
from experiments.evaluation.checkpoints import Checkpoint
from experiments.evaluation.evaluate import ADVANCE
from rasp import TuringMachine
from rasp.engines import turing as engines
from rasp.machines.tape import sep

IntArray = npt.NDArray[np.int64]


class Simulator(Protocol):
    """Two methods on rows of equally many tokens. A row is `tape sep`, or `tape sep next-tape sep`."""

    def predict(self, tokens: IntArray, /) -> npt.ArrayLike:
        """(rows, T) -> (rows, T): at every position the token that should come next. Only what follows the first
        separator is looked at."""

    def generate(self, prompts: IntArray, count: int, /) -> npt.ArrayLike | Sequence[IntArray]:
        """(rows, P) -> (rows, P + count): the prompts, each continued by its `count` likeliest tokens, one by one."""


# --- the machine, and the program -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class TrueMachine:
    """Never wrong: every tape is followed by what the machine makes of it. Before a first tape is complete nothing can
    be known, and it answers `sep`."""

    machine: TuringMachine

    def predict(self, tokens: IntArray) -> IntArray:
        return np.array([self._next_tokens(row.tolist()) for row in tokens], dtype=np.int64)

    def generate(self, prompts: IntArray, count: int) -> IntArray:
        return np.array([self._continued(row.tolist(), count) for row in prompts], dtype=np.int64)

    def _next_tokens(self, row: list[int]) -> list[int]:
        ends = [i for i, token in enumerate(row) if token == sep]
        if not ends:
            return [sep] * len(row)
        told = [sep] * ends[0]
        for tape in self._tapes(row):
            told += [*self.machine.step(tape), sep]
        return told[: len(row)]

    def _continued(self, row: list[int], count: int) -> list[int]:
        total = len(row) + count
        while len(row) < total:
            *_, tape = self._tapes(row)
            begun = len(row) - 1 - max(i for i, token in enumerate(row) if token == sep)
            row = [*row, *[*self.machine.step(tape), sep][begun:]]
        return row[:total]

    def _tapes(self, row: list[int]) -> Iterator[list[int]]:
        """The tapes that a separator ends."""
        start = 0
        for i, token in enumerate(row):
            if token == sep:
                yield row[start:i]
                start = i + 1


@dataclass(frozen=True)
class ProgramSimulator:
    """The paper's RASP program, compiled to machine code. It hashes n + 1 tokens."""

    machine: TuringMachine
    n: int = 1
    packing: str = "unbounded"

    def predict(self, tokens: IntArray) -> IntArray:
        rows = [engines.predict(row, self.machine, self.n, self.packing, "jit") for row in tokens]
        return np.array(rows, dtype=np.int64).reshape(np.shape(tokens))

    def generate(self, prompts: IntArray, count: int) -> IntArray:
        rows = [engines.generate(row, self.machine, count, self.n, self.packing) for row in prompts]
        return np.array(rows, dtype=np.int64).reshape(len(prompts), -1)


def steps_needed(machine: TuringMachine, tapes: Sequence[Any] | IntArray, n: int) -> int:
    """For `compile_machine`: the `steps` with which a model can count all separators that program n writes in the
    place of one next tape. A program that has lost its place may write several."""
    most = 1
    for tape in tapes:
        written = engines.generate([*tape, sep], machine, len(tape) + 1, n, "unbounded")
        most = max(most, int((written == sep).sum()) - 1)
    return most


# --- learned models ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class LearnedSimulator:
    """A checkpoint as `evaluate` runs it: it sees its training context, which loses its oldest tokens when full.

    Leave the window away with `checkpoint.model`, which is a simulator by itself.
    """

    model: Transformer
    context: int

    @classmethod
    def of(cls, checkpoint: Checkpoint) -> LearnedSimulator:
        return cls(checkpoint.model, checkpoint.context)

    def generate(self, prompts: IntArray, count: int) -> Sequence[IntArray]:
        said = self.model.generate(prompts, count, context=self.context, advance=min(ADVANCE, self.context))
        return said if isinstance(said, list) else [said]

    def predict(self, tokens: IntArray) -> IntArray:
        """Seen through the window that `generate` has after a prompt shorter than the context."""
        told = np.empty_like(tokens)
        advance, known = min(ADVANCE, self.context), 0
        for start in range(0, max(1, tokens.shape[1] - self.context + advance), advance):
            seen = tokens[:, start : start + self.context]
            told[:, known : start + seen.shape[1]] = self.model.predict(seen)[:, known - start :]
            known = start + seen.shape[1]
        return told


# --- what they are ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Description:
    """`kind` is machine, program, compiled, learned or own; the rest is known of programs and compiled models."""

    name: str
    kind: str
    n: int | None = None
    backend: str | None = None
    packing: str | None = None

    @property
    def promises(self) -> bool:
        """Whether the theorem says exactly when it is right."""
        return self.kind in ("program", "compiled")

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def describe(name: str, simulator: Simulator) -> Description:
    if isinstance(simulator, TrueMachine):
        return Description(name, "machine")
    if isinstance(simulator, ProgramSimulator):
        return Description(name, "program", simulator.n, packing=simulator.packing)
    if isinstance(simulator, LearnedSimulator):
        return Description(name, "learned")
    extra = simulator.config.extra if isinstance(simulator, Transformer) else {}
    if isinstance(simulator, Transformer) and {"backend", "n", "machine"} <= set(extra):
        note = simulator.config.note
        packing = note("packing", str) if "packing" in extra else "unbounded"
        return Description(name, "compiled", note("n", int), note("backend", str), packing)
    return Description(name, "learned" if "task" in extra else "own")
