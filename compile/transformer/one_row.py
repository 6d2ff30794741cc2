"""One more token of one sequence through compiled weights, by torch.

What a token of one row costs is mostly reading zeros, masks that are built again, and small kernels: so matrices that
are mostly zero are multiplied by their nonzeros (CSR), the heads of a layer are laid out as their caches are, and the
mask of a window depends only on how far its ring has turned. Keys and values stay in the `Cache`, as for many rows.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from compile.transformer.cache import Cache, GroupCache, LayerCache, Remembering
from compile.transformer.config import TransformerConfig
from compile.transformer.engines import is_compiled
from compile.transformer.model import Block

MOST_NONZERO = 0.1  # share up to which multiplying nonzeros is faster than reading everything
WORTH_IT = 8  # tokens after which laying out the weights has paid off


def suits(config: TransformerConfig, rows: int) -> bool:
    plain = config.activation == "relu" and config.scale == 1.0 and config.bias and config.unembed_bias
    return rows == 1 and is_compiled(config) and plain and not (config.parallel or config.gated)


@dataclass(frozen=True)
class SparseLinear:
    """x -> weight @ x + bias."""

    weight: Tensor
    bias: Tensor

    @staticmethod
    def of(linear: nn.Linear, rows: Tensor | None = None, columns: Tensor | None = None) -> SparseLinear:
        weight, bias = linear.weight.detach(), linear.bias.detach()
        weight = weight if rows is None else weight[rows]
        weight = weight if columns is None else weight[:, columns]
        if int(weight.count_nonzero()) <= MOST_NONZERO * weight.numel():
            with warnings.catch_warnings():
                warnings.filterwarnings("ignore", message="Sparse CSR")  # which torch calls unfinished
                csr = weight.to_sparse_csr()
                places = csr.crow_indices().int(), csr.col_indices().int()
                weight = torch.sparse_csr_tensor(*places, csr.values(), csr.shape, check_invariants=True)
        return SparseLinear(weight, bias if rows is None else bias[rows])

    def __call__(self, x: Tensor) -> Tensor:
        return torch.addmv(self.bias, self.weight, x)


class Group:
    """Heads that share a cache."""

    def __init__(self, memory: GroupCache, like: Tensor) -> None:
        self.memory, self.reach = memory, memory.group.reach
        self.masks: Tensor | None = None  # (place in the ring, heads, slots)
        if self.reach is not None:
            place = torch.arange(self.reach, device=like.device)
            distance = (place.unsqueeze(1) - place) % self.reach
            hidden = distance.unsqueeze(1) >= memory.group.windows.view(1, -1, 1)
            self.masks = like.new_zeros(hidden.shape).masked_fill_(hidden, -torch.inf)

    def attend(self, qkv: Tensor, position: int) -> Tensor:
        """(3, H, D) -> (H, D)."""
        q, k, v = qkv.unbind(0)
        keys, values = self.memory.keys[0], self.memory.values[0]
        slot = position if self.reach is None else position % self.reach
        slots = position + 1 if self.reach is None else min(position + 1, self.reach)
        keys[:, slot], values[:, slot] = k, v
        scores = torch.bmm(keys[:, :slots], q.unsqueeze(2)).squeeze(2)
        if self.masks is not None:
            scores = scores + self.masks[slot, :, :slots]
        return torch.bmm(scores.softmax(dim=1).unsqueeze(1), values[:, :slots]).squeeze(1)


class Layer:
    """One block: its products, and its heads in the order of their caches."""

    def __init__(self, block: Block, memory: LayerCache | None) -> None:
        self.mlp = (SparseLinear.of(block.mlp.up), SparseLinear.of(block.mlp.down)) if block.has_mlp else None
        self.groups: list[Group] = []
        if memory is None:
            return
        attention = block.attn
        heads, size = attention.heads, attention.d_head
        rows = torch.arange(3 * heads * size, device=attention.order.device).view(3, heads, size)[:, attention.order]
        self.shape = (3, heads, size)
        self.sizes = [len(group.heads) for group in attention.groups]
        self.project = SparseLinear.of(attention.qkv, rows=rows.flatten())
        self.out = SparseLinear.of(attention.out, columns=rows[0].flatten())
        self.groups = [Group(group, attention.qkv.weight.detach()) for group in memory.groups]

    def __call__(self, x: Tensor, position: int) -> Tensor:
        if self.groups:
            qkv = self.project(x).view(self.shape)
            parts = qkv.split(self.sizes, dim=1) if len(self.sizes) > 1 else (qkv,)
            z = [group.attend(part, position) for group, part in zip(self.groups, parts, strict=True)]
            x = x + self.out(torch.cat(z).flatten())
        if self.mlp is not None:
            up, down = self.mlp
            x = x + down(F.relu(up(x)))
        return x


class OneRow:
    """A row that goes on from what is in the cache, token by token."""

    def __init__(self, model: Remembering, cache: Cache, first_token: int) -> None:
        self.position = int(cache.lengths[0])  # of the next token
        self.embed, self.unembed = model.embed.weight.detach(), SparseLinear.of(model.unembed)
        self.outputs = model.output_tokens.tolist()
        self.first_token = first_token  # that of the embedding's first row
        self.layers = [Layer(block, memory) for block, memory in zip(model.blocks, cache.layers, strict=True)]

    def push(self, token: int) -> int:
        """The token that follows this one; the cache has room for it."""
        x = self.embed[token - self.first_token]
        for layer in self.layers:
            x = layer(x, self.position)
        self.position += 1
        return self.outputs[int(self.unembed(x).argmax())]
