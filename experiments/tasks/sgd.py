"""SGD on linear regression, examples taken from the last to the first, as in the paper's appendix:

    $ d a179 a166 , a76 d a80 a145 , a102 | d a179 a166 , a76 d a80 a145 , a102 yp a101 g a100 a99 cur a99 a102 | ...

Each line copies the examples that are left, works on the last of them (yp: prediction, g: step, cur: new weights), and
the next line no longer has it. a_k stands for (k - 100) / 100.

The printed example settles what the text leaves open. Its last line follows from no quantised data, but from real data
rounded only for print: so examples and weights are real numbers here, and rounding is what the tolerance of 2/100
forgives. Its labels are w . x without noise. Here w is uniform in [-1/2, 1/2]^2, which keeps labels in range.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from experiments.tasks.base import HOLE, BoolArray, IntArray, Samples, Task, computed, hushed, lay_out, where_present

Reals = npt.NDArray[np.float64]
Kept = Callable[[Reals], Reals]  # what is kept of numbers that were worked out
NUMBERS, MIDDLE = 200, 100
EXAMPLE, INPUTS = 5, (1, 2)  # tokens of an example, and where its inputs stand
CHANCE = 0.6  # labels by chance lie within it: larger ones would take the weights out of range
NARROWEST, WIDEST = 0.05, 0.4  # half the range of the examples of a crowded problem, where others have 1
CROWDED_FROM, LATE_FROM = 0.27, 0.4  # shares of training after which there are crowded problems, and late lines


def quantised(values: npt.ArrayLike) -> IntArray:
    """The number tokens of reals; what lies outside [-1, 1) is put at its end."""
    return np.clip(np.rint(np.asarray(values) * MIDDLE).astype(np.int64) + MIDDLE, 0, NUMBERS - 1)


def as_written(values: Reals) -> Reals:
    """What a reader of the tokens knows of the numbers."""
    return (quantised(values) - MIDDLE) / MIDDLE


def exact(values: Reals) -> Reals:
    return values


@dataclass(frozen=True)
class Steps:
    """One pass of SGD: step t works on example n - 1 - t; arrays are (samples, steps) or (samples, steps, 2)."""

    predicted: Reals
    gradient: Reals
    weights: Reals


@dataclass(frozen=True, kw_only=True)
class Sgd(Task):
    """`unexplained` is the share of training problems whose labels are drawn by chance. Where y = w . x, the prediction
    can be guessed from the label next to it, and a model that does so never learns the product. Tests have none.

    `crowded` is the share of training problems whose examples resemble each other, once examples are copied at all. A
    line ends after the example that the line before has last but one; where no two examples are alike, a rough look is
    enough to find it, and fails in longer problems, where some are. Of the numbers of crowded problems, the share
    `partly` is drawn from the whole range all the same: where examples resemble each other in some of their numbers
    only, all three must be compared. Tests have none of these either.

    `late` is the share of lines in training that begin with a later example than the first, once ends are found at all.
    A line that has one example less than the one before can also be ended by counting both, but not beyond the lengths
    that were counted; where lines begin late, only looking for the example helps. What cannot be known from a late line
    is not asked for; and of the ends of long lines so few that they are as likely after any number of examples.

    With `written`, the numbers of training problems are worked out from those that stand in the text, rounded as they
    are: then the text alone decides every one of them. In tests they are real numbers, rounded only where they are
    written; a model that works from the text without error stays within the tolerance there (a test says how often).
    """

    rate: float = 0.5
    tolerance: int = 2  # number tokens
    unexplained: float = 0.0
    crowded: float = 0.0
    partly: float = 0.0
    late: float = 0.0
    written: bool = False

    joiner: ClassVar[str] = " "

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("unexplained", "crowded", "partly", "late"):
            if not 0 <= getattr(self, name) <= 1:
                raise ValueError(f"{name} is {getattr(self, name)}; a share lies between 0 and 1")

    @property
    def vocabulary(self) -> tuple[str, ...]:
        return (*(f"a{i}" for i in range(NUMBERS)), "$", "d", ",", "yp", "g", "cur", "|")

    @property
    def numbers(self) -> dict[int, float]:
        return {i: (i - MIDDLE) / MIDDLE for i in range(NUMBERS)}

    def generate(self, rng: np.random.Generator, lengths: IntArray, variety: IntArray | None = None) -> Samples:
        x, truth = draw_problems(rng, lengths[:, 0])
        return self.lay_out_runs(x, explained(x, truth), lengths[:, 0])

    def practice(self, rng: np.random.Generator, lengths: IntArray, progress: float) -> Samples:
        sizes = lengths[:, 0]
        x, truth = draw_problems(rng, sizes)
        by_chance = rng.random((len(sizes), 1)) < self.unexplained
        labels = rng.uniform(-CHANCE, CHANCE, size=x.shape[:2])
        if self.crowded and progress >= CROWDED_FROM:
            narrow = self.narrowing(rng, len(sizes))
            of_inputs, of_labels = narrow[..., :2], narrow[..., 2]
            x = of_inputs * x + rng.uniform(-1, 1, (len(sizes), 1, 2)) * (1 - of_inputs)
            labels = of_labels * labels + rng.uniform(-CHANCE, CHANCE, (len(sizes), 1)) * (1 - of_labels)
        y = np.where(by_chance, labels, explained(x, truth))
        kept = as_written if self.written else exact
        if not self.late or progress < LATE_FROM:
            return self.lay_out_runs(x, y, sizes, kept)
        examples = np.maximum(sizes[:, None] - np.arange(sizes.max()), 0)  # of every line
        is_late = rng.random(examples.shape) < self.late
        first = np.where(is_late, rng.integers(np.maximum(examples - 1, 1)), 0)  # its last two tell where the next ends
        return self.lay_out_runs(x, y, sizes, kept, first, uneven_ends(rng, examples - first))

    def narrowing(self, rng: np.random.Generator, count: int) -> Reals:
        """(problems, 1, 3): of each of an example's numbers, the share of its range that the problem uses."""
        narrow = NARROWEST * (WIDEST / NARROWEST) ** rng.random((count, 1, 1))
        narrow = np.where(rng.random((count, 1, 1)) < self.crowded, narrow, 1.0)
        wide = rng.random((count, 1, 3)) < self.partly if self.partly else np.zeros((1, 1, 3), dtype=np.bool_)
        return np.where(wide, 1.0, narrow)

    def problem(self, x: npt.ArrayLike, y: npt.ArrayLike) -> Samples:
        """The one sample on these examples, (n, 2) and (n,)."""
        inputs, labels = np.asarray(x, dtype=float)[None], np.asarray(y, dtype=float)[None]
        return self.lay_out_runs(inputs, labels, np.array([labels.shape[1]]))

    def lay_out_runs(
        self, x: Reals, y: Reals, sizes: IntArray, kept: Kept = exact, first: IntArray | None = None,
        silent: BoolArray | None = None,
    ) -> Samples:  # fmt: skip
        """The runs on these examples. Of every line, (samples, lines): the `first` example, where that is not 0, and
        whether its end is `silent`."""
        run = descend(kept(x), kept(y), sizes, self.rate, kept)
        examples = self.spell_examples(x, y)
        last = run.weights[np.arange(len(sizes)), sizes - 1]
        prompt = [self.const(["$"]), left(examples, sizes), self.const(["|"])]
        if not self.scratchpad:
            return lay_out(prompt, [self.const(["cur"]), computed(quantised(last)), self.const(["|"])], last)
        answer: list[IntArray] = []
        for t in range(x.shape[1]):
            copied, end = left(examples, sizes - t), self.const(["yp"])
            if first is not None and silent is not None:
                before = first[:, t - 1] if t else np.zeros_like(sizes)
                copied, end = begun_late(copied, first[:, t], before), hushed(end, silent[:, t, None])
            numbers = {"yp": run.predicted[:, t, None], "g": run.gradient[:, t], "cur": run.weights[:, t]}
            pieces = [copied]
            for name, values in numbers.items():
                pieces += [end if name == "yp" else self.const([name]), computed(quantised(values))]
            pieces.append(self.const(["|"]))
            answer += [where_present((t < sizes)[:, None], piece) for piece in pieces]
        return lay_out(prompt, answer, last)

    def spell_examples(self, x: Reals, y: Reals) -> IntArray:
        """(..., examples, 5): `d x1 x2 , y`."""
        shape = (*y.shape, 1)
        d, comma = (np.full(shape, self.token(name)) for name in ("d", ","))
        return np.concatenate((d, quantised(x), comma, quantised(y)[..., None]), axis=-1)

    def check(self, samples: Samples, answers: Sequence[npt.ArrayLike]) -> BoolArray:
        """Whether the last weights are within the tolerance of the truth in both coordinates."""
        right = [self.is_close(samples, i, np.asarray(answer)) for i, answer in enumerate(answers)]
        return np.array(right, dtype=np.bool_)

    def is_close(self, samples: Samples, index: int, answer: IntArray) -> bool:
        expected = samples.answer(index)
        if len(answer) != len(expected) or answer[-1] != expected[-1] or answer[-4] != expected[-4]:
            return False
        said = answer[-3:-1]
        return bool((said < NUMBERS).all() and (np.abs(said - quantised(samples.truth[index])) <= self.tolerance).all())


