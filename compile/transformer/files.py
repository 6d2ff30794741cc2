"""A model's folder without torch: model.safetensors beside config.json, their sums, and weights kept as nonzeros.

config.json holds the configuration and two SHA-256 sums, of the weights file and of the configuration itself: a window
changed by hand loads as well as the right one and computes something else, so that is refused too.

Compiled weights are mostly zero. Such a matrix is stored as two tensors: the places of its nonzeros in the flattened
matrix, in rising order, and their values. Its shape follows from the configuration.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from rasp.files import read_whole

WEIGHTS, CONFIG = "model.safetensors", "config.json"
FORMAT = {"model_type": "turing-programs", "format_version": 3}
MOST_CONFIG = 256_000_000  # bytes
READABLE = (1, 2, 3)  # versions; the first has labels instead of annotations, the first two have dense weights only
SUMS = ("weights_sha256", "config_sha256")
AGAIN = "Copy or save the model again."
STORED = "stored_dtype"  # of the weights in the file, where it is not the one that the model computes in
SAFETENSORS_DTYPES = {"float16": "F16", "float32": "F32", "float64": "F64"}
PLACES, VALUES = ".nonzero_places", ".nonzero_values"
MOST_NONZERO = 0.25  # of a tensor that is kept as its nonzeros


class InvalidModel(ValueError):
    """A model file that is missing, damaged, changed, or not one of ours."""


def sum_of_file(path: Path) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def sum_of_config(values: Mapping[str, Any]) -> str:
    counted = {key: value for key, value in values.items() if key not in SUMS}
    return hashlib.sha256(json.dumps(counted, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def read_config(folder: Path) -> dict[str, Any]:
    """The contents of config.json, if it is one of ours and unchanged."""
    path = folder / CONFIG
    if not folder.is_dir() or not path.is_file():
        raise InvalidModel(f"{folder} is not a folder with a {CONFIG}; expected one written by save_pretrained.")
    try:
        values = json.loads(read_whole(path, MOST_CONFIG), parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise InvalidModel(f"{path} is not readable JSON ({error}); it is cut short or was changed. {AGAIN}") from None
    ours = isinstance(values, dict) and values.get("model_type") == FORMAT["model_type"]
    if not ours or values.get("format_version") not in READABLE:
        raise InvalidModel(f"{path} is not of type {FORMAT}; it is another program's, or a newer version's.")
    if str(values.get(STORED, "float32")) not in SAFETENSORS_DTYPES:
        raise InvalidModel(
            f"{path} says that weights are stored as {values[STORED]!r}; expected one of "
            f"{', '.join(SAFETENSORS_DTYPES)}. {AGAIN}"
        )
    lacking = [key for key in SUMS if not isinstance(values.get(key), str)]
    if lacking:
        raise InvalidModel(f"{path} lacks {' and '.join(lacking)}, so the model cannot be checked. {AGAIN}")
    return values


def _refuse_constant(name: str) -> float:
    raise ValueError(f"{name} is not a JSON number")


def checked_weights(folder: Path, values: Mapping[str, Any]) -> Path:
    """The weights file, if it has the sum that the configuration notes."""
    path = folder / WEIGHTS
    if not path.is_file():
        raise InvalidModel(f"{folder} has no {WEIGHTS}; expected it beside {CONFIG}. {AGAIN}")
    if sum_of_file(path) != values["weights_sha256"]:
        raise InvalidModel(f"{path} does not have the SHA-256 that {CONFIG} notes: it was cut or changed. {AGAIN}")
    return path


# --- nonzeros ---------------------------------------------------------------------------------------------------------


def with_nonzeros(arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """What is stored: matrices that are mostly zero as places and values, the others as they are."""
    stored: dict[str, np.ndarray] = {}
    for name, array in arrays.items():
        places = np.flatnonzero(array)
        if array.ndim > 1 and len(places) <= MOST_NONZERO * array.size:
            stored[name + PLACES] = places.astype(np.int32 if array.size < 2**31 else np.int64)
            stored[name + VALUES] = array.ravel()[places]
        else:
            stored[name] = array
    return stored


def fill_nonzeros(places: np.ndarray, values: np.ndarray, shape: tuple[int, ...], name: str) -> np.ndarray:
    """The tensor again."""
    size = int(np.prod(shape, dtype=np.int64))
    rising = len(places) < 2 or bool((np.diff(places.astype(np.int64)) > 0).all())
    inside = not len(places) or (int(places[0]) >= 0 and int(places[-1]) < size)
    if len(places) != len(values) or not rising or not inside:
        raise InvalidModel(f"the nonzeros of {name} do not fit its {size:,} entries. {AGAIN}")
    array = np.zeros(size, dtype=values.dtype)
    array[places] = values
    return array.reshape(shape)
