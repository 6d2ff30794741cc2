"""Backend `hard_alibi`: programs in the paper's architecture, windows and NoPE, without positions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from compile.errors import CompileError
from compile.front.domains import Capacity
from compile.front.record import record_program
from compile.front.schedule import Placements
from compile.hard_alibi.assemble import assemble
from compile.hard_alibi.lower import Lowered, lower
from compile.hard_alibi.network import MOST_COUNT, or_double
from compile.source import Built, Source, check_flags, check_numbers


@dataclass(frozen=True, kw_only=True)
class HardAlibiOptions:
    """`counts` is the largest number a `sel_width` may reach and the most values a `mean` may be taken of; `positions`
    the longest input, if the program uses `indices` other than to shift."""

    counts: int = 64
    positions: int | None = None
    dtype: str = "float32"
    activation: str = "relu"
    check: bool = True

    def __post_init__(self) -> None:
        check_numbers(self.dtype, self.activation)
        check_flags(check=self.check)
        Capacity(self.counts, self.positions)
        if self.positions is not None and self.positions > MOST_COUNT[self.dtype]:
            raise CompileError(
                f"positions is {self.positions}, but {self.dtype} is good for {MOST_COUNT[self.dtype]}; ask for less"
                f"{or_double(self.dtype)}"
            )


class HardAlibiBackend:
    name = "hard_alibi"
    options = HardAlibiOptions
    aliases: Mapping[str, str] = {}
    splits_counts = True

    def capacity(self, options: HardAlibiOptions) -> Capacity:
        return Capacity(options.counts, options.positions)

    def longest(self, options: HardAlibiOptions) -> int | None:
        return None

    def lower(self, plan: Placements, options: HardAlibiOptions) -> Lowered:
        return lower(plan, options.dtype)

    def assemble(self, lowered: Lowered, source: Source, options: HardAlibiOptions) -> Built:
        program = record_program(lowered.plan.graph)
        model = assemble(
            lowered.network,
            activation=options.activation,
            token_names=source.token_names,
            extra=source.extra,
            program=program,
        )
        return Built(model, lowered.views)
