"""Models that a person names, and the numbers they compute in."""

from __future__ import annotations

from dataclasses import replace

import torch

from compile.transformer import Transformer
from experiments.evaluation.shipped import find

PRECISIONS = ("float32", "float64")  # bf16 is for training


def load_model(name: str) -> Transformer:
    """From a folder, or a shipped one by its name."""
    folder = find(name)
    if not folder.is_dir():
        raise ValueError(f"{name!r} is neither `compiled`, the folder of a model, nor a shipped checkpoint")
    return Transformer.from_pretrained(folder)


def use_precision(precision: str, *models: Transformer) -> None:
    """Let models compute in it from now on."""
    if precision not in PRECISIONS:
        raise ValueError(f"precision is {precision!r}; models run in {' or '.join(PRECISIONS)}")
    for model in models:
        if precision != model.config.dtype:
            model.to(getattr(torch, precision)).config = replace(model.config, dtype=precision)
