"""The doctor names what is missing and how to get it, and its self-tests can fail."""

from __future__ import annotations

import sys

import pytest
from typer.testing import CliRunner

from experiments import doctor
from experiments.cli import app


@pytest.mark.parametrize("name", ["rasp", "z3", "compile"])
def test_a_self_test_passes_here(name: str) -> None:
    found = doctor.run_test(name, doctor.SELF_TESTS[name])
    assert found.passed, found.told


def test_a_self_test_that_fails_is_told_and_the_exit_code_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "SELF_TESTS", {"broken": lambda: str(1 // 0), "right": lambda: "fine"})
    found = CliRunner().invoke(app, ["doctor"])
    assert found.exit_code == 1
    assert "FAILS    ZeroDivisionError" in found.stdout and "works    fine" in found.stdout


def test_different_answers_are_a_failure() -> None:
    with pytest.raises(AssertionError, match=r"b says \[2\], a \[1\]"):
        doctor.need_equal({"a": [1], "b": [2]})


def test_what_is_missing_is_named_with_its_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = ["numpy>=1", "nosuchthing5>=1.2; extra == 'proofs'", 'other[more]; extra == "all"']
    monkeypatch.setattr(doctor, "requires", lambda _: asked)
    numpy, missing = doctor.packages()
    assert not numpy.remedy and missing.name == "nosuchthing5" and "[proofs]" in missing.remedy
    monkeypatch.setattr(doctor.shutil, "which", lambda _: None)
    assert {finding.name: finding.remedy for finding in doctor.tools()}[
        "coqc"
    ] == "for the formal proof: apt-get install coq"


def test_a_test_whose_package_is_missing_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "z3", None)
    for name in [name for name in sys.modules if name.startswith("proofs_check.symbolic")]:
        monkeypatch.delitem(sys.modules, name)
    found = doctor.run_test("z3", doctor.SELF_TESTS["z3"])
    assert found.passed is None and "z3 is missing" in found.told
