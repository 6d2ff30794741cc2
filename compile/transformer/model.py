"""One decoder-only architecture for compiled and for learned weights, read from top to bottom:

MLP -> block (attention, MLP) -> the model: tokens in, logits out.

Shapes in comments: B rows, T tokens. Compiled weights use per-layer shapes, no norm and ReLU; trained ones a
GPT-NeoX-like backbone. What one does with a model (predict, generate, look inside, save) is in `transformer`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Self

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from compile.errors import CapacityError
from compile.transformer.attention import Attend, Attention, Hook, untouched
from compile.transformer.config import LayerShape, TransformerConfig
from compile.transformer.encodings import ENCODINGS, RandomizedPositions, Rotation

DTYPES = {"float32": torch.float32, "float64": torch.float64}
ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {"relu": F.relu, "gelu": F.gelu}


class MLP(nn.Module):
    def __init__(self, config: TransformerConfig, width: int, path: str) -> None:
        super().__init__()
        self.path, self.activation = path, ACTIVATIONS[config.activation]
        self.up = nn.Linear(config.d_model, width, bias=config.bias)
        # What is activated is `up`, gated or not; elsewhere the other factor may be the activated one.
        self.gate = nn.Linear(config.d_model, width, bias=config.bias) if config.gated else None
        self.down = nn.Linear(width, config.d_model, bias=config.bias)

    def forward(self, x: Tensor, see: Hook) -> Tensor:
        hidden = self.activation(see(f"{self.path}.hook_pre", self.up(x)))
        if self.gate is not None:
            hidden = hidden * see(f"{self.path}.hook_pre_linear", self.gate(x))
        return self.down(see(f"{self.path}.hook_post", hidden))


def make_norm(config: TransformerConfig) -> nn.Module:
    if config.norm == "layernorm":
        return nn.LayerNorm(config.d_model, eps=config.norm_epsilon)
    return nn.RMSNorm(config.d_model, eps=config.norm_epsilon) if config.norm == "rmsnorm" else nn.Identity()


class Block(nn.Module):
    def __init__(self, config: TransformerConfig, shape: LayerShape, index: int) -> None:
        super().__init__()
        self.path, self.parallel = f"blocks.{index}", config.parallel
        if shape.heads:
            self.ln1, self.attn = make_norm(config), Attention(config, shape, f"{self.path}.attn")
        if shape.d_mlp:
            self.ln2, self.mlp = make_norm(config), MLP(config, shape.d_mlp, f"{self.path}.mlp")
        self.has_attention, self.has_mlp = bool(shape.heads), bool(shape.d_mlp)

    def forward(
        self, x: Tensor, rotation: Rotation | None, see: Hook, attend: Attend | None, wanted: Tensor | None = None
    ) -> Tensor:
        """With `wanted` (B, T), only the residual streams at those places, (number of them, d_model)."""
        everything = see(f"{self.path}.hook_resid_pre", x)
        x = before = everything if wanted is None else everything[wanted]
        if self.has_attention:
            normal = see(f"{self.path}.ln1.hook_normalized", self.ln1(everything))
            x = x + see(f"{self.path}.hook_attn_out", self.attn(normal, rotation, see, attend, wanted))
            x = x if self.parallel else see(f"{self.path}.hook_resid_mid", x)
        if self.has_mlp:
            normal = see(f"{self.path}.ln2.hook_normalized", self.ln2(before if self.parallel else x))
            x = x + see(f"{self.path}.hook_mlp_out", self.mlp(normal, see))
        return see(f"{self.path}.hook_resid_post", x)


class Model(nn.Module):
    """Tokens (B, T) -> logits (B, T, outputs). `config` says everything but the weights."""

    blocks: Sequence[Block]
    output_tokens: Tensor

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.config = config
        self.embed = nn.Embedding(config.vocabulary, config.d_model)
        self.encoding = ENCODINGS[config.encoding]
        self.embed_position = self.encoding.position_vectors(config.d_model, config.max_positions or 0)
        blocks = [Block(config, shape, index) for index, shape in enumerate(config.shapes)]
        self.blocks = nn.ModuleList(blocks)  # type: ignore[assignment]  # the annotation tells readers what is inside
        self.ln_final = make_norm(config)
        self.unembed = nn.Linear(config.d_model, config.output_count, bias=config.unembed_bias)
        tokens = range(config.first_token, config.last_token + 1)
        outputs = tokens if config.outputs is None else config.outputs
        self.register_buffer("output_tokens", torch.tensor(list(outputs)), persistent=False)
        self.reset_parameters()
        self.to(DTYPES[config.dtype])

    @torch.no_grad()
    def reset_parameters(self, spread: float = 0.02) -> None:
        """Normal weights, zero biases; maps into the residual stream start smaller, as they add up over layers."""
        for name, module in self.named_modules():
            if not isinstance(module, nn.Linear | nn.Embedding) or ".fire." in name:
                continue
            additions = 2 * len(self.blocks) if name.endswith((".out", ".down")) else 1
            nn.init.normal_(module.weight, std=spread / math.sqrt(additions))
            if isinstance(module, nn.Linear) and module.bias is not None:
                nn.init.zeros_(module.bias)

    @classmethod
    def zeros(cls, config: TransformerConfig) -> Self:
        """A model with every matrix and bias zero, for a compiler to write into."""
        model = cls(config)
        model.reset_parameters(spread=0.0)
        return model

    # ---- forward

    def forward(self, tokens: Tensor, wanted: Tensor | None = None) -> Tensor:
        """With `wanted`, a mask (B, T), logits at those places only: (number of them, outputs).

        The last layer then computes nothing but keys and values elsewhere, which training makes good use of.
        """
        if wanted is not None:
            wanted = F.pad(wanted, (self.prepended, 0), value=False)
        logits = self.unembed(self.residual(self.with_prepended(tokens), wanted=wanted))
        return logits[:, self.prepended :] if wanted is None else logits

    def residual(
        self,
        tokens: Tensor,
        positions: Tensor | None = None,
        see: Hook = untouched,
        attends: Sequence[Attend | None] | None = None,
        wanted: Tensor | None = None,
    ) -> Tensor:
        """The final, normalised residual stream (B, T, d_model); `positions` is (T,) or (B, T), default 0, 1, ...

        With `wanted` (B, T), only at those places: (number of them, d_model).
        """
        if positions is None:
            positions = torch.arange(tokens.shape[1], device=tokens.device)
        x = see("hook_embed", self.embed(tokens - self.config.first_token))
        if self.embed_position is not None:
            self.need_room(positions.shape[-1])
            x = x + see("hook_pos_embed", self.embed_position(positions, x.dtype))
        rotations = self.rotations(positions, x.dtype)
        for index, block in enumerate(self.blocks):
            rotation = rotations.get(self.config.shapes[index].d_head)
            last = index == len(self.blocks) - 1
            x = block(x, rotation, see, None if attends is None else attends[index], wanted if last else None)
        x = x[wanted] if wanted is not None and not self.config.layers else x
        return see("ln_final.hook_normalized", self.ln_final(x))

    def with_prepended(self, tokens: Tensor) -> Tensor:
        if self.config.prepend is None:
            return tokens
        return F.pad(tokens, (self.prepended, 0), value=self.config.prepend)

    @property
    def prepended(self) -> int:
        """How many tokens stand before every input."""
        return 0 if self.config.prepend is None else self.config.prepend_count

    @property
    def places(self) -> Tensor:
        """Where tokens stand, of encoding "randomized"."""
        assert isinstance(self.embed_position, RandomizedPositions), "only the encoding 'randomized' has places"
        return self.embed_position.places

    def draw_places(self, seed: int) -> None:
        """Other places for the tokens, as in every step of training; only encoding "randomized" has them."""
        if isinstance(self.embed_position, RandomizedPositions):
            self.embed_position.draw(seed)

    def rotations(self, positions: Tensor, dtype: torch.dtype) -> dict[int, Rotation]:
        """Rotary angles by d_head, shared by all layers of that size."""
        fraction, base = self.config.rotary_fraction, self.config.rotary_base
        sizes = {shape.d_head for shape in self.config.shapes}
        turned = {size: self.encoding.rotation(positions, int(size * fraction), base, dtype) for size in sizes}
        return {size: rotation for size, rotation in turned.items() if rotation is not None}

    def need_room(self, length: int) -> None:
        room = self.encoding.room
        most = (self.config.max_positions or 0) // room if room else length
        if length > most:
            raise CapacityError(
                f"{length} positions were given (with any prepended token), but this model has room for {most}; "
                "shorten the input, or use a model with more max_positions (of the backend tracr: max_seq_len)."
            )

    @property
    def device(self) -> torch.device:
        return self.embed.weight.device
