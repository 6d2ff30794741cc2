"""tracr's (Haiku) models as our torch `Transformer`: the same numbers, the same argmax.

Haiku keeps weights as (in, out), torch as (out, in). tracr has no norm, ReLU, learned positions, scores divided by the
square root of the key size, and an unembedding that is no parameter: it is read off by unembedding every direction.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from compile.errors import REFUSED
from compile.tracr.craft import ALARM
from compile.transformer import Transformer, TransformerConfig
from compile.transformer.annotations import Annotations, Fact

Array = np.ndarray

UNUSED = Fact("unused", "unused")
TRACR: dict[str, Any] = {"encoding": "learned", "norm": "none", "activation": "relu"}


@dataclass(frozen=True)
class LayerWeights:
    """One layer's weights, heads first: q, k, v (H, D, K), o (H, K, D). `kept` are the heads that are left."""

    kept: tuple[int, ...]
    q: Array
    k: Array
    v: Array
    o: Array
    q_bias: Array
    k_bias: Array
    v_bias: Array
    o_bias: Array
    up: Array
    up_bias: Array
    down: Array
    down_bias: Array


def to_torch(
    haiku: Any,
    *,
    outputs: Sequence[int | None] | None = None,
    trim: bool = True,
    token_names: Sequence[str] = (),
    annotations: Annotations | None = None,
    **config: Any,
) -> Transformer:
    """The model in torch. tracr's bos is the token after the last, prepended silently.

    `outputs` is what each output stands for, if not what tracr decodes it to; None is a refusal, and so is then every
    token that the model does not know. `trim` leaves out heads, key dimensions and hidden units that are zero (tracr
    makes every layer as large as the largest), and with them nothing that is computed.
    """
    outputs = _decoded(haiku) if outputs is None else outputs
    first, bos = _range(haiku)
    layers = [_read_layer(haiku, index) for index in range(haiku.model_config.num_layers)]
    layers = [_trimmed(layer) for layer in layers] if trim else layers
    positions, d_model = _embedding(haiku, "pos_embed").shape
    shape = TransformerConfig(
        **TRACR,
        vocabulary=bos + 1 - first,
        first_token=first,
        layers=len(layers),
        d_model=d_model,
        heads=[len(layer.q) for layer in layers],
        d_head=[layer.q.shape[2] for layer in layers],
        d_mlp=[layer.up.shape[1] for layer in layers],
        scale=float(haiku.model_config.key_size**-0.5),
        max_positions=positions,
        prepend=bos,
        outputs=[REFUSED if value is None else value for value in outputs],
        token_names=[*token_names, *map(str, range(first + len(token_names), bos)), "bos"],
        annotations=_of_kept(annotations or Annotations(), layers),
        **config,
    )
    model = Transformer.zeros(shape)
    _write_ends(model, haiku, outputs)
    for block, layer in zip(model.blocks, layers, strict=True):
        _write_layer(block, layer)
    return model


def _rows(haiku: Any) -> dict[int, int]:
    """The row of the embedding that each token has."""
    return {t: row for t, row in haiku.input_encoder.encoding_map.items() if isinstance(t, int)}


def _range(haiku: Any) -> tuple[int, int]:
    """The tokens that have a row here: from the lowest (or 0) up to bos, which is one more."""
    rows = _rows(haiku)
    return min(*rows, 0), max(*rows, -1) + 1


def _embedding(haiku: Any, name: str) -> Array:
    return np.asarray(haiku.params[name]["embeddings"])


def _write_ends(model: Transformer, haiku: Any, outputs: Sequence[int | None]) -> None:
    """What comes in and what goes out; a token that tracr does not know raises the alarm, if there is one."""
    rows, embedding, unembed = _rows(haiku), _embedding(haiku, "token_embed"), _unembedding(haiku)
    known = [rows.get(t) for t in range(*_range(haiku))] + [haiku.input_encoder.bos_encoding]
    stranger = ALARM * unembed[:, list(outputs).index(None)] if None in outputs else np.zeros(embedding.shape[1])
    _copy(model.embed.weight, np.stack([stranger if row is None else embedding[row] for row in known]))
    _copy(model.get_parameter("embed_position.weight"), _embedding(haiku, "pos_embed"))
    _copy(model.unembed.weight, unembed.T)


def _copy(weight: Tensor, values: Array) -> None:
    with torch.no_grad():
        weight.copy_(torch.from_numpy(np.array(values)))


def _of_kept(annotations: Annotations, layers: Sequence[LayerWeights]) -> Annotations:
    """Facts about the heads that are left; tracr fills layers up with heads that do nothing."""
    pairs = zip(annotations.heads, layers, strict=True) if annotations.heads else ()
    heads = tuple(tuple(own[h] if h < len(own) else UNUSED for h in layer.kept) for own, layer in pairs)
    return replace(annotations, heads=heads)


