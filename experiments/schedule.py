"""What changes during training, as points over steps: learning rates, shares of practice, weights in the loss."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

Points = tuple[tuple[int, float], ...]


@dataclass(frozen=True)
class Schedule:
    """A value for every step 0, 1, ...: straight lines between the points (step, value), and constant before the first
    and after the last. Two points at one step are a jump: from that step on, the second one holds."""

    points: Points

    def __post_init__(self) -> None:
        steps = [step for step, _ in self.points]
        if not steps or steps != sorted(steps) or not all(math.isfinite(value) for _, value in self.points):
            raise ValueError(f"{list(self.points)} is no schedule; expected [step, value] points in the order of steps")

    @classmethod
    def read(cls, given: Any) -> Schedule:
        """From what a recipe says: a number that stays, or a list of points."""
        if isinstance(given, Schedule):
            return given
        if isinstance(given, int | float):
            return cls(((0, float(given)),))
        try:
            return cls(tuple((int(step), float(value)) for step, value in given))
        except (TypeError, ValueError):
            raise ValueError(
                f"{given!r} is no schedule; expected a number, or points such as [[0, 0], [500, 1]]"
            ) from None

    def to_json(self) -> float | list[list[float]]:
        return self.points[0][1] if len(self.points) == 1 else [[step, value] for step, value in self.points]

    def at(self, step: int) -> float:
        later = next((i for i, (start, _) in enumerate(self.points) if start > step), len(self.points))
        if later in (0, len(self.points)):
            return self.points[min(later, len(self.points) - 1)][1]
        (a, before), (b, after) = self.points[later - 1], self.points[later]
        return before if step == a else after + (before - after) * (b - step) / (b - a)

    @property
    def values(self) -> list[float]:
        return [value for _, value in self.points]

    def stretched(self, factor: float) -> Schedule:
        """The same over so many times as many steps; what is before the first step stays there."""
        return Schedule(tuple((round(step * factor) if step > 0 else step, value) for step, value in self.points))

    def ending(self, now: int, last: int) -> Schedule:
        """The same until step `now`, or to its highest point if that comes later; then straight to its last value,
        which it has at step `last`."""
        top = max(i for i, value in enumerate(self.values) if value == max(self.values))
        turn = min(max(now, self.points[top][0]), last)
        kept = (point for point in self.points if point[0] < turn)
        return Schedule((*kept, (turn, self.at(turn)), (last, self.values[-1])))

    def agrees(self, other: Schedule, steps: int) -> bool:
        """Whether both are the same in the first so many steps. Between corners they are straight."""
        corners = {corner for step, _ in (*self.points, *other.points) for corner in (step - 1, step)}
        looked_at = {corner for corner in corners | {0, steps - 1} if 0 <= corner < steps}
        return all(math.isclose(self.at(s), other.at(s), rel_tol=1e-9, abs_tol=1e-12) for s in looked_at)


def warmup_then_decay(warmup: int, steps: int) -> Schedule:
    """Up to 1 in so many steps, the first of which is above 0; then straight down to 0 after the last."""
    rise: Points = ((-1, 0.0), (warmup - 1, 1.0)) if warmup else ()
    return Schedule((*rise, (warmup, 1.0), (steps, 0.0)))
