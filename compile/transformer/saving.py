"""Models to and from their folders (`files` says what is in one): checked on the way in, and never a pickle."""

from __future__ import annotations

import json
import math
import os
import re
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol, TypeVar

import torch
from huggingface_hub import snapshot_download
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file
from torch import Tensor, nn

from compile.transformer.config import TransformerConfig
from compile.transformer.files import (
    AGAIN,
    CONFIG,
    FORMAT,
    PLACES,
    SAFETENSORS_DTYPES,
    STORED,
    SUMS,
    VALUES,
    WEIGHTS,
    InvalidModel,
    checked_weights,
    fill_nonzeros,
    read_config,
    sum_of_config,
    sum_of_file,
    with_nonzeros,
)

Loaded = TypeVar("Loaded", bound=nn.Module)


class Saved(Protocol):
    """A model that can be saved: a configuration and tensors."""

    config: TransformerConfig

    def state_dict(self) -> Mapping[str, Tensor]: ...


# --------------------------------------------------------------------------------------------------- saving


def need_finite(tensors: Mapping[str, Tensor], owner: str) -> None:
    broken = [name for name, tensor in tensors.items() if not bool(torch.isfinite(tensor).all())]
    if broken:
        raise InvalidModel(f"{owner} has values that are not finite in {_some(broken)}; use the last good checkpoint.")


def save_weights_and_config(model: Saved, folder: Path, stored: str | None = None) -> None:
    """`stored` "float16" halves the file of a learned model by rounding; compiled weights need all their digits."""
    dtype = getattr(torch, stored or model.config.dtype)
    tensors = {name: t.detach().to("cpu", dtype).contiguous() for name, t in model.state_dict().items()}
    need_finite(tensors, f"this model, as {stored or model.config.dtype},")
    stored_arrays = with_nonzeros({name: t.numpy() for name, t in tensors.items()})
    values = {**model.config.to_dict(), **FORMAT, **({STORED: stored} if stored else {})}
    weights, config = (folder / f"{name}.partial" for name in (WEIGHTS, CONFIG))
    try:
        with system_errors(weights):
            save_file(stored_arrays, weights, metadata={"format": "pt"})
        sums = dict(zip(SUMS, (sum_of_file(weights), sum_of_config(values)), strict=True))
        config.write_text(json.dumps({**values, **sums}, indent=1, sort_keys=True) + "\n")
        shutil.copymode(config, weights)  # safetensors' own is 0600
        os.replace(weights, folder / WEIGHTS)  # a crash before this leaves the old files,
        os.replace(config, folder / CONFIG)  # one before this is caught by the sum
    finally:
        for partial in (weights, config):
            partial.unlink(missing_ok=True)


@contextmanager
def system_errors(path: Path) -> Iterator[None]:
    """A full disk is the same error in whatever language a file was written."""
    try:
        yield
    except SafetensorError as error:
        code = re.search(r"code: (\d+)", str(error))
        if code is None:
            raise OSError(f"{path} cannot be written ({error})") from None
        raise OSError(int(code[1]), os.strerror(int(code[1])), str(path)) from None


# -------------------------------------------------------------------------------------------------- loading


def load_weights_and_config(make_model: Callable[[TransformerConfig], Loaded], folder: Path, device: str) -> Loaded:
    """Every check comes before the allocation it protects: configuration, sum, header, then tensors."""
    values = read_config(folder)
    config = _make_config(values, folder)
    path = checked_weights(folder, values)
    with torch.device("meta"):
        expected = {name: tuple(t.shape) for name, t in make_model(config).state_dict().items()}
    tensors = _read_tensors(path, expected, SAFETENSORS_DTYPES[values.get(STORED, config.dtype)])
    need_finite(tensors, str(path))
    model = make_model(config)
    model.load_state_dict(tensors)
    return model.eval().to(device)


def _make_config(values: dict[str, Any], folder: Path) -> TransformerConfig:
    given = {key: value for key, value in values.items() if key not in (*FORMAT, *SUMS, STORED)}
    try:
        config = TransformerConfig.from_dict(given)
    except (ValueError, TypeError, ArithmeticError) as error:
        raise InvalidModel(f"{folder / CONFIG} does not describe a model: {error} {AGAIN}") from error
    if sum_of_config(values) != values["config_sha256"]:
        raise InvalidModel(f"{folder / CONFIG} was changed after it was saved (its SHA-256 differs). {AGAIN}")
    return config


def _read_tensors(path: Path, expected: dict[str, tuple[int, ...]], dtype: str) -> dict[str, Tensor]:
    """All tensors, after the header has been found to hold exactly the expected names, shapes and type."""
    try:
        with safe_open(path, framework="pt") as file:
            headers = {name: file.get_slice(name) for name in file.keys()}  # noqa: SIM118 (not a dictionary)
            found = {name: (tuple(h.get_shape()), h.get_dtype()) for name, h in headers.items()}
            _need_same(found, _stored(found, expected, dtype), path)
            return {name: _read(file, name, shape) for name, shape in expected.items()}
    except (SafetensorError, OSError) as error:
        raise InvalidModel(f"{path} is not a readable safetensors file ({error}). {AGAIN}") from None


def _stored(found: Mapping[str, Any], expected: Mapping[str, tuple[int, ...]], dtype: str) -> dict[str, Any]:
    """The shapes and types that the file must have: tensors, or their nonzeros, of which any number may be there."""
    wanted: dict[str, Any] = {}
    for name, shape in expected.items():
        if name + PLACES in found:
            count = found[name + PLACES][0]
            wanted[name + PLACES] = (count, "I32" if math.prod(shape) < 2**31 else "I64")
            wanted[name + VALUES] = (count, dtype)
        else:
            wanted[name] = (shape, dtype)
    return wanted


def _read(file: Any, name: str, shape: tuple[int, ...]) -> Tensor:
    if name in file.keys():  # noqa: SIM118 (not a dictionary)
        return file.get_tensor(name)
    places, values = (file.get_tensor(name + part).numpy() for part in (PLACES, VALUES))
    return torch.from_numpy(fill_nonzeros(places, values, shape, name))


def _need_same(found: Mapping[str, Any], expected: Mapping[str, Any], path: Path) -> None:
    missing, unknown = sorted(set(expected) - set(found)), sorted(set(found) - set(expected))
    if missing or unknown:
        raise InvalidModel(f"{path} lacks {_some(missing)} and has unexpected {_some(unknown)}. {AGAIN}")
    for name, wanted in expected.items():
        if found[name] != wanted:
            raise InvalidModel(f"{path}: tensor {name} is {found[name]}, but {CONFIG} calls for {wanted}. {AGAIN}")


def _some(names: list[str]) -> str:
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "") if names else "nothing"


# ------------------------------------------------------------------------------------------------------ hub


def may_be_hub_name(name: str) -> bool:
    """owner/name, as on the Hugging Face Hub, and not obviously a path."""
    return re.fullmatch(r"[A-Za-z0-9][\w.-]*/[\w.-]+", name) is not None


def download(name: str, options: Mapping[str, object]) -> Path:
    known = ("revision", "token", "cache_dir", "force_download", "local_files_only")
    chosen: dict[str, Any] = {key: options[key] for key in known if key in options}
    return Path(snapshot_download(name, allow_patterns=[WEIGHTS, CONFIG], **chosen))
