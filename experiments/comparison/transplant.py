"""A compiled `lean` model inside the architecture that is trained here: RMSNorm before every part, GELU, no biases.

    the norm    One more direction of the residual stream holds a large constant C on every token. It alone decides the
                root mean square, C / sqrt(D), and the norm's gain undoes that: x comes out as x (1 - |x|^2 / 2 C^2).
    biases      The same direction, with a gain of its own, comes out of every norm as 1: weights on it are biases.
    GELU        gelu(s t) / s = relu(t) up to |t| times the normal tail beyond s |t|; the units of `lean` never come
                nearer to 0 than |t| = 1 (or are 0), so s = 8 is exact in float32. A larger s would make the weights
                behind so small that one step of Adam wipes them out.
    scores      q is multiplied by sqrt(d_head), which attention divides by.
    the start   The compiled model's start token takes the place of `empt`, which stands on no tape.
    the logits  are 1 and 0 in `lean`, and here LOGIT and 0: the same answers, but with confidence, or training would
                begin by looking for that.

So the result is a model that a `Recipe` describes, and everything that trains a fresh one can go on from it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from compile import compile_machine
from compile.transformer import Transformer, TransformerConfig
from compile.transformer.attention import Attention
from experiments.evaluation.evaluate import fresh_rng
from experiments.tasks.base import IntArray
from experiments.tasks.turing_rasp import draw_tapes, follow
from rasp import TuringMachine
from rasp.machines.tape import empt

CONSTANT = 1024.0  # |x|^2 is some 30, so the norm changes x by a part in 10^5
GELU_SCALE = 8.0
LOGIT = 10.0


# --------------------------------------------------------------------------------------------------------- the weights


def trainable_shape(lean: Transformer) -> dict[str, Any]:
    """The part `model` of a recipe whose models have room for this compiled one."""
    shapes = lean.config.shapes
    return {
        "layers": len(shapes),
        "d_model": lean.config.d_model + 1,
        "heads": [s.heads for s in shapes],
        "d_head": [s.d_head for s in shapes],
        "d_mlp": [s.d_mlp for s in shapes],
        "windows": [list(s.windows) for s in shapes],
        "encoding": "hard_alibi",
        "norm": "rmsnorm",
        "bias": False,
        "prepend": empt,
        "prepend_count": lean.prepended,
    }


@torch.no_grad()
def write_compiled(model: Transformer, lean: Transformer) -> Transformer:
    """Fill `model`, of `trainable_shape(lean)`, with what `lean` computes."""
    size = lean.config.d_model
    _write_embedding(model.embed.weight, lean)
    for norm in (m for m in model.modules() if isinstance(m, nn.RMSNorm)):
        norm.weight[:size] = CONSTANT / math.sqrt(size + 1)
        norm.weight[size] = 1 / math.sqrt(size + 1)
    for new, old in zip(model.blocks, lean.blocks, strict=True):
        if old.has_attention:
            _write_attention(new.attn, old.attn)
        if old.has_mlp:
            new.mlp.up.weight.copy_(GELU_SCALE * _with_bias(old.mlp.up))
            new.mlp.down.weight.copy_(_into_residual(old.mlp.down) / GELU_SCALE)
    tokens = model.config.output_count  # the compiled model's last row says that it cannot count so far
    model.unembed.weight.copy_(LOGIT * _with_bias(lean.unembed)[:tokens])
    return model


def _write_embedding(weight: Tensor, lean: Transformer) -> None:
    weight[:, :-1] = lean.embed.weight[:-1]
    weight[empt, :-1] = lean.embed.weight[-1]  # the start token
    weight[:, -1] = CONSTANT


def _write_attention(new: Attention, old: Attention) -> None:
    rows = _with_bias(old.qkv)
    rows[: old.heads * old.d_head] *= old.scale / new.scale
    new.qkv.weight.copy_(rows)
    new.out.weight.copy_(_into_residual(old.out))


def _with_bias(linear: nn.Linear) -> Tensor:
    """A map of the residual stream, with its bias as what it reads in the constant direction."""
    return torch.cat((linear.weight, linear.bias[:, None]), dim=1)


def _into_residual(linear: nn.Linear) -> Tensor:
    """A map into the residual stream; the constant stays as it is."""
    assert not linear.bias.any(), "compiled maps into the residual stream have no bias"
    return nn.functional.pad(linear.weight, (0, 0, 0, 1))


def transplant(machine: TuringMachine, n: int, steps: int = 64) -> Transformer:
    """A trainable model that answers as `compile_machine(machine, "lean", n, steps)` does."""
    lean = compile_machine(machine, "lean", n=n, steps=steps, check=False)
    names = machine.vocabulary
    config = TransformerConfig(vocabulary=len(names), token_names=names, **trainable_shape(lean))
    return write_compiled(Transformer(config), lean)


@dataclass(frozen=True)
class Exactness:
    """A transplanted model beside the compiled one, at every token of given traces."""

    traces: int
    tokens: int
    mismatches: int
    largest_error: float  # of a logit, where a right answer has LOGIT


@torch.no_grad()
def exactness(model: Transformer, lean: Transformer, traces: Sequence[IntArray]) -> Exactness:
    tokens, mismatches, largest = 0, 0, 0.0
    for trace in traces:
        ours, theirs = (m(torch.from_numpy(trace)[None]) for m in (model, lean))
        theirs = theirs[..., : ours.shape[-1]]
        tokens += len(trace)
        mismatches += int((ours.argmax(dim=-1) != theirs.argmax(dim=-1)).sum())
        largest = max(largest, float((ours - LOGIT * theirs).abs().max()))
    return Exactness(len(traces), tokens, mismatches, largest)


def trial_traces(
    machine: TuringMachine, lengths: Sequence[int], count: int, steps: int, seed: int = 0
) -> list[IntArray]:
    """`count` traces of `steps` steps from random tapes of each length."""
    found: list[IntArray] = []
    for length in lengths:
        tapes = draw_tapes(fresh_rng(seed, (length, 2)), machine, np.full(count, length))
        found += list(follow(machine, tapes, steps).reshape(count, -1))
    return found
