"""What can be put in the place of what an edge carries, and which answers of a batch of inputs change then.

There are two ways to ablate an edge. It is *cut*: nothing crosses it, at any position. Or something is *moved*: at one
position, or at all of the input, it carries what it carries at another position of the same input (start tokens
included). Cutting does not show an edge that carries nothing at most positions anyway, such as a mark of start tokens
or an alarm; moving does.

An answer has changed once it is no longer ahead of all others. Compiled models have it ahead by 1; a tie is no answer,
because rounding decides what is said.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
from torch import Tensor

from compile.circuits.components import Edge
from compile.circuits.patching import Patching
from compile.circuits.wiring import Wiring

TIE = 0.01  # logits closer than this are tied


@dataclass(frozen=True)
class Move:
    """Put what is carried at position `origin` at position `at`, or at all of the input; the start tokens end at -1."""

    at: int | None
    origin: int


def padded(inputs: Sequence[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Inputs as rows of one length, and which places are theirs; what is added on the right no earlier token sees."""
    longest = max(len(x) for x in inputs)
    rows = np.stack([np.pad(x, (0, longest - len(x)), mode="edge") for x in inputs])
    return rows, np.arange(longest) < np.array([len(x) for x in inputs])[:, None]


class BatchRun:
    """A batch of inputs through a model, to be compared with runs in which something was ablated."""

    def __init__(self, wiring: Wiring, inputs: Sequence[np.ndarray]) -> None:
        rows, self.own = padded(inputs)
        self.wiring, self.start = wiring, wiring.model.prepended
        self.patching = Patching(wiring, rows)

    def changed(self, logits: Tensor, before: Tensor | None = None) -> np.ndarray:
        """(rows, T): where the answer is another than before, or tied; `before` are the model's logits, or others."""
        before = self.patching.logits if before is None else before
        tokens = self.wiring.model.output_tokens
        same = tokens[before.argmax(dim=-1)].unsqueeze(-1) == tokens  # two logits may be of one token
        return (_lead(before, same) > TIE) & (_lead(logits, same) <= TIE) & self.own

    def cut(self, edges: Iterable[Edge]) -> Iterator[tuple[Edge, np.ndarray]]:
        """Each edge alone, and which answers change."""
        for edge, logits in self.patching.without(edges):
            yield edge, self.changed(logits)

    def moved(self, moves: Iterable[tuple[Edge, Sequence[Move | None]]]) -> Iterator[tuple[Edge, np.ndarray]]:
        """Each edge alone with a move for every row, and which answers change."""
        parts = ((edge, self.put(self.patching.parts[edge.source], rows)) for edge, rows in moves)
        for edge, logits in self.patching.replaced(parts):
            yield edge, self.changed(logits)

    @torch.no_grad()
    def effect(self, edge: Edge, moves: Sequence[Move]) -> tuple[np.ndarray, np.ndarray]:
        """Of every row, how much the moves along an edge change: of the logits, and as little more as nothing, of what
        the edge's target writes. And which answers change."""
        part = self.put(self.patching.parts[edge.source], moves)
        target = self.patching.change(edge, self.wiring.by_name[edge.target], part)
        ((_, logits),) = self.patching.replaced([(edge, part)])
        near = target.abs().amax(dim=(1, 2)).clamp(max=1.0)
        far = (logits - self.patching.logits).abs().amax(dim=-1).cpu().numpy() * self.own
        return far.max(axis=1) + 1e-3 * near.cpu().numpy(), self.changed(logits)

    def ablated(self, ablations: Mapping[Edge, Sequence[Move | None]]) -> Tensor:
        """Logits with all of these at once; of every row a move, or None to cut the edge."""
        return self.patching.ablated({edge: partial(self.put, moves=moves) for edge, moves in ablations.items()})

    def put(self, part: Tensor, moves: Sequence[Move | None]) -> Tensor:
        """What an edge carries after the moves, (rows, T, d_model); nothing, in rows where it is cut."""
        put = part.clone()
        for row, move in enumerate(moves):
            if move is None:
                put[row] = 0
            else:
                first = self.start + (move.at or 0)
                last = len(part[row]) if move.at is None else first + 1
                put[row, first:last] = part[row, self.start + move.origin]
        return put

    # --- moves to try -------------------------------------------------------------------------------------------------

    def kinds(self, edge: Edge) -> list[np.ndarray]:
        """Of every row, which positions carry the same: a number for each, from the first start token on."""
        places = np.flatnonzero(self.wiring.carried(edge))
        carried = self.patching.parts[edge.source][..., places].cpu().numpy().round(3)
        return [
            np.unique(row[: self.start + length], axis=0, return_inverse=True)[1].reshape(-1)
            for row, length in zip(carried, self.own.sum(axis=1), strict=True)
        ]

    def drawn(self, kinds: Sequence[np.ndarray], rng: np.random.Generator) -> list[Move]:
        """A move for every row; each kind of what is carried is as likely to be moved."""
        return [self._drawn(row, rng) for row in kinds]

    def _drawn(self, kinds: np.ndarray, rng: np.random.Generator) -> Move:
        origin = int(rng.choice(np.flatnonzero(kinds == rng.integers(kinds.max() + 1))))
        others = np.flatnonzero(kinds != kinds[origin])
        everywhere = not len(others) or rng.random() < 1 / 3
        return Move(None if everywhere else int(rng.choice(others)) - self.start, origin - self.start)


def _lead(logits: Tensor, same: Tensor) -> np.ndarray:
    """(rows, T): how far an answer is ahead of all others."""
    own = logits.masked_fill(~same, -torch.inf).amax(dim=-1)
    return (own - logits.masked_fill(same, -torch.inf).amax(dim=-1)).cpu().numpy()
