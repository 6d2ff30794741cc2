"""What is compiled, and what a backend is: the words in which the pipeline and the backends speak to each other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeVar, runtime_checkable

import numpy as np

from compile.errors import CompileError
from compile.front.domains import Capacity
from compile.front.schedule import Placements
from compile.readings import View
from compile.transformer import Transformer
from rasp.core import Program
from rasp.machines.machine import TuringMachine

Option = int | str | bool | None
Tokens = Sequence[int] | np.ndarray

DTYPES, ACTIVATIONS = ("float32", "float64"), ("relu", "gelu")


@dataclass(frozen=True)
class MachineProgram:
    """Which machine a program was written for, and how."""

    machine: TuringMachine
    n: int
    steps: int
    packing: str


@dataclass(frozen=True)
class Source:
    """A program, the tokens of its inputs, inputs to check it on, and what to write down in the model."""

    program: Program
    vocabulary: tuple[int, ...]
    examples: Sequence[Tokens] = ()
    token_names: Sequence[str] = ()
    extra: Mapping[str, object] = field(default_factory=dict)
    machine: MachineProgram | None = None  # None: it is no machine's


@dataclass(frozen=True)
class Built:
    """A model, and how the value of each node that is kept is read from its residual stream."""

    model: Transformer
    views: Mapping[int, View]


# --- backends ---------------------------------------------------------------------------------------------------------


O_contra = TypeVar("O_contra", contravariant=True)
LoweredT = TypeVar("LoweredT")


class Backend(Protocol[O_contra, LoweredT]):
    """The stages that differ: how far a model can count, what heads and units compute, and how they become matrices."""

    @property
    def name(self) -> str: ...
    @property
    def options(self) -> type: ...
    @property
    def aliases(self) -> Mapping[str, str]:
        """Other names that options go by."""

    @property
    def splits_counts(self) -> bool:
        """Whether large counts are compared digit by digit."""

    def capacity(self, options: O_contra) -> Capacity: ...
    def lower(self, plan: Placements, options: O_contra) -> LoweredT: ...
    def assemble(self, lowered: LoweredT, source: Source, options: O_contra) -> Built: ...
    def longest(self, options: O_contra) -> int | None:
        """Tokens of the longest input; None: of any length."""


@runtime_checkable
class WholeBackend(Protocol[O_contra]):
    """A backend that goes from the program to the model in its own way."""

    @property
    def name(self) -> str: ...
    @property
    def options(self) -> type: ...
    @property
    def aliases(self) -> Mapping[str, str]: ...
    def compile(self, source: Source, options: O_contra) -> Transformer: ...


def check_numbers(dtype: str, activation: str = "relu") -> None:
    for name, given, known in (("dtype", dtype, DTYPES), ("activation", activation, ACTIVATIONS)):
        if given not in known:
            raise CompileError(f"{name} {given!r} is not one of {', '.join(known)}")


def check_flags(**flags: bool) -> None:
    for name, given in flags.items():
        if not isinstance(given, bool):
            raise CompileError(f"{name} is {given!r}; give True or False")
