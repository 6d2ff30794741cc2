"""The circuit of a compiled model, known for certain: its components, the edges between them, and what each carries.

components (heads and groups of units, and what they read and write) -> patching (a model with edges cut or replaced)
-> circuit (which edges the answers depend on, each with an input that shows it).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rasp.lazy import lazy_names

if TYPE_CHECKING:
    from compile.circuits.circuit import Circuit, find_circuit
    from compile.circuits.components import Component, Edge, Wiring
    from compile.circuits.patching import Patching

__all__ = ["Circuit", "Component", "Edge", "Patching", "Wiring", "find_circuit"]

__getattr__, __dir__ = lazy_names(
    "compile.circuits",
    {
        **dict.fromkeys(("Circuit", "find_circuit"), "compile.circuits.circuit"),
        **dict.fromkeys(("Component", "Edge", "Wiring"), "compile.circuits.components"),
        "Patching": "compile.circuits.patching",
    },
)
