"""Files that are whole or not there."""

from __future__ import annotations

import os
from pathlib import Path


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
