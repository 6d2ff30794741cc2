"""Each hypothesis is needed: the searches find the smallest runs that break it, and not before."""

from __future__ import annotations

import pytest

from proofs_check import first_repeat
from proofs_check.sharpness import (
    all_machines,
    all_tapes,
    ceiling,
    first_error,
    hypothesis_rates,
    is_linear,
    key_limits,
    past_the_bound,
    program_sizes,
    smallest_escape,
    smallest_repeat,
)
from rasp import TuringMachine, next_tokens


def test_all_small_machines_and_tapes_are_gone_through() -> None:
    machines = list(all_machines(2, 1))
    assert len(machines) == len(set(machines)) == (2 * 2 * 1) ** 2
    assert len(list(all_tapes(machines[0], 2))) == 2**2 * 4


@pytest.mark.parametrize("n", [1, 2])
def test_the_smallest_repeat_has_n_plus_two_cells(n: int) -> None:
    found = smallest_repeat(n)
    assert len(found.tape) - 3 == n + 2 and found.step == 1
    trace = found.machine.trace(found.tape, found.step)
    assert first_repeat(trace, n) is not None and first_repeat(trace, n + 1) is None
    before, after = trace[: found.tokens], trace[found.tokens]
    assert next_tokens(before, found.machine, n, "unbounded")[-1] != after


def test_the_smallest_escape_leaves_one_cell() -> None:
    found = smallest_escape()
    assert len(found.tape) == 4 and found.step == 2


@pytest.mark.parametrize(("symbols", "states"), [(1, 1), (2, 2), (4, 4), (12, 16)])
def test_the_first_step_past_the_bound_fails(symbols: int, states: int) -> None:
    row = past_the_bound(1, symbols, states)
    assert row.base == 4 + symbols + states
    assert row.earliest is not None and row.earliest.step == row.base + 1
    assert row.witness is not None and row.witness.answered.step == 1
    assert first_repeat(row.earliest.machine.trace(row.earliest.tape, row.earliest.step)) is None


def test_at_n_2_the_bound_is_1024() -> None:
    row = past_the_bound(2, machines=128)
    assert row.bound == 1024 and row.earliest is not None and row.earliest.step == 1025


def test_a_program_without_the_bound_would_be_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the other packing the collisions that the search predicts do not happen: it must say so."""
    monkeypatch.setattr("proofs_check.sharpness.predictions", _unbounded)
    with pytest.raises(AssertionError, match="does not go wrong"):
        past_the_bound(1, 2, 2)


def _unbounded(x: object, machine: TuringMachine, n: int, packing: str) -> object:
    return next_tokens(x, machine, n, "unbounded")


def test_a_program_that_ignores_repeats_would_be_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A program that looks further back than n is still right where the printed one fails: more cells are needed."""
    monkeypatch.setattr("proofs_check.sharpness.predictions", lambda x, m, n, p: next_tokens(x, m, n + 1, p))
    assert len(smallest_repeat(1).tape) - 3 == 4


@pytest.mark.parametrize(
    ("n", "symbols", "states", "limit"),
    [
        (1, 1, 1, 36),
        (1, 2, 2, 64),
        (1, 12, 16, 1024),
        (2, 1, 1, 1296),
    ],
)
def test_nothing_is_right_past_the_ceiling(n: int, symbols: int, states: int, limit: int) -> None:
    found = ceiling(n, symbols, states)
    assert (found.limit, found.right_past_limit, found.longest) == (limit, 0, limit)


def test_the_program_itself_fails_right_after_the_ceiling() -> None:
    machine = TuringMachine.random(2, 2, seed=0)
    tape = tuple(machine.encode([], -1))
    at = first_error(machine, tape, 65, 1, "paper")
    assert at is not None and (at + 1) // 4 == 65


def test_int64_limits() -> None:
    rows = {row.n: row for row in key_limits()}
    assert [n for n, row in rows.items() if row.fits] == [1, 2, 3, 4, 5]
    assert all(rows[n].twins is None for n in range(1, 6))
    assert rows[6].twins == (0, 16) and rows[7].twins == (0, 1) == rows[12].twins
    assert not rows[12].overflows and rows[13].overflows
    assert "every run fails" in str(rows[7]) and "leading bit" in str(rows[6])


def test_rates_fall_with_length_and_rise_with_n() -> None:
    rates = hypothesis_rates((5, 20, 50), (1, 2, 3), machines=500)
    for row in rates.values():
        assert row == sorted(row, reverse=True)
    assert rates[1][2] == 0 and rates[3][2] > 0.8
    assert all(a <= b for a, b in zip(rates[1], rates[2], strict=True))


def test_size_is_linear_in_n_and_depth_need_not_grow() -> None:
    rows = program_sizes((1, 2, 3))
    assert is_linear([r.nodes for r in rows]) and not is_linear([1, 2, 4])
    assert [r.depth for r in rows] == [4, 5, 6] and len({r.rewritten_depth for r in rows}) == 1
