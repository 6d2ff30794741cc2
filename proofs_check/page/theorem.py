"""The whole theorem on one page: each claim, the evidence gathered for it just now, and the verdict."""

from __future__ import annotations

import os
import textwrap
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from proofs_check.page.findings import Findings, Section
from proofs_check.page.sections import sections as all_sections
from rasp.files import write_whole

WIDTH = 110


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
        return {
            "ok": self.ok,
            "seconds": self.seconds,
            "files": [str(f) for f in self.files],
            "sections": [vars(s) for s in self.sections],
        }


TITLE = "The program next_token_turing simulates Turing machines: what is true of it, and where it ends"


def theorem_page(
    out_dir: str | os.PathLike[str] | None, quick: bool = True, progress: Callable[[str], None] | None = None
) -> Page:
    """Check every claim and write the page (theorem.md) and its figures to `out_dir`; with None, write nothing."""
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
        files.insert(0, write_whole(Path(out_dir) / "theorem.md", page.markdown()))
    return page


def _figures(findings: Findings, folder: Path) -> list[Path]:
    from proofs_check.page.figures import FIGURES

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
    lines = [
        f"## {number}. {section.claim}",
        "",
        *(f"- {line}" for line in section.evidence),
        "",
        f"**{'Holds' if section.holds else 'Fails'}** ({section.how}, {section.seconds:.1f} s)",
    ]
    return "\n".join([*lines, "", f"![{section.figure}]({section.figure}.png)"] if section.figure else lines)


def _last_line(page: Page) -> str:
    held = sum(section.holds for section in page.sections)
    return f"{held} of {len(page.sections)} claims hold; {page.seconds:.0f} s"
