"""The memory (KV cache) of a model while it decodes: window heads keep only their window."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any, Literal, Protocol

import torch
import torch.nn.functional as F
from torch import Tensor

from compile.transformer.attention import Attend, Attention
from compile.transformer.encodings import HeadGroup, Windows


class Remembering(Protocol):
    """What a cache needs of a model."""

    blocks: Sequence[Any]  # with `attn` where `has_attention`
    output_tokens: Tensor

    @property
    def device(self) -> torch.device: ...
    @property
    def embed(self) -> Any: ...
    @property
    def unembed(self) -> Any: ...
    def residual(
        self, tokens: Tensor, positions: Tensor | None = None, *, attends: Sequence[Attend | None] | None = None
    ) -> Tensor: ...


class GroupCache:
    """Keys and values that one group of heads can still see, for rows that are each at their own position.

    Unbounded heads keep position p in slot p; window heads keep only the last `reach`, position p in slot p % reach.
    Both are of the weights' type, whatever products are taken in (autocast).
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
        self.keys[rows, :, : k.shape[2]], self.values[rows, :, : k.shape[2]] = k.to(self.keys), v.to(self.keys)

    def append(self, part: Tensor, positions: Tensor) -> Tensor:
        """Store one more token per row, (B, 1, 3, H, D), and return its query (B, H, 1, D)."""
        q, k, v = part.permute(2, 0, 3, 1, 4)
        rows = torch.arange(len(positions), device=positions.device)
        slot = positions if self.group.reach is None else positions % self.group.reach
        self.keys[rows, :, slot], self.values[rows, :, slot] = k[:, :, 0].to(self.keys), v[:, :, 0].to(self.keys)
        return q

    def distances(self, positions: Tensor) -> Tensor:
        """How far back each slot's token lies from each row's newest, (B, slots); negative: nothing there."""
        behind = positions.unsqueeze(1) - torch.arange(self.slots, device=positions.device)
        if self.group.reach is None:
            return behind
        behind = behind % self.group.reach
        return torch.where(behind <= positions.unsqueeze(1), behind, -1)


class LayerCache:
    """The memory of one attention layer, and the two ways of attending that use it."""

    def __init__(self, rows: int, attention: Attention) -> None:
        weight = attention.qkv.weight
        self.groups = [GroupCache(rows, group, weight, attention.d_head) for group in attention.groups]

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


class Cache:
    """The KV cache of a whole model for a batch of rows."""

    def __init__(self, model: Remembering, rows: int) -> None:
        self.model = model
        self.lengths = torch.zeros(rows, dtype=torch.long, device=model.device)
        self.layers = [LayerCache(rows, block.attn) if block.has_attention else None for block in model.blocks]

    def groups(self) -> Iterator[GroupCache]:
        return (group for layer in self.layers if layer is not None for group in layer.groups)

    def count_bytes(self) -> int:
        """What it holds, room for more tokens included."""
        return sum(group.keys.nbytes + group.values.nbytes for group in self.groups())

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
