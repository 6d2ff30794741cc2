"""Schedules: points over steps, jumps, stretching, ending, and what two have had in common so far."""

from __future__ import annotations

import pytest

from experiments.schedule import Schedule, warmup_then_decay

JUMP = Schedule(((0, 1.0), (5, 1.0), (5, 3.0)))


def test_straight_lines_between_points_and_constant_outside() -> None:
    schedule = Schedule(((2, 0.0), (4, 1.0), (8, 0.0)))
    assert [schedule.at(step) for step in range(10)] == [0, 0, 0, 0.5, 1, 0.75, 0.5, 0.25, 0, 0]


def test_two_points_at_one_step_are_a_jump() -> None:
    assert [JUMP.at(step) for step in (0, 4, 5, 11)] == [1, 1, 3, 3]
    assert [JUMP.stretched(2).at(step) for step in (9, 10)] == [1, 3]


def test_numbers_stay_and_json_is_undone() -> None:
    assert Schedule.read(0.5).at(0) == Schedule.read(0.5).at(10**6) == 0.5
    for schedule in (JUMP, Schedule.read(2), warmup_then_decay(10, 100)):
        assert Schedule.read(schedule.to_json()) == schedule


@pytest.mark.parametrize(
    "wrong", [[], [[1, 2], [0, 1]], [[0, float("nan")]], "often", None, [1, 2], [[0]], float("inf")]
)
def test_what_is_no_schedule_is_refused(wrong: object) -> None:
    with pytest.raises(ValueError, match="no schedule"):
        Schedule.read(wrong)


def test_the_learning_rate_rises_and_falls_to_zero() -> None:
    factors = [warmup_then_decay(10, 100).at(step) for step in range(101)]
    assert factors[0] == pytest.approx(0.1) and max(factors) == factors[9] == factors[10] == 1.0 and factors[100] == 0.0
    assert warmup_then_decay(0, 4).at(0) == 1


def test_a_run_may_decide_to_end_at_another_step_whenever_it_likes() -> None:
    planned = warmup_then_decay(220, 5500)
    for now in range(0, 5000, 7):
        ended = planned.ending(now, 5000)
        assert ended.agrees(planned, now) and ended.at(5000) == 0
        assert max(ended.at(step) for step in (219, 220)) == 1
    assert planned.ending(100, 150).at(149) == pytest.approx(planned.at(149))  # no time to come to the top


def test_agreement_is_of_the_steps_that_were_taken() -> None:
    other = Schedule.read(1)
    assert JUMP.agrees(other, 5) and not JUMP.agrees(other, 6)
    assert not JUMP.agrees(Schedule(((0, 1.0), (4, 1.0), (4, 3.0))), 5)
    assert not warmup_then_decay(500, 5500).agrees(warmup_then_decay(220, 5500), 400)
    assert warmup_then_decay(5, 50).agrees(warmup_then_decay(7, 90), 0)
