"""What is installed holds every file that is read; and the check of installations can fail."""

from __future__ import annotations

import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest
from installed import __main__ as checking
from installed.building import build, lacking, matched, names_in, tracked
from installed.environment import Environment
from installed.lowest import lowest, lowest_constraints, read_versions, requirements
from installed.uses import BASE, USES, Use
from packaging.requirements import Requirement
from packaging.version import Version
from test_extras import installed_by

from rasp.extras import EXTRAS


def test_every_file_of_the_packages_is_installed() -> None:
    files = tracked()
    assert len(files) > 300 and [file for file in files if not matched(file)] == []
    kinds = {Path(file).suffix for file in files}
    assert {".py", ".v", ".json", ".safetensors", ".css", ".js"} <= kinds
    assert not matched("rasp/notes.txt") and not matched("experiments/checkpoints/a/b/c.json")


def test_what_an_archive_lacks_is_seen(tmp_path: Path) -> None:
    wheel = tmp_path / "one.whl"
    with zipfile.ZipFile(wheel, "w") as made:
        made.writestr("rasp/__init__.py", "")
    assert lacking(names_in(wheel), ["rasp/__init__.py", "rasp/py.typed"]) == ["rasp/py.typed"]


def test_every_extra_is_tried() -> None:
    assert set(USES) == {BASE, *EXTRAS.values(), "notebooks", "docs"}
    assert all(USES.values()) and installed_by("dev")


def test_names_on_the_index_that_are_no_versions_are_left_out() -> None:
    listed = "networkx (3.5)\nAvailable versions: 3.5, 3.5rc0, 0.8.1.macosx-10.5-x86_64, 0.8.1\n  INSTALLED: 3.5\n"
    assert read_versions(listed) == [Version("3.5"), Version("3.5rc0"), Version("0.8.1")]
    with pytest.raises(AssertionError, match="no matching"):
        read_versions("no matching distribution")


def test_the_lowest_version_is_the_first_that_is_allowed(monkeypatch: pytest.MonkeyPatch) -> None:
    versions = [Version(v) for v in ("2.0", "1.9", "1.10", "1.8")]
    assert lowest(Requirement("numpy>=1.9"), versions) == Version("1.9")
    with pytest.raises(ValueError):
        lowest(Requirement("numpy>=3"), versions)
    monkeypatch.setattr(
        "installed.lowest.versions_of", lambda name, python: [Version("1"), Version("99"), Version("2030")]
    )
    lines = lowest_constraints("notebooks", sys.executable).splitlines()
    assert "numpy==99" in lines and "nbformat==99" in lines and "torch==2.13.0" in lines
    assert {line.partition("==")[0] for line in lines} == {one.name for one in requirements("notebooks")}


def test_an_extra_has_the_higher_of_two_lower_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    """`doors` asks for a newer huggingface_hub than `torch`, which it brings."""
    monkeypatch.setattr("installed.lowest.versions_of", lambda name, python: [Version(f"{n}.30") for n in range(100)])
    asked = [one for one in requirements("doors") if one.name == "huggingface_hub"]
    assert len(asked) == 2 and "huggingface_hub==1.30" in lowest_constraints("doors", sys.executable)
    assert "huggingface_hub==0.30" in lowest_constraints("torch", sys.executable)
    assert {one.name for one in requirements(BASE)} < {one.name for one in requirements("dtm")}


class FakeEnvironment(Environment):
    """One in which nothing is installed, and every command prints the same."""

    prints = ""

    def _run(self, command: Any) -> str:
        return self.prints


@pytest.mark.parametrize(
    ("prints", "told"), [("0 violations", "2 uses work"), ("1 violation", "does not say '0 violations'")]
)
def test_a_use_that_says_something_else_is_a_failure(
    prints: str, told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(checking, "Environment", FakeEnvironment)
    monkeypatch.setattr(FakeEnvironment, "prints", prints)
    monkeypatch.setitem(checking.USES, "draw", (Use("one", "0 violations"), Use("two")))
    failed = checking.try_extra(tmp_path / "draw", Path("one.whl"), "draw", Path("c.txt"), sys.executable)
    assert bool(failed) == (prints == "1 violation") and told in capsys.readouterr().out
    assert not (tmp_path / "draw").exists(), "environments are large, and do not stay"


def test_a_command_that_fails_is_told_with_what_it_said(tmp_path: Path) -> None:
    environment = Environment(tmp_path / "one")
    environment.home.mkdir(parents=True)
    with pytest.raises(RuntimeError, match="ended with 3: no such thing"):
        environment._run([sys.executable, "-c", "import sys; print('no such thing'); sys.exit(3)"])


@pytest.mark.slow
def test_the_wheel_works_in_an_empty_environment(tmp_path: Path) -> None:
    """`make packaging` does the same for every extra."""
    wheel, sdist = build(tmp_path / "built")
    assert lacking(names_in(wheel), tracked()) == lacking(names_in(sdist), tracked()) == []
    assert not checking.try_extra(tmp_path / BASE, wheel, BASE, checking.ROOT / "constraints.txt", sys.executable)
