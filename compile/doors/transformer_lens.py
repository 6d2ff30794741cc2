"""The door to TransformerLens 4.

A model with learned positions and no windows (the backend tracr) becomes TransformerLens's own: a `TransformerBridge`
around its native architecture, layers padded to one size. Its classes cannot hold windows, layers of different sizes or
several start tokens; such a model, compiled or learned, becomes a `LensModel`, which runs here and answers as those do:
`HookedRootModule` with the usual hook names, `ActivationCache`, `to_tokens`, `to_str_tokens`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from compile.doors.libraries import need
from compile.doors.text import encode, names_of, separator
from compile.transformer import Transformer

need("transformer_lens", "the door to TransformerLens")

from transformer_lens import ActivationCache, HookedRootModule, TransformerBridgeConfig  # noqa: E402
from transformer_lens.hook_points import HookPoint  # noqa: E402
from transformer_lens.model_bridge import TransformerBridge  # noqa: E402

ENDLESS = 2**20  # n_ctx of models that run at any length


def to_transformer_lens(model: Transformer) -> LensModel | TransformerBridge:
    """The model as TransformerLens's own where that can hold it, else as one that answers alike."""
    return native_bridge(model) if fits_native(model) else LensModel(model)


class LensModel(HookedRootModule):
    """One of our models behind TransformerLens's interface.

    Tokens begin with the start tokens that the model was made with (`to_tokens` puts them there), so that positions of
    logits, of the cache and of tokens are the same.
    """

    hook_dict: dict[str, HookPoint]

    def __init__(self, model: Transformer) -> None:
        super().__init__()
        self.transformer = model
        self.names = names_of(model.config)
        self.cfg = lens_config(model)
        self.tokenizer = None
        for name in _hook_names(model):
            _place(self, name.split("."), HookPoint())
        self.setup()
        self.eval()

    def setup(self) -> None:
        super().setup()
        self.hook_dict = {name: point for name, point in self.hook_dict.items() if "transformer." not in name}

    def forward(self, input: Any, return_type: str | None = "logits", **options: Any) -> Tensor | None:
        """Logits (B, T, outputs); `answers` says what they stand for."""
        unknown = set(options) - {"prepend_bos", "padding_side"}
        if unknown or return_type not in (None, "logits"):
            raise ValueError(f"a LensModel returns logits of tokens; it has no {sorted(unknown) or return_type}")
        tokens = self.checked(input)
        stream = self.transformer.residual(tokens, see=lambda name, value: self.hook_dict[name](value))
        return None if return_type is None else self.transformer.unembed(stream)

    def checked(self, input: Any) -> Tensor:
        """Token ids (B, T) that begin with the start tokens."""
        if isinstance(input, str) or (isinstance(input, list | tuple) and input and isinstance(input[0], str)):
            return self.to_tokens(input)
        tokens = torch.atleast_2d(torch.as_tensor(np.asarray(input) if not isinstance(input, Tensor) else input))
        count, start = self.transformer.prepended, self.transformer.config.prepend
        if count and (tokens.shape[1] < count or bool((tokens[:, :count] != start).any())):
            raise ValueError(
                f"this model's inputs begin with {count} start tokens ({start}); let to_tokens put them there"
            )
        self.transformer.as_input(tokens[:, count:].cpu().numpy())
        return tokens.to(self.transformer.device)

    def run_with_cache(self, *args: Any, return_cache_object: bool = True, **options: Any) -> Any:
        out, cache = super().run_with_cache(*args, **options)
        return out, ActivationCache(cache, self) if return_cache_object else cache

    def to_tokens(self, input: Any, prepend_bos: bool | None = None, **_: Any) -> Tensor:
        """Token ids (B, T) of text by token names, or of lists of ids; start tokens in front unless `prepend_bos` is
        False. Texts of a list must have equally many tokens."""
        single = isinstance(input, str) or np.ndim(input[0]) == 0 and not isinstance(input[0], str)
        rows = [encode(r, self.names) if isinstance(r, str) else list(r) for r in ([input] if single else input)]
        if len({len(row) for row in rows}) > 1:
            raise ValueError(f"texts of {sorted({len(r) for r in rows})} tokens were given; give texts of one length")
        front = [] if prepend_bos is False else [self.transformer.config.prepend] * self.transformer.prepended
        return torch.tensor([[*front, *map(int, row)] for row in rows], dtype=torch.long)

    def to_str_tokens(self, input: Any, prepend_bos: bool | None = None, **_: Any) -> list[str] | list[list[str]]:
        """The names of tokens, of one text or of several."""
        tokens = input if isinstance(input, Tensor) else self.to_tokens(input, prepend_bos)
        rows = [[self.names[int(t)] for t in row] for row in torch.atleast_2d(tokens)]
        return rows[0] if len(rows) == 1 else rows

    def to_string(self, tokens: Any) -> str:
        return separator(self.names).join(self.names[int(t)] for t in np.asarray(tokens).ravel())

    def answers(self, logits: Tensor) -> np.ndarray:
        """What the model says: the token or number that each largest logit stands for, start positions left out."""
        best = logits[:, self.transformer.prepended :].argmax(dim=-1)
        return self.transformer.output_tokens[best].cpu().numpy()


