"""JSON files that are whole or not there, and sentences about what cannot be read or written."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from rasp.files import FileTooLarge, read_whole, write_whole

MOST_JSON = 256_000_000  # bytes


def write_json(path: Path, value: Any) -> None:
    write_whole(path, json.dumps(value, indent=1) + "\n")


def write_fields(path: Path, values: Mapping[str, Any]) -> None:
    """An object, with a line per field."""
    lines = (f" {json.dumps(name)}: {json.dumps(value)}" for name, value in values.items())
    write_whole(path, "{\n" + ",\n".join(lines) + "\n}\n")


def read_json(path: Path) -> dict[str, Any]:
    """The object in a file."""
    try:
        value = json.loads(read_whole(path, MOST_JSON))
    except FileTooLarge:
        raise
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path} is not JSON ({error}): it is damaged, or another file") from None
    if not isinstance(value, dict):
        raise ValueError(f"{path} holds no JSON object")
    return value


LOCK = ".lock"


@contextmanager
def only_user_of(folder: Path) -> Iterator[None]:
    """Refuse a folder that another process writes into. The system forgets the lock when a process dies."""
    try:
        import fcntl
    except ImportError:  # Windows, where two runs in one folder are not noticed
        yield
        return
    with open(folder / LOCK, "w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise ValueError(f"another process is training in {folder}; wait for it, or name another folder") from None
        yield


def need_output(path: Path | None, suffixes: Sequence[str] = ()) -> None:
    """Refuse an output that cannot be written before the work is done, not after it."""
    if path is None:
        return
    if suffixes and path.suffix not in suffixes:
        raise ValueError(f"cannot write {str(path)!r}: expected a name ending in {' or '.join(suffixes)}")
    if path.is_dir() or not os.access(path if path.exists() else path.absolute().parent, os.W_OK):
        raise ValueError(f"cannot write {str(path)!r}: it is a folder, or its folder is missing or not writable")


@contextmanager
def output_folder(folder: Path | None) -> Iterator[None]:
    """Make a folder, or refuse it, before the work is done; if nothing comes of the work, it is not left behind."""
    if folder is None:
        yield
        return
    above = [path for path in (folder.absolute(), *folder.absolute().parents) if path.exists()]
    if not above[0].is_dir() or not os.access(above[0], os.W_OK):
        raise ValueError(f"cannot write into {str(folder)!r}: {above[0]} is not a folder, or not writable")
    made = [path for path in (folder.absolute(), *folder.absolute().parents) if path not in above]
    folder.mkdir(parents=True, exist_ok=True)
    try:
        yield
    except BaseException:
        with suppress(OSError):  # where something is in it, it stays
            for path in made:
                path.rmdir()
        raise
