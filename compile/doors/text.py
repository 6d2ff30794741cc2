"""Tokens as text: by their names, one after the other."""

from __future__ import annotations

import re
from collections.abc import Sequence

from compile.transformer.config import TransformerConfig


def names_of(config: TransformerConfig) -> tuple[str, ...]:
    """Of every token; without names, tokens are called by their numbers."""
    return tuple(config.token_names) or tuple(map(str, range(config.vocabulary)))


def separator(names: Sequence[str]) -> str:
    """What stands between tokens: nothing, where the text can be read without."""
    own = [name for name in names if name != "start"]
    return "" if all(len(name) == 1 for name in own) else " "


def encode(text: str, names: Sequence[str]) -> list[int]:
    """The tokens of a text: names with spaces between, or run together where each is one character."""
    number = {name: token for token, name in enumerate(names)}
    pattern = "|".join(re.escape(name) for name in sorted(names, key=len, reverse=True))
    words = text.split() if separator(names) else re.findall(f"{pattern}|\\S", text)
    unknown = [word for word in words if word not in number]
    if unknown:
        some = ", ".join(names[:12]) + (", .." if len(names) > 12 else "")
        raise ValueError(f"{unknown[0]!r} is none of this model's tokens; expected {some}")
    return [number[word] for word in words]
