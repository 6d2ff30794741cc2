"""Unusual shapes of runs: the program is right there too, and programs that are wrong only there are noticed."""

from __future__ import annotations

import pytest

from proofs_check.sampled.corners import CORNERS, SHOWS_IN, verify_corner, verify_corners
from proofs_check.symbolic.mutants import MUTANTS

BY_NAME = {corner.name: corner for corner in CORNERS}


def test_the_program_is_right_in_every_corner() -> None:
    told: list[tuple[int, int]] = []
    reports = verify_corners(40, seed=3, progress=lambda done, total: told.append((done, total)))
    assert all(report.ok for report in reports.values())
    assert all(0 < report.tally.correct < 40 for name, report in reports.items() if name != "past the bound")
    assert told[-1] == (len(CORNERS), len(CORNERS))


@pytest.mark.parametrize("mutant", SHOWS_IN)
def test_a_wrong_program_shows_in_its_corner(mutant: str) -> None:
    assert mutant in MUTANTS
    report = verify_corner(BY_NAME[SHOWS_IN[mutant]], 24, program=f"mutant:{mutant}")
    assert not report.ok and report.counterexample is not None
