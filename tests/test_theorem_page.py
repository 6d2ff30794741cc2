"""The page: every claim holds, the figures are there, and a failing claim is not hidden."""

from __future__ import annotations

import json
from importlib.util import find_spec
from pathlib import Path

import pytest

from proofs_check import theorem_page
from proofs_check.page.findings import Findings, Section
from proofs_check.page.sections import sharp_theorem
from proofs_check.page.theorem import Page
from proofs_check.sampled.sweep import verify


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Page:
    told: list[str] = []
    made = theorem_page(tmp_path_factory.mktemp("page"), quick=True, progress=told.append)
    assert len(told) == len(made.sections)
    return made


def test_every_claim_holds(page: Page) -> None:
    assert [s.claim for s in page.sections if not s.holds] == []
    assert page.ok and len(page.sections) >= 11


def test_the_page_has_claim_evidence_and_verdict(page: Page) -> None:
    text = page.render()
    assert text.count("HOLDS") == len(page.sections) and "33" in text and "1025" in text
    assert max(map(len, text.splitlines())) <= 120
    json.dumps(page.to_json())


def test_figures_are_written_beside_it(page: Page) -> None:
    text, *figures = page.files
    assert text.name == "theorem.md" and len(figures) == 4
    for figure in figures:
        assert figure.read_bytes().startswith(b"\x89PNG") and figure.stat().st_size > 10_000
        assert f"({figure.name})" in text.read_text()


def test_a_wrong_program_fails_on_the_page(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(machines: int, **options: object) -> object:
        return verify(300, **options, program="wrong_programs:colliding_hash")  # type: ignore[arg-type]

    monkeypatch.setattr("proofs_check.page.findings.verify", broken)
    section = sharp_theorem(Findings())
    assert not section.holds and "violations 0 " not in section.evidence[0]


def test_names_are_loaded_when_used_and_no_module_hides_one() -> None:
    import proofs_check

    assert proofs_check.verify is verify
    assert {"verify", "prove", "first_repeat", "make_simulable"} <= set(dir(proofs_check))
    assert not [name for name in proofs_check.__all__ if find_spec(f"proofs_check.{name}")]
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        proofs_check.nothing  # noqa: B018


def test_a_failing_claim_is_shown_as_such() -> None:
    page = Page([Section("two is one", "computed", ["2 > 1"], False)], 0.0, [Path("x")])
    assert not page.ok and "FAILS" in page.render() and "**Fails**" in page.markdown()
