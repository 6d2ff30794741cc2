"""Wheel and sdist, and whether they hold everything that the packages read."""

from __future__ import annotations

import subprocess
import sys
import tarfile
import tomllib
import zipfile
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGES = ("rasp", "proofs_check", "compile", "experiments")
NOT_INSTALLED = ("experiments/report/", "experiments/screenshots/")  # what commands wrote, and pictures of pages


def tracked() -> list[str]:
    """The files of the packages, as git knows them."""
    listed = subprocess.run(["git", "ls-files", *PACKAGES], cwd=ROOT, capture_output=True, text=True, check=True)
    return [name for name in listed.stdout.splitlines() if not name.startswith(NOT_INSTALLED)]


def lacking(names: Iterable[str], files: Iterable[str]) -> list[str]:
    """The files that an archive with these names does not have."""
    held = set(names)
    return [file for file in files if file not in held]


def matched(file: str) -> bool:
    """Whether setuptools would put this file into the wheel, by what pyproject.toml says."""
    if file.endswith(".py"):
        return True
    data = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["package-data"]
    patterns = [f"{package.replace('.', '/')}/{pattern}" for package, globs in data.items() for pattern in globs]
    return any(Path(file).match(pattern) for pattern in patterns if pattern.count("/") == file.count("/"))


def build(folder: Path, python: str = sys.executable) -> tuple[Path, Path]:
    """The wheel and the sdist, by an isolated build of a copy: nothing is left in the checkout."""
    source = folder / "source"
    archive = subprocess.run(["git", "archive", "HEAD"], cwd=ROOT, capture_output=True, check=True).stdout
    source.mkdir(parents=True)
    subprocess.run(["tar", "-x"], input=archive, cwd=source, check=True)
    subprocess.run([python, "-m", "build", "--outdir", str(folder), str(source)], check=True, capture_output=True)
    return next(folder.glob("*.whl")), next(folder.glob("*.tar.gz"))


def names_in(archive: Path) -> list[str]:
    """The files of a wheel or of an sdist, as they stand in the checkout."""
    if archive.suffix == ".whl":
        with zipfile.ZipFile(archive) as wheel:
            return wheel.namelist()
    with tarfile.open(archive) as sdist:
        return [name.partition("/")[2] for name in sdist.getnames()]
