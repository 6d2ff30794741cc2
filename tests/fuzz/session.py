"""A run of the fuzzer: the programs of a seed one after the other, what they gave, and the mismatches made small."""

from __future__ import annotations

import json
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

from .cases import Shares, make_case
from .compare import Figures, Mismatch, compare_engines, compare_model
from .shrink import shrink

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
        self.figures.add(Figures(**{name: Counter(kept[name]) for name in vars(self.figures)}))

    def keep(self) -> None:
        if self.state:
            figures = {name: dict(counter) for name, counter in vars(self.figures).items()}
            kept = {"seed": self.seed, "next": self.next, "seconds": self.seconds, "kinds": self.kinds, **figures}
            temporary = self.state.with_suffix(".tmp")
            temporary.write_text(json.dumps(kept, indent=1))
            temporary.replace(self.state)

    def one(self, number: int) -> list[Mismatch]:
        """All ways of one program."""
        if self.at:
            self.at.write_text(str(number))
        case = make_case(self.seed, number, self.shares)
        found = compare_engines(case.program, case.inputs, case.machine_code, self.figures)
        for model, inputs in case.models:
            mismatch = compare_model(case.program, model, inputs, self.figures)
            found += [mismatch] if mismatch else []
        self.figures.counts["programs"] += 1
        self.figures.counts["mismatches"] += bool(found)
        return found

    def run(self, seconds: float = 1e9, programs: int = 10**9, report: float = 10.0) -> list[Mismatch]:
        """The mismatches found (those of a kind seen often already are only counted), the first of each kind shrunk."""
        start, said, before = time.monotonic(), time.monotonic(), self.seconds
        mismatches: list[Mismatch] = []
        last = self.next + programs
        while self.next < last and time.monotonic() - start < seconds:
            for mismatch in self.one(self.next):
                self.kinds[mismatch.kind] += 1
                if self.kinds[mismatch.kind] <= self.examples:
                    mismatches.append(shrink(mismatch))
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

    def line(self) -> str:
        counts = self.figures.counts
        numbers = f"{counts['programs']} programs, {self.models} models, {counts['mismatches']} mismatches"
        return f"seed {self.seed}: {numbers}, {self.seconds:.0f} s"

    def table(self) -> str:
        """What each way answered, and why it refused what it refused."""
        figures = self.figures
        lines = [f"{'way':24}{'inputs':>10}{'answered':>10}   refused"]
        for way, tried in figures.tried.items():
            refused = {k.split(": ", 1)[1]: n for k, n in figures.refusals.items() if k.split(": ", 1)[0] == way}
            reasons = ", ".join(f"{n} {kind}" for kind, n in sorted(refused.items(), key=lambda kn: -kn[1])[:4])
            lines.append(f"{way:24}{tried:10}{figures.answered[way]:10}   {reasons}")
        lines += [f"{name}: {n}" for name, n in figures.counts.items() if name not in ("programs", "mismatches")]
        lines += [f"MISMATCHES, {kind}: {n}" for kind, n in self.kinds.items()]
        return "\n".join(lines)