def left(examples: IntArray, count: IntArray) -> IntArray:
    """The piece that spells the first `count` examples of every sample."""
    present = np.arange(examples.shape[1]) < count[:, None]
    return np.where(present[:, :, None], examples, HOLE).reshape(len(examples), -1)


def begun_late(copied: IntArray, first: IntArray, before: IntArray) -> IntArray:
    """The piece of a line's examples from `first` on, where the line before has them from `before` on: what that one
    does not have is silent, and so are the inputs of the example with which the two begin to run together."""
    example, place = np.divmod(np.arange(copied.shape[1]), EXAMPLE)
    meeting = np.maximum(first, before)[:, None]
    unknown = (example < before[:, None]) | ((example == meeting) & (meeting > 0) & np.isin(place, INPUTS))
    return where_present(example >= first[:, None], hushed(copied, unknown))


def uneven_ends(rng: np.random.Generator, examples: IntArray) -> BoolArray:
    """Of lines with so many examples, (samples, lines), those without whose ends an end after the k-th example is as
    frequent for every k, among lines with at least k, as it is for k = 1. The end of the longest is always one of them,
    unless all have one example."""
    lines = np.bincount(examples.ravel())  # how many have k examples
    longer = lines[::-1].cumsum()[::-1] - lines
    if not longer[1]:
        return np.zeros(examples.shape, dtype=np.bool_)
    kept = lines[1] / longer[1] * longer / np.maximum(lines, 1)
    return rng.random(examples.shape) >= kept[examples]


