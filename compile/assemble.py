"""Readings become matrices: a network as one `Transformer`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from compile.errors import REFUSED
from compile.model import Transformer, TransformerConfig
from compile.network import Network
from compile.stream import BIAS, START, Head, Layer, Reading

GELU_SCALE = 1e4  # gelu(s t) / s differs from relu(t) by at most 0.17 / s
ALARM = 100.0  # logit of "a count ran over", far above the 1 of an answer


def assemble(
    network: Network, *, activation: str = "relu", extra: dict[str, Any] | None = None,
    token_names: Sequence[str] = (),
) -> Transformer:  # fmt: skip
    """A model whose only norm is none, whose score scale is 1, and that puts `copies` start tokens before its input."""
    model = Transformer.zeros(_config(network, activation, extra or {}, token_names))
    with torch.no_grad():
        _write_ends(model, network)
        for block, layer in zip(model.blocks, network.layers, strict=True):
            if layer.heads:
                _write_heads(block.attn, layer.heads)
            if layer.units:
                _write_units(block.mlp, layer, GELU_SCALE if activation == "gelu" else 1.0)
    return model


def _config(network: Network, activation: str, extra: dict[str, Any], token_names: Sequence[str]) -> TransformerConfig:
    layers, start = network.layers, network.tokens[-1] + 1
    names = [*(token_names or map(str, range(start))), "start"]
    return TransformerConfig(
        vocabulary=start + 1,
        layers=len(layers),
        d_model=network.d_model,
        heads=tuple(len(layer.heads) for layer in layers),
        d_head=tuple(max((head.width for head in layer.heads), default=1) for layer in layers),
        d_mlp=tuple(len(layer.units) for layer in layers),
        windows=tuple(tuple(head.window for head in layer.heads) for layer in layers),
        norm="none",
        activation=activation,
        unembed_bias=True,
        scale=1.0,
        prepend=start,
        prepend_count=network.copies,
        refusal=network.refusal,
        outputs=(*network.answer, *([] if network.overflow is None else [REFUSED])),
        dtype=network.dtype,
        token_names=names,
        head_labels=tuple(tuple(head.label for head in layer.heads) for layer in layers),
        mlp_labels=tuple("; ".join(layer.labels) for layer in layers),
        registers=tuple((r.name, r.start, r.stop, r.values) for r in network.registers),
        extra=extra,
    )


def _write_ends(model: Transformer, network: Network) -> None:
    embedding = np.zeros(tuple(model.embed.weight.shape))
    embedding[-1, START] = 1.0
    for token, reading in network.input.items():
        for dim, coefficient in reading.items():
            embedding[token, dim] = coefficient
    model.embed.weight.copy_(torch.from_numpy(embedding))
    rows = list(network.answer.values())
    if network.overflow is not None:
        rows.append({network.overflow: ALARM})
    _write(model.unembed, rows)


def _write(linear: torch.nn.Linear, rows: Sequence[Reading], first: int = 0, scale: float = 1.0) -> None:
    """Row k of the matrix (and its bias) computes reading k."""
    weight, bias = linear.weight.detach().numpy(), linear.bias.detach().numpy()
    for k, reading in enumerate(rows, first):
        for dim, coefficient in reading.items():
            if dim == BIAS:
                bias[k] = coefficient * scale
            else:
                weight[k, dim] = coefficient * scale


def _write_heads(attention: Any, heads: list[Head]) -> None:
    """The projection's rows are all queries, all keys, all values; the output's columns are the heads'."""
    size = attention.d_head
    block = len(heads) * size
    for h, head in enumerate(heads):
        _write(attention.qkv, [q for q, _ in head.pairs], h * size)
        _write(attention.qkv, [k for _, k in head.pairs], block + h * size)
        _write(attention.qkv, [v for v, _ in head.moves], 2 * block + h * size)
        _write_columns(attention.out, [to for _, to in head.moves], h * size)


def _write_columns(linear: torch.nn.Linear, columns: Sequence[Reading], first: int = 0, scale: float = 1.0) -> None:
    """Column k of the matrix writes where reading k says."""
    weight = linear.weight.detach().numpy()
    for k, writes in enumerate(columns, first):
        for dim, coefficient in writes.items():
            weight[dim, k] = coefficient * scale


def _write_units(mlp: Any, layer: Layer, scale: float) -> None:
    _write(mlp.up, [dict(reads) for reads in layer.units], scale=scale)
    _write_columns(mlp.down, list(layer.units.values()), scale=1.0 / scale)
