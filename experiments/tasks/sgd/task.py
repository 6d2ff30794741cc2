"""SGD on linear regression, examples taken from the last to the first, as in the paper's appendix:

    $ d a179 a166 , a76 d a80 a145 , a102 | d a179 a166 , a76 d a80 a145 , a102 yp a101 g a100 a99 cur a99 a102 | ...

Each line copies the examples that are left, works on the last of them (yp: prediction, g: step, cur: new weights), and
the next line no longer has it. a_k stands for (k - 100) / 100.

The printed example settles what the text leaves open. Its last line follows from no quantised data, but from real data
rounded only for print: so examples and weights are real numbers here, and rounding is what the tolerance of 2/100
forgives. Its labels are w . x without noise. Here w is uniform in [-1/2, 1/2]^2, which keeps labels in range.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from experiments.tasks.base import BoolArray, IntArray, Piece, Practice, Reals, Samples, Task, lay_out, where_present
from experiments.tasks.sgd.practice import SgdPractice
from experiments.tasks.sgd.regression import Steps, descend, draw_problems, explained, quantised
from experiments.tasks.sgd.writing import Writing, left, truncated
from rasp.programs.vocabulary import NUMBERS, SGD


@dataclass(frozen=True, kw_only=True)
class Sgd(Task):
    rate: float = 0.5
    tolerance: int = 2  # number tokens

    practice_type: ClassVar[type[Practice]] = SgdPractice
    joiner: ClassVar[str] = " "
    multiples: ClassVar[tuple[float, ...]] = (1, 1.5, 1.6)  # the paper's 50 to 80 examples
    unit: ClassVar[str] = "examples"

    @property
    def vocabulary(self) -> tuple[str, ...]:
        return SGD.names

    def generate(self, rng: np.random.Generator, lengths: IntArray) -> Samples:
        x, truth = draw_problems(rng, lengths[:, 0])
        return self.lay_out_runs(x, explained(x, truth), lengths[:, 0])

    def problem(self, x: npt.ArrayLike, y: npt.ArrayLike) -> Samples:
        """The one sample on these examples, (n, 2) and (n,)."""
        inputs, labels = np.asarray(x, dtype=float)[None], np.asarray(y, dtype=float)[None]
        return self.lay_out_runs(inputs, labels, np.array([labels.shape[1]]))

    def lay_out_runs(self, x: Reals, y: Reals, sizes: IntArray, writing: Writing | None = None) -> Samples:
        """The runs on these examples."""
        how = writing or Writing()
        run = descend(how.kept(x), how.kept(y), sizes, self.rate, how.kept)
        examples = self.spell_examples(x, y)
        last = run.weights[np.arange(len(sizes)), sizes - 1]
        prompt = [self.const(["$"]), left(examples, sizes), self.const(["|"])]
        if self.scratchpad:
            answer = [piece for t in range(x.shape[1]) for piece in self.line(t, run, examples, sizes, how)]
        else:
            answer = [self.mark("cur", how), how.worked_out(last), self.mark("|", how)]
        return lay_out(prompt, answer, last)

    def line(self, t: int, run: Steps, examples: IntArray, sizes: IntArray, how: Writing) -> Iterator[Piece]:
        """The pieces of line t: examples that are left, prediction, step and new weights; holes where there is none."""
        copied, known, end = left(examples, sizes - t), np.array(1.0), np.array(1.0)
        if how.first is not None and how.masked_ends is not None:
            before = how.first[:, t - 1] if t else np.zeros_like(sizes)
            copied, masked = truncated(copied, how.first[:, t], before)
            known, end = 1.0 - masked, 1.0 - how.masked_ends[:, t, None]
        pieces = [
            Piece(copied, how.copy_weight * known),
            self.mark("yp", how, end),
            how.worked_out(run.predicted[:, t, None]),
        ]
        pieces += [self.mark("g", how), how.worked_out(run.gradient[:, t])]
        pieces += [self.mark("cur", how), how.worked_out(run.weights[:, t]), self.mark("|", how)]
        present = (t < sizes)[:, None]
        return (piece._replace(tokens=where_present(present, piece.tokens)) for piece in pieces)

    def mark(self, name: str, how: Writing, weight: npt.ArrayLike = 1.0) -> Piece:
        return Piece(self.const([name]), how.copy_weight * np.asarray(weight))

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
