"""SGD on linear regression, examples taken from the last to the first, as in the paper's appendix:

    $ d a179 a166 , a76 d a80 a145 , a102 | d a179 a166 , a76 d a80 a145 , a102 yp a101 g a100 a99 cur a99 a102 | ...

Each line copies the examples that are left, works on the last of them (yp: prediction, g: step, cur: new weights), and
the next line no longer has it. a_k stands for (k - 100) / 100.

The printed example settles what the text leaves open. Its last line follows from no quantised data, but from real data
rounded only for print: so examples and weights are real numbers here, and rounding is what the tolerance of 2/100
forgives. Its labels are w . x without noise. Here w is uniform in [-1/2, 1/2]^2, which keeps labels in range.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from experiments.tasks.base import HOLE, BoolArray, IntArray, Samples, Task, hushed, lay_out, where_present

Reals = npt.NDArray[np.float64]
NUMBERS, MIDDLE = 200, 100
LATE = 0.4  # of training has been done when the ends of long lines begin to be asked for less often;
LAST = 0.5  # at the end of its horizon half of that, lest the model believes that long lines do not end
FULL = 0.4  # share of the lines with strays that have as many as there is room for: so long lines, too, may go on
CHANCE = 0.6  # labels by chance lie within it: larger ones would take the weights out of range


def quantised(values: npt.ArrayLike) -> IntArray:
    """The number tokens of reals; what lies outside [-1, 1) is put at its end."""
    return np.clip(np.rint(np.asarray(values) * MIDDLE).astype(np.int64) + MIDDLE, 0, NUMBERS - 1)


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

    `strays` is the share of a training problem's lines before whose examples stand others, by chance, that belong
    nowhere; the line becomes no longer than the longest of the problems drawn together. How many examples a line has
    had then says little about whether it ends. A model that counted them would end every line at the longest it was
    trained on; it must look for the example in the line before instead. Strays, what follows from none of the text
    because of them, and the end of the longest lines among them are not asked for. But a model can also count what is
    no stray; so, once looking is learned, the ends of long lines are asked for less often. Tests have no strays.
    """

    rate: float = 0.5
    tolerance: int = 2  # number tokens
    unexplained: float = 0.0
    strays: float = 0.0

    joiner: ClassVar[str] = " "
    forks: ClassVar[tuple[str, ...]] = ("d", "yp")

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("unexplained", "strays"):
            if not 0 <= getattr(self, name) <= 1:
                raise ValueError(f"{name} is {getattr(self, name)}; a share lies between 0 and 1")

    @property
    def vocabulary(self) -> tuple[str, ...]:
        return (*(f"a{i}" for i in range(NUMBERS)), "$", "d", ",", "yp", "g", "cur", "|")

    @property
    def numbers(self) -> dict[int, float]:
        return {i: (i - MIDDLE) / MIDDLE for i in range(NUMBERS)}

    def generate(self, rng: np.random.Generator, lengths: IntArray, variety: IntArray | None = None) -> Samples:
        x, y = draw_examples(rng, lengths[:, 0])
        return self.lay_out_runs(x, y, lengths[:, 0])

    def practice(self, rng: np.random.Generator, lengths: IntArray, progress: float) -> Samples:
        sizes = lengths[:, 0]
        x, y = draw_examples(rng, sizes)
        if self.unexplained:
            by_chance = rng.random((len(sizes), 1)) < self.unexplained
            y = np.where(by_chance, rng.uniform(-CHANCE, CHANCE, size=y.shape), y)
        if not self.strays:
            return self.lay_out_runs(x, y, sizes)
        strays = self.draw_strays(rng, sizes)
        share = 0.0 if progress < LATE else 1.0 if progress < 1 else LAST
        return self.lay_out_runs(x, y, sizes, strays, silent_ends(rng, sizes, share) if share else None)

    def draw_strays(self, rng: np.random.Generator, sizes: IntArray) -> IntArray:
        """(samples, lines, examples, 5): their tokens, and holes."""
        longest = int(sizes.max())
        left_over = sizes[:, None] - np.arange(longest)
        most = np.where(left_over > 0, longest - left_over, 0)
        count = np.where(rng.random(most.shape) < FULL, most, rng.integers(most, endpoint=True))
        count = np.where(rng.random(most.shape) < self.strays, count, 0)
        shape = (*most.shape, longest)
        spelled = self.spell_examples(rng.uniform(-1, 1, (*shape, 2)), rng.uniform(-CHANCE, CHANCE, shape))
        return where_present((np.arange(longest) < count[..., None])[..., None], spelled)

    def problem(self, x: npt.ArrayLike, y: npt.ArrayLike) -> Samples:
        """The one sample on these examples, (n, 2) and (n,)."""
        inputs, labels = np.asarray(x, dtype=float)[None], np.asarray(y, dtype=float)[None]
        return self.lay_out_runs(inputs, labels, np.array([labels.shape[1]]))

    def lay_out_runs(
        self, x: Reals, y: Reals, sizes: IntArray, strays: IntArray | None = None, silent: BoolArray | None = None
    ) -> Samples:
        run = descend(x, y, sizes, self.rate)
        examples = self.spell_examples(x, y)
        last = run.weights[np.arange(len(sizes)), sizes - 1]
        prompt = [self.const(["$"]), left(examples, sizes), self.const(["|"])]
        if not self.scratchpad:
            return lay_out(prompt, [self.const(["cur"]), quantised(last), self.const(["|"])], last)
        answer: list[IntArray] = []
        for t in range(x.shape[1]):
            copied = [left(examples, sizes - t), self.const(["yp"])]
            if strays is not None:
                copied = among_strays(copied, sizes - t, strays[:, t], strays[:, max(t - 1, 0)])
            if silent is not None:
                copied[-1] = hushed(copied[-1], silent[:, t, None])
            pieces = [*copied, quantised(run.predicted[:, t, None]), self.const(["g"]), quantised(run.gradient[:, t]),
                      self.const(["cur"]), quantised(run.weights[:, t]), self.const(["|"])]  # fmt: skip
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


