"""Another solver, cvc5, reads the lemmas as SMT-LIB files and agrees."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from proofs_check.symbolic import proving
from proofs_check.symbolic.certificates import Confirmation, confirm, confirm_lemma, smtlib, write_certificates
from proofs_check.symbolic.lemmas import LEMMAS, lemma
from proofs_check.symbolic.mutants import MUTANTS

QUICK = ("where", "delay", "padding", "separator", "keys-unbounded")


@pytest.mark.parametrize("name", QUICK)
def test_cvc5_confirms(name: str, tmp_path: Path) -> None:
    for certificate in write_certificates(tmp_path, [name]):
        assert confirm((tmp_path / certificate.file).read_text()) == certificate.expect, certificate.query


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("name", [one.name for one in LEMMAS if one.name not in QUICK])
def test_cvc5_confirms_the_rest(name: str, tmp_path: Path) -> None:
    for certificate in write_certificates(tmp_path, [name]):
        assert confirm((tmp_path / certificate.file).read_text(), 300) == certificate.expect, certificate.query


def test_a_file_and_the_manifest(tmp_path: Path) -> None:
    written = write_certificates(tmp_path / "new" / "folder", ["locality"])
    assert {c.expect for c in written} == {"sat", "unsat"}  # that a cell matters is shown by a solution
    text = (tmp_path / "new" / "folder" / written[0].file).read_text()
    assert text.startswith("(set-logic QF_UFBV)\n")
    assert "(set-info :status unsat)" in text and text.rstrip().endswith("(check-sat)\n(exit)")
    manifest = json.loads((tmp_path / "new" / "folder" / "manifest.json").read_text())
    assert [f["file"] for f in manifest["lemmas"][0]["files"]] == [c.file for c in written]
    assert manifest["lemmas"][0]["claim"] == lemma("locality").claim


def test_cvc5_finds_the_mistake_in_a_wrong_program() -> None:
    query = next(lemma("where").build(MUTANTS["where's branches are exchanged"]))
    assert confirm(smtlib("where", query)) == "sat"


def test_a_lemma_that_cvc5_answers_otherwise_is_not_proved(monkeypatch: pytest.MonkeyPatch) -> None:
    right = confirm_lemma(lemma("where"))
    wrong = confirm_lemma(lemma("where"), MUTANTS["where's branches are exchanged"])
    assert right == Confirmation(1, 1)
    assert wrong == Confirmation(0, 1, "cvc5 answers sat: every int64 triple")
    (row,) = proving.prove(["where"], with_mutants=False).lemmas
    assert (row.result, row.confirmed, row.queries) == ("proved", 1, 1)
    monkeypatch.setattr(proving, "confirm_lemma", lambda *_: wrong)
    report = proving.prove(["where"], with_mutants=False)
    assert not report.all_proved and report.lemmas[0].result == "unknown" and "cvc5" in report.lemmas[0].witness
    monkeypatch.setattr(proving, "confirm_lemma", lambda *_: None)  # not installed
    assert proving.prove(["where"], with_mutants=False).lemmas[0].confirmed is None


def test_a_file_is_no_folder(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ValueError, match="need a folder"):
        write_certificates(tmp_path / "file", ["where"])
