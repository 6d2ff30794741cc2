"""Files that are whole or not there, and no larger than they may be."""

from __future__ import annotations

import os
from pathlib import Path


class FileTooLarge(ValueError):
    """A file that is not what it is taken for: no such file is so large."""

    def __init__(self, path: str | os.PathLike[str], most: int) -> None:
        super().__init__(f"{path} is larger than {most:,} bytes, which no such file needs")


def read_whole(path: str | os.PathLike[str], most: int) -> bytes:
    """All of a file of at most so many bytes. Its size is not asked for: a device has none and never ends."""
    with open(path, "rb") as file:
        data = file.read(most + 1)
    if len(data) > most:
        raise FileTooLarge(path, most)
    return data


def write_whole(path: str | os.PathLike[str], data: str | bytes) -> None:
    """Beside the old file, which it then replaces: a full disk or a crash leaves what was there."""
    target = Path(path)
    partial = target.with_name(f"{target.name}.partial")
    try:
        partial.write_bytes(data.encode() if isinstance(data, str) else data)
        os.replace(partial, target)
    except OSError:
        partial.unlink(missing_ok=True)
        raise
