"""What is compared beside programs by chance: written programs on long texts, their models, files of both.

Each part takes a seed, a number and the figures, and gives what differs.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Sequence
from typing import Protocol

from .compare import Figures
from .decoded import compare_compiled, decoded_case
from .machine_files import compare_files
from .saved import Unequal, compare_saved
from .texts import compare_text, text_case


class Finding(Protocol):
    """Something that differs: of what kind, and as a script one can paste."""

    @property
    def kind(self) -> str: ...
    def script(self) -> str: ...


Part = Callable[[int, int, Figures], Sequence[Finding]]

PARTS: dict[str, Part] = {
    "texts": lambda seed, number, figures: compare_text(*text_case(seed, number), figures),
    "decoded": lambda seed, number, figures: compare_compiled(*decoded_case(seed, number), figures),
    "saved": compare_saved,
    "files": compare_files,
}


def compare_part(name: str, seed: int, number: int, figures: Figures) -> Sequence[Finding]:
    """What a part finds; an error of its own is a finding, too."""
    figures.counts[f"cases of {name}"] += 1
    try:
        return PARTS[name](seed, number, figures)
    except Exception as error:
        told = f"# {name} of seed {seed}, number {number}\n{traceback.format_exc()}"
        return [Unequal(f"{name}: {type(error).__name__}", told)]
