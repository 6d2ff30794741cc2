"""Training rows cut from one stream of samples, and how much each of their tokens counts.

A row begins wherever the cut falls, or at the start of a sample, as texts do when a model is tried: some encodings are
lost at the start of a text if it hardly ever was one in training (docs/training-notes.md).

A batch is a function of (seed, step, process) alone: a run that is resumed sees what it would have seen.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from experiments.tasks.base import IntArray, Practice, Reals, Samples, check_lengths

TRIALS, LEAST = 8, 0.02  # batches, and the share of their answers that must count at least; usual rows: over .6


class Batch(NamedTuple):
    inputs: IntArray  # (rows, context)
    labels: IntArray  # the same: what should come next
    weights: Reals  # the same: how much it counts in the loss


class SampleStream(NamedTuple):
    """The tokens of samples one after the other, and what is known of each."""

    tokens: IntArray
    labels: IntArray
    weights: Reals
    since: IntArray  # from where on a row must be visible for it to be known
    starts: IntArray  # where samples begin


class Packing:
    """Batches of `rows` x `context` tokens of samples with lengths low..high."""

    def __init__(
        self,
        practice: Practice,
        lengths: tuple[int, int],
        rows: int,
        context: int,
        seed: int,
        length_decay: float = 1.0,
        whole_rows: float = 0.0,
    ) -> None:
        """`whole_rows` is the share of rows that begin with a sample."""
        low, high = lengths
        check_lengths([low, high])
        if low > high or rows < 1 or context < 2:
            raise ValueError(
                f"lengths {low} to {high} in {rows} rows of {context} tokens cannot be packed; "
                "expected low <= high, at least 1 row and at least 2 tokens"
            )
        self.practice, self.low, self.high = practice, low, high
        self.rows, self.context, self.seed, self.length_decay = rows, context, seed, length_decay
        self.whole_rows = whole_rows
        self.separator = practice.task.token(practice.task.separator)
        trial = self.draw(np.random.default_rng([seed, 0]), 64)
        self.mean_size = len(trial.tokens) / len(trial)
        self.need_something_to_learn(trial)

    def need_something_to_learn(self, trial: Samples) -> None:
        """Of the tokens of answers, some must stand in one row with the line before, or nothing is learned."""
        counted = sum(int((self.batch(step).weights > 0).sum()) for step in range(TRIALS))
        share = counted / (TRIALS * self.rows * self.context * max((trial.weights > 0).mean(), 1e-9))
        if share < LEAST:
            much = "nothing" if not counted else f"hardly anything ({share:.1%} of the answers)"
            raise ValueError(
                f"in rows of {self.context} tokens there is {much} to learn: an answer counts only where "
                "the line before it is in the row; use longer --context or shorter --lengths"
            )

    def draw(self, rng: np.random.Generator, count: int, step: int = 0) -> Samples:
        lengths = self.practice.task.draw_lengths(rng, count, self.low, self.high, self.length_decay)
        return self.practice.draw(rng, lengths, step)

    def batch(self, step: int, process: int = 0) -> Batch:
        rng = np.random.default_rng([self.seed, 1, step, process])
        width = self.context + 1
        stream = self.stream(rng, self.rows * width, step)
        cut = int(rng.integers(len(stream.tokens) - self.rows * width + 1))  # the first row, too, begins mid-sample
        begins = cut + width * np.arange(self.rows)
        if self.whole_rows:
            last_start = stream.starts[np.searchsorted(stream.starts, begins, side="right") - 1]
            begins = np.where(rng.random(self.rows) < self.whole_rows, last_start, begins)
        places = begins[:, None] + np.arange(width)
        weights = stream.weights[places] * (stream.since[places] >= begins[:, None])
        return Batch(stream.tokens[places][:, :-1], stream.labels[places][:, 1:], weights[:, 1:])

    def stream(self, rng: np.random.Generator, wanted: int, step: int) -> SampleStream:
        """At least `wanted` tokens."""
        parts: list[Samples] = []
        have = 0
        while have < wanted + self.mean_size:
            parts.append(self.draw(rng, int((wanted - have) / self.mean_size * 1.1) + 2, step))
            have += len(parts[-1].tokens)
        tokens = np.concatenate([part.tokens for part in parts])
        labels = np.concatenate([part.labels for part in parts])
        weights = np.concatenate([part.weights for part in parts])
        starts = np.cumsum([0, *(size for part in parts for size in np.diff(part.starts))])
        return SampleStream(tokens, labels, weights, self.visible_since(tokens), starts)

    def visible_since(self, tokens: IntArray) -> IntArray:
        """The beginning of the line before each token's own line: what a token of an answer is made from.

        An answer whose source was cut off cannot be known, and a loss on it would only be noise.
        """
        first_of_line = np.concatenate(([0], np.flatnonzero(tokens == self.separator) + 1))
        line = np.concatenate(([0], np.cumsum(tokens == self.separator)[:-1]))
        return first_of_line[np.maximum(line - 1, 0)]
