"""The whole theorem on one page: each claim, the evidence gathered for it just now, and the verdict."""

from __future__ import annotations

import os
import textwrap
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from proofs_check import sharpness
from proofs_check.intervals import clopper_pearson
from proofs_check.sampled import Report, verify

WIDTH = 110


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


@dataclass(frozen=True)
class Page:
    sections: list[Section]
    seconds: float
    files: list[Path]

    @property
    def ok(self) -> bool:
        return all(section.holds for section in self.sections)

    def render(self) -> str:
        """Plain text, for a terminal."""
        parts = [TITLE, *(_text(i, s) for i, s in enumerate(self.sections, 1)), _last_line(self)]
        return "\n\n".join(parts)

    def markdown(self) -> str:
        parts = [f"# {TITLE}", *(_markdown(i, s) for i, s in enumerate(self.sections, 1)), _last_line(self)]
        return "\n\n".join(parts) + "\n"

    def to_json(self) -> dict[str, Any]:
        return {"ok": self.ok, "seconds": self.seconds, "files": [str(f) for f in self.files],
                "sections": [vars(s) for s in self.sections]}  # fmt: skip


TITLE = "The program next_token_turing simulates Turing machines: what is true of it, and where it ends"


def theorem_page(
    out_dir: str | os.PathLike[str] | None, quick: bool = True, progress: Callable[[str], None] | None = None
) -> Page:
    """Check every claim and write the page (theorem.md) and its figures to `out_dir`; with None, write nothing."""
    from proofs_check.theorem_sections import sections as all_sections

    started = time.perf_counter()
    findings = Findings(quick, progress)
    sections = []
    for section in all_sections():
        if progress:
            progress(section.__doc__ or section.__name__)
        begun = time.perf_counter()
        made = section(findings)
        sections.append(Section(**{**vars(made), "seconds": time.perf_counter() - begun}))
    files = _figures(findings, Path(out_dir)) if out_dir is not None else []
    page = Page(sections, time.perf_counter() - started, files)
    if out_dir is not None:
        text = Path(out_dir) / "theorem.md"
        text.write_text(page.markdown())
        files.insert(0, text)
    return page


def _figures(findings: Findings, folder: Path) -> list[Path]:
    from proofs_check.figures import FIGURES

    folder.mkdir(parents=True, exist_ok=True)
    paths = [folder / f"{name}.png" for name in FIGURES]
    for path, draw in zip(paths, FIGURES.values(), strict=True):
        draw(findings, path)
    return paths


def _text(number: int, section: Section) -> str:
    verdict = "HOLDS" if section.holds else "FAILS"
    head = textwrap.fill(f"{number}. {section.claim}", WIDTH, subsequent_indent="   ")
    lines = [textwrap.fill(line, WIDTH, initial_indent="   - ", subsequent_indent="     ") for line in section.evidence]
    return "\n".join([head, *lines, f"   {verdict} ({section.how}, {section.seconds:.1f} s)"])


def _markdown(number: int, section: Section) -> str:
    lines = [f"## {number}. {section.claim}", "", *(f"- {line}" for line in section.evidence), "",
             f"**{'Holds' if section.holds else 'Fails'}** ({section.how}, {section.seconds:.1f} s)"]  # fmt: skip
    return "\n".join([*lines, "", f"![{section.figure}]({section.figure}.png)"] if section.figure else lines)


def _last_line(page: Page) -> str:
    held = sum(section.holds for section in page.sections)
    return f"{held} of {len(page.sections)} claims hold; {page.seconds:.0f} s"


# --- what sections and figures share ----------------------------------------------------------------------------------

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
    return findings.get("bounds", lambda: [  # type: ignore[no-any-return]
        sharpness.past_the_bound(n, symbols, states, machines=machines[n]) for n in (1, 2) for symbols, states in BASES
    ])  # fmt: skip


def interval(hits: int, trials: int) -> str:
    low, high = clopper_pearson(hits, trials)
    return f"{hits:,} of {trials:,} (95%: {low:.3g} to {high:.3g})"
