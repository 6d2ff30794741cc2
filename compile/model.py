"""One decoder-only Transformer for compiled and for learned weights, read from top to bottom:

configuration -> attention -> blocks -> the model -> its memory (KV cache) -> greedy decoding.

Shapes in comments: B rows, T tokens, H heads, D = d_head. Compiled weights use per-layer shapes, no norm and ReLU;
trained ones a GPT-NeoX-like backbone. Attention never builds a T x T matrix unless a hook asks to see it.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from huggingface_hub import PyTorchModelHubMixin
from torch import Tensor, nn

from compile import saving
from compile.errors import REFUSED, CapacityError
from compile.positions import (
    ENCODINGS,
    ROOMS,
    HeadGroup,
    Rotation,
    ScoreBias,
    Windows,
    draw_places,
    group_heads,
    rotary_angles,
    rotate,
    sinusoids,
)

Tokens = Sequence[int] | Sequence[Sequence[int]] | np.ndarray | Tensor
Hook = Callable[[str, Tensor], Tensor]

DTYPES = {"float32": torch.float32, "float64": torch.float64}
NORMS = ("none", "layernorm", "rmsnorm")
ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {"relu": F.relu, "gelu": F.gelu}

MOST_LAYERS = MOST_HEADS = 1_000
LARGEST_SIZE = 2**24  # of any one dimension
MOST_PARAMETERS = 2**33  # 32 GB of float32: more is a damaged file or a mistake, not a model for this program

# Queries per block of attention; measured: on a CPU the scores of a block should stay in the cache.
LOCAL_BLOCK, CPU_BLOCK, GPU_BLOCK = 16, 32, 256
SHORT, LONG = 256, 1024  # tokens between which blocks are faster than torch's own causal attention in float32
TOKENS_AT_ONCE = 2**15  # of a forward pass without gradients, to bound its memory


# --------------------------------------------------------------------------------------------- configuration


class Register(NamedTuple):
    """A named piece [start, stop) of the residual stream, and what each of its dimensions stands for."""

    name: str
    start: int
    stop: int
    values: tuple[str, ...] = ()


class LayerShape(NamedTuple):
    windows: Windows  # one per head
    d_head: int
    d_mlp: int  # 0: no MLP in this layer
    slopes: tuple[float, ...] = ()  # one per head; none: the usual ones

    @property
    def heads(self) -> int:
        return len(self.windows)


@dataclass(frozen=True, kw_only=True)
class TransformerConfig:
    """Everything about a Transformer but its weights. Sequences may be lists; they are kept as tuples."""

    vocabulary: int  # number of input tokens
    layers: int
    d_model: int
    heads: int | Sequence[int]  # the same in every layer, or one number per layer; 0: no attention
    d_head: int | Sequence[int] | None = None  # default d_model / heads
    d_mlp: int | Sequence[int] | None = None  # default 4 d_model
    windows: Sequence[Any] = ()  # per head (same in every layer) or per layer per head; None and () are unbounded
    encoding: str = "hard_alibi"
    slopes: Sequence[Any] = ()  # of encoding "alibi", laid out like the windows; default Press et al.'s
    norm: str = "layernorm"  # before attention, MLP and unembedding
    norm_epsilon: float = 1e-5
    activation: str = "gelu"
    gated: bool = False  # MLPs multiply what is activated by a second map of their input, as in GLU
    bias: bool = True  # on the linear maps inside the layers
    unembed_bias: bool = False
    parallel: bool = False  # attention and MLP both read the layer's input, as in GPT-NeoX
    scale: float | None = None  # of attention scores; default 1 / sqrt(d_head)
    rotary_fraction: float = 1.0  # of each head's dimensions, for encoding "rope"
    rotary_base: float = 10_000.0
    max_positions: int | None = None  # needed by "learned" and "randomized" (which draws from them); counts prepended
    prepend: int | None = None  # token put silently before every sequence; its own output is dropped
    prepend_count: int = 1  # how many of them
    refusal: str = ""  # the error when the model answers REFUSED; then inputs may not contain the prepended token
    outputs: Sequence[int] | None = None  # token (or number) that each logit stands for; default 0..vocabulary-1
    dtype: str = "float32"
    token_names: Sequence[str] = ()
    head_labels: Sequence[Sequence[str]] = ()  # per layer, per head
    mlp_labels: Sequence[str] = ()  # per layer
    registers: Sequence[Any] = ()  # of Register
    extra: dict[str, Any] = field(default_factory=dict)  # JSON: machine, n, steps, backend, ...

    def __post_init__(self) -> None:
        lists = "heads", "d_head", "d_mlp", "windows", "slopes", "outputs", "token_names", "head_labels", "mlp_labels"
        for name in lists:
            object.__setattr__(self, name, _as_tuples(getattr(self, name)))
        object.__setattr__(self, "registers", tuple(_as_register(r) for r in self.registers))
        object.__setattr__(self, "extra", _as_json(self.extra))
        _check_numbers(self)
        for name in ("norm_epsilon", "scale", "rotary_fraction", "rotary_base"):
            value = getattr(self, name)
            object.__setattr__(self, name, value if value is None else float(value))
        _check_choices(self)
        _check_shapes(self)
        _check_names(self)

    @cached_property
    def shapes(self) -> tuple[LayerShape, ...]:
        """Heads with their windows, d_head and d_mlp of every layer."""
        heads = _per_layer("heads", self.heads, self.layers)
        for count in heads:
            _need_size("heads", count, 0, MOST_HEADS)
        d_head = _per_layer("d_head", _default_d_head(self, heads) if self.d_head is None else self.d_head, self.layers)
        d_mlp = _per_layer("d_mlp", 4 * self.d_model if self.d_mlp is None else self.d_mlp, self.layers)
        windows = _per_head("windows", self.windows or tuple((None,) * h for h in heads), heads)
        slopes = _per_head("slopes", self.slopes, heads) if self.slopes else ((),) * self.layers
        return tuple(map(LayerShape, windows, d_head, d_mlp, slopes))

    @property
    def output_count(self) -> int:
        return self.vocabulary if self.outputs is None else len(self.outputs)

    @property
    def rough_parameter_count(self) -> int:
        """Weights of the matrices, by arithmetic: known before anything is allocated."""
        inside = sum(4 * s.heads * s.d_head + (2 + self.gated) * s.d_mlp for s in self.shapes)
        ends = self.vocabulary + self.output_count + (self.max_positions or 0) * (self.encoding == "learned")
        return self.d_model * (inside + ends)

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> TransformerConfig:
        unknown = sorted(set(values) - {f.name for f in fields(cls)})
        missing = sorted({"vocabulary", "layers", "d_model", "heads"} - set(values))
        if unknown or missing:
            raise ValueError(f"the configuration has unknown keys {unknown} and lacks {missing}; neither is expected.")
        return cls(**values)


def _as_tuples(value: Any) -> Any:
    return tuple(_as_tuples(v) for v in value) if isinstance(value, list | tuple) else value


def _as_register(value: Any) -> Register:
    register = Register(*_as_tuples(value))
    well_typed = isinstance(register.name, str) and isinstance(register.values, tuple)
    if not well_typed or not all(_is_whole(x) for x in (register.start, register.stop)):
        raise ValueError(f"register {value!r} is not (name, start, stop, names of values); give it that form.")
    return register


def _as_json(extra: Any) -> dict[str, Any]:
    """A private copy that a file can hold, so that a saved and loaded configuration equals this one."""
    if not isinstance(extra, Mapping):
        raise ValueError(f"extra is a {type(extra).__name__}; expected a dictionary of JSON values.")
    try:
        return json.loads(json.dumps(dict(extra), allow_nan=False))
    except (TypeError, ValueError) as error:
        raise ValueError(f"extra cannot be written as JSON ({error}); keep only strings, numbers and lists.") from None


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _need_size(name: str, value: Any, smallest: int = 1, largest: int = LARGEST_SIZE) -> None:
    if not _is_whole(value) or not smallest <= value <= largest:
        raise ValueError(f"{name} is {value!r}; expected a whole number from {smallest} to {largest}.")


def _need_real(name: str, value: Any, above: float = -math.inf, most: float = math.inf) -> None:
    real = isinstance(value, int | float) and not isinstance(value, bool)
    if not real or not math.isfinite(value) or not above < value <= most:
        raise ValueError(f"{name} is {value!r}; expected a finite number above {above} and at most {most}.")


def _per_layer(name: str, value: Any, layers: int) -> tuple[int, ...]:
    values = value if isinstance(value, tuple) else (value,) * layers
    if len(values) != layers:
        raise ValueError(f"{name} has {len(values)} entries for {layers} layers; give one number, or one per layer.")
    return values


def _default_d_head(config: TransformerConfig, heads: tuple[int, ...]) -> tuple[int, ...]:
    if any(h and config.d_model % h for h in heads):
        raise ValueError(f"d_model {config.d_model} is not a multiple of {heads} heads; give d_head.")
    return tuple(config.d_model // h if h else 1 for h in heads)


def _per_head(name: str, values: Any, heads: tuple[int, ...]) -> tuple[Any, ...]:
    """Per layer, per head, from that or from the heads of every layer."""
    nested = all(isinstance(v, tuple) for v in values)
    layers = values if nested else (values,) * len(heads)
    if [len(v) for v in layers] != list(heads):
        raise ValueError(f"{name} are for {[len(v) for v in layers]} heads per layer but heads are {list(heads)}.")
    return layers


def _check_numbers(config: TransformerConfig) -> None:
    _need_size("vocabulary", config.vocabulary)
    _need_size("layers", config.layers, 0, MOST_LAYERS)
    _need_size("d_model", config.d_model)
    _need_real("norm_epsilon", config.norm_epsilon, above=0)
    _need_real("rotary_fraction", config.rotary_fraction, above=0, most=1)
    _need_real("rotary_base", config.rotary_base, above=0)
    if config.scale is not None:
        _need_real("scale", config.scale)
    if config.max_positions is not None:
        _need_size("max_positions", config.max_positions)
    if config.prepend is not None:
        _need_size("prepend", config.prepend, 0, config.vocabulary - 1)
    _need_size("prepend_count", config.prepend_count)
    for token in config.outputs or ():
        _need_size("an output", token, -(2**62), 2**62)


def _check_choices(config: TransformerConfig) -> None:
    choices = {"encoding": ENCODINGS, "norm": NORMS, "activation": ACTIVATIONS, "dtype": DTYPES}
    for name, known in choices.items():
        if getattr(config, name) not in tuple(known):
            raise ValueError(f"{name} is {getattr(config, name)!r}; choose one of {', '.join(known)}.")
    for name in ("gated", "bias", "unembed_bias", "parallel"):
        if not isinstance(getattr(config, name), bool):
            raise ValueError(f"{name} is {getattr(config, name)!r}; expected true or false.")
    if config.outputs == ():
        raise ValueError("outputs is empty; leave it out, or name at least one token.")
    if config.encoding in ROOMS and (config.max_positions or 0) < ROOMS[config.encoding]:
        raise ValueError(f"encoding {config.encoding!r} has a given number of positions, at least "
                         f"{ROOMS[config.encoding]}; say how many with max_positions.")  # fmt: skip


def _check_shapes(config: TransformerConfig) -> None:
    for layer, shape in enumerate(config.shapes):
        _need_size(f"d_head of layer {layer}", shape.d_head)
        _need_size(f"d_mlp of layer {layer}", shape.d_mlp, 0)
        for window in shape.windows:
            if window is not None:
                _need_size(f"a window of layer {layer}", window)
        if config.encoding == "nope" and any(w is not None for w in shape.windows):
            raise ValueError("encoding 'nope' has no windows; use 'hard_alibi' for heads with windows.")
        if config.encoding == "rope" and (int(shape.d_head * config.rotary_fraction) % 2 or shape.d_head < 2):
            raise ValueError(f"rope turns pairs, but {config.rotary_fraction} of d_head {shape.d_head} is not even.")
        for slope in shape.slopes:
            _need_real(f"a slope of layer {layer}", slope)
    if config.slopes and config.encoding != "alibi":
        raise ValueError(f"slopes were given for encoding {config.encoding!r}; only 'alibi' has them.")
    if config.rough_parameter_count > MOST_PARAMETERS:
        count = f"{config.rough_parameter_count:.3g}"
        raise ValueError(f"these sizes make {count} parameters; at most {MOST_PARAMETERS:.3g} are allowed.")


def _check_names(config: TransformerConfig) -> None:
    heads = [s.heads for s in config.shapes]
    if config.head_labels and [len(labels) for labels in config.head_labels] != heads:
        raise ValueError(f"head_labels do not fit {heads} heads per layer; give one label per head of each layer.")
    if config.mlp_labels and len(config.mlp_labels) != config.layers:
        raise ValueError(f"{len(config.mlp_labels)} mlp_labels were given for {config.layers} layers; give one each.")
    if config.token_names and len(config.token_names) != config.vocabulary:
        raise ValueError(f"{len(config.token_names)} token_names were given for {config.vocabulary} tokens; name all.")
    for name, start, stop, values in config.registers:
        if not 0 <= start <= stop <= config.d_model or (values and len(values) != stop - start):
            raise ValueError(f"register {name!r} [{start}, {stop}) of {len(values)} values does not fit the residual.")


# ------------------------------------------------------------------------------------------------- attention


def untouched(name: str, value: Tensor) -> Tensor:
    """The hook that does nothing; attention takes its fast path when it sees this one."""
    return value


class HeadWeights(NamedTuple):
    """Views of one head's weights, to be read or written: q, k, v are (d_head, d_model), o is (d_model, d_head)."""

    q: Tensor
    k: Tensor
    v: Tensor
    o: Tensor


