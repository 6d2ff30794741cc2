"""Which way a model decodes: by torch, or by looking compiled weights up (`compile.sparse`).

Learned models always run through torch. A compiled Hard-ALiBi model that is asked for many tokens is looked up, where
that is exact; where it is not, torch takes over with a warning that says why.
"""

from __future__ import annotations

import warnings
import zlib
from typing import TYPE_CHECKING

from torch import nn

from compile.transformer.config import TransformerConfig

if TYPE_CHECKING:
    from compile.sparse import NotSparse, SparseEngine

ENGINES = ("auto", "torch", "sparse")
MANY_TOKENS = 256  # below this, loading the engine takes longer than torch does
LONG_TEXT = 4096  # of one text: torch compares every token with every other


def sparse_engine(model: nn.Module, engine: str, tokens: int, enough: int) -> SparseEngine | None:
    """The engine to look this model up with, or None: through torch."""
    if engine not in ENGINES:
        raise ValueError(f"engine is {engine!r}; choose one of {', '.join(ENGINES)}.")
    config: TransformerConfig = model.config  # type: ignore[assignment]
    if engine == "torch" or (engine == "auto" and (tokens < enough or not is_compiled(config))):
        return None
    from compile.sparse import SparseEngine

    found = looked_up_by(model)
    if isinstance(found, SparseEngine):
        return found
    if engine == "sparse":
        raise found
    through_torch(found)
    return None


def looked_up_by(model: nn.Module) -> SparseEngine | NotSparse:
    """The engine of this model with these weights, or why there is none; kept until the weights change."""
    from compile.sparse import NotSparse, SparseEngine

    kept = model.__dict__.setdefault("_sparse_engine", {})
    mark = fingerprint(model)
    if mark not in kept:
        kept.clear()
        arrays = {name: p.detach().cpu().numpy() for name, p in model.state_dict().items()}
        try:
            kept[mark] = SparseEngine(model.config.to_dict(), arrays)  # type: ignore[union-attr, operator]
        except NotSparse as reason:
            kept[mark] = NotSparse(str(reason))  # without the traceback, which would keep the arrays
    return kept[mark]


def is_compiled(config: TransformerConfig) -> bool:
    """Whether these can be weights of the Hard-ALiBi backends, which alone have no norm and start tokens."""
    return config.encoding == "hard_alibi" and config.norm == "none" and config.prepend is not None


def fingerprint(model: nn.Module) -> tuple[int, ...]:
    """Changes with the weights, in whichever way they are changed."""
    return tuple(zlib.crc32(p.detach().cpu().contiguous().numpy().data) for p in model.parameters())


def through_torch(reason: Exception) -> None:
    warnings.warn(f"decoding through torch: this model cannot be looked up ({reason})", stacklevel=4)
