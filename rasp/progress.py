"""How long work says how far it is."""

from __future__ import annotations

from collections.abc import Callable

Progress = Callable[[int, int], None]  # done, of how many
StageProgress = Callable[[str, int, int], None]  # what, done, of how many
