"""The backends by name, and their options as a user gives them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from difflib import get_close_matches
from typing import Any

from compile.errors import CompileError
from compile.hard_alibi.backend import HardAlibiBackend
from compile.hard_alibi.lean import LeanBackend
from compile.source import Backend, Option, WholeBackend
from compile.tracr.backend import TracrBackend

BACKENDS: dict[str, Backend[Any, Any] | WholeBackend[Any]] = {
    backend.name: backend for backend in (HardAlibiBackend(), LeanBackend(), TracrBackend())
}


def find_backend(name: str) -> Backend[Any, Any] | WholeBackend[Any]:
    if name not in BACKENDS:
        raise CompileError(f"backend {name!r} is not one of {', '.join(BACKENDS)}")
    return BACKENDS[name]


def read_options(backend: Backend[Any, Any] | WholeBackend[Any], given: Mapping[str, Option]) -> Any:
    """The backend's own dataclass of options; one that it does not know is refused by name."""
    known = [field.name for field in fields(backend.options)]
    for name in given:
        if name not in (*known, *backend.aliases):
            close = get_close_matches(name, [*known, *backend.aliases], n=1)
            hint = f"; did you mean {close[0]!r}?" if close else ""
            raise CompileError(f"backend {backend.name!r} has no option {name!r}; it has {', '.join(known)}{hint}")
    twice = [name for name, own in backend.aliases.items() if name in given and own in given]
    if twice:
        raise CompileError(f"{twice[0]} and {backend.aliases[twice[0]]} are the same option; give one of them")
    return backend.options(**{backend.aliases.get(name, name): value for name, value in given.items()})
