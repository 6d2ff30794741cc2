"""Why a program, or a model, is wrong where it is: what the theorem or the task's contract says of that place."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rasp import TuringMachine

if TYPE_CHECKING:
    from compile import Transformer

UNPREDICTED = "The theorem does not predict this failure: please report it."


def why_wrong(machine: TuringMachine, tape: list[int], step: int, n: int, packing: str) -> str:
    """Why the program first goes wrong at this step: the repeated gram, or the two keys that collide."""
    from proofs_check.hypotheses import first_wrong_step, repeat_on

    def names(gram: tuple[int, ...]) -> str:
        return " ".join(machine.vocabulary[token] for token in gram) or "sep"

    found = first_wrong_step(machine, tape, step, n, packing)
    if found is None or found.step != step:
        return UNPREDICTED
    asked, answered = found.asked, found.answered
    if asked.step == answered.step:
        written = machine.trace(tape, step)[-len(tape) - 1 : -1].tolist()
        where = repeat_on(written, n + 1)
        assert where is not None
        gram = tuple(written[where[0] : where[0] + n + 1])
        return (
            f"Tape {step} holds the {n + 1}-gram `{names(gram)}` twice (positions {where[0]} and {where[1]}): asked "
            f"what follows it, the program takes the larger of the two answers. "
            f"A larger n tells them apart, as does --tags."
        )
    return (
        f"Two keys collide: `{names(asked.gram)}` on tape {asked.step} and `{names(answered.gram)}` on tape "
        f"{answered.step} are both {found.key}. The paper's packing is good for {machine.base**n} steps at n = {n}; "
        f"use a larger n, or --packing unbounded."
    )


def why_model_wrong(
    model: Transformer, trace: np.ndarray, given: int, machine: TuringMachine | None, at: int, said: int
) -> str:
    """Of the first token of a right text, `given` up to its prompt's end, that a model gets wrong: `said` at token
    `at`; -1: it refuses."""
    extra = model.config.extra
    if said < 0:
        return f"{model.config.refusal}." if model.config.refusal else "It refuses to answer."
    if "backend" not in extra or "n" not in extra:
        return "It was learned: nothing promises that it is right."
    n, packing = model.config.note("n", int), str(extra.get("packing", "unbounded"))
    if machine is not None and "machine" in extra:
        return why_wrong(machine, np.asarray(trace)[: given - 1].tolist(), (at + 1) // given, n, packing)
    return (
        f"It does what its program does, which looks {n + 1} tokens back: something copied here repeats them. "
        "A larger --n tells them apart."
    )
