"""Models in other people's tools: TransformerLens, Hugging Face transformers, ONNX.

Each needs its library (`pip install 'turing-programs[doors]'`); nothing else here does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rasp.lazy import lazy_names

if TYPE_CHECKING:
    from compile.doors.hugging_face import save_for_hugging_face
    from compile.doors.onnx import save_onnx
    from compile.doors.transformer_lens import to_transformer_lens

__all__ = ["save_for_hugging_face", "save_onnx", "to_transformer_lens"]

__getattr__, __dir__ = lazy_names(
    "compile.doors",
    {
        "save_for_hugging_face": "compile.doors.hugging_face",
        "save_onnx": "compile.doors.onnx",
        "to_transformer_lens": "compile.doors.transformer_lens",
    },
)
