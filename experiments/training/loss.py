"""The loss: one weighted cross-entropy."""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor


def weighted_cross_entropy(logits: Tensor, targets: Tensor, weights: Tensor) -> Tensor:
    """The mean over tokens by their weights; 0 where a small batch has none that counts. Targets are tokens, or the
    share of every token that is wanted (with one dimension more)."""
    scores = logits.flatten(0, -2).float()
    wanted = targets.flatten(0, -2) if targets.dim() == logits.dim() else targets.flatten()
    return (F.cross_entropy(scores, wanted, reduction="none") * weights.flatten()).sum() / counted(weights)


def counted(weights: Tensor) -> Tensor:
    """What the mean divides by."""
    return weights.sum().clamp(min=1)
