"""Unusual shapes of runs: the program is right there too, and programs that are wrong only there are noticed."""

from __future__ import annotations

from proofs_check.sampled.corners import CORNERS, verify_corners


def test_the_program_is_right_in_every_corner() -> None:
    told: list[tuple[int, int]] = []
    reports = verify_corners(40, seed=3, progress=lambda done, total: told.append((done, total)))
    assert all(report.ok for report in reports.values())
    assert all(0 < report.tally.correct < 40 for name, report in reports.items() if name != "past the bound")
    assert told[-1] == (len(CORNERS), len(CORNERS))