def draw_problems(rng: np.random.Generator, sizes: IntArray) -> tuple[Reals, Reals]:
    """Inputs (samples, examples, 2), and the weights (samples, 1, 2) that explain their labels."""
    return rng.uniform(-1, 1, size=(len(sizes), sizes.max(), 2)), rng.uniform(-0.5, 0.5, size=(len(sizes), 1, 2))


def explained(x: Reals, truth: Reals) -> Reals:
    return (x * truth).sum(axis=2)


def descend(x: Reals, y: Reals, sizes: IntArray, rate: float, kept: Kept = exact) -> Steps:
    """w <- w - rate * grad (y - w . x)^2 over the examples, from each sample's last to its first; of every number that
    is worked out, what is `kept` of it is used further on."""
    rows, steps = np.arange(len(sizes)), x.shape[1]
    weights = np.zeros((len(sizes), 2))
    predicted, gradient, after = np.zeros((len(sizes), steps)), np.zeros_like(x), np.zeros_like(x)
    for t in range(steps):
        at = np.maximum(sizes - 1 - t, 0)  # a sample that is done goes on with its first example; nobody looks
        inputs, label = x[rows, at], y[rows, at]
        predicted[:, t] = kept((weights * inputs).sum(axis=1))
        gradient[:, t] = kept(2 * rate * (predicted[:, t] - label)[:, None] * inputs)
        weights = after[:, t] = kept(weights - gradient[:, t])
    return Steps(predicted, gradient, after)
