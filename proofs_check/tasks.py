"""The contract of the paper's arithmetic programs: where, on a given problem, the program first goes wrong.

Only copying can go wrong. A copied region is written from left to right; each token is looked up by the n+1 tokens
before it (fewer at the region's start), and of several places with the same n+1 tokens the one with the largest token
answers. So the first wrong token is the first one whose n+1 tokens before it also stand before a larger token of its
region. There is one as soon as an (n+1)-gram stands twice: what follows two such places is the same only until the
second reaches the region's end, which is like nothing before it.

`predicted_first_wrong` knows the problem's text and nothing of the program; `check_contract` compares the two.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import product

import numpy as np

from rasp.programs.problems import Problem, Product, Regression, Sum, text_tokens
from rasp.programs.tasks import factor_digits, task_program
from rasp.programs.vocabulary import DIGITS, NUMBERS
from rasp.rewrite import simplify
from rasp.tracing import trace

Predict = Callable[[np.ndarray], np.ndarray]


@dataclass(frozen=True)
class CopiedRegion:
    """A copied part of a line: `tokens` as they are looked up, written from position `start` of the whole text on."""

    start: int
    tokens: tuple[int, ...]

    def repeats(self, n: int) -> bool:
        """Whether an (n+1)-gram stands twice before its tokens."""
        grams = [self.tokens[i - n - 1 : i] for i in range(n + 1, len(self.tokens))]
        return len(set(grams)) < len(grams)

    def first_wrong(self, n: int) -> int | None:
        """The position of the first token that is not the largest to follow what stands before it."""
        answers: dict[tuple[int, ...], int] = {}
        grams = [(min(i, n + 1), *self.tokens[max(i - n - 1, 0) : i]) for i in range(len(self.tokens))]
        for gram, token in zip(grams, self.tokens, strict=True):
            answers[gram] = max(token, answers.get(gram, -1))
        for i, (gram, token) in enumerate(zip(grams, self.tokens, strict=True)):
            if answers[gram] != token:
                return self.start + i
        return None


def copied_regions(problem: Problem) -> Iterator[CopiedRegion]:
    """Every region of the problem's text that is copied from the line before, in the order of writing."""
    words = problem.vocabulary
    start = words.count(problem.prompt)
    for line in problem.lines():
        for at, region in _copied_parts(problem, line):
            yield CopiedRegion(start + at, tuple(words.tokens(region.split() if words.joiner else region)))
        start += words.count(line)


def _copied_parts(problem: Problem, line: str) -> Iterator[tuple[int, str]]:
    """Where in the line each copied region begins, and what is looked up for it."""
    if isinstance(problem, Regression):
        yield 0, line[: line.index("yp") + 2]
        return
    if line.endswith("."):  # what is looked up is the `)` of the line before
        yield 0, line[:-1] + ")"
        return
    sign = "+" if isinstance(problem, Sum) else "*"
    left, _, rest = line.partition(sign)
    yield 0, left
    if isinstance(problem, Sum):
        yield len(left) + 1, rest[: rest.index("(")]
    copied = line.index(",") + 2  # after the new digit
    yield copied, line[copied:-1]


def predicted_first_wrong(problem: Problem, n: int) -> int | None:
    """The position, in the problem's whole text, of the first token that the program gets wrong; None if none is."""
    return _first_wrong(copied_regions(problem), n)


def _first_wrong(regions: Iterable[CopiedRegion], n: int) -> int | None:
    wrong = (region.first_wrong(n) for region in regions)
    return next((position for position in wrong if position is not None), None)


def satisfies_contract(problem: Problem, n: int) -> bool:
    """Whether no copied region has an (n+1)-gram twice."""
    return _promised(copied_regions(problem), n)


def _promised(regions: Iterable[CopiedRegion], n: int) -> bool:
    return not any(region.repeats(n) for region in regions)


def actual_first_wrong(problem: Problem, predict: Predict) -> int | None:
    """The same by running the program: until then, what it generates is the true text."""
    text = text_tokens(problem)
    prompt = problem.vocabulary.count(problem.prompt)
    wrong = np.flatnonzero(predict(text)[prompt - 1 : -1] != text[prompt:])
    return prompt + int(wrong[0]) if len(wrong) else None


# --- checking ---------------------------------------------------------------------------------------------------------


@dataclass
class ContractReport:
    """How a program did on some problems."""

    n: int
    problems: int = 0
    held: int = 0  # problems on which the contract promises a right answer
    right: int = 0  # problems whose whole text came out right
    exceptions: list[tuple[Problem, int | None, int | None]] = field(default_factory=list)  # predicted, actual

    def add(self, problem: Problem, predict: Predict) -> None:
        regions = list(copied_regions(problem))
        predicted, actual = _first_wrong(regions, self.n), actual_first_wrong(problem, predict)
        promised = _promised(regions, self.n)
        self.problems += 1
        self.held += promised
        self.right += actual is None
        if predicted != actual or promised != (actual is None):
            self.exceptions.append((problem, predicted, actual))


def check_contract(problems: Iterable[Problem], n: int, predict: Predict, most: int = 10) -> ContractReport:
    """Compare prediction and program on every problem; give up after `most` exceptions."""
    report = ContractReport(n)
    for problem in problems:
        report.add(problem, predict)
        if len(report.exceptions) >= most:
            break
    return report


def predictor(task: str, n: int, engine: str = "jit") -> Predict:
    """The task's program, ready to run on many texts."""
    program = task_program(task).program
    graph = simplify(trace(lambda x: program(x, n)))
    if engine == "graph":
        return graph.run
    if engine == "jit":
        from rasp.engines.jit import Kernel

        return Kernel(graph).predict
    raise ValueError(f"engine {engine!r} is not one of graph, jit")


def sample_problems(task: str, count: int, longest: int, kinds: int, seed: int) -> Iterator[Problem]:
    """Random problems of up to `longest` digits (or examples) of so many different kinds: few kinds make repeats."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, longest, size=(count, 2), endpoint=True).tolist()
    for first, second in sizes:
        if task == "sgd":
            rows = rng.choice(rng.integers(NUMBERS, size=kinds), size=(first, 3)).tolist()
            yield Regression(tuple((x1, x2, y) for x1, x2, y in rows))
        elif task == "addition":
            yield Sum(_digits(rng, first, kinds), _digits(rng, second, kinds))
        else:
            yield Product(_digits(rng, first, kinds), _digits(rng, factor_digits(task), 10))


def _digits(rng: np.random.Generator, size: int, kinds: int) -> str:
    return "".join(map(str, rng.integers(kinds, size=size).tolist()))


def all_problems(task: str, longest: int) -> Iterator[Problem]:
    """Every sum of two numbers of up to `longest` digits; every product of such a number and a factor."""
    numbers = ["".join(digits) for size in range(1, longest + 1) for digits in product(DIGITS, repeat=size)]
    if task == "addition":
        yield from (Sum(left, right) for left in numbers for right in numbers)
    else:
        factors = ["".join(digits) for digits in product(DIGITS, repeat=factor_digits(task))]
        yield from (Product(left, factor) for left in numbers for factor in factors)
