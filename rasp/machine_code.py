"""Compiling functions with numba, and keeping the machine code between runs.

Numba keeps machine code in pickles, and unpickling damaged bytes can do anything. So each file here begins with the
SHA-256 of what follows and is read only if that is right; otherwise it is removed and the function compiled again. A
cache that cannot be written (a full disk, a folder that is not ours) is named once, and costs no more than the time.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import pickle
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba
import numpy as np
from numba.core.caching import FunctionCache
from numba.core.serialize import dumps

MAGIC = b"rasp machine code 1\n"
_DIGEST = hashlib.sha256().digest_size


class CacheWarning(UserWarning):
    """Machine code could not be kept, or what was kept is damaged; the program runs all the same."""


def compiled(function: Callable[..., Any], **options: Any) -> Any:
    """The function as machine code, compiled when it is first called and kept for the next run."""
    dispatcher = numba.njit(nogil=True, **options)(function)
    try:
        dispatcher._cache = CheckedCache(function)
    except (OSError, RuntimeError) as error:  # numba found no folder that can be written
        _warn(f"machine code is not kept between runs: {error}")
    return dispatcher


class CheckedCache(FunctionCache):
    """Numba's cache of a function, in files that are checked before they are read."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function)
        stamp = (numba.__version__, self._impl.locator.get_source_stamp(), *_used(function))
        self._cache_file = CheckedFiles(Path(self._cache_path), self._impl.filename_base, stamp)

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        try:
            return super().load_overload(sig, target_context)
        except Exception as error:  # whole, but not what this numba wrote
            _warn(f"machine code in {self._cache_path} cannot be used ({type(error).__name__}); it is compiled again")
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        try:
            super().save_overload(sig, data)
        except OSError as error:
            _warn(f"machine code cannot be kept in {self._cache_path}: {error}; the next run compiles again")


def _used(function: Callable[..., Any]) -> list[tuple[str, Any]]:
    """What else is in a function's machine code: the compiled functions it calls and the numbers it names.

    They may come from other modules, of which the stamp of its own file says nothing.
    """
    found: list[tuple[str, Any]] = []
    for name in function.__code__.co_names:
        value = function.__globals__.get(name)
        cache = getattr(value, "_cache", None)
        if isinstance(cache, CheckedCache):
            found.append((name, cache._cache_file.stamp))
        elif isinstance(value, bool | int | float | np.number):
            found.append((name, value))
    return found


class CheckedFiles:
    """One file for each signature: MAGIC, SHA-256 of the source's stamp, SHA-256 of the pickle, the pickle."""

    def __init__(self, folder: Path, name: str, stamp: Any) -> None:
        self.folder, self.name = folder, name
        self.stamp = hashlib.sha256(repr(stamp).encode()).digest()

    def path(self, key: Any) -> Path:
        return self.folder / f"{self.name}.{hashlib.sha256(repr(key).encode()).hexdigest()[:16]}.code"

    def load(self, key: Any) -> Any:
        path = self.path(key)
        try:
            held = path.read_bytes()
        except OSError:
            return None
        at = len(MAGIC)
        stamp, digest, payload = (
            held[at : at + _DIGEST],
            held[at + _DIGEST : at + 2 * _DIGEST],
            held[at + 2 * _DIGEST :],
        )
        if held[:at] != MAGIC or hashlib.sha256(payload).digest() != digest:
            _warn(
                f"machine code in the folder {self.folder} is damaged ({path.name}); it is removed and compiled again"
            )
            with contextlib.suppress(OSError):
                path.unlink()
            return None
        return pickle.loads(payload) if stamp == self.stamp else None

    def save(self, key: Any, data: Any) -> None:
        payload = dumps(data)
        path = self.path(key)
        handle, temporary = tempfile.mkstemp(dir=self.folder, prefix=path.name, suffix=".tmp")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(MAGIC + self.stamp + hashlib.sha256(payload).digest() + payload)
            os.replace(temporary, path)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(temporary)
            raise

    def flush(self) -> None:
        for path in self.folder.glob(f"{self.name}.*.code"):
            path.unlink(missing_ok=True)


_said: set[str] = set()


def _warn(sentence: str) -> None:
    """Once for each sentence."""
    if sentence not in _said:
        _said.add(sentence)
        warnings.warn(sentence, CacheWarning, stacklevel=3)
