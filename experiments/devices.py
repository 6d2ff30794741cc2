"""Where to compute and in which numbers, as a person names them."""

from __future__ import annotations

import torch

from experiments.processor import cpu_flags

DEVICES = ("auto", "cpu", "cuda")
BF16 = "bf16"
BF16_FLAGS = {"avx512_bf16", "amx_bf16", "bf16"}  # x86; Arm calls it bf16


def choose_device(name: str) -> str:
    """cpu or cuda; auto is CUDA where there is one."""
    if name not in DEVICES:
        raise ValueError(f"device is {name!r}; choose one of {', '.join(DEVICES)}")
    available = torch.cuda.is_available()
    if name == "cuda" and not available:
        raise ValueError("device cuda was asked for, but torch sees no CUDA device here; use --device cpu")
    return "cuda" if available and name != "cpu" else "cpu"


def has_bf16(device: str) -> bool:
    """Whether the device multiplies bf16 by itself; without such instructions it is imitated, many times as slow."""
    if device == "cuda":
        return torch.cuda.is_bf16_supported(including_emulation=False)
    return bool(cpu_flags() & BF16_FLAGS)


def autocast(device: str, precision: str) -> torch.autocast:
    """Weights stay in float32; with bf16, products are taken in it."""
    return torch.autocast(device, dtype=torch.bfloat16, enabled=precision == BF16)


def use_threads(count: int | None) -> None:
    """Compute with so many CPU threads; None: as it is."""
    if count is not None:
        torch.set_num_threads(count)
