"""Linear readings of the residual stream, and the pieces of a transformer written in terms of them.

The dimension `START` is 1 on the
tokens the compiler puts in front of every input and 0 elsewhere; every value's reading is 0 there, so whatever looks
back beyond the input finds nothing but the mark, which stands for the default.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from compile.readings import BIAS, Reading
from compile.transformer.annotations import Fact

START = 0


def combine(*parts: tuple[float, Mapping[int, float]]) -> Reading:
    """The sum of factor * reading."""
    total: Reading = {}
    for factor, reading in parts:
        for dim, coefficient in reading.items():
            total[dim] = total.get(dim, 0.0) + factor * coefficient
    return {dim: c for dim, c in total.items() if c}


def added(readings: Iterable[Mapping[int, float]]) -> Reading:
    return combine(*((1.0, reading) for reading in readings))


INSIDE: Reading = {BIAS: 1.0, START: -1.0}  # 1 on the input, 0 on the tokens in front of it


@dataclass
class DraftHead:
    """Scores add up query reading * key reading over `pairs`; `moves` are what is read there and written here."""

    window: int | None
    fact: Fact
    pairs: list[tuple[Reading, Reading]] = field(default_factory=list)
    moves: list[tuple[Reading, Reading]] = field(default_factory=list)

    @property
    def width(self) -> int:
        return max(len(self.pairs), len(self.moves), 1)


@dataclass
class DraftLayer:
    """Heads, then ReLU units: what each unit reads and what it writes. Units that read the same are one.

    `made` are the facts about what the units compute.
    """

    heads: list[DraftHead] = field(default_factory=list)
    units: dict[tuple[tuple[int, float], ...], Reading] = field(default_factory=dict)
    made: list[Fact] = field(default_factory=list)

    def unit(self, reads: Reading, writes: Mapping[int, float]) -> None:
        key = tuple(sorted(reads.items()))
        self.units[key] = combine((1.0, self.units.get(key, {})), (1.0, writes))
        if not self.units[key]:  # what it writes cancels out, as where neighbouring counts have the same digit
            del self.units[key]

    @property
    def fact(self) -> Fact:
        """About the MLP as a whole."""
        nodes = sorted({node for fact in self.made for node in fact.nodes})
        return Fact("compute" if self.made else "", "; ".join(fact.label for fact in self.made), tuple(nodes))
