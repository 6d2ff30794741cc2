"""RASP-L programs and Turing machines compiled into transformer weights, and the transformer that runs them.

What is heavy behind these names (torch, JAX) is loaded when it is first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from compile.errors import CapacityError, CompileError
    from compile.inspector import attention_figure, inspect
    from compile.machine import compile_machine
    from compile.model import Transformer, TransformerConfig
    from compile.pipeline import compile_program

__all__ = ["CapacityError", "CompileError", "Transformer", "TransformerConfig", "attention_figure", "compile_machine",
           "compile_program", "inspect"]  # fmt: skip

_LATER = {
    "CapacityError": "errors", "CompileError": "errors", "compile_machine": "machine", "compile_program": "pipeline",
    "Transformer": "model", "TransformerConfig": "model", "attention_figure": "inspector", "inspect": "inspector",
}  # fmt: skip


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module 'compile' has no attribute {name!r}")
    value = getattr(import_module(f"compile.{_LATER[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_LATER})
