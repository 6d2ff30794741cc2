"""What one pass of a model over a sequence shows: predictions, attention, and what its registers hold."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from compile.errors import REFUSED
from compile.inspector.packing import Pattern, pack, pack_patterns
from compile.inspector.program import graph_data
from compile.transformer import Transformer
from compile.transformer.annotations import Fact, Register

CANDIDATES = 3  # tokens listed with their logits
MOST_CHARACTERS = 9_000_000  # of one page's packed attention


class Recorder:
    """A hook that keeps the patterns and reads the registers as they pass, instead of every activation."""

    def __init__(self, model: Transformer) -> None:
        self.start, self.registers = model.prepended, model.config.annotations.registers
        self.patterns: dict[int, np.ndarray] = {}  # layer -> (heads, T, start + T)
        self.stages: list[str] = []
        self.readings: list[np.ndarray] = []  # per stage: (registers, T, 2 places, index and amount)

    def __call__(self, name: str, value: Tensor) -> Tensor:
        if name.endswith("hook_pattern"):
            self.patterns[int(name.split(".")[1])] = value[0, :, self.start :].float().cpu().numpy()
        stage = _stage(name)
        if stage and self.registers:
            self.stages.append(stage)
            self.readings.append(self.read(value[0, self.start :].float().cpu().numpy()))
        return value

    def read(self, residual: np.ndarray) -> np.ndarray:
        """The two largest directions of every register at every position."""
        found = np.zeros((len(self.registers), len(residual), 2, 2), np.float32)
        for r, register in enumerate(self.registers):
            piece = residual[:, register.start : register.stop]
            order = np.argsort(-np.abs(piece), axis=1, kind="stable")[:, :2]
            found[r, :, : order.shape[1], 0] = order
            found[r, :, : order.shape[1], 1] = np.take_along_axis(piece, order, axis=1)
        return found


def _stage(name: str) -> str:
    """When a residual stream is read: after the embedding, after attention, after the MLP."""
    if name == "blocks.0.hook_resid_pre":
        return "embedding"
    layer = name.split(".")[1] if name.startswith("blocks.") else ""
    if name.endswith("hook_resid_mid"):
        return f"layer {layer} attention"
    return f"layer {layer} MLP" if name.endswith("hook_resid_post") else ""


@torch.no_grad()
def record(model: Transformer, tokens: np.ndarray) -> tuple[np.ndarray, Recorder]:
    """Logits (T, outputs) and what was seen on the way."""
    recorder = Recorder(model)
    logits = model.run_seen(tokens, recorder)
    return logits[0].float().cpu().numpy(), recorder


def collect(model: Transformer, tokens: np.ndarray, title: str, share: int = 1) -> dict[str, Any]:
    """One model's part of a page; `share` models share the page's room."""
    logits, recorder = record(model, tokens)
    shapes = model.config.shapes
    patterns = [
        Pattern(recorder.patterns[layer][head], window)
        for layer, shape in enumerate(shapes)
        for head, window in enumerate(shape.windows)
    ]
    known = model.config.annotations
    facts = known.heads or tuple((Fact(),) * shape.heads for shape in shapes)
    return {
        "title": title,
        "about": about(model),
        "start": model.prepended,
        "startName": _name_of_start(model),
        "heads": [
            [
                {"label": fact.label, "window": window, "nodes": list(fact.nodes)}
                for fact, window in zip(layer, shape.windows, strict=True)
            ]
            for layer, shape in zip(facts, shapes, strict=True)
        ],
        "mlps": [fact.label for fact in known.mlps] or ["" for _ in shapes],
        **_answers(model, logits),
        "attention": pack_patterns(patterns, MOST_CHARACTERS // share),
        "registers": _registers(recorder, model),
        "graph": graph_data(known.program) if known.program else None,
    }


def about(model: Transformer) -> str:
    config = model.config
    kind = config.extra.get("backend")
    heads = [shape.heads for shape in config.shapes]
    spelled = str(heads[0]) if len(set(heads)) == 1 else " + ".join(map(str, heads))
    made = f"compiled ({kind})" if kind else "trained" if "task" in config.extra else "model"
    return (
        f"{made} · {config.layers} layers · {spelled} heads · {config.d_model} dimensions · "
        f"{model.parameter_count():,} parameters, {model.nonzero_count():,} not zero"
    )


def _name_of_start(model: Transformer) -> str:
    """tracr's is one more `bos`, which would be taken for the tape's."""
    config = model.config
    if config.prepend is None:
        return ""
    name = config.name_of(config.prepend)
    return name if config.token_names and name != "bos" else "start"


def _answers(model: Transformer, logits: np.ndarray) -> dict[str, Any]:
    """The candidates with the largest logits, best first; -1 stands for a refusal."""
    outputs = model.output_tokens.cpu().numpy()
    order = np.argsort(-logits, axis=1, kind="stable")[:, :CANDIDATES]
    ids = np.where(outputs[order] == REFUSED, -1, outputs[order])
    values = np.take_along_axis(logits, order, axis=1)
    return {"predictions": ids[:, 0].tolist(), "candidates": ids.tolist(), "logits": np.round(values, 3).tolist()}


def _registers(recorder: Recorder, model: Transformer) -> dict[str, Any] | None:
    if not recorder.readings:
        return None
    readings = np.stack(recorder.readings)  # stages, registers, T, places, (index, amount)
    return {
        "stages": recorder.stages,
        "names": [r.name for r in recorder.registers],
        "values": [list(r.values) for r in recorder.registers],
        "tokens": [holds_tokens(r, model.config.vocabulary) for r in recorder.registers],
        "index": pack(readings[..., 0].astype(np.uint16)),
        "amount": pack(readings[..., 1]),
    }


def holds_tokens(register: Register, vocabulary: int) -> bool:
    """Whether numbers in this register are tokens: all of them can occur, and it is no count."""
    everything = {str(token) for token in range(vocabulary - 1)} <= set(register.values)
    return everything and register.role in ("tokens", "value")
