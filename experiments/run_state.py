"""The state of a training run as one file: tensors of model, average and optimizers, and JSON in its header. No pickle.

The file is written beside the old one and then takes its name, so that whatever happens there is a whole one.
"""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor
from torch.optim import Optimizer

STATE = "state.safetensors"
NOTED = {"recipe", "steps_done", "seconds", "curve", "probes"}
REQUIRED = {"task", "model", "lengths", "context", "batch", "steps"}  # of a recipe


class TrainingError(ValueError):
    """Why a run ended early, in a sentence."""


class Interrupted(Exception):
    """A person stopped the run; says where it is kept."""


def damaged(path: Path, why: object) -> TrainingError:
    return TrainingError(f"{path} is damaged ({why}); to begin anew, remove the folder or name another with -o")


def write_state(folder: Path, tensors: Mapping[str, Tensor], notes: Mapping[str, Any]) -> None:
    partial = folder / f"{STATE}.partial"
    whole = {name: t.detach().to("cpu", copy=True).contiguous() for name, t in tensors.items()}
    with explained(folder, partial):
        save_file(whole, partial, metadata={"notes": json.dumps(notes)})
        with open(partial, "rb") as file:
            os.fsync(file.fileno())
        os.replace(partial, folder / STATE)


def write_json(path: Path, value: Any) -> None:
    partial = path.with_name(f"{path.name}.partial")
    with explained(path.parent, partial):
        partial.write_text(json.dumps(value, indent=1) + "\n")
        os.replace(partial, path)


@contextmanager
def explained(folder: Path, partial: Path) -> Iterator[None]:
    """Turn a failed write into a sentence, without leaving half a file behind."""
    try:
        yield
    except (OSError, SafetensorError) as error:
        partial.unlink(missing_ok=True)
        full = getattr(error, "errno", None) == errno.ENOSPC or "No space left" in str(error)
        why = "the disk is full" if full else str(error)
        raise TrainingError(f"{folder} cannot be written ({why}); the last checkpoint is intact: make room and "
                            "continue with --resume") from None  # fmt: skip


def read_state(folder: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    path = folder / STATE
    if not path.is_file():
        raise TrainingError(f"{folder} holds no run to resume ({STATE} is missing); to begin one, leave out --resume "
                            "and name a folder without a model")  # fmt: skip
    try:
        with safe_open(path, framework="pt") as file:
            notes = json.loads((file.metadata() or {})["notes"])
            if not isinstance(notes, dict) or NOTED - set(notes) or REQUIRED - set(notes["recipe"]):
                raise ValueError("it does not say what run it is of")
            return {name: file.get_tensor(name) for name in file.keys()}, notes  # noqa: SIM118 - not a dict
    except (SafetensorError, KeyError, ValueError, OSError) as error:
        raise damaged(path, error) from None


def optimizer_tensors(name: str, optimizer: Optimizer) -> dict[str, Tensor]:
    """The state of an optimizer, flat: `name.index of the parameter.kind`."""
    state = optimizer.state_dict()["state"]
    return {f"{name}.{index}.{kind}": torch.as_tensor(value) for index, kinds in state.items()
            for kind, value in kinds.items()}  # fmt: skip


def load_optimizer(name: str, optimizer: Optimizer, tensors: Mapping[str, Tensor]) -> None:
    state: dict[int, dict[str, Tensor]] = {}
    for key, tensor in tensors.items():
        if key.startswith(f"{name}."):
            _, index, kind = key.split(".", 2)
            state.setdefault(int(index), {})[kind] = tensor
    optimizer.load_state_dict({"state": state, "param_groups": optimizer.state_dict()["param_groups"]})
