"""How much attention the sparse engine can leave out, known from the weights before anything is decoded.

An unbounded head scores a key by `strength` times the parts in which it agrees with the query, plus the level of the
key. Keys with the same parts are a class; what is kept is the class that the query meets in full, its highest level
only, and the start tokens. Among N tokens, the share of the softmax that is left out is at most

    other classes   N exp(strength * missed + highest - start): they score at most `strength` for each of the `missed`
                    parts that a key can share with a query it does not meet in full, and `highest` is the highest
                    level; what is kept scores at least as much as a start token
    lower levels    N exp(-step), where `step` is the least distance between two levels

`missed` follows from the registers, of which at most one direction is on (recorded by the compiler): a key has at most
one part of each. For N = LONGEST and the compiler's scores (SHARP = 40, RANK = 24) this is 7e-11 for a match, and as
many times that for a count as there are start tokens; 6e-4 for lower levels.

Neither can change a token. A match brings a one-hot vector that is read as such up to 0.02, twenty times LOWER_LEVELS.
A count c is decoded from the start's share 1 / (1 + c), correctly if that is off by less than a part 1 / (3 c), 8e-5
for c = 4096: thirteen times OTHER_CLASSES; heads that count or take means have one level. A head beyond these bounds is
refused when the model is read (`check_bounds`), and the same is checked at every token with the scores that occurred
(`matching`): torch then decodes the model, and says so.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

LONGEST = 2**24  # tokens for which bounds are stated
OTHER_CLASSES, LOWER_LEVELS = 6e-6, 1e-3  # the largest shares that may be left out
LEAST_GAP, LEAST_LOWER_GAP = -math.log(OTHER_CLASSES), -math.log(LOWER_LEVELS)
SAME_LEVEL = 0.5  # levels closer than this are equal but for rounding
MOST_LEVELS = 2**14  # that are enumerated
HUGE = 700.0  # the exponential of more overflows
ONE_HOT = ("tokens", "value", "count")  # roles of registers of which one direction is on

Groups = Sequence[np.ndarray]


class NotSparse(ValueError):
    """Why a model cannot be decoded by looking up: a sentence. It then runs through torch."""


@dataclass(frozen=True)
class HeadScores:
    """What decides the scores of one unbounded head."""

    strength: float
    key_parts: int  # the most that are on at once
    query_parts: int
    highest: float  # level
    step: float  # between neighbouring levels; infinite: there is one

    @property
    def missed(self) -> int | None:
        """The most parts that a key shares with a query it does not meet in full; None: there is one class of keys."""
        if self.key_parts == 0:
            return None
        if self.query_parts <= self.key_parts:
            return min(self.query_parts, self.key_parts - 1)
        return self.key_parts

    def other_classes(self, start: float) -> float:
        """The weight of one key of another class beside that of a start token, at most."""
        if self.missed is None:
            return 0.0
        return math.exp(min(self.strength * self.missed + self.highest - start, HUGE))


@dataclass(frozen=True)
class HeadBound:
    """The largest shares of a head's attention that are left out."""

    layer: int
    head: int
    other_classes: float
    lower_levels: float

    @property
    def total(self) -> float:
        return self.other_classes + self.lower_levels


def check_bounds(
    layers: Sequence[Sequence[HeadScores | None]], starts: np.ndarray, longest: int = LONGEST
) -> tuple[HeadBound, ...]:
    """The bound of every unbounded head; `NotSparse` if one is too large. `starts`: the level of its start tokens."""
    found = []
    for (layer, head, scores), start in zip(_numbered(layers), starts.tolist(), strict=True):
        if scores is None:
            continue
        others, lower = longest * scores.other_classes(start), longest * math.exp(-scores.step)
        _need(others, OTHER_CLASSES, layer, head, "more than equality decides what is attended to")
        _need(lower, LOWER_LEVELS, layer, head, "the levels of keys that match alike are too close")
        found.append(HeadBound(layer, head, others, lower))
    return tuple(found)


def _need(share: float, most: float, layer: int, head: int, otherwise: str) -> None:
    if share > most:
        raise NotSparse(
            f"layer {layer} head {head}: {otherwise}; up to {min(share, 1.0):.1g} of its attention would be left out, "
            f"and {most:.0e} may be"
        )


def _numbered(
    layers: Sequence[Sequence[HeadScores | None]],
) -> Iterator[tuple[int, int, HeadScores | None]]:
    return ((layer, head, scores) for layer, heads in enumerate(layers) for head, scores in enumerate(heads))


def one_hot_groups(registers: Sequence[Sequence[Any]], d_model: int, start: int) -> list[np.ndarray]:
    """Dimensions of which at most one is on: those of a register, or each alone. The start's mark is on in no token."""
    groups, covered = [], {start}
    for register in registers:
        dims = [d for d in range(register[1], register[2]) if d not in covered]
        if len(register) > 4 and register[4] in ONE_HOT:
            groups.append(np.array(dims, dtype=np.int64))
            covered.update(dims)
    return [*groups, *(np.array([d]) for d in range(d_model) if d not in covered)]


def head_scores(
    strength: float, constant: np.ndarray, weights: np.ndarray, biases: np.ndarray, groups: Groups
) -> HeadScores:
    """Of queries and keys with these weights (2, d_head, d_model) and biases, where `constant` queries make levels."""
    (q, k), (q_bias, k_bias) = weights, biases
    varies = constant == 0
    level = q_bias[~varies] @ k[~varies]
    levels = _levels(level, groups) + float(q_bias[~varies] @ k_bias[~varies])
    steps = np.diff(levels)
    steps = steps[steps > SAME_LEVEL] if len(levels) <= MOST_LEVELS else np.zeros(1)
    return HeadScores(
        strength=strength,
        key_parts=_most_on(k[varies], k_bias[varies], groups),
        query_parts=_most_on(q[varies], q_bias[varies], groups),
        highest=float(levels.max()),
        step=float(steps.min()) if len(steps) else math.inf,
    )


def _most_on(rows: np.ndarray, bias: np.ndarray, groups: Groups) -> int:
    """How many rows can differ from zero at once."""
    free = rows[bias == 0] != 0
    return int((bias != 0).sum()) + sum(int(free[:, dims].sum(axis=0).max()) for dims in groups if len(dims))


def _levels(weights: np.ndarray, groups: Groups) -> np.ndarray:
    """All sums of at most one weight of each group, rising; where there are very many, the first and last of them."""
    sums = np.zeros(1)
    for dims in groups:
        own = np.unique(np.append(weights[dims], 0.0))
        if len(own) > 1:
            sums = np.unique(np.add.outer(sums, own))
            if len(sums) > MOST_LEVELS:
                return np.linspace(sums[0], sums[-1] + float(np.abs(weights).sum()), MOST_LEVELS + 1)
    return sums
