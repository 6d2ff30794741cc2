"""The paper's theorem, made sharp and checked: hypotheses, samples, exhaustion, proofs, counterexamples.

Names are loaded when first used.
"""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from proofs_check.hypotheses import beyond_bound, first_on_marker, first_repeat, first_wrong_step
    from proofs_check.sampled import verify
    from proofs_check.theorem import theorem_page
    from rasp.simulable import make_simulable

_LATER = {
    "first_repeat": "proofs_check.hypotheses", "first_wrong_step": "proofs_check.hypotheses",
    "first_on_marker": "proofs_check.hypotheses", "beyond_bound": "proofs_check.hypotheses",
    "verify": "proofs_check.sampled", "prove": "proofs_check.proving", "theorem_page": "proofs_check.theorem",
    "make_simulable": "rasp.simulable",
}  # fmt: skip

__all__ = [*_LATER]


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module 'proofs_check' has no attribute {name!r}")
    value = getattr(import_module(_LATER[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_LATER})


class _Package(ModuleType):
    """Importing a module binds its name here; a function that is promised under that name stays what it is."""

    def __setattr__(self, name: str, value: object) -> None:
        if not (name in _LATER and isinstance(value, ModuleType)):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package
