"""The oldest versions that pyproject.toml allows, as constraints: pip itself always takes the newest."""

from __future__ import annotations

import re
import subprocess
import tomllib
from collections.abc import Iterable

from packaging.requirements import Requirement
from packaging.version import VERSION_PATTERN, Version

from .building import ROOT

UNTRIED = {"torch": "only a build for CPUs is small enough, and the index has one of a single version"}


def requirements() -> list[Requirement]:
    """Everything the project asks for, its extras for users among it."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = {name: asked for name, asked in project["optional-dependencies"].items() if name not in ("dev", "docs")}
    listed = [*project["dependencies"], *(one for asked in extras.values() for one in asked)]
    return [Requirement(one) for one in listed if not one.startswith(project["name"])]


def lowest_constraints(python: str) -> str:
    """`name==version` with the lowest version on the index that is allowed; torch stays as it is pinned."""
    lines = {}
    for one in requirements():
        if one.name not in UNTRIED:
            lines[one.name] = max(lines.get(one.name, Version("0")), lowest(one, versions_of(one.name, python)))
    pinned = [line for line in (ROOT / "constraints.txt").read_text().splitlines() if line.startswith(tuple(UNTRIED))]
    return "\n".join([*(f"{name}=={version}" for name, version in lines.items()), *pinned]) + "\n"


def lowest(requirement: Requirement, versions: Iterable[Version]) -> Version:
    return min(version for version in versions if requirement.specifier.contains(version))


def versions_of(name: str, python: str) -> list[Version]:
    command = [python, "-m", "pip", "index", "versions", name]
    listed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return read_versions(listed)


def read_versions(listed: str) -> list[Version]:
    """From what pip prints. Names that are no versions (networkx has `0.8.1.macosx-10.5-x86_64`) are left out."""
    found = re.search(r"Available versions: (.*)", listed)
    assert found, listed
    return [Version(name) for name in found[1].split(", ") if re.fullmatch(VERSION_PATTERN, name, re.VERBOSE | re.I)]
