"""Training rows cut from one stream of samples, wherever the cut falls, and which of their tokens count in the loss.

A batch is a function of (seed, step, process) alone: a run that is resumed sees what it would have seen.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from experiments.tasks.base import BoolArray, IntArray, Samples, Task, check_lengths

IGNORED = -100  # torch's cross_entropy leaves out targets of this value
TRIALS, LEAST = 8, 0.02  # batches, and the share of their answers that must count at least; usual rows: over .6


class Batch(NamedTuple):
    inputs: IntArray  # (rows, context)
    targets: IntArray  # the same, one token later; IGNORED where the loss does not look
    computed: BoolArray  # of every target, whether it is a number that is worked out


class Stream(NamedTuple):
    """The tokens of samples one after the other, and what is known of each."""

    tokens: IntArray
    answered: BoolArray  # whether it is part of an answer and asked for
    computed: BoolArray  # whether it is a number that is worked out
    since: IntArray  # from where on a row must be visible for it to be known


class Packing:
    """Batches of `rows` x `context` tokens of samples with lengths low..high."""

    def __init__(
        self, task: Task, lengths: tuple[int, int], rows: int, context: int, seed: int, steps: int = 1,
        fall: float = 1.0,
    ) -> None:  # fmt: skip
        low, high = lengths
        check_lengths([low, high])
        if low > high or rows < 1 or context < 2:
            raise ValueError(f"lengths {low} to {high} in {rows} rows of {context} tokens cannot be packed; "
                             "expected low <= high, at least 1 row and at least 2 tokens")  # fmt: skip
        self.task, self.low, self.high = task, low, high
        self.rows, self.context, self.seed, self.steps, self.fall = rows, context, seed, steps, fall
        self.separator = task.token(task.separator)
        trial = self.draw(np.random.default_rng([seed, 0]), 64)
        self.mean_size = len(trial.tokens) / len(trial)
        self.need_something_to_learn(trial)

    def need_something_to_learn(self, trial: Samples) -> None:
        """Of the tokens of answers, some must stand in one row with the line before, or nothing is learned."""
        counted = sum(int((self.batch(step).targets != IGNORED).sum()) for step in range(TRIALS))
        share = counted / (TRIALS * self.rows * self.context * max(trial.answered.mean(), 1e-9))
        if share < LEAST:
            much = "nothing" if not counted else f"hardly anything ({share:.1%} of the answers)"
            raise ValueError(f"in rows of {self.context} tokens there is {much} to learn: an answer counts only where "
                             "the line before it is in the row; use longer --context or shorter --lengths")  # fmt: skip

    def draw(self, rng: np.random.Generator, count: int, step: int = 0) -> Samples:
        lengths = self.task.draw_lengths(rng, count, self.low, self.high, self.fall)
        return self.task.practice(rng, lengths, min(1.0, step / self.steps))

    def batch(self, step: int, process: int = 0) -> Batch:
        rng = np.random.default_rng([self.seed, 1, step, process])
        wanted = self.rows * (self.context + 1)
        stream = self.stream(rng, wanted, step)
        cut = int(rng.integers(len(stream.tokens) - wanted + 1))  # so that the first row, too, begins mid-sample
        part, shape = slice(cut, cut + wanted), (self.rows, self.context + 1)
        visible = stream.since[part] >= cut + np.arange(wanted) // (self.context + 1) * (self.context + 1)
        tokens, computed = stream.tokens[part].reshape(shape), stream.computed[part].reshape(shape)
        targets = np.where((stream.answered[part] & visible).reshape(shape), tokens, IGNORED)
        return Batch(tokens[:, :-1], targets[:, 1:], computed[:, 1:])

    def stream(self, rng: np.random.Generator, wanted: int, step: int) -> Stream:
        """At least `wanted` tokens."""
        parts: list[Samples] = []
        have = 0
        while have < wanted + self.mean_size:
            parts.append(self.draw(rng, int((wanted - have) / self.mean_size * 1.1) + 2, step))
            have += len(parts[-1].tokens)
        tokens = np.concatenate([part.tokens for part in parts])
        answered = np.concatenate([part.answered for part in parts])
        computed = np.concatenate([part.computed for part in parts])
        return Stream(tokens, answered, computed, self.visible_since(tokens))

    def visible_since(self, tokens: IntArray) -> IntArray:
        """The beginning of the line before each token's own line: what a token of an answer is made from.

        An answer whose source was cut off cannot be known, and a loss on it would only be noise.
        """
        first_of_line = np.concatenate(([0], np.flatnonzero(tokens == self.separator) + 1))
        line = np.concatenate(([0], np.cumsum(tokens == self.separator)[:-1]))
        return first_of_line[np.maximum(line - 1, 0)]
