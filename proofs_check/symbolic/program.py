"""The program that a check is about: the paper's, or one with some of its parts exchanged.

The functions of `rasp.programs.turing` call each other by name. A program with other parts is a copy of these functions
in a namespace of its own, where some names mean something else: the module itself is never changed, so that right and
wrong programs run side by side, in any number of threads.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from types import FunctionType
from typing import Any

from rasp.programs import turing


@dataclass(frozen=True)
class Program:
    """The functions of `rasp.programs.turing`, with other parts in the place of some of theirs."""

    name: str = "as printed"
    parts: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        unknown = sorted(name for name in self.parts if not hasattr(turing, name))
        if unknown:
            raise ValueError(f"program {self.name!r}: {turing.__name__} has no {', '.join(unknown)} to exchange")

    @cached_property
    def functions(self) -> Mapping[str, Any]:
        """Every name that the program's functions use, and what it means in this program."""
        meaning: dict[str, Any] = {**vars(turing), **self.parts}
        for name, own in vars(turing).items():
            if isinstance(own, FunctionType) and own.__module__ == turing.__name__ and name not in self.parts:
                copy = FunctionType(own.__code__, meaning, name, own.__defaults__, own.__closure__)
                copy.__kwdefaults__ = own.__kwdefaults__
                meaning[name] = copy
        return meaning

    def call(self, function: str, *args: Any, **options: Any) -> Any:
        return self.functions[function](*args, **options)


PRINTED = Program()
