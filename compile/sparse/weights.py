"""A compiled Hard-ALiBi model as sparse arrays, and what its heads must look like for attention by looking up.

Compiled weights have three kinds of heads, told apart by their weights alone:

    window     no scores: the mean of what the last m tokens carry
    matching   score = strength * (number of parts in which query and key agree) + level of the key
    counting   the same, where all keys have one level and only the start tokens carry something

So the keys of a head fall into classes (equal in every part), and a query meets one class in full: all others lose at
least `strength` per part. `bounds` says how much attention is left out, and `matching` checks at every token that
entries of keys and queries are 0, 1 or -1 (times strength) up to NOISE.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from compile.sparse.bounds import HeadScores, NotSparse, head_scores, one_hot_groups
from compile.sparse.staircases import Staircase, find_shares, find_staircases

DROPPED = 1e-6  # activations below it are not read: far below the 0.02 by which registers may differ from 0 and 1

Arrays = Mapping[str, np.ndarray]
FloatArray = np.ndarray
IntArray = np.ndarray


@dataclass(frozen=True)
class Columns:
    """A matrix by its columns: what input j adds to which outputs."""

    start: IntArray  # (inputs + 1,)
    rows: IntArray
    values: FloatArray

    @staticmethod
    def of(matrix: FloatArray) -> Columns:
        columns, rows = np.nonzero(matrix.T)
        start = np.searchsorted(columns, np.arange(matrix.shape[1] + 1))
        return Columns(start.astype(np.int64), rows.astype(np.int32), matrix.T[columns, rows].astype(np.float64))


@dataclass(frozen=True)
class SparseLayer:
    windows: IntArray  # per head; 0: unbounded
    d_head: int
    project: Columns  # residual stream -> all q, all k, all v
    project_bias: FloatArray
    strength: FloatArray  # per head
    constant: IntArray  # (heads, d_head): 1 where the query is a constant, so that the key's entry is a level
    sums: IntArray  # per head: 1 where the matches of one class may carry different amounts (a mean)
    out: Columns  # what all heads bring -> residual stream
    out_bias: FloatArray
    up: Columns
    up_bias: FloatArray
    down: Columns
    down_bias: FloatArray
    plain: IntArray  # the units that `up` and `down` hold: all but those of staircases
    staircases: tuple[Staircase, ...]
    scores: tuple[HeadScores | None, ...]  # per head; None: a window


@dataclass(frozen=True)
class SparseWeights:
    embed: Columns  # a column per token
    layers: tuple[SparseLayer, ...]
    unembed: Columns
    unembed_bias: FloatArray
    outputs: IntArray
    d_model: int
    inputs: int  # how many tokens there are that may be given
    first: int  # the lowest of them, which has the first column of `embed`
    prepend: int  # the column of the start token
    copies: int
    refusal: str
    nonzeros: int


def sparse_weights(config: Mapping[str, Any], arrays: Arrays) -> SparseWeights:
    """From a saved model's configuration and tensors; `NotSparse` says what in it cannot be looked up."""
    _need_compiled(config)
    embed = _get(arrays, "embed.weight").T
    first = config.get("first_token", 0)
    starts = np.flatnonzero(embed[:, config["prepend"] - first])
    if len(starts) != 1:
        raise NotSparse("its start token has no direction of its own")
    start = int(starts[0])
    groups = one_hot_groups((config.get("annotations") or {}).get("registers", ()), len(embed), start)
    layers = tuple(_layer(arrays, f"blocks.{i}", config["windows"][i], start, groups) for i in range(config["layers"]))
    unembed = _get(arrays, "unembed.weight")
    outputs = range(first, first + config["vocabulary"]) if config.get("outputs") is None else config["outputs"]
    return SparseWeights(
        embed=Columns.of(embed),
        layers=layers,
        unembed=Columns.of(unembed),
        unembed_bias=_get(arrays, "unembed.bias"),
        outputs=np.array(list(outputs), dtype=np.int64),
        d_model=embed.shape[0],
        inputs=config["vocabulary"] - bool(config.get("refusal")),
        first=first,
        prepend=config["prepend"] - first,
        refusal=config.get("refusal", ""),
        copies=config["prepend_count"],
        nonzeros=sum(int(np.count_nonzero(a)) for a in arrays.values()),
    )


def weight_shapes(config: Mapping[str, Any]) -> dict[str, tuple[int, ...]]:
    """The tensors of a compiled model, from its configuration alone."""
    _need_compiled(config)
    d, outputs = config["d_model"], config.get("outputs")
    size = config["vocabulary"] if outputs is None else len(outputs)
    shapes: dict[str, tuple[int, ...]] = {
        "embed.weight": (config["vocabulary"], d),
        "unembed.weight": (size, d),
        "unembed.bias": (size,),
    }
    for layer in range(config["layers"]):
        path, heads = f"blocks.{layer}", len(config["windows"][layer])
        d_head, d_mlp = (_of_layer(config[name], layer) for name in ("d_head", "d_mlp"))
        if heads:
            shapes[f"{path}.attn.qkv.weight"] = (3 * heads * d_head, d)
            shapes[f"{path}.attn.qkv.bias"] = (3 * heads * d_head,)
            shapes[f"{path}.attn.out.weight"] = (d, heads * d_head)
            shapes[f"{path}.attn.out.bias"] = (d,)
        if d_mlp:
            shapes[f"{path}.mlp.up.weight"], shapes[f"{path}.mlp.up.bias"] = (d_mlp, d), (d_mlp,)
            shapes[f"{path}.mlp.down.weight"], shapes[f"{path}.mlp.down.bias"] = (d, d_mlp), (d,)
    return shapes


