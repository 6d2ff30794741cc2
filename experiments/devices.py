"""Where to compute, as a person names it."""

from __future__ import annotations

import torch

DEVICES = ("auto", "cpu", "cuda")


def choose_device(name: str) -> str:
    """cpu or cuda; auto is CUDA where there is one."""
    if name not in DEVICES:
        raise ValueError(f"device is {name!r}; choose one of {', '.join(DEVICES)}")
    available = torch.cuda.is_available()
    if name == "cuda" and not available:
        raise ValueError("device cuda was asked for, but torch sees no CUDA device here; use --device cpu")
    return "cuda" if available and name != "cpu" else "cpu"
