"""Files that are there as a whole or not at all."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def becoming(path: Path) -> Iterator[Path]:
    """Another name to write to, which becomes `path` when all is written; whatever happens, no half stays behind."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f"{path.name}.partial")
    try:
        yield partial
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


def write_whole(path: Path, text: str) -> Path:
    with becoming(path) as partial:
        partial.write_text(text, encoding="utf-8")
    return path