def _of_layer(value: Any, layer: int) -> int:
    return int(value if isinstance(value, int) else value[layer])


def _need_compiled(config: Mapping[str, Any]) -> None:
    wanted = {
        "encoding": "hard_alibi",
        "norm": "none",
        "activation": "relu",
        "scale": 1.0,
        "parallel": False,
        "gated": False,
        "unembed_bias": True,
    }
    for name, value in wanted.items():
        if config.get(name, value) != value:
            raise NotSparse(f"its {name} is {config[name]!r}, where compiled Hard-ALiBi weights have {value!r}")
    if config.get("prepend") is None or len(config.get("windows", ())) != config["layers"]:
        raise NotSparse("it has no start tokens, which compiled Hard-ALiBi weights rely on")


def _get(arrays: Arrays, name: str) -> FloatArray:
    return np.asarray(arrays[name], dtype=np.float64)


def _layer(arrays: Arrays, path: str, windows: Any, start: int, groups: list[IntArray]) -> SparseLayer:
    embed = _get(arrays, "embed.weight")
    d_model = embed.shape[1]
    nothing = np.zeros((0, d_model))
    heads = len(windows)
    qkv = _get(arrays, f"{path}.attn.qkv.weight") if heads else nothing
    bias = _get(arrays, f"{path}.attn.qkv.bias") if heads else np.zeros(0)
    out = _get(arrays, f"{path}.attn.out.weight") if heads else nothing.T
    has_mlp = f"{path}.mlp.up.weight" in arrays
    up = _get(arrays, f"{path}.mlp.up.weight") if has_mlp else nothing
    up_bias = _get(arrays, f"{path}.mlp.up.bias") if has_mlp else np.zeros(0)
    down = _get(arrays, f"{path}.mlp.down.weight") if has_mlp else nothing.T
    d_head = len(bias) // (3 * heads) if heads else 0
    parts, biases = qkv.reshape(3, heads, d_head, d_model), bias.reshape(3, heads, d_head)
    found = [_head(path, h, w, parts[:, h], biases[:, h], start) for h, w in enumerate(windows)]
    shares = find_shares(parts, biases, out, windows, start)
    staircases, plain = find_staircases(up, up_bias, down, shares)
    return SparseLayer(
        windows=np.array([w or 0 for w in windows], dtype=np.int64),
        d_head=d_head,
        project=Columns.of(qkv),
        project_bias=bias,
        strength=np.array([f[0] for f in found], dtype=np.float64),
        constant=np.array([f[1] for f in found], dtype=np.int8).reshape(heads, d_head),
        sums=np.array([f[2] for f in found], dtype=np.int8),
        out=Columns.of(out),
        out_bias=_get(arrays, f"{path}.attn.out.bias") if heads else np.zeros(d_model),
        up=Columns.of(up[plain]),
        up_bias=up_bias[plain],
        down=Columns.of(down[:, plain]),
        down_bias=_get(arrays, f"{path}.mlp.down.bias") if has_mlp else np.zeros(d_model),
        plain=plain,
        staircases=staircases,
        scores=tuple(
            None if w is not None else head_scores(f[0], f[1], parts[:2, h], biases[:2, h], groups)
            for h, (w, f) in enumerate(zip(windows, found, strict=True))
        ),
    )


def _head(
    path: str, h: int, window: int | None, weights: FloatArray, biases: FloatArray, start: int
) -> tuple[float, FloatArray, bool]:
    """Strength, which query entries are constant, and whether amounts have to be added up."""
    (q, _k, v), (q_bias, _, _) = weights, biases
    if window is not None:
        if np.any(q) or np.any(q_bias):
            raise NotSparse(f"{path} head {h} scores inside a window, which no compiled head does")
        return 0.0, np.zeros(len(q_bias)), False
    varies = np.any(q != 0, axis=1)
    constant = ~varies & (q_bias != 0)
    sizes = np.abs(q[varies]).max(axis=1) if varies.any() else np.zeros(0)
    if len(sizes) and not np.allclose(sizes, sizes[0]):
        raise NotSparse(f"{path} head {h} weighs the parts of its key differently")
    carries = np.delete(v, start, axis=1)
    sums = bool(np.any((carries != 0) & (np.abs(carries) != 1)))
    return float(sizes[0]) if len(sizes) else 0.0, constant, sums
