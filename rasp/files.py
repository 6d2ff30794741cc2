"""Files that are whole or not there, and no larger than they may be."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any


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


@contextmanager
def becoming(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Another name to write to, which becomes `path` when all is written: a full disk, a crash or Ctrl-C leaves what
    was there."""
    target = Path(path)
    partial = target.with_name(f"{target.name}.partial")
    try:
        yield partial
        os.replace(partial, target)
    finally:
        partial.unlink(missing_ok=True)


def write_whole(path: str | os.PathLike[str], data: str | bytes) -> Path:
    with becoming(path) as partial:
        partial.write_bytes(data.encode() if isinstance(data, str) else data)
    return Path(path)


def save_figure(figure: Any, path: str | os.PathLike[str], **options: Any) -> Path:
    """A figure of matplotlib, in the format of its suffix."""
    with becoming(path) as partial:
        figure.savefig(partial, format=Path(path).suffix[1:], **options)
    return Path(path)
