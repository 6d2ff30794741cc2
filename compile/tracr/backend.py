"""Backend `tracr`: programs as transformers with absolute positions, on tracr's `craft` and `assemble` (JAX).

What is returned is our `Transformer`; tracr's own model stays reachable as `.haiku`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from math import isqrt
from typing import Any

from compile.errors import CompileError
from compile.front.domains import Capacity
from compile.front.record import record_program
from compile.front.schedule import Placements
from compile.readings import View
from compile.source import Built, Source, check_flags
from compile.tracr.assemble import MOST_PARAMETERS, Assembled, assemble
from compile.tracr.craft import Directions
from compile.tracr.export import to_torch
from compile.tracr.plan import TracrPlan, make_plan
from compile.transformer import Transformer
from compile.transformer.annotations import Annotations, Register

LONGEST = 256  # tokens, as in the paper-size models
MOST_POSITIONS = isqrt(MOST_PARAMETERS)
ROLES = {"input": "tokens", "width": "count", "indices": "count"}  # of registers; others hold values
REFUSAL = (
    "a count ran over, or a token is none of the program's: this model was compiled to count to {counts} in inputs of "
    "at most {positions} tokens; shorten the input or compile with a larger capacity"
)


@dataclass(frozen=True, kw_only=True)
class TracrOptions:
    """`positions` (or `max_seq_len`) is the longest input, `counts` how far it counts; `trim` leaves out what tracr
    fills up with zeros."""

    counts: int = 64
    positions: int | None = None
    trim: bool = True
    check: bool = True

    def __post_init__(self) -> None:
        check_flags(trim=self.trim, check=self.check)
        given = self.positions
        if given is not None and (isinstance(given, bool) or not isinstance(given, int) or given < 1):
            raise CompileError(
                f"positions (max_seq_len) is {given!r}; give the number of tokens of the longest input, from 1 on"
            )
        if given is not None and given > MOST_POSITIONS:
            raise CompileError(
                f"positions (max_seq_len) is {given}: each is a direction of its own, so their embedding alone has "
                f"{given:,} x {given:,} weights; give at most {MOST_POSITIONS:,}"
            )
        Capacity(self.counts, given)

    @property
    def longest(self) -> int:
        return LONGEST if self.positions is None else self.positions


class TracrBackend:
    name = "tracr"
    options = TracrOptions
    aliases: Mapping[str, str] = {"max_seq_len": "positions"}
    splits_counts = False

    def capacity(self, options: TracrOptions) -> Capacity:
        return Capacity(min(options.counts, options.longest), options.longest)

    def longest(self, options: TracrOptions) -> int | None:
        return options.longest

    def lower(self, plan: Placements, options: TracrOptions) -> TracrPlan:
        _need_tracr()
        return make_plan(plan)

    def assemble(self, lowered: TracrPlan, source: Source, options: TracrOptions) -> Built:
        model = convert(lowered, assemble(lowered), options.trim, source.token_names, source.extra)
        return Built(model, views_of(model, lowered))


def _need_tracr() -> None:
    missing = [name for name in ("jax", "haiku", "tracr") if find_spec(name) is None]
    if missing:
        raise CompileError(
            f"backend 'tracr' needs {', '.join(missing)}, not installed here: pip install 'turing-programs[tracr]', or "
            "use backend 'hard_alibi'"
        )


def convert(
    plan: TracrPlan,
    assembled: Assembled,
    trim: bool = True,
    token_names: Sequence[str] = (),
    extra: Mapping[str, object] | None = None,
) -> Transformer:
    """The assembled model in torch, with what its parts are for; `.haiku` is tracr's."""
    capacity = plan.program.domains.capacity
    model = to_torch(
        assembled.haiku,
        outputs=assembled.outputs,
        trim=trim,
        refusal=REFUSAL.format(counts=capacity.counts, positions=capacity.positions),
        token_names=token_names,
        annotations=Annotations(
            assembled.heads,
            assembled.mlps,
            registers(plan, assembled.haiku.residual_labels),
            record_program(plan.graph),
        ),
        extra={**(extra or {}), "tracr": tracr_size(assembled.haiku)},
    )
    object.__setattr__(model, "haiku", assembled.haiku)
    return model


def tracr_size(haiku: Any) -> dict[str, int]:
    """How large tracr's own model is, in which every layer is as large as the largest."""
    return {
        "layers": int(haiku.model_config.num_layers),
        "heads": int(haiku.model_config.num_heads),
        "key_size": int(haiku.model_config.key_size),
        "mlp": int(haiku.model_config.mlp_hidden_size),
        "d_model": len(haiku.residual_labels),
        "parameters": sum(int(w.size) for module in haiku.params.values() for w in module.values()),
    }


def registers(plan: TracrPlan, labels: Sequence[str]) -> tuple[Register, ...]:
    """Where each register lies in the residual stream; tracr sorts directions by name and value, so in one piece."""
    names = Directions(plan)
    place = {label: column for column, label in enumerate(labels)}
    found = []
    for i in _kept(plan):
        values = plan.domain(i)
        start = place[str(names.value(i, values[0]))]
        role = ROLES.get(plan.graph.nodes[i].op, "value")
        found.append(Register(names.title(i), start, start + len(values), tuple(map(str, values)), role, (i,)))
    return tuple(found)


def _kept(plan: TracrPlan) -> list[int]:
    return [i for i in sorted(plan.times) if plan.graph.nodes[i].op != "full"]


def views_of(model: Transformer, plan: TracrPlan) -> dict[int, View]:
    """How each register is read from the residual stream: a dimension per value."""
    pairs = zip(_kept(plan), model.config.annotations.registers, strict=True)
    return {i: {v: {r.start + place: 1.0} for place, v in enumerate(plan.domain(i))} for i, r in pairs}
