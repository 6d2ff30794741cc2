"""A run of the fuzzer: the programs of a seed one after the other, what they gave, and the mismatches made small."""

from __future__ import annotations

import json
import math
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

from .cases import Shares, make_case
from .compare import Figures, Mismatch, compare_engines, compare_model
from .house import PARTS, Finding, compare_part
from .shrink import shrink
from .texts import TextMismatch

EXAMPLES = 3  # mismatches of one kind that are shrunk and printed; the others are counted


class Session:
    """A run over the programs of a seed, whose figures can be kept in a file and continued."""

    def __init__(
        self, seed: int, state: Path | None = None, shares: Shares | None = None, examples: int = EXAMPLES
    ) -> None:
        self.seed, self.state, self.shares, self.examples = seed, state, shares or Shares(), examples
        self.next, self.seconds, self.figures = 0, 0.0, Figures()
        self.kinds: Counter[str] = Counter()
        self.at: Path | None = None  # a file that holds the number of the program being run
        if state and state.exists():
            self._continue(json.loads(state.read_text()))

    def _continue(self, kept: dict[str, Any]) -> None:
        if kept["seed"] != self.seed:
            raise SystemExit(f"{self.state} is of seed {kept['seed']}; give --seed {kept['seed']} or another file")
        self.next, self.seconds = kept["next"], kept["seconds"]
        self.kinds.update(kept["kinds"])
        self.figures.add(Figures(**{name: Counter(kept.get(name, {})) for name in vars(self.figures)}))

    def keep(self) -> None:
        if self.state:
            figures = {name: dict(counter) for name, counter in vars(self.figures).items()}
            kept = {"seed": self.seed, "next": self.next, "seconds": self.seconds, "kinds": self.kinds, **figures}
            temporary = self.state.with_suffix(".tmp")
            temporary.write_text(json.dumps(kept, indent=1))
            temporary.replace(self.state)

    def one(self, number: int) -> list[Finding]:
        """All ways of one program, and the parts of the house whose turn it is."""
        if self.at:
            self.at.write_text(str(number))
        case = make_case(self.seed, number, self.shares)
        found: list[Finding] = [*compare_engines(case.program, case.inputs, case.machine_code, self.figures)]
        for model, inputs in case.models:
            mismatch = compare_model(case.program, model, inputs, self.figures)
            found += [mismatch] if mismatch else []
        for name in PARTS:
            share = getattr(self.shares, name)
            if share and number % share == 0:
                found += compare_part(name, self.seed, number, self.figures)
        self.figures.counts["programs"] += 1
        self.figures.counts["mismatches"] += bool(found)
        return found

    def run(
        self, seconds: float = 1e9, programs: int = 10**9, tokens: float = math.inf, report: float = 10.0
    ) -> list[Finding]:
        """Until one of the three is reached (tokens: of the whole session).

        Gives the mismatches (those of a kind seen often already are only counted), the first of each kind shrunk.
        """
        start, said, before = time.monotonic(), time.monotonic(), self.seconds
        mismatches: list[Finding] = []
        last = self.next + programs
        while self.next < last and time.monotonic() - start < seconds and self.tokens < tokens:
            for mismatch in self.one(self.next):
                self.kinds[mismatch.kind] += 1
                if self.kinds[mismatch.kind] <= self.examples:
                    mismatches.append(smallest(mismatch))
                    print(f"\n--- program {self.next}: {mismatch.kind}\n\n{mismatches[-1].script()}", flush=True)
            self.next += 1
            self.seconds = before + time.monotonic() - start
            if time.monotonic() - said > report:
                said = time.monotonic()
                print(self.line(), file=sys.stderr, flush=True)
                self.keep()
        self.keep()
        return mismatches

    @property
    def models(self) -> int:
        return sum(n for name, n in self.figures.counts.items() if name.endswith(": models"))

    @property
    def tokens(self) -> int:
        return self.figures.tokens.total()

    def line(self) -> str:
        counts = self.figures.counts
        compared = f"{counts['programs']} programs, {self.models} models, {self.tokens:,} tokens"
        numbers = f"{compared}, {counts['mismatches']} mismatches"
        return f"seed {self.seed}: {numbers}, {self.seconds:.0f} s"

    def table(self) -> str:
        """What each way answered, and why it refused what it refused."""
        figures = self.figures
        lines = [f"{'way':36}{'inputs':>10}{'answered':>10}   refused"]
        for way, tried in figures.tried.items():
            refused = {k.split(": ", 1)[1]: n for k, n in figures.refusals.items() if k.split(": ", 1)[0] == way}
            reasons = ", ".join(f"{n} {kind}" for kind, n in sorted(refused.items(), key=lambda kn: -kn[1])[:4])
            lines.append(f"{way:36}{tried:10}{figures.answered[way]:10}   {reasons}")
        lines += [f"{name}: {n}" for name, n in figures.counts.items() if name not in ("programs", "mismatches")]
        lines += [f"tokens of {name}: {n:,}" for name, n in figures.tokens.items()]
        lines += [f"MISMATCHES, {kind}: {n}" for kind, n in self.kinds.items()]
        return "\n".join(lines)


def smallest(finding: Finding) -> Finding:
    """The same made small, if one knows how."""
    if isinstance(finding, Mismatch):
        return shrink(finding)
    return finding.smaller() if isinstance(finding, TextMismatch) else finding
