"""Wired edges that the weights alone show to be idle: no answer to any input depends on them.

Start tokens stand before every input, no input contains one, and what is answered at them is dropped. Some dimensions
of the embedding are zero for all other tokens. An edge that carries nothing else changes what its target writes at
start tokens only, unless it leads to keys or values. From there on, nothing but keys and values takes it to other
positions: an edge is idle if no path onwards leads through any.
"""

from __future__ import annotations

import numpy as np

from compile.circuits.components import Edge, Wiring

ELSEWHERE = ("k", "v")  # the ports through which a head reads other positions


def idle_edges(wiring: Wiring) -> tuple[Edge, ...]:
    marks = _marks_of_start_tokens(wiring)
    spreading = _read_elsewhere(wiring)
    return tuple(
        edge
        for edge in wiring.wired
        if edge.source == "embed"
        and edge.port not in ELSEWHERE
        and edge.target not in spreading
        and not (wiring.carried(edge) & ~marks).any()
    )


def _marks_of_start_tokens(wiring: Wiring) -> np.ndarray:
    """The dimensions that the embedding writes for the start token and for no token of an input."""
    model = wiring.model
    weights = model.embed.weight.detach().cpu().numpy() != 0
    if model.config.prepend is None or not model.config.refusal:  # inputs may contain it
        return np.zeros(weights.shape[1], dtype=bool)
    start = model.config.prepend - model.config.first_token
    return np.asarray(weights[start] & ~np.delete(weights, start, axis=0).any(axis=0))


def _read_elsewhere(wiring: Wiring) -> frozenset[str]:
    """The components of which something reaches other positions, directly or by way of others."""
    found: set[str] = set()
    onwards: dict[str, list[Edge]] = {}
    for edge in wiring.wired:
        onwards.setdefault(edge.source, []).append(edge)
    for component in reversed(wiring.components):  # readers come after what they read
        if any(edge.port in ELSEWHERE or edge.target in found for edge in onwards.get(component.name, [])):
            found.add(component.name)
    return frozenset(found)
