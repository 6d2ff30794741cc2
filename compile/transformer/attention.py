"""Causal attention with windows. It never builds a T x T matrix unless a hook asks to see it.

Shapes in comments: B rows, T tokens, H heads, D = d_head.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from compile.transformer.config import LayerShape, TransformerConfig
from compile.transformer.encodings import ENCODINGS, HeadGroup, Rotation, group_heads, rotate

Hook = Callable[[str, Tensor], Tensor]

# Queries per block of attention; measured: on a CPU the scores of a block should stay in the cache.
LOCAL_BLOCK, CPU_BLOCK, GPU_BLOCK = 16, 32, 256
LONG = 1024  # tokens up to which blocks are faster than torch's own causal attention; in float32 they never are


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
    return part.is_cuda or part.shape[1] > LONG or part.dtype == torch.float32


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
        self.bias = ENCODINGS[config.encoding].score_bias(self.heads, shape.slopes)
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
