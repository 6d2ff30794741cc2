"""A compiled model as text inside a page: its nonzeros, its shape, and what is known about its heads and registers."""

from __future__ import annotations

from typing import Any

import numpy as np

from compile.errors import REFUSED
from compile.inspector.collect import about, holds_tokens
from compile.inspector.packing import pack
from compile.inspector.program import graph_data
from compile.sparse.weights import NotSparse
from compile.transformer import Transformer
from compile.transformer.annotations import Register
from compile.transformer.engines import is_compiled

MOST_DIMENSIONS = 2**16  # the page numbers them with 16 bits


def model_data(model: Transformer, name: str) -> dict[str, Any]:
    """Everything the page needs to run the model and to show what it does; weights are exact (float32)."""
    config, known = model.config, model.config.annotations
    if not is_compiled(config) or config.activation != "relu" or config.dtype != "float32":
        raise NotSparse(f"{name}: a page runs compiled Hard-ALiBi weights with ReLU in float32 only")
    if config.d_model >= MOST_DIMENSIONS:
        raise NotSparse(f"{name}: {config.d_model} dimensions are more than a page can number; compile a smaller model")
    tensors = {key: value.detach().numpy() for key, value in model.state_dict().items()}
    places = {key: np.flatnonzero(tensor) for key, tensor in tensors.items()}
    return {
        "name": name,
        "about": about(model),
        "extra": dict(config.extra),
        "names": list(config.token_names),
        "dims": config.d_model,
        "starts": model.prepended,
        "startToken": config.prepend,
        "startName": "start",
        "outputs": [-1 if token == REFUSED else token for token in model.output_tokens.tolist()],
        "refusal": config.refusal,
        "shapes": [{"windows": list(shape.windows), "size": shape.d_head} for shape in config.shapes],
        "tensors": [[key, list(tensor.shape), len(places[key])] for key, tensor in tensors.items()],
        "distances": pack(np.concatenate([np.diff(p, prepend=0) for p in places.values()]).astype(np.int32)),
        "values": pack(np.concatenate([tensors[key].ravel()[p] for key, p in places.items()]).astype(np.float32)),
        "heads": [[{"label": f.label, "role": f.role, "nodes": list(f.nodes)} for f in layer] for layer in known.heads],
        "mlps": [fact.label for fact in known.mlps],
        "registers": [_register(register, config.vocabulary) for register in known.registers],
        "graph": graph_data(known.program) if known.program else None,
    }


def _register(register: Register, vocabulary: int) -> dict[str, Any]:
    return {
        "name": register.name,
        "start": register.start,
        "stop": register.stop,
        "values": list(register.values),
        "role": register.role,
        "nodes": list(register.nodes),
        "tokens": holds_tokens(register, vocabulary),
    }
