"""What a simulator costs: parameters, arithmetic and memory per token, speed, and the time it took to make."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from time import perf_counter
from typing import Any

import numpy as np
from torch import nn

from compile.transformer import Transformer
from compile.transformer.model import Block
from experiments.comparison.shape import COSTS
from experiments.comparison.simulators import IntArray, LearnedSimulator, Simulator
from rasp.machines.tape import sep


@dataclass(frozen=True, kw_only=True)
class Cost:
    """None: there is no such thing in this kind of simulator (a program has no parameters)."""

    simulator: str
    parameters: int | None = None
    nonzero: int | None = None
    flops_per_token: int | None = None  # of the last token of a step, which sees all before it
    tokens_per_second: float  # generated, `rows` tapes of `length` cells together
    bytes: int | None = None  # of the parameters
    cache_bytes: int | None = None  # of the keys and values of one tape and the next
    seconds_to_make: float | None = None
    length: int
    rows: int

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def cost(name: str, simulator: Simulator, tapes: IntArray, seconds_to_make: float | None = None) -> Cost:
    """Measured while the next tapes of `tapes` (all of one length) are written together."""
    prompts = np.pad(tapes, ((0, 0), (0, 1)), constant_values=sep)
    width = prompts.shape[1]
    return generation_cost(name, simulator, prompts, width, width - 4, seconds_to_make, seen=2 * width - 1)


def generation_cost(
    name: str,
    simulator: Any,
    prompts: IntArray | Sequence[IntArray],
    count: int,
    length: int,
    seconds_to_make: float | None = None,
    seen: int | None = None,
) -> Cost:
    """Measured while `count` tokens are written after each prompt; `seen` is what the last of them looks back on."""
    return Cost(
        simulator=name,
        tokens_per_second=len(prompts) * count / _seconds(simulator, prompts, count),
        seconds_to_make=seconds_to_make,
        length=length,
        rows=len(prompts),
        **_sizes(simulator, seen or len(prompts[0]) + count - 1),
    )


def _sizes(simulator: Simulator, seen: int) -> dict[str, int]:
    model: Any = simulator
    if isinstance(simulator, LearnedSimulator):
        model, seen = simulator.model, min(seen, simulator.context)
    if not isinstance(model, nn.Module):
        return {}
    weights = list(model.parameters())
    sizes = {
        "parameters": sum(w.numel() for w in weights),
        "nonzero": sum(int(w.count_nonzero()) for w in weights),
        "bytes": sum(w.numel() * w.element_size() for w in weights),
    }
    if isinstance(model, Transformer):
        sizes |= {"flops_per_token": flops_per_token(model, seen), "cache_bytes": cache_bytes(model, seen)}
    return sizes


def _seconds(simulator: Any, prompts: Any, count: int, times: int = 2) -> float:
    """The fastest of a few runs: what else the machine does only ever adds to it. The first may also compile."""
    taken = []
    for _ in range(times):
        start = perf_counter()
        simulator.generate(prompts, count)
        taken.append(perf_counter() - start)
    return min(taken)


# --- by arithmetic ----------------------------------------------------------------------------------------------------


def flops_per_token(model: Transformer, seen: int) -> int:
    """Multiplications and additions in the matrix products of one token, the last of `seen`, with a KV cache.

    Attention is counted as it is computed: heads of a group all reach as far as the furthest of them.
    """
    config = model.config
    total = config.d_model * config.output_count
    for shape, block in zip(config.shapes, model.blocks, strict=True):
        products = 4 * shape.heads * shape.d_head + (2 + config.gated) * shape.d_mlp  # q, k, v, out; up, down, gate
        total += config.d_model * products
        total += 2 * _cached(block, model.prepended + seen) * shape.d_head  # scores, and the sum of values
    return 2 * total


def cache_bytes(model: Transformer, seen: int) -> int:
    """Of the keys and values of one row."""
    shapes = zip(model.config.shapes, model.blocks, strict=True)
    numbers = sum(2 * _cached(block, model.prepended + seen) * shape.d_head for shape, block in shapes)
    return numbers * model.unembed.weight.element_size()


def _cached(block: Block, tokens: int) -> int:
    """Keys that one query meets, over all heads of a layer."""
    groups = block.attn.groups if block.has_attention else []
    return sum(len(group.heads) * min(tokens, group.reach or tokens) for group in groups)


# --- beside each other ------------------------------------------------------------------------------------------------


def with_ratios(costs: Sequence[Cost], reference: str) -> list[dict[str, Any]]:
    """Rows, each with its numbers divided by those of the simulator called `reference` as `ratio` (None: unknown)."""
    base = next((c for c in costs if c.simulator == reference), None)
    if base is None:
        raise ValueError(f"{reference!r} is none of {', '.join(c.simulator for c in costs)}; choose one of them")
    return [{**c.to_dict(), "ratio": {name: _ratio(c, base, name) for name in COSTS}} for c in costs]


def _ratio(cost: Cost, base: Cost, name: str) -> float | None:
    one, other = getattr(cost, name), getattr(base, name)
    return one / other if one is not None and other else None
