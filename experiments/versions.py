"""What a result depends on."""

from __future__ import annotations

import platform
from importlib.metadata import PackageNotFoundError, version


def versions(*more: str) -> dict[str, str]:
    """Of Python, this package and what it computes with; also of these packages."""
    found = {"python": platform.python_version()}
    for name in ("turing-programs", "numpy", "numba", *more):
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "not installed"
    return found
