"""Inputs bred to show that an edge matters: those on which moving something has more effect are changed further."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from compile.circuits.ablation import BatchRun, Move
from compile.circuits.components import Edge
from compile.circuits.wiring import Wiring

GENERATIONS = 60
FRESH = 0.25  # share of the moves that are drawn anew in each generation


def hunt(
    wiring: Wiring, edge: Edge, inputs: Sequence[np.ndarray], rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray, Move] | None:
    """An input, which of its answers change, and the move along the edge that changes them, if any comes up."""
    tokens = np.unique(np.concatenate(inputs))
    longest = max(len(x) for x in inputs)
    herd, best = list(inputs), np.full(len(inputs), -1.0)
    moves: list[Move | None] = [None] * len(inputs)
    for _ in range(GENERATIONS):
        bred = [_mutant(x, tokens, longest, rng) for x in herd]
        run = BatchRun(wiring, bred)
        drawn = run.drawn(run.kinds(edge), rng)
        tried = [
            new if old is None or rng.random() < FRESH or max(old.at or 0, old.origin) >= len(x) else old
            for x, new, old in zip(bred, drawn, moves, strict=True)
        ]
        effect, changed = run.effect(edge, tried)
        if changed.any():
            row = int(changed.any(axis=1).argmax())
            return bred[row], changed[row], tried[row]
        for row in np.flatnonzero(effect >= best).tolist():
            herd[row], moves[row], best[row] = bred[row], tried[row], effect[row]
    return None


def _mutant(tokens: np.ndarray, known: np.ndarray, longest: int, rng: np.random.Generator) -> np.ndarray:
    """With one or two tokens changed, or one put in or taken out."""
    places = rng.integers(len(tokens), size=int(rng.integers(1, 3)))
    kind = rng.random()
    if kind < 0.1 and len(tokens) > 1:
        return np.delete(tokens, places[0])
    if kind < 0.2 and len(tokens) < longest:
        return np.insert(tokens, places[0], rng.choice(known))
    changed = tokens.copy()
    changed[places] = rng.choice(known, size=len(places))
    return changed
