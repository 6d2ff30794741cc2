"""Change what a model computes and see what comes of it: heads that bring nothing, registers from another run.

For compiled models the circuit is known, so what must follow is known before: `reach` says which registers and whether
the answer can change at all, and `patch` says which answers come out, exactly.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from compile.errors import CompileError
from compile.plan import plan_of, run_plan
from compile.transformer import Transformer
from compile.transformer.annotations import Register

Head = tuple[int, int]  # layer, index in it
Hooks = dict[str, Callable[[Tensor], Tensor]]
RESIDUALS = ("hook_resid_pre", "hook_resid_mid", "hook_resid_post")


@dataclass(frozen=True)
class Reach:
    """What can feel a change: names of registers, and whether the answer can. All else must stay as it is."""

    registers: frozenset[str]
    answer: bool


@dataclass(frozen=True)
class InterventionOutcome:
    """What a model says after every token, `before` and `after` a change; `predicted` by its circuit, where it can."""

    before: np.ndarray
    after: np.ndarray
    predicted: np.ndarray | None = None

    @property
    def changed(self) -> np.ndarray:
        """The positions whose answer is another."""
        return np.flatnonzero(self.before != self.after)

    @property
    def as_predicted(self) -> bool:
        return self.predicted is not None and bool((self.after == self.predicted).all())


def heads_off(model: Transformer, heads: Iterable[Head]) -> Hooks:
    """Hooks for `run_with_hooks` with which these heads bring nothing."""
    by_layer: dict[int, list[int]] = {}
    for layer, head in heads:
        shapes = model.config.shapes
        if not (0 <= layer < len(shapes) and 0 <= head < shapes[layer].heads):
            raise ValueError(f"there is no head {layer}.{head}; layers have {[s.heads for s in shapes]} heads.")
        by_layer.setdefault(layer, []).append(head)

    def silence(which: list[int]) -> Callable[[Tensor], Tensor]:
        def without(z: Tensor) -> Tensor:  # (B, T, H, D)
            z = z.clone()
            z[:, :, which] = 0
            return z

        return without

    return {f"blocks.{layer}.attn.hook_z": silence(which) for layer, which in by_layer.items()}


def switch_off(model: Transformer, tokens: Sequence[int] | np.ndarray, heads: Iterable[Head]) -> InterventionOutcome:
    """The answers with and without these heads."""
    return InterventionOutcome(_answers(model, tokens, {}), _answers(model, tokens, heads_off(model, heads)))


def patch(
    model: Transformer,
    tokens: Sequence[int] | np.ndarray,
    source: Sequence[int] | np.ndarray,
    register: str,
    position: int,
    source_position: int | None = None,
) -> InterventionOutcome:
    """The answers on `tokens` when a register holds, at `position`, what it holds in the run on `source`."""
    place = find_register(model, register)
    taken = position if source_position is None else source_position
    for what, row, at in (("tokens", tokens, position), ("source", source, taken)):
        if not hasattr(at, "__index__") or not 0 <= at < len(row):
            raise ValueError(f"position {at} is not one of the {len(row)} positions of {what}.")
    hooks = swap_hooks(model, source, place, position, taken)
    after = _answers(model, tokens, hooks)
    return InterventionOutcome(
        _answers(model, tokens, {}), after, _predicted(model, tokens, source, place, position, taken)
    )


def swap_hooks(
    model: Transformer, source: Sequence[int] | np.ndarray, place: Register, position: int, taken: int
) -> Hooks:
    """After every stage of the run, the register holds what it holds after the same stage of the other."""
    _, cache = model.run_with_cache(source)
    names = [name for name in cache if name.endswith(RESIDUALS)]
    dims = slice(place.start, place.stop)

    def overwrite(name: str) -> Callable[[Tensor], Tensor]:
        held = cache[name][:, model.prepended + taken, dims].clone()

        def write(x: Tensor) -> Tensor:
            x = x.clone()
            x[:, model.prepended + position, dims] = held
            return x

        return write

    return {name: overwrite(name) for name in names}


def find_register(model: Transformer, name: str) -> Register:
    known = model.config.annotations.registers
    found = [register for register in known if register.name == name]
    if not found:
        raise ValueError(f"no register is called {name!r}; there are {', '.join(r.name for r in known)}.")
    if len(found) > 1:
        raise ValueError(f"{len(found)} registers are called {name!r}; name one that is alone.")
    return found[0]


def _answers(model: Transformer, tokens: Sequence[int] | np.ndarray, hooks: Hooks) -> np.ndarray:
    with torch.no_grad():
        logits = model.run_with_hooks(tokens, hooks)
    return model.output_tokens[logits[0].argmax(dim=-1)].cpu().numpy()


# --- what must follow -------------------------------------------------------------------------------------------------


def _predicted(
    model: Transformer,
    tokens: Sequence[int] | np.ndarray,
    source: Sequence[int] | np.ndarray,
    place: Register,
    position: int,
    taken: int,
) -> np.ndarray | None:
    """What the circuit says: the node of the register has the other run's value there; None where it has no node."""
    if len(place.nodes) != 1 or place.role in ("share", "mean"):
        return None
    try:
        plan = plan_of(model)
    except CompileError:
        return None
    (node,) = place.nodes
    value = int(run_plan(plan, np.asarray(source))[node][taken])
    return run_plan(plan, np.asarray(tokens), {(node, position): value})[plan.graph.output]


def reach(model: Transformer, heads: Iterable[Head] = (), registers: Iterable[str] = ()) -> Reach:
    """What is computed from what these heads bring and these registers hold, by the program saved with the model."""
    known = model.config.annotations
    if known.program is None:
        raise ValueError("this model does not carry the program it was compiled from, so its circuit is not known.")
    named = [find_register(model, name) for name in registers]
    touched = {node for layer, head in heads for node in known.heads[layer][head].nodes}
    touched |= {node for register in named for node in register.nodes}
    for i, operation in enumerate(known.program.operations):  # inputs come before what is computed from them
        if touched & set(operation.inputs):
            touched.add(i)
    feeling = {r.name for r in known.registers if r.role == "overflow" or touched & set(r.nodes)}
    return Reach(frozenset(feeling | {r.name for r in named}), known.program.output in touched)
