"""The paper's theorem, made sharp and checked: hypotheses, samples, exhaustion, proofs, counterexamples.

Names are loaded when first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rasp.lazy import lazy_names

if TYPE_CHECKING:
    from proofs_check.hypotheses import beyond_bound, first_on_marker, first_repeat, first_wrong_step
    from proofs_check.page.theorem import theorem_page
    from proofs_check.sampled.sweep import verify
    from proofs_check.symbolic.proving import prove
    from rasp.machines.simulable import make_simulable

__all__ = [
    "beyond_bound",
    "first_on_marker",
    "first_repeat",
    "first_wrong_step",
    "make_simulable",
    "prove",
    "theorem_page",
    "verify",
]

__getattr__, __dir__ = lazy_names(
    "proofs_check",
    {
        **dict.fromkeys(
            ("beyond_bound", "first_on_marker", "first_repeat", "first_wrong_step"), "proofs_check.hypotheses"
        ),
        "make_simulable": "rasp.machines.simulable",
        "prove": "proofs_check.symbolic.proving",
        "theorem_page": "proofs_check.page.theorem",
        "verify": "proofs_check.sampled.sweep",
    },
)
