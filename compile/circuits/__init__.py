"""The circuit of a compiled model, known for certain: its components, the edges between them, and what each carries.

components (heads and groups of units) -> wiring (which edges lead to the answers, by the weights) -> patching (a model
with edges cut, or carrying something else) -> ablation (which answers change then) -> finding (for each wired edge an
input that shows that it matters) -> circuit (what was found, as data).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rasp.lazy import lazy_names

if TYPE_CHECKING:
    from compile.circuits.circuit import Circuit
    from compile.circuits.components import Component, Edge
    from compile.circuits.finding import find_circuit
    from compile.circuits.patching import Patching
    from compile.circuits.wiring import Wiring

__all__ = ["Circuit", "Component", "Edge", "Patching", "Wiring", "find_circuit"]

__getattr__, __dir__ = lazy_names(
    "compile.circuits",
    {
        "Circuit": "compile.circuits.circuit",
        **dict.fromkeys(("Component", "Edge"), "compile.circuits.components"),
        "find_circuit": "compile.circuits.finding",
        "Patching": "compile.circuits.patching",
        "Wiring": "compile.circuits.wiring",
    },
)
