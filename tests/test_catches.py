"""Every wrong program is caught by the checks that are meant to catch it, in a part of their default runs."""

from __future__ import annotations

import numpy as np
import pytest

from proofs_check.catches import NOT_BY_EXHAUST, NOT_BY_VERIFY
from proofs_check.exhaustive import MachineSpace, _run, all_tapes, numbered_machines
from proofs_check.sampled.corners import CORNERS, SHOWS_IN, verify_corner
from proofs_check.sampled.sweep import verify
from proofs_check.symbolic.mutants import CONCERNS, MUTANTS

BY_NAME = {corner.name: corner for corner in CORNERS}
DEFAULT = MachineSpace(2, 2, 1, "paper")

# Machines of 2 x 2 by number, and tapes: where `exhaust` meets each wrong program that does not show at once
FAR = {
    "the state never changes": (4099, [1, 6, 2]),
    "the symbol is not written": (45089, [1, 6, 4, 2]),
    "the tokens of a gram are added up": (45089, [1, 6, 4, 2]),
    "the hash has too small a base": (61485, [1, 4, 6, 4, 2]),
    "the gram is one token short": (0, [1, 6, 4, 4, 2]),
    "the gram is one token too long": (0, [1, 6, 4, 4, 4, 2]),
    "the mean of the matches is taken": (0, [1, 6, 4, 4, 4, 2]),
}


@pytest.mark.parametrize("mutant", [name for name in MUTANTS if name not in NOT_BY_VERIFY and name not in SHOWS_IN])
def test_verify_catches(mutant: str) -> None:
    """On the first machines of its default sweep; machine number i is the same however many there are."""
    assert not verify(8, engine="stream", program=f"mutant:{mutant}", workers=1).ok


@pytest.mark.parametrize("mutant", SHOWS_IN)
def test_a_corner_of_verify_catches(mutant: str) -> None:
    report = verify_corner(BY_NAME[SHOWS_IN[mutant]], 24, program=f"mutant:{mutant}")
    assert not report.ok and report.counterexample is not None


@pytest.mark.parametrize("mutant", [name for name in MUTANTS if name not in NOT_BY_EXHAUST])
def test_exhaust_catches(mutant: str) -> None:
    number, tape = FAR.get(mutant, (0, [1, 6, 2]))
    assert tape in list(all_tapes(2, 2, len(tape) - 3))
    tables = numbered_machines(2, 2, np.array([number]))
    assert len(_run(DEFAULT, tables, tape, 8, f"mutant:{mutant}", "eager")[1]) == 1
    assert len(_run(DEFAULT, tables, tape, 8, None, "eager")[1]) == 0


@pytest.mark.parametrize("mutant", NOT_BY_VERIFY)
def test_what_shows_in_no_run_concerns_a_lemma(mutant: str) -> None:
    assert mutant in CONCERNS["where"]
    assert verify(4, engine="stream", program=f"mutant:{mutant}", workers=1).ok


def test_only_wrong_programs_are_named() -> None:
    assert set(NOT_BY_VERIFY) <= set(NOT_BY_EXHAUST) <= set(MUTANTS)
    assert set(FAR) | set(SHOWS_IN) <= set(MUTANTS)