def among_strays(copied: list[IntArray], count: IntArray, here: IntArray, before: IntArray) -> list[IntArray]:
    """The pieces (examples and `yp`) of a line of `count` examples, with the strays of this line put before them.

    With strays here or in the line before, nothing tells which number a line must begin with.
    """
    examples, end = copied
    strays, earlier = ((tokens[:, :, 0] != HOLE).sum(axis=1) for tokens in (here, before))
    unknown = (strays + earlier > 0)[:, None] & (np.arange(examples.shape[1]) < 2)
    longest = (strays > 0) & (strays + count == here.shape[1])
    return [hushed(here.reshape(len(here), -1), True), hushed(examples, unknown), hushed(end, longest[:, None])]


def silent_ends(rng: np.random.Generator, sizes: IntArray, share: float = 1.0) -> BoolArray:
    """(samples, lines): the more examples a line has, the likelier. Of lines with k examples, what is asked after the
    k-th then is an end about as often for all k, though no line is longer than the longest."""
    line = np.arange(sizes.max())
    longest = np.maximum(sizes.max() - (line > 0), 1)  # no second line has all examples
    return rng.random((len(sizes), len(line))) < share * (sizes[:, None] - line) / longest


def draw_examples(rng: np.random.Generator, sizes: IntArray) -> tuple[Reals, Reals]:
    """Inputs (samples, examples, 2), and labels that some weights explain."""
    x = rng.uniform(-1, 1, size=(len(sizes), sizes.max(), 2))
    truth = rng.uniform(-0.5, 0.5, size=(len(sizes), 1, 2))
    return x, (x * truth).sum(axis=2)


def descend(x: Reals, y: Reals, sizes: IntArray, rate: float) -> Steps:
    """w <- w - rate * grad (y - w . x)^2 over the examples, from each sample's last to its first."""
    rows, steps = np.arange(len(sizes)), x.shape[1]
    weights = np.zeros((len(sizes), 2))
    predicted, gradient, after = np.zeros((len(sizes), steps)), np.zeros_like(x), np.zeros_like(x)
    for t in range(steps):
        at = np.maximum(sizes - 1 - t, 0)  # a sample that is done goes on with its first example; nobody looks
        inputs, label = x[rows, at], y[rows, at]
        predicted[:, t] = (weights * inputs).sum(axis=1)
        gradient[:, t] = 2 * rate * (predicted[:, t] - label)[:, None] * inputs
        weights = weights - gradient[:, t]
        after[:, t] = weights
    return Steps(predicted, gradient, after)
