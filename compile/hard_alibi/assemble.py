"""Readings become matrices: a network as one `Transformer`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch

from compile.errors import REFUSED, CompileError
from compile.hard_alibi.network import Network
from compile.hard_alibi.readings import START, DraftHead, DraftLayer
from compile.hard_alibi.shapes import Shape, fit
from compile.readings import BIAS, Reading
from compile.transformer import Transformer, TransformerConfig
from compile.transformer.annotations import Annotations, ProgramGraph
from rasp.memory import NotEnoughMemory, need_memory

GELU_SCALE = 1e4  # gelu(s t) / s differs from relu(t) by at most 0.17 / s
SIZES = {"float32": 4, "float64": 8}  # bytes
ALARM = 100.0  # logit of "a count ran over", far above the 1 of an answer


def assemble(
    network: Network,
    *,
    activation: str = "relu",
    extra: Mapping[str, object] | None = None,
    token_names: Sequence[str] = (),
    shape: Shape | None = None,
    program: ProgramGraph | None = None,
) -> Transformer:
    """A model without norms, of score scale 1, that puts `copies` start tokens before its input.

    It is as large as the network needs, or of the given `shape`.
    """
    layers = fit(network, shape) if shape else network.layers
    annotations = Annotations(
        tuple(tuple(head.fact for head in layer.heads) for layer in layers),
        tuple(layer.fact for layer in layers),
        tuple(network.registers),
        program,
    )
    config = _config(
        network,
        layers,
        activation=activation,
        extra=dict(extra or {}),
        annotations=annotations,
        token_names=_names(network, token_names),
        **_sizes(network, layers, shape),
    )
    need_room(config)
    model = Transformer.zeros(config)
    with torch.no_grad():
        _write_ends(model, network)
        for block, layer in zip(model.blocks, layers, strict=True):
            if layer.heads:
                _write_heads(block.attn, layer.heads)
            if block.has_mlp:
                _write_units(block.mlp, layer, GELU_SCALE if activation == "gelu" else 1.0)
    return model


def need_room(config: TransformerConfig) -> None:
    """Refuse weights that this machine cannot hold, before they are asked for."""
    count = config.rough_parameter_count
    what, instead = f"a model of {count:,} parameters", "ask for fewer steps (counts), a smaller n or fewer tokens"
    try:
        need_memory(what, count * SIZES[config.dtype], instead)
    except NotEnoughMemory as error:
        raise CompileError(str(error)) from None


def _sizes(network: Network, layers: Sequence[DraftLayer], shape: Shape | None) -> dict[str, Any]:
    if shape:
        return {"d_model": shape.d_model, "d_head": shape.d_head, "d_mlp": shape.d_mlp}
    d_head = tuple(max((head.width for head in layer.heads), default=1) for layer in layers)
    return {"d_model": network.d_model, "d_head": d_head, "d_mlp": tuple(len(layer.units) for layer in layers)}


def _names(network: Network, given: Sequence[str]) -> list[str]:
    return [*(given or map(str, range(*_range(network)))), "start"]


def _range(network: Network) -> tuple[int, int]:
    """The tokens that have a row in the embedding: from the lowest (or 0) up to the start, which is one more."""
    return min(network.tokens[0], 0), max(network.tokens[-1], -1) + 1


def _config(network: Network, layers: Sequence[DraftLayer], **options: Any) -> TransformerConfig:
    first, start = _range(network)
    return TransformerConfig(
        vocabulary=start + 1 - first,
        first_token=first,
        layers=len(layers),
        heads=tuple(len(layer.heads) for layer in layers),
        windows=tuple(tuple(head.window for head in layer.heads) for layer in layers),
        norm="none",
        unembed_bias=True,
        scale=1.0,
        prepend=start,
        prepend_count=network.copies,
        refusal=network.refusal,
        outputs=(*network.answer, *([] if network.overflow is None else [REFUSED])),
        dtype=network.dtype,
        **options,
    )


def _write_ends(model: Transformer, network: Network) -> None:
    embedding = np.zeros(tuple(model.embed.weight.shape))
    embedding[-1, START] = 1.0
    for token, reading in network.input.items():
        for dim, coefficient in reading.items():
            embedding[token - model.config.first_token, dim] = coefficient
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


def _write_heads(attention: Any, heads: list[DraftHead]) -> None:
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


def _write_units(mlp: Any, layer: DraftLayer, scale: float) -> None:
    _write(mlp.up, [dict(reads) for reads in layer.units], scale=scale)
    _write_columns(mlp.down, list(layer.units.values()), scale=1.0 / scale)
