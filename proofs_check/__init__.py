"""The paper's theorem, made sharp and checked: hypotheses, samples, exhaustion, proofs, counterexamples.

Names are loaded when first used. Each is set on the package explicitly, so that none is ever hidden by a module of
the same name that happened to be imported.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from proofs_check.hypotheses import beyond_bound, first_on_marker, first_repeat, first_wrong_step
    from proofs_check.sampled import verify
    from proofs_check.theorem import theorem_page
    from rasp.simulable import make_simulable

_LATER = {
    "first_repeat": "proofs_check.hypotheses", "first_wrong_step": "proofs_check.hypotheses",
    "first_on_marker": "proofs_check.hypotheses", "beyond_bound": "proofs_check.hypotheses",
    "verify": "proofs_check.sampled",
    "theorem_page": "proofs_check.theorem", "make_simulable": "rasp.simulable",
}  # fmt: skip

__all__ = ["beyond_bound", "first_on_marker", "first_repeat", "first_wrong_step", "make_simulable", "theorem_page",
           "verify"]  # fmt: skip


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module 'proofs_check' has no attribute {name!r}")
    value = getattr(import_module(_LATER[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_LATER})
