"""How a run of SGD is written down, and how training may write it: lines truncated, tokens masked, labels soft."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from experiments.tasks.base import HOLE, BoolArray, IntArray, Piece, Reals, Samples, where_present
from experiments.tasks.sgd.regression import Kept, exact, quantised
from rasp.programs.vocabulary import SGD

EXAMPLE, INPUTS = 5, (1, 2)  # tokens of an example, and where its inputs stand


@dataclass(frozen=True)
class Writing:
    """How runs are written down for training; as it stands here, the way tests have them."""

    kept: Kept = exact
    first: IntArray | None = None  # (samples, lines): the first example of each, where lines are truncated
    masked_ends: BoolArray | None = None  # (samples, lines): whether its end does not count
    copy_weight: float = 1.0  # in the loss, of what is not worked out
    soft: bool = False  # whether numbers that are worked out have soft labels

    def worked_out(self, values: npt.ArrayLike) -> Piece:
        tokens = quantised(values)
        return Piece(tokens, labels=tokens + len(SGD) if self.soft else None)


class RunWriter(Protocol):
    def lay_out_runs(self, x: Reals, y: Reals, sizes: IntArray, writing: Writing | None = None) -> Samples: ...


def left(examples: IntArray, count: IntArray) -> IntArray:
    """The piece that spells the first `count` examples of every sample."""
    present = np.arange(examples.shape[1]) < count[:, None]
    return np.where(present[:, :, None], examples, HOLE).reshape(len(examples), -1)


def truncated(copied: IntArray, first: IntArray, before: IntArray) -> tuple[IntArray, BoolArray]:
    """The piece of a line's examples from `first` on, where the line before has them from `before` on. Masked is what
    that line does not have, and the inputs of the example with which the two begin to run together."""
    example, place = np.divmod(np.arange(copied.shape[1]), EXAMPLE)
    meeting = np.maximum(first, before)[:, None]
    masked = (example < before[:, None]) | ((example == meeting) & (meeting > 0) & np.isin(place, INPUTS))
    return where_present(example >= first[:, None], copied), masked
