"""The oldest versions that pyproject.toml allows, as constraints: pip itself always takes the newest."""

from __future__ import annotations

import re
import subprocess
import tomllib
from collections.abc import Iterable
from functools import cache

from packaging.requirements import Requirement
from packaging.version import VERSION_PATTERN, Version

from .building import ROOT
from .uses import BASE

UNTRIED = {"torch": "only a build for CPUs is small enough, and the index has one of a single version"}


def requirements(extra: str) -> list[Requirement]:
    """Everything that is installed with this extra: what the project needs, and what the extras it names bring."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    given = [] if extra == BASE else project["optional-dependencies"][extra]
    asked = [Requirement(one) for one in given]
    brought = [one for own in asked if own.name == project["name"] for name in own.extras for one in requirements(name)]
    needed = [Requirement(one) for one in project["dependencies"]]
    return [*needed, *brought, *(one for one in asked if one.name != project["name"])]


def lowest_constraints(extra: str, python: str) -> str:
    """`name==version` with the lowest version on the index that is allowed; torch stays as it is pinned."""
    lines: dict[str, Version] = {}
    for one in requirements(extra):
        if one.name not in UNTRIED:
            found = lowest(one, versions_of(one.name, python))
            lines[one.name] = max(found, lines.get(one.name, found))
    pinned = [line for line in (ROOT / "constraints.txt").read_text().splitlines() if line.startswith(tuple(UNTRIED))]
    return "\n".join([*(f"{name}=={version}" for name, version in lines.items()), *pinned]) + "\n"


def lowest(requirement: Requirement, versions: Iterable[Version]) -> Version:
    return min(version for version in versions if requirement.specifier.contains(version))


@cache
def versions_of(name: str, python: str) -> list[Version]:
    """Those with a wheel for this Python: what must first be built from source says nothing about this project."""
    command = [python, "-m", "pip", "index", "versions", "--only-binary", ":all:", name]
    listed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return read_versions(listed)


def read_versions(listed: str) -> list[Version]:
    """From what pip prints. Names that are no versions (networkx has `0.8.1.macosx-10.5-x86_64`) are left out."""
    found = re.search(r"Available versions: (.*)", listed)
    assert found, listed
    return [Version(name) for name in found[1].split(", ") if re.fullmatch(VERSION_PATTERN, name, re.VERBOSE | re.I)]