def _torch_is_faster(part: Tensor) -> bool:
    """Whether torch's causal attention beats blocks for q, k, v of this shape and type (as measured)."""
    T = part.shape[1]
    return part.is_cuda or T > LONG or (T <= SHORT and part.dtype == torch.float32)


def _with_past(x: Tensor, past: int) -> Tensor:
    """Blocks (B * H, n, block, D), each lengthened by the last `past` entries of the one before (zeros at first)."""
    before = F.pad(x[:, :-1, x.shape[2] - past :], (0, 0, 0, 0, 1, 0))
    return torch.cat((before, x), dim=2).flatten(0, 1)


class Attention(nn.Module):
    order: Tensor
    inverse: Tensor

    def __init__(self, config: TransformerConfig, shape: LayerShape, path: str) -> None:
        super().__init__()
        self.path, self.heads, self.d_head = path, shape.heads, shape.d_head
        self.scale = shape.d_head**-0.5 if config.scale is None else config.scale
        self.qkv = nn.Linear(config.d_model, 3 * self.heads * self.d_head, bias=config.bias)  # all q, all k, all v
        self.out = nn.Linear(self.heads * self.d_head, config.d_model, bias=config.bias)
        self.bias = ScoreBias(config.encoding, self.heads, shape.slopes)
        self.groups = group_heads(shape.windows)
        for index, group in enumerate(self.groups):
            self.add_module(f"group_{index}", group)
        order = [head for group in self.groups for head in group.heads]
        self.shuffled = order != sorted(order)
        self.register_buffer("order", torch.tensor(order), persistent=False)
        self.register_buffer("inverse", torch.tensor(order).argsort(), persistent=False)

    def forward(
        self, x: Tensor, rotation: Rotation | None, see: Hook, attend: Attend | None, wanted: Tensor | None = None
    ) -> Tensor:
        if attend is None and see is untouched:
            z = self.join([self.attend_group(part, group, rotation) for group, part in self.parts(x)])
        else:
            qkv = self.project(x, rotation, see)
            z = self.attend_openly(qkv, see) if attend is None else attend(self, qkv)
        return self.out(z.flatten(2) if wanted is None else z.flatten(2)[wanted])

    def parts(self, x: Tensor) -> list[tuple[HeadGroup, Tensor]]:
        """As `split(project(x))`, but one product per group: cheaper than copying pieces out of one for all heads."""
        weight, bias = self.qkv.weight.view(3, self.heads, -1), self.qkv.bias
        if len(self.groups) == 1:
            return self.split(self.project(x, None, untouched))
        parts = []
        for group in self.groups:
            rows = weight[:, group.index].view(-1, x.shape[-1])
            constants = None if bias is None else bias.view(3, self.heads, -1)[:, group.index].flatten()
            parts.append((group, F.linear(x, rows, constants).view(*x.shape[:2], 3, -1, self.d_head)))
        return parts

    def project(self, x: Tensor, rotation: Rotation | None, see: Hook) -> Tensor:
        qkv = self.qkv(x).view(*x.shape[:2], 3, self.heads, self.d_head)  # (B, T, 3, H, D)
        qkv = self.see_each(("q", "k", "v"), qkv, see)
        if rotation is None:
            return qkv
        cos, sin = (angles[..., None, None, :] for angles in rotation)
        turned = self.see_each(("rot_q", "rot_k"), rotate(qkv[:, :, :2], (cos, sin)), see)
        return torch.cat((turned, qkv[:, :, 2:]), dim=2)

    def see_each(self, names: tuple[str, ...], stacked: Tensor, see: Hook) -> Tensor:
        if see is untouched:
            return stacked
        pairs = zip(names, stacked.unbind(2), strict=True)
        return torch.stack([see(f"{self.path}.hook_{name}", tensor) for name, tensor in pairs], dim=2)

    def split(self, qkv: Tensor) -> list[tuple[HeadGroup, Tensor]]:
        """The part (B, T, 3, H of the group, D) of every group of heads."""
        if self.shuffled:
            qkv = qkv[:, :, :, self.order]
        return list(zip(self.groups, qkv.split([len(g.heads) for g in self.groups], dim=3), strict=True))

    def join(self, parts: list[Tensor]) -> Tensor:
        """Undo `split` on outputs (B, T, H of the group, D)."""
        z = torch.cat(parts, dim=2) if len(parts) > 1 else parts[0]
        return z[:, :, self.inverse] if self.shuffled else z

    def attend(self, qkv: Tensor) -> Tensor:
        """(B, T, 3, H, D) -> (B, T, H, D), the fast way for whole sequences."""
        return self.join([self.attend_group(part, group) for group, part in self.split(qkv)])

    def attend_group(self, part: Tensor, group: HeadGroup, rotation: Rotation | None = None) -> Tensor:
        B, T, _, H, D = part.shape
        q, k, v = part.permute(2, 0, 3, 1, 4)  # (B, H, T, D) each
        if rotation is not None:
            q, k = rotate(q, rotation), rotate(k, rotation)
        if group.reach is None and not self.bias.additive and _torch_is_faster(part):
            return F.scaled_dot_product_attention(q, k, v, is_causal=True, scale=self.scale).transpose(1, 2)
        q, k, v = (t.reshape(B * H, T, D) for t in (q, k, v))
        if group.reach is None:
            z = self.attend_in_blocks(q, k, v, group)
        else:
            z = self.attend_locally(q, k, v, group, min(group.reach, T) - 1)
        return z.reshape(B, H, T, D).transpose(1, 2)

    def attend_locally(self, q: Tensor, k: Tensor, v: Tensor, group: HeadGroup, past: int) -> Tensor:
        """Window heads: blocks of queries, each with its own keys and the `past` ones before, all in one product."""
        BH, T, D = q.shape
        block = max(LOCAL_BLOCK, past)
        n = -(-T // block)
        if n * block > T:
            q, k, v = (F.pad(t, (0, 0, 0, n * block - T)) for t in (q, k, v))
        q, k, v = (t.view(BH, n, block, D) for t in (q, k, v))
        i = torch.arange(n * block, device=q.device).view(n, block, 1)
        j = i[:, :1] + torch.arange(-past, block, device=q.device)  # (n, 1, past + block)
        bias = self.bias(torch.where(j < 0, -1, i - j), i, group, q.dtype)  # (H, n, block, past + block)
        bias = bias.repeat(BH // len(group.heads), 1, 1, 1).flatten(0, 1)
        scores = torch.baddbmm(bias, q.flatten(0, 1), _with_past(k, past).transpose(1, 2), alpha=self.scale)
        return torch.bmm(scores.softmax(dim=-1), _with_past(v, past)).view(BH, n * block, D)[:, :T]

    def attend_in_blocks(self, q: Tensor, k: Tensor, v: Tensor, group: HeadGroup) -> Tensor:
        """Unbounded heads: one block of queries after the other, each scored against the keys up to its end only."""
        BH, T, _ = q.shape
        block = min(T, GPU_BLOCK if q.is_cuda else CPU_BLOCK)
        bias = self.block_bias(group, T, block, q)
        keys, z = k.transpose(1, 2), []
        for start, queries in zip(range(0, T, block), q.split(block, dim=1), strict=True):
            stop = start + queries.shape[1]
            b = bias(start, stop)  # (H or 1, block, keys)
            b = b[0] if b.shape[0] == 1 else b.repeat(BH // len(group.heads), 1, 1)
            scores = torch.baddbmm(b, queries, keys[:, :, :stop], alpha=self.scale)
            z.append(torch.bmm(scores.softmax(dim=-1), v[:, :stop]))
        return torch.cat(z, dim=1)

    def block_bias(self, group: HeadGroup, T: int, block: int, like: Tensor) -> Callable[[int, int], Tensor]:
        """b(i, j) for queries start..stop and keys 0..stop."""

        def compute(start: int, first: int, stop: int) -> Tensor:
            i = torch.arange(start, stop, device=like.device).unsqueeze(1)
            j = torch.arange(first, stop, device=like.device)
            return self.bias(i - j, i, group, like.dtype)

        if not self.bias.relative:
            return lambda start, stop: compute(start, 0, stop)
        table = compute(0, -T, block)  # a relative bias is the same for every block but for how many keys precede it
        return lambda start, stop: table[:, : stop - start, T - start : T + stop - start]

    def attend_openly(self, qkv: Tensor, see: Hook) -> Tensor:
        """The same attention with its whole score matrix, for hooks to read and change."""
        i = torch.arange(qkv.shape[1], device=qkv.device).unsqueeze(1)
        parts = [self.bias(i - i.T, i, g, qkv.dtype).expand(len(g.heads), -1, -1) for g in self.groups]
        bias = torch.cat(parts)[self.inverse]  # (H, T, T)
        q, k, v = qkv.permute(2, 0, 3, 1, 4)
        scores = see(f"{self.path}.hook_attn_scores", q @ k.transpose(-1, -2) * self.scale + bias)
        pattern = see(f"{self.path}.hook_pattern", scores.softmax(dim=-1))
        return see(f"{self.path}.hook_z", (pattern @ v).transpose(1, 2))

    def head(self, index: int) -> HeadWeights:
        q, k, v = self.qkv.weight.detach().view(3, self.heads, self.d_head, -1)[:, index]
        return HeadWeights(q, k, v, self.out.weight.detach().view(-1, self.heads, self.d_head)[:, index])


Attend = Callable[[Attention, Tensor], Tensor]  # another way to get from q, k, v to z, such as through a cache


# ---------------------------------------------------------------------------------------- blocks and the model


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


class SummaryRow(NamedTuple):
    layer: int
    head: int | None  # None: the row is about the layer's MLP
    window: int | None  # tokens a head sees; None: all of them, or an MLP
    label: str


CARD = """---
{{ card_data }}
---
A decoder-only Transformer of `turing-programs`, compiled from a program or trained.
Load it with `from compile.model import Transformer; Transformer.from_pretrained("this folder")`.
"""


class Transformer(nn.Module, PyTorchModelHubMixin, library_name="turing-programs", model_card_template=CARD):
    """Tokens (B, T) -> logits (B, T, outputs). `config` says everything but the weights."""

    blocks: Sequence[Block]
    output_tokens: Tensor
    places: Tensor

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.config = config
        self.embed = nn.Embedding(config.vocabulary, config.d_model)
        if config.encoding == "learned":
            assert config.max_positions is not None  # checked by the configuration
            self.embed_position = nn.Embedding(config.max_positions, config.d_model)
        if config.encoding == "randomized":
            self.register_buffer("places", draw_places(config.max_positions or 0, seed=0), persistent=False)
        blocks = [Block(config, shape, index) for index, shape in enumerate(config.shapes)]
        self.blocks = nn.ModuleList(blocks)  # type: ignore[assignment]  # the annotation tells readers what is inside
        self.ln_final = make_norm(config)
        self.unembed = nn.Linear(config.d_model, config.output_count, bias=config.unembed_bias)
        outputs = range(config.vocabulary) if config.outputs is None else config.outputs
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
    def zeros(cls, config: TransformerConfig) -> Transformer:
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
        x = see("hook_embed", self.embed(tokens))
        if self.config.encoding in ("absolute", "learned", "randomized"):
            x = x + see("hook_pos_embed", self.position_vectors(positions, x.dtype))
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

    def position_vectors(self, positions: Tensor, dtype: torch.dtype) -> Tensor:
        if self.config.encoding == "absolute":
            return sinusoids(positions, self.config.d_model, dtype)
        self.need_room(positions.shape[-1])
        if self.config.encoding == "randomized":
            return sinusoids(self.places[positions], self.config.d_model, dtype)
        return self.embed_position(positions)

    def draw_places(self, seed: int) -> None:
        """Other places for the tokens, as in every step of training; only encoding "randomized" has them."""
        if self.config.encoding == "randomized":
            self.places.copy_(draw_places(self.config.max_positions or 0, seed))

    def rotations(self, positions: Tensor, dtype: torch.dtype) -> dict[int, Rotation]:
        """Rotary angles by d_head, shared by all layers of that size."""
        if self.config.encoding != "rope":
            return {}
        fraction, base = self.config.rotary_fraction, self.config.rotary_base
        sizes = {shape.d_head for shape in self.config.shapes}
        return {size: rotary_angles(positions, int(size * fraction), base, dtype) for size in sizes}

    def need_room(self, length: int) -> None:
        most = (self.config.max_positions or 0) // ROOMS.get(self.config.encoding, 1)
        if self.config.encoding in ROOMS and length > most:
            raise ValueError(
                f"{length} positions were given (with any prepended token), but this model has room for {most}; "
                "shorten the input or use a model with more max_positions."
            )

    # ---- use

    @property
    def device(self) -> torch.device:
        return self.embed.weight.device

    @torch.no_grad()
    def predict(self, tokens: Tokens) -> np.ndarray:
        """The next token at every position: an array of the shape of `tokens`, which is (T,) or (B, T)."""
        given = _as_array(tokens)
        rows = np.atleast_2d(given)
        if rows.size == 0:
            return np.zeros_like(given)
        batch = self.as_input(rows)
        parts = batch.split(max(1, TOKENS_AT_ONCE // rows.shape[1]))
        best = torch.cat([self(part).argmax(dim=-1) for part in parts])
        return self.need_answers(self.output_tokens[best].cpu().numpy().reshape(given.shape))

    def need_answers(self, tokens: np.ndarray) -> np.ndarray:
        """`tokens`; an error if the model says with one of them that the input is beyond what it was compiled for."""
        if self.config.refusal and (tokens == REFUSED).any():
            raise CapacityError(self.config.refusal)
        return tokens

    def generate(
        self,
        prompts: Tokens,
        count: int,
        stop: int | Collection[int] | None = None,
        *,
        context: int | None = None,
        advance: int = 20,
    ) -> np.ndarray | list[np.ndarray]:
        """Prompt and `count` greedily chosen tokens; fewer after a `stop` token, which is kept.

        One prompt gives one array; several, of any lengths, give a list of arrays. With `context`, the model sees at
        most that many tokens: when they are full it forgets the oldest `advance` (the paper's sliding window).
        """
        single, rows = _as_rows(prompts)
        results = [list(row) for row in rows]
        for step in self.stream(rows, count, stop, context=context, advance=advance):
            for row, token in zip(results, step.tolist(), strict=True):
                if token >= 0:
                    row.append(token)
        arrays = [np.array(row, dtype=np.int64) for row in results]
        return arrays[0] if single else arrays

    def stream(
        self,
        prompts: Tokens,
        count: int,
        stop: int | Collection[int] | None = None,
        *,
        context: int | None = None,
        advance: int = 20,
    ) -> Iterator[Any]:
        """`generate` step by step: for one prompt its next token, for several an array with -1 where a row stopped."""
        single, rows = _as_rows(prompts)
        _need_size("count", count, 0, 2**62)
        ends = sorted(stop) if isinstance(stop, Collection) else [] if stop is None else [stop]
        decoder = Decoder(self, rows, context, advance)
        return (int(step[0]) if single else step for step in decoder.run(count, np.array(ends, dtype=np.int64)))

    def run_with_cache(self, tokens: Tokens) -> tuple[Tensor, dict[str, Tensor]]:
        """Logits, and every activation by its TransformerLens name (these include a prepended token's position)."""
        cache: dict[str, Tensor] = {}

        def record(name: str, value: Tensor) -> Tensor:
            cache[name] = value.detach()
            return value

        return self.run_seen(tokens, record), cache

    def run_with_hooks(self, tokens: Tokens, hooks: Mapping[str, Callable[[Tensor], Tensor | None]]) -> Tensor:
        """Logits after each named activation was replaced by what its function returns (None: left as it is)."""
        waiting = set(hooks)

        def replace(name: str, value: Tensor) -> Tensor:
            if name not in hooks:
                return value
            waiting.discard(name)
            changed = hooks[name](value)
            return value if changed is None else changed

        logits = self.run_seen(tokens, replace)
        if waiting:
            raise ValueError(f"no activation is called {sorted(waiting)}; run_with_cache lists the names there are.")
        return logits

    def run_seen(self, tokens: Tokens, see: Hook) -> Tensor:
        batch = self.with_prepended(self.as_input(np.atleast_2d(_as_array(tokens))))
        logits = self.unembed(self.residual(batch, see=see))
        return logits[:, self.prepended :]

    def as_input(self, rows: np.ndarray) -> Tensor:
        """Check token ids once, at the boundary, and move them to the model."""
        wrong = (rows < 0) | (rows >= self.config.vocabulary)
        if self.config.refusal:
            wrong |= rows == self.config.prepend
        if wrong.any():
            bad, own = rows[wrong].flat[0], self.config.prepend if self.config.refusal else None
            last = self.config.vocabulary - (2 if own == self.config.vocabulary - 1 else 1)
            raise ValueError(f"token {bad} is unknown to this model; expected 0 to {last}.")
        return torch.from_numpy(np.ascontiguousarray(rows)).to(self.device)

    # ---- size, labels, files

    def parameter_count(self) -> int:
        return sum(p.numel() for p in self.parameters())

    def nonzero_count(self) -> int:
        return sum(int(p.count_nonzero()) for p in self.parameters())

    def summary(self) -> list[SummaryRow]:
        """One row per head and per MLP, with its window and what it does in words."""
        rows = []
        for layer, shape in enumerate(self.config.shapes):
            labels = self.config.head_labels[layer] if self.config.head_labels else ("",) * shape.heads
            rows += [SummaryRow(layer, h, shape.windows[h], labels[h]) for h in range(shape.heads)]
            label = self.config.mlp_labels[layer] if self.config.mlp_labels else ""
            rows += [SummaryRow(layer, None, None, label)] if shape.d_mlp else []
        return rows

    def save_pretrained(self, save_directory: str | Path, **options: Any) -> str | None:
        """Write model.safetensors and config.json; nothing is touched if the weights are not fit to be saved."""
        saving.need_finite(self.state_dict(), "the model")
        return super().save_pretrained(save_directory, **options)

    def _save_pretrained(self, save_directory: Path) -> None:
        saving.save_weights_and_config(self, save_directory)

    @classmethod
    def from_pretrained(cls, pretrained_model_name_or_path: str | Path, **options: Any) -> Transformer:
        """A local folder (no network), or else the name of a model on the Hugging Face Hub."""
        folder = Path(pretrained_model_name_or_path)
        if not folder.exists() and not saving.may_be_hub_name(str(pretrained_model_name_or_path)):
            raise saving.InvalidModel(f"there is no folder {folder}; expected one written by save_pretrained.")
        if not folder.exists():
            folder = saving.download(str(pretrained_model_name_or_path), **options)
        return saving.load_weights_and_config(cls, TransformerConfig, folder, str(options.get("map_location", "cpu")))


def _as_array(tokens: Tokens) -> np.ndarray:
    array = tokens.detach().cpu().numpy() if isinstance(tokens, Tensor) else np.asarray(tokens)
    if array.size == 0:
        array = array.astype(np.int64)
    if array.dtype.kind not in "iu" or array.ndim not in (1, 2):
        raise ValueError(f"tokens are {array.ndim}-dimensional {array.dtype}; give whole numbers, (T,) or (B, T).")
    return array.astype(np.int64)


def _as_rows(prompts: Tokens) -> tuple[bool, list[list[int]]]:
    """Whether it was a single prompt, and the prompts as lists, which may differ in length."""
    single = len(prompts) == 0 or np.ndim(prompts[0]) == 0
    rows = [prompts] if single else prompts
    return single, [_as_array(row).tolist() for row in rows]  # type: ignore[arg-type]


# --------------------------------------------------------------------------------------- memory and decoding


class GroupMemory:
    """Keys and values that one group of heads can still see, for rows that are each at their own position.

    Unbounded heads keep position p in slot p; window heads keep only the last `reach`, position p in slot p % reach.
    """

    def __init__(self, rows: int, group: HeadGroup, like: Tensor, d_head: int) -> None:
        self.group, self.slots = group, 0  # slots in use
        self.keys = like.new_zeros(rows, len(group.heads), 0, d_head)
        self.values = torch.zeros_like(self.keys)

    def reserve(self, length: int) -> None:
        """Room for `length` positions; capacity grows geometrically, so that a token costs no copy on average."""
        most = length if self.group.reach is None else self.group.reach
        self.slots, capacity = min(length, most), self.keys.shape[2]
        if self.slots > capacity:
            new = max(self.slots, 2 * capacity if self.group.reach is None else min(2 * capacity, most))
            room = (0, 0, 0, new - capacity)  # zeros: what is never seen has weight 0, and 0 * nan would be nan
            self.keys, self.values = F.pad(self.keys, room), F.pad(self.values, room)

    def fill(self, part: Tensor, rows: Tensor, lengths: Tensor) -> None:
        """Start `rows` anew from whole sequences (R, T, 3, H, D), of which the first `lengths` tokens are real."""
        _, k, v = part.permute(2, 0, 3, 1, 4)  # (R, H, T, D)
        if self.group.reach is not None:
            last = lengths.unsqueeze(1) - 1
            slots = torch.arange(min(self.slots, k.shape[2]), device=k.device)
            kept = last - (last - slots) % self.group.reach  # latest position in each slot; below 0: none yet
            kept = kept.clamp(min=0)[:, None, :, None].expand(-1, k.shape[1], -1, k.shape[3])
            k, v = k.gather(2, kept), v.gather(2, kept)
        self.keys[rows, :, : k.shape[2]], self.values[rows, :, : k.shape[2]] = k, v

    def append(self, part: Tensor, positions: Tensor) -> Tensor:
        """Store one more token per row, (B, 1, 3, H, D), and return its query (B, H, 1, D)."""
        q, k, v = part.permute(2, 0, 3, 1, 4)
        rows = torch.arange(len(positions), device=positions.device)
        slot = positions if self.group.reach is None else positions % self.group.reach
        self.keys[rows, :, slot], self.values[rows, :, slot] = k[:, :, 0], v[:, :, 0]
        return q

    def distances(self, positions: Tensor) -> Tensor:
        """How far back each slot's token lies from each row's newest, (B, slots); negative: nothing there."""
        behind = positions.unsqueeze(1) - torch.arange(self.slots, device=positions.device)
        if self.group.reach is None:
            return behind
        behind = behind % self.group.reach
        return torch.where(behind <= positions.unsqueeze(1), behind, -1)


class LayerMemory:
    """The memory of one attention layer, and the two ways of attending that use it."""

    def __init__(self, rows: int, attention: Attention) -> None:
        weight = attention.qkv.weight
        self.groups = [GroupMemory(rows, group, weight, attention.d_head) for group in attention.groups]

    def __bool__(self) -> Literal[True]:
        return True

    def encode(self, attention: Attention, qkv: Tensor, rows: Tensor, lengths: Tensor) -> Tensor:
        for memory, (_, part) in zip(self.groups, attention.split(qkv), strict=True):
            memory.fill(part, rows, lengths)
        return attention.attend(qkv)

    def extend(self, attention: Attention, qkv: Tensor, positions: Tensor, biases: dict[Windows, Tensor]) -> Tensor:
        """Attend from one more token per row; `biases` carries what layers with the same windows have in common."""
        z = []
        for memory, (group, part) in zip(self.groups, attention.split(qkv), strict=True):
            q = memory.append(part, positions)
            k, v = memory.keys[:, :, : memory.slots], memory.values[:, :, : memory.slots]
            bias = None if attention.bias.additive else biases.get(group.key)
            if bias is None:
                bias = attention.bias(memory.distances(positions), positions.unsqueeze(1), group, q.dtype)
                bias = bias.transpose(0, 1).unsqueeze(2)  # (B, H or 1, 1, slots)
            if not attention.bias.additive:
                biases[group.key] = bias
            scores = q @ k.transpose(-1, -2) * attention.scale + bias
            z.append((scores.softmax(dim=-1) @ v).transpose(1, 2))
        return attention.join(z)


class Memory:
    """The KV cache of a whole model for a batch of rows."""

    def __init__(self, model: Transformer, rows: int) -> None:
        self.model = model
        self.lengths = torch.zeros(rows, dtype=torch.long, device=model.device)
        self.layers = [LayerMemory(rows, block.attn) if block.has_attention else None for block in model.blocks]

    def groups(self) -> Iterator[GroupMemory]:
        return (group for layer in self.layers if layer is not None for group in layer.groups)

    def reserve(self, slots: int) -> None:
        for group in self.groups():
            group.reserve(slots)

    def keep(self, rows: Tensor) -> None:
        """Forget all rows but these."""
        self.lengths = self.lengths[rows]
        for group in self.groups():
            group.keys, group.values = group.keys[rows], group.values[rows]

    def encode(self, tokens: Tensor, rows: Tensor, lengths: Tensor) -> Tensor:
        """Put whole sequences (R, T), padded on the right, into `rows`; logits after each one's last token."""
        attends = [layer and partial(layer.encode, rows=rows, lengths=lengths) for layer in self.layers]
        self.lengths[rows] = lengths
        x = self.model.residual(tokens, attends=attends)
        return self.model.unembed(x[torch.arange(len(rows), device=x.device), lengths - 1])

    def extend(self, tokens: Tensor) -> Tensor:
        """One more token (B,) in every row; logits after it."""
        biases: dict[Windows, Tensor] = {}
        attends = [layer and partial(layer.extend, positions=self.lengths, biases=biases) for layer in self.layers]
        x = self.model.residual(tokens.unsqueeze(1), self.lengths.unsqueeze(1), attends=attends)
        self.lengths = self.lengths + 1
        return self.model.unembed(x[:, 0])


class Decoder:
    """Greedy decoding of rows that need not be equally long, over one memory."""

    def __init__(self, model: Transformer, prompts: list[list[int]], context: int | None, advance: int) -> None:
        if context is not None:
            _need_size("context", context)
            _need_size("advance", advance, 1, context)
        if model.config.prepend is None and not all(prompts):
            raise ValueError("a prompt is empty, and this model prepends no token; give at least one token.")
        self.model, self.context, self.advance = model, context, advance
        self.seen = [prompt[-context:] if context else list(prompt) for prompt in prompts]  # what memory holds
        self.memory = Memory(model, len(prompts))
        self.logits = model.unembed.weight.new_zeros(len(prompts), model.config.output_count)
        for row in prompts:
            model.as_input(np.array(row, dtype=np.int64))

    @torch.no_grad()
    def run(self, count: int, stops: np.ndarray) -> Iterator[np.ndarray]:
        """Yield the next token of every row, up to `count` times; -1 in rows that have produced a stop token."""
        total = len(self.seen)
        owner, live = np.arange(total), np.ones(total, dtype=bool)  # of the rows still in memory
        tokens: np.ndarray | None = None
        for _ in range(count if total else 0):
            tokens = self.start() if tokens is None else self.push(tokens)
            result = np.full(total, -1)
            result[owner[live]] = self.need_inputs(tokens[live])
            yield result
            live = live & ~np.isin(tokens, stops)
            if not live.any():
                return
            if 2 * live.sum() <= len(live):  # rare enough that copying the memory costs less than dead rows
                self.keep(np.flatnonzero(live))
                owner, tokens, live = owner[live], tokens[live], live[live]
            self.restart(np.flatnonzero(~live))
            tokens = np.where(live, tokens, 0)

    def start(self) -> np.ndarray:
        self.encode(list(range(len(self.seen))))
        return self.choose()

    def choose(self) -> np.ndarray:
        return self.model.output_tokens[self.logits.argmax(dim=-1)].cpu().numpy()

    def need_inputs(self, tokens: np.ndarray) -> np.ndarray:
        """`tokens`, if each is one that the model can be given next (what finished rows say does not matter)."""
        self.model.as_input(self.model.need_answers(tokens))
        return tokens

    def keep(self, rows: np.ndarray) -> None:
        """Forget all rows but these."""
        self.seen = [self.seen[row] for row in rows]
        self.memory.keep(torch.from_numpy(rows).to(self.model.device))

    def restart(self, rows: np.ndarray) -> None:
        """Send finished rows back to position 0, where they cost least and never run out of positions."""
        for row in rows:
            self.seen[row] = []
        self.memory.lengths[torch.from_numpy(rows).to(self.model.device)] = 0

    def push(self, tokens: np.ndarray) -> np.ndarray:
        """Feed one token to every row and choose the next; a full context first loses its oldest tokens."""
        full = [row for row, seen in enumerate(self.seen) if len(seen) == self.context]
        shortened = [self.seen[row][self.advance :] for row in full]
        self.restart(np.array(full, dtype=np.int64))
        for seen, token in zip(self.seen, tokens.tolist(), strict=True):
            seen.append(token)
        self.reserve()
        self.logits = self.memory.extend(torch.from_numpy(tokens).to(self.model.device))
        for row, seen in zip(full, shortened, strict=True):
            self.seen[row] = [*seen, *self.seen[row]]
        if full:
            self.encode(full)
        return self.choose()

    def reserve(self) -> None:
        longest = max(map(len, self.seen)) + self.model.prepended
        self.model.need_room(longest)
        self.memory.reserve(longest)

    def encode(self, rows: list[int]) -> None:
        extra = self.model.prepended
        longest = max(len(self.seen[row]) for row in rows)
        self.reserve()
        at_once = max(1, TOKENS_AT_ONCE // max(1, longest))
        for part in (rows[i : i + at_once] for i in range(0, len(rows), at_once)):
            tokens = np.zeros((len(part), longest), dtype=np.int64)
            for index, row in enumerate(part):
                tokens[index, : len(self.seen[row])] = self.seen[row]
            lengths = torch.tensor([len(self.seen[row]) + extra for row in part], device=self.model.device)
            where = torch.tensor(part, device=self.model.device)
            batch = self.model.with_prepended(torch.from_numpy(tokens).to(self.model.device))
            self.logits[where] = self.memory.encode(batch, where, lengths)
