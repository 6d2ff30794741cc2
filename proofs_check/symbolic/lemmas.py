"""What is claimed of the paper's program, each claim as formulas that must have no solution.

A lemma is built for a *program*, so that a wrong one can be put in its place: `mutants` does, and the
lemma must then be refuted. Local lemmas speak of one arbitrary position of an input of any length; end-to-end lemmas of
whole runs on tapes of given length. All of them hold for every machine at once.
"""

from __future__ import annotations

from proofs_check.symbolic.checking import Lemma
from proofs_check.symbolic.keys import keys_are_injective
from proofs_check.symbolic.runs import end_to_end
from proofs_check.symbolic.steps import (
    next_tape_is_step,
    next_tape_is_well_formed,
    separator_is_only_zero,
    start_is_padding,
    third_is_second_delayed,
    where_is_choice,
    window_is_enough,
)

ANYWHERE = "every machine and alphabet, any length, any head position"
LEMMAS: tuple[Lemma, ...] = (
    Lemma("where", "where(c, x, y) is x if c else y", "every int64 triple", where_is_choice),
    Lemma(
        "locality",
        "next_tape at a cell is a function of exactly the five cells -2 .. +2",
        "every machine and alphabet, every input of any length, any position",
        window_is_enough,
    ),
    Lemma(
        "padding",
        "before the start of the input next_tape reads zeros",
        "every machine and alphabet, every input of any length",
        start_is_padding,
    ),
    Lemma(
        "delay",
        "next_tape(x, 3) is next_tape(x, 2) one position later",
        "every machine and alphabet, every input of any length, any position",
        third_is_second_delayed,
    ),
    Lemma("step", "next_tape is the machine's step at every position from bos to sep", ANYWHERE, next_tape_is_step),
    Lemma("shape", "the next tape is well formed and as long as the tape", ANYWHERE, next_tape_is_well_formed),
    Lemma("separator", "next_tape is 0 at sep and nowhere else on the tape", ANYWHERE, separator_is_only_zero),
    Lemma(
        "keys",
        "equal count and (n+1)-gram mean equal keys; equal keys mean that, or counts at least 32**n apart",
        "packing paper, n = 1..5, token ids < 32, any length",
        keys_are_injective("paper", range(1, 6)),
    ),
    Lemma(
        "keys-unbounded",
        "keys are equal if and only if count and (n+1)-gram are",
        "packing unbounded, n = 1..5, token ids < 32, lengths up to 2**62 / 32**(n+1)",
        keys_are_injective("unbounded", range(1, 6)),
    ),
    *(
        end_to_end(n, steps, lengths, packing)
        for n, steps, lengths, packing in (
            (1, 1, range(8), "paper"),
            (2, 1, range(6), "paper"),
            (3, 1, (5, 6), "paper"),
            (1, 2, range(5), "paper"),
            (2, 2, (4,), "paper"),
            (1, 3, (3,), "paper"),
            (1, 2, range(4), "unbounded"),
            (1, 2, range(4), "tuple"),
            (7, 1, (9,), "tuple"),
        )
    ),
)


def lemma(name: str) -> Lemma:
    for candidate in LEMMAS:
        if candidate.name == name:
            return candidate
    raise ValueError(f"there is no lemma {name!r}: choose from {', '.join(known.name for known in LEMMAS)}")