def _decoded(haiku: Any) -> list[int]:
    return [int(value) for value in haiku.output_encoder.decode(list(range(haiku.output_encoder.vocab_size)))]


def _unembedding(haiku: Any) -> Array:
    """The matrix from directions to outputs."""
    import haiku as hk

    def unembed(x: Any) -> Any:
        return haiku.get_compiled_model().unembed(x, use_unembed_argmax=False)

    pure: Any = hk.without_apply_rng(hk.transform(unembed))
    return np.asarray(pure.apply({}, np.eye(len(haiku.residual_labels), dtype=np.float32)))


def _read_layer(haiku: Any, index: int) -> LayerWeights:
    heads, size = haiku.model_config.num_heads, haiku.model_config.key_size

    def read(name: str) -> tuple[Array, Array]:
        module = haiku.params[f"transformer/layer_{index}/{name}"]
        return np.asarray(module["w"]), np.asarray(module["b"])

    def by_head(name: str) -> tuple[Array, Array]:
        w, b = read(f"attn/{name}")
        return w.reshape(-1, heads, size).transpose(1, 0, 2), b.reshape(heads, size)

    (q, q_bias), (k, k_bias), (v, v_bias) = (by_head(name) for name in ("query", "key", "value"))
    o, o_bias = read("attn/linear")
    (up, up_bias), (down, down_bias) = read("mlp/linear_1"), read("mlp/linear_2")
    o = o.reshape(heads, size, -1)
    return LayerWeights(tuple(range(heads)), q, k, v, o, q_bias, k_bias, v_bias, o_bias, up, up_bias, down, down_bias)


def _trimmed(layer: LayerWeights) -> LayerWeights:
    """Only heads that write, dimensions that score or move something, and units that write; biases must be zero."""
    biases = (layer.q_bias, layer.k_bias, layer.v_bias, layer.o_bias, layer.up_bias, layer.down_bias)
    if any(bias.any() for bias in biases):
        return layer
    heads = [h for h in range(len(layer.q)) if layer.o[h].any() and layer.v[h].any()]
    scoring = [_used(layer.q[h].any(axis=0) & layer.k[h].any(axis=0)) for h in heads]
    moving = [_used(layer.v[h].any(axis=0) & layer.o[h].any(axis=1)) for h in heads]
    size = max((len(dims) for dims in (*scoring, *moving)), default=1)
    units = _used(layer.up.any(axis=0) & layer.down.any(axis=1))

    def packed(weights: Array, dims: Sequence[Array]) -> Array:
        """The given dimensions of each head's matrix (D, K), side by side as (H, D, size)."""
        result = np.zeros((len(heads), weights.shape[1], size), dtype=np.float32)
        for place, (h, members) in enumerate(zip(heads, dims, strict=True)):
            result[place, :, : len(members)] = weights[h][:, members]
        return result

    no_bias = np.zeros((len(heads), size))
    return LayerWeights(
        kept=tuple(heads),
        q=packed(layer.q, scoring),
        k=packed(layer.k, scoring),
        v=packed(layer.v, moving),
        o=packed(layer.o.swapaxes(1, 2), moving).swapaxes(1, 2),
        q_bias=no_bias,
        k_bias=no_bias,
        v_bias=no_bias,
        o_bias=layer.o_bias,
        up=layer.up[:, units],
        up_bias=layer.up_bias[units],
        down=layer.down[units],
        down_bias=layer.down_bias,
    )


def _used(flags: Any) -> Array:
    return np.flatnonzero(flags)


def _write_layer(block: Any, layer: LayerWeights) -> None:
    if block.has_attention:
        wide = layer.up.shape[0]
        qkv = [w.transpose(0, 2, 1).reshape(-1, wide) for w in (layer.q, layer.k, layer.v)]  # (H K, D)
        _copy(block.attn.qkv.weight, np.concatenate(qkv))
        _copy(block.attn.qkv.bias, np.concatenate([b.ravel() for b in (layer.q_bias, layer.k_bias, layer.v_bias)]))
        _copy(block.attn.out.weight, layer.o.reshape(-1, wide).T)
        _copy(block.attn.out.bias, layer.o_bias)
    if block.has_mlp:
        _copy(block.mlp.up.weight, layer.up.T)
        _copy(block.mlp.up.bias, layer.up_bias)
        _copy(block.mlp.down.weight, layer.down.T)
        _copy(block.mlp.down.bias, layer.down_bias)