def lens_config(model: Transformer) -> Any:
    """Sizes in TransformerLens's words; where layers differ, the largest."""
    shapes, config = model.config.shapes, model.config
    norms = {"none": None, "layernorm": "LN", "rmsnorm": "RMS"}
    return TransformerBridgeConfig(
        d_model=config.d_model,
        d_head=max((s.d_head for s in shapes), default=1),
        n_layers=len(shapes),
        n_ctx=config.max_positions or ENDLESS,
        n_heads=max((s.heads for s in shapes), default=1) or 1,
        d_mlp=max((s.d_mlp for s in shapes), default=0) or 1,
        d_vocab=config.vocabulary,
        d_vocab_out=config.output_count,
        act_fn=config.activation,
        normalization_type=norms[config.norm],
        dtype=model.embed.weight.dtype,
        device=str(model.device),
    )


def _hook_names(model: Transformer) -> Sequence[str]:
    """The activations that the model shows, by running it."""
    tokens = torch.zeros((1, 1), dtype=torch.long, device=model.device)
    names: list[str] = []

    def note(name: str, value: Tensor) -> Tensor:
        names.append(name)
        return value

    with torch.no_grad():
        model.residual(model.with_prepended(tokens), see=note)
    return names


def _place(module: nn.Module, path: Sequence[str], leaf: nn.Module) -> None:
    """Put the leaf at this path of modules below the given one."""
    for name in path[:-1]:
        if not hasattr(module, name):
            module.add_module(name, nn.Module())
        module = module.get_submodule(name)
    module.add_module(path[-1], leaf)


# --- as TransformerLens's own -----------------------------------------------------------------------------------------


def fits_native(model: Transformer) -> bool:
    """Whether TransformerLens's native architecture can hold it: learned positions, one start token, plain MLPs."""
    config = model.config
    plain = not (config.gated or config.parallel or config.unembed_bias or config.norm != "none")
    windows = all(window is None for shape in config.shapes for window in shape.windows)
    return plain and windows and config.encoding == "learned" and model.prepended <= 1 and config.layers > 0


def native_bridge(model: Transformer) -> TransformerBridge:
    """The same weights in TransformerLens's native model; heads and units that a layer lacks are zero."""
    from transformer_lens.model_bridge.sources._bridge_builder import build_bridge_from_module
    from transformer_lens.model_bridge.sources.native import NativeModel

    config = lens_config(model)
    scale = config.d_head**0.5 if model.config.scale is None else 1.0 / model.config.scale
    config.attn_scale, config.use_attn_scale = (-1.0 if math.isclose(scale, config.d_head**0.5) else scale), True
    config.architecture = "TransformerLensNative"
    native = NativeModel(config)
    with torch.no_grad():
        for parameter in native.parameters():
            parameter.zero_()
        native.tok_embed.weight.copy_(model.embed.weight)
        assert native.pos is not None, "positions are learned"
        native.pos.weight.copy_(model.get_parameter("embed_position.weight"))
        native.head.weight.copy_(model.unembed.weight)
        for layer, block in zip(native.layers, model.blocks, strict=True):
            _copy_layer(layer, block)
    native.to(model.embed.weight.dtype)
    return build_bridge_from_module(
        native,
        architecture=config.architecture,
        tl_config=config,
        tokenizer=None,
        dtype=config.dtype,
        device=config.device,
        model_name="turing-programs",
    )


def _copy_layer(layer: Any, block: Any) -> None:
    if block.has_attention:
        attention, heads, wide = block.attn, block.attn.heads, layer.attn.d_head
        for place, target in enumerate((layer.attn.q, layer.attn.k, layer.attn.v)):
            own = attention.qkv.weight.view(3, heads, attention.d_head, -1)[place]
            target.weight.view(-1, wide, own.shape[-1])[:heads, : attention.d_head] = own
            if attention.qkv.bias is not None:
                bias = attention.qkv.bias.view(3, heads, -1)[place]
                target.bias.view(-1, wide)[:heads, : attention.d_head] = bias
        out = attention.out.weight.view(-1, heads, attention.d_head)
        layer.attn.o.weight.view(out.shape[0], -1, wide)[:, :heads, : attention.d_head] = out
        if attention.out.bias is not None:
            layer.attn.o.bias.copy_(attention.out.bias)
    if block.has_mlp:
        units = block.mlp.up.weight.shape[0]
        layer.mlp.fc_in.weight[:units] = block.mlp.up.weight
        layer.mlp.fc_out.weight[:, :units] = block.mlp.down.weight
        if block.mlp.up.bias is not None:
            layer.mlp.fc_in.bias[:units] = block.mlp.up.bias
            layer.mlp.fc_out.bias.copy_(block.mlp.down.bias)
