"""The state of a training run as one file: tensors of model, average and optimizers, and JSON in its header. No pickle.

The header also has a checksum of all of it: what was changed since it was written is not read. A new state is written
beside the old one, which is kept: whatever happens, and whatever happens to one of them, there is a whole one.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor
from torch.optim import Optimizer

from compile.transformer.saving import system_errors
from experiments.training.recipe import Recipe

STATE, PREVIOUS = "state.safetensors", "state-before.safetensors"
SET_ASIDE = "state-damaged.safetensors"
CHECKSUM = "sha256"
NOTED = {"recipe", "precision", "steps_done", "seconds", "curve", "probes", "processes"}
LITTLE = 2**20  # bytes left on a disk that is full


class TrainingError(ValueError):
    """Why a run ended early, in a sentence."""


class NotFinite(TrainingError):
    """A loss or gradient that is no number."""

    def __init__(self, loss: float, norm: float, step: int) -> None:
        self.loss, self.norm, self.step = loss, norm, step
        super().__init__(f"the loss is {loss} and its gradient {norm} in step {step}")


class DamagedState(TrainingError):
    """A state that cannot be gone on from: where, and why."""

    def __init__(self, path: Path, why: object) -> None:
        self.path, self.why = path, why
        super().__init__(f"{path} is damaged ({why}); to begin anew, remove the folder or name another with -o")


class Interrupted(Exception):
    """A person stopped the run; says where it is kept."""


@dataclass(frozen=True)
class RunState:
    """What a run goes on from; `damaged` is the newer state that could not be used, if there is one."""

    path: Path
    tensors: dict[str, Tensor]
    notes: dict[str, Any]
    damaged: DamagedState | None = None

    @property
    def recipe(self) -> Recipe:
        try:
            return Recipe.from_dict(self.notes["recipe"])
        except (TypeError, ValueError) as error:
            raise DamagedState(self.path, error) from None

    @property
    def warning(self) -> str:
        """What a person should know before the run goes on."""
        if self.damaged is None:
            return ""
        at = f"goes on from step {self.notes['steps_done']}, which {self.path.name} has"
        return f"{self.damaged.path} is damaged ({self.damaged.why}); the run {at}"

    def set_damaged_aside(self) -> None:
        """So that the next state does not push out the good one."""
        if self.damaged is not None and self.damaged.path.exists():
            os.replace(self.damaged.path, self.damaged.path.with_name(SET_ASIDE))


def write_state(folder: Path, tensors: Mapping[str, Tensor], notes: Mapping[str, Any]) -> None:
    partial, state = folder / f"{STATE}.partial", folder / STATE
    whole = {name: t.detach().to("cpu", copy=True).contiguous() for name, t in tensors.items()}
    text = json.dumps(notes)
    with explained(folder, partial), system_errors(partial):
        save_file(whole, partial, metadata={"notes": text, CHECKSUM: checksum(whole, text)})
        with open(partial, "rb") as file:
            os.fsync(file.fileno())
        if state.exists():
            os.replace(state, folder / PREVIOUS)
        os.replace(partial, state)


def checksum(tensors: Mapping[str, Tensor], notes: str) -> str:
    """Of the notes, and of every tensor its name, type, shape and bytes."""
    found = hashlib.sha256(notes.encode())
    for name, tensor in sorted(tensors.items()):
        found.update(f"\n{name} {tensor.dtype} {tuple(tensor.shape)}\n".encode())
        found.update(tensor.flatten().view(torch.uint8).numpy().tobytes())
    return found.hexdigest()


@contextmanager
def explained(folder: Path, partial: Path) -> Iterator[None]:
    """Turn a failed write into a sentence, without leaving half a file behind."""
    try:
        yield
    except OSError as error:
        full = error.errno == errno.ENOSPC or shutil.disk_usage(folder).free < LITTLE
        partial.unlink(missing_ok=True)
        why = "the disk is full" if full else error.strerror or str(error)
        kept = (
            "the last checkpoint is intact: make room and continue with --resume"
            if any((folder / name).exists() for name in (STATE, PREVIOUS))
            else "nothing is kept of the run: make room and begin again"
        )
        raise TrainingError(f"{folder} cannot be written ({why}); {kept}") from None


def read_state(folder: Path) -> RunState:
    """The newest state that is whole."""
    damaged: DamagedState | None = None
    for path in (folder / STATE, folder / PREVIOUS):
        try:
            return RunState(path, *read_state_file(path), damaged)
        except DamagedState as error:
            damaged = damaged or error
        except FileNotFoundError:
            if (folder / PREVIOUS).is_file():
                damaged = DamagedState(path, "it is missing")
    raise damaged or TrainingError(
        f"{folder} holds no run to resume ({STATE} is missing); to begin one, leave out --resume "
        "and name a folder without a model"
    )


def read_state_file(path: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Tensors and notes, if they are what was written."""
    try:
        with safe_open(path, framework="pt") as file:
            header = file.metadata() or {}
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - not a dict
        if CHECKSUM not in header or checksum(tensors, header["notes"]) != header[CHECKSUM]:
            raise ValueError("its checksum is another than when it was written")
        notes = json.loads(header["notes"])
        if not isinstance(notes, dict) or NOTED - set(notes) or not isinstance(notes["recipe"], dict):
            raise ValueError("it does not say what run it is of")
        return tensors, notes
    except FileNotFoundError:
        raise
    except (SafetensorError, KeyError, ValueError, OSError) as error:
        raise DamagedState(path, error) from None


def optimizer_tensors(name: str, optimizer: Optimizer) -> dict[str, Tensor]:
    """The state of an optimizer, flat: `name.index of the parameter.kind`."""
    state = optimizer.state_dict()["state"]
    return {
        f"{name}.{index}.{kind}": torch.as_tensor(value)
        for index, kinds in state.items()
        for kind, value in kinds.items()
    }


def load_optimizer(name: str, optimizer: Optimizer, tensors: Mapping[str, Tensor]) -> None:
    state: dict[int, dict[str, Tensor]] = {}
    for key, tensor in tensors.items():
        if key.startswith(f"{name}."):
            _, index, kind = key.split(".", 2)
            state.setdefault(int(index), {})[kind] = tensor
    optimizer.load_state_dict({"state": state, "param_groups": optimizer.state_dict()["param_groups"]})
