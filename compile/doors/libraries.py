"""The libraries behind the doors, and a sentence where one is missing."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType


def need(name: str, tool: str) -> ModuleType:
    """The library, or an error that says how to get it."""
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] != name.partition(".")[0]:
            raise  # it is there, and something that it needs is not
        raise ImportError(f"{tool} needs {name}; install it with: pip install 'turing-programs[doors]'") from None
