"""A run that contradicts the theorem, made small enough to follow by hand."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from proofs_check.hypotheses import first_wrong_step, split_tapes
from proofs_check.programs import Predictions, predictions
from rasp.machines.machine import TuringMachine

MOST_TRIALS = 2000


@dataclass(frozen=True)
class Run:
    """A machine on a tape for some steps. Runs compare by size: what a reader has to follow."""

    machine: TuringMachine
    tape: tuple[int, ...]
    steps: int

    @property
    def size(self) -> tuple[int, int, int, int]:
        used = len({token for token in self.tape if token in self.machine.symbol_tokens})
        return len(self.tape), self.steps, self.machine.base, used


@dataclass(frozen=True)
class Counterexample:
    """A run on which theorem and program differ: the positions of the first wrong prediction (None: all right)."""

    run: Run
    original: Run
    n: int
    packing: str
    theorem: int | None
    program: int | None
    trace: tuple[int, ...]
    predicted: tuple[int, ...]

    def render(self) -> str:
        """The run and the disagreement, for a reader."""
        return "\n".join([*_machine_lines(self), *_tape_lines(self), *_verdict_lines(self)])


def counterexample(
    machine: TuringMachine, tape: list[int], steps: int, n: int, packing: str, program: str | Predictions | None = None
) -> Counterexample | None:
    """The run, shrunk while theorem and program still differ on it; None if they agree."""
    original = Run(machine, tuple(tape), steps)
    found = _examine(original, original, n, packing, program)
    if found is None:
        return None
    trials = 0
    shrinking = True
    while shrinking and trials < MOST_TRIALS:
        shrinking = False
        for candidate in _smaller(found):
            trials += 1
            better = _examine(candidate, original, n, packing, program)
            if better is not None and better.run.size < found.run.size:
                found, shrinking = better, True
                break
    return found


def _examine(run: Run, original: Run, n: int, packing: str, program: str | Predictions | None) -> Counterexample | None:
    trace = run.machine.trace(run.tape, run.steps)
    start = len(run.tape) - 1
    predicted = predictions(trace[:-1], run.machine, n, packing, program)
    wrong = np.flatnonzero(predicted[start:] != trace[start + 1 :])
    observed = start + int(wrong[0]) if len(wrong) else None
    expected = first_wrong_step(run.machine, run.tape, run.steps, n, packing)
    theorem = None if expected is None else expected.index
    if theorem == observed:
        return None
    tokens, answers = tuple(trace.tolist()), tuple(predicted.tolist())
    return Counterexample(run, original, n, packing, theorem, observed, tokens, answers)


# --- smaller runs -----------------------------------------------------------------------------------------------------


def _smaller(found: Counterexample) -> Iterator[Run]:
    """Runs to try: fewer steps, fewer cells, fewer states and symbols, plainer cells."""
    run = found.run
    decisive = min(position for position in (found.theorem, found.program) if position is not None)
    needed = max(1, (decisive + 1) // (len(run.tape) + 1))
    if needed < run.steps:
        yield replace(run, steps=needed)
    yield from _fewer_cells(run)
    yield from _smaller_machine(run)
    yield from _plainer_cells(run)


def _fewer_cells(run: Run) -> Iterator[Run]:
    here = run.machine.decode(run.tape)
    for i in range(len(here.cells)):
        cells = here.cells[:i] + here.cells[i + 1 :]
        for head in {here.head - (here.head > i), min(here.head, len(cells))}:
            yield replace(run, tape=tuple(run.machine.encode(cells, head, here.state)))


def _plainer_cells(run: Run) -> Iterator[Run]:
    here = run.machine.decode(run.tape)
    for i in range(len(here.cells)):
        for plain in sorted({*here.cells}):
            cells = (*here.cells[:i], plain, *here.cells[i + 1 :])
            yield replace(run, tape=tuple(run.machine.encode(cells, here.head, here.state)))


def _smaller_machine(run: Run) -> Iterator[Run]:
    """Only the states and symbols that occur in the run; rules that lead elsewhere stay where they are."""
    machine = run.machine
    seen = {machine.vocabulary[token] for token in set(machine.trace(run.tape, run.steps).tolist())}
    states, symbols = (tuple(x for x in names if x in seen) for names in (machine.states, machine.symbols))
    symbols = symbols or machine.symbols[:1]  # a tape without cells shows none
    if len(states) + len(symbols) == len(machine.states) + len(machine.symbols):
        return
    here = machine.decode(run.tape)
    smaller = TuringMachine(
        states=states,
        symbols=symbols,
        final=machine.final & set(states),
        name=machine.name,
        transitions={
            (q, a): (b if b in symbols else a, move, to if to in states else q)
            for (q, a), (b, move, to) in machine.transitions.items()
            if q in states and a in symbols
        },
        bounce={(q, end): to if to in states else q for (q, end), to in machine.bounce.items() if q in states},
    )
    yield Run(smaller, tuple(smaller.encode(here.cells, here.head, here.state)), run.steps)


# --- text -------------------------------------------------------------------------------------------------------------


def _machine_lines(found: Counterexample) -> Iterator[str]:
    run, original = found.run, found.original
    yield (
        f"machine {original.machine.name}, hash parameter n = {found.n}, {found.packing} packing; shrunk from "
        f"{len(original.machine.symbols)} symbols, {len(original.machine.states)} states, "
        f"{len(original.tape) - 3} cells, {original.steps} steps to {len(run.machine.symbols)}, "
        f"{len(run.machine.states)}, {len(run.tape) - 3}, {run.steps}"
    )
    yield "rules used:"
    yield from dict.fromkeys(_rule(run.machine, tape) for tape in split_tapes(found.trace)[:-1])


def _rule(machine: TuringMachine, tape: list[int]) -> str:
    here = machine.decode(tape)
    if 0 <= here.head < len(here.cells):
        write, move, to = machine.transitions[here.state, here.cells[here.head]]
        return f"  {here.state} on {here.cells[here.head]}: write {write}, move {move}, become {to}"
    end, back = ("bos", "R") if here.head < 0 else ("eos", "L")
    return f"  {here.state} on {end}: bounce {back}, become {machine.bounce[here.state, end]}"


def _tape_lines(found: Counterexample) -> Iterator[str]:
    machine = found.run.machine
    yield "tapes ([state:symbol under the head]):"
    for step, tape in enumerate(split_tapes(found.trace)):
        yield f"  step {step}: {machine.format_tape(tape)}    tokens {' '.join(machine.vocabulary[t] for t in tape)}"


def _verdict_lines(found: Counterexample) -> Iterator[str]:
    yield f"the theorem says: {_says(found, found.theorem)}"
    yield f"the program is:   {_says(found, found.program)}"
    if found.program is not None:
        name = found.run.machine.vocabulary
        expected, given = found.trace[found.program + 1], found.predicted[found.program]
        yield f"                  it writes {_named(name, given)} where {_named(name, expected)} belongs"
    why = first_wrong_step(found.run.machine, found.run.tape, found.run.steps, found.n, found.packing)
    reason = why.told(partial(_named, found.run.machine.vocabulary)) if why is not None else None
    yield f"because: {reason or f'no tape it writes repeats a {found.n + 1}-gram, and no two keys collide'}"


def _says(found: Counterexample, position: int | None) -> str:
    if position is None:
        return f"right through all {found.run.steps} step(s)"
    step, token = divmod(position + 1, len(found.run.tape) + 1)
    return f"first wrong at step {step}, token {token} of its tape"


def _named(vocabulary: Any, token: int) -> str:
    return vocabulary[token] if 0 <= token < len(vocabulary) else f"{token}, which is no token,"
