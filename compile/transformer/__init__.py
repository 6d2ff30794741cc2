"""The transformer in which compiled and learned weights run.

config and encodings -> attention -> model; cache and decoding for generation, saving for files.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rasp.lazy import lazy_names

if TYPE_CHECKING:
    from compile.transformer.config import TransformerConfig
    from compile.transformer.saving import InvalidModel
    from compile.transformer.transformer import Transformer

__all__ = ["InvalidModel", "Transformer", "TransformerConfig"]

__getattr__, __dir__ = lazy_names(
    "compile.transformer",
    {
        "InvalidModel": "compile.transformer.saving",
        "Transformer": "compile.transformer.transformer",
        "TransformerConfig": "compile.transformer.config",
    },
)
