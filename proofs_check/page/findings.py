"""What the sections and figures of the page share: each finding is computed once, at the size asked for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from proofs_check import sharpness
from proofs_check.sampled.intervals import clopper_pearson
from proofs_check.sampled.report import Report
from proofs_check.sampled.sweep import verify


@dataclass(frozen=True)
class Section:
    """One claim: how it was established, what was seen, whether it stands."""

    claim: str
    how: str  # sampled | searched | exhausted | computed | proved
    evidence: list[str]
    holds: bool
    figure: str = ""
    seconds: float = 0.0


@dataclass
class Findings:
    """What the sections share: each is computed once, at the size asked for."""

    quick: bool = True
    progress: Callable[[str], None] | None = None
    _known: dict[str, Any] = field(default_factory=dict)

    def get(self, name: str, compute: Callable[[], Any]) -> Any:
        if name not in self._known:
            self._known[name] = compute()
        return self._known[name]

    def size(self, quick: int, full: int) -> int:
        return quick if self.quick else full

    def sample(self, **options: Any) -> Report:
        machines = self.size(20_000, 1_000_000)
        return self.get(f"verify {sorted(options.items())}", lambda: verify(machines, **options))  # type: ignore[no-any-return]


LENGTHS = (2, 5, 10, 20, 50, 100)
NS = (1, 2, 3, 4)
BASES = ((1, 1), (2, 2), (4, 4), (6, 8), (12, 16))  # symbols, states


def rates(findings: Findings) -> dict[int, list[float]]:
    machines = findings.size(1000, 20_000)
    return findings.get("rates", lambda: sharpness.hypothesis_rates(LENGTHS, NS, machines))  # type: ignore[no-any-return]


def sizes(findings: Findings) -> list[sharpness.SizeRow]:
    return findings.get("sizes", sharpness.program_sizes)  # type: ignore[no-any-return]


def bounds(findings: Findings) -> list[sharpness.BoundRow]:
    """The step bound of several alphabets, for n = 1 and 2."""
    machines = {1: 1024, 2: findings.size(128, 1024)}
    return findings.get(
        "bounds",
        lambda: [  # type: ignore[no-any-return]
            sharpness.past_the_bound(n, symbols, states, machines=machines[n])
            for n in (1, 2)
            for symbols, states in BASES
        ],
    )


def interval(hits: int, trials: int) -> str:
    low, high = clopper_pearson(hits, trials)
    return f"{hits:,} of {trials:,} (95%: {low:.3g} to {high:.3g})"
