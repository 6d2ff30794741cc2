"""RASP-L programs and Turing machines compiled into transformer weights, and the transformer that runs them.

What is heavy behind these names (torch, JAX) is loaded when it is first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rasp.lazy import lazy_names

if TYPE_CHECKING:
    from compile.errors import CapacityError, CompileError
    from compile.inspector import attention_figure, inspect
    from compile.interventions import patch, reach, switch_off
    from compile.machine import compile_machine
    from compile.pipeline import compile_program
    from compile.tasks import compile_task, compile_universal
    from compile.transformer import Transformer, TransformerConfig

__all__ = [
    "CapacityError",
    "CompileError",
    "Transformer",
    "TransformerConfig",
    "attention_figure",
    "compile_machine",
    "compile_program",
    "compile_task",
    "compile_universal",
    "inspect",
    "patch",
    "reach",
    "switch_off",
]

__getattr__, __dir__ = lazy_names(
    "compile",
    {
        **dict.fromkeys(("CapacityError", "CompileError"), "compile.errors"),
        **dict.fromkeys(("Transformer", "TransformerConfig"), "compile.transformer"),
        **dict.fromkeys(("attention_figure", "inspect"), "compile.inspector"),
        **dict.fromkeys(("patch", "reach", "switch_off"), "compile.interventions"),
        "compile_machine": "compile.machine",
        "compile_program": "compile.pipeline",
        **dict.fromkeys(("compile_task", "compile_universal"), "compile.tasks"),
    },
)
