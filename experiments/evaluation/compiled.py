"""Compiled transformers on the paper's arithmetic: fresh problems of one length, each right or wrong as promised.

A model is given the true text and must predict it token by token; up to its first error that is what it would write by
itself. The contract names that error from the problem alone (`proofs_check.tasks`).
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

import numpy as np

from compile import Transformer, compile_task
from compile.tasks import need_compilable
from proofs_check.tasks import actual_first_wrong, predicted_first_wrong
from rasp.programs.problems import Problem, text_tokens
from rasp.programs.tasks import TaskProgram, factor_digits, task_program
from rasp.progress import Progress

PROBLEMS = 288  # per length, as in the paper


@dataclass(frozen=True, kw_only=True)
class ExactRequest:
    """Which task is compiled, and on how many fresh problems of which length it is held to its contract."""

    task: str
    digits: int = 20  # of the numbers, not the factor
    n: int = 4
    problems: int = PROBLEMS
    seed: int = 0
    workers: int = 1  # threads


@dataclass(frozen=True)
class CompiledResult:
    """Of the problems, on `promised` the contract promises the whole text; `right` came out right, and `as_predicted`
    were right or first wrong exactly where the contract says."""

    request: ExactRequest
    promised: int
    right: int
    as_predicted: int
    tokens: int
    layers: int
    parameters: int

    @property
    def accuracy(self) -> float:
        return self.right / self.request.problems

    @property
    def exact(self) -> bool:
        """Nothing came out otherwise than the contract says."""
        return self.as_predicted == self.request.problems and self.right == self.promised

    def to_dict(self) -> dict[str, Any]:
        found = asdict(self)
        asked = found.pop("request")
        del asked["workers"]  # which change nothing
        return {**asked, **found, "accuracy": self.accuracy}


@dataclass(frozen=True)
class Attempt:
    """Where the contract and the model have the first wrong token (None: nowhere), in a text of `tokens`."""

    predicted: int | None
    actual: int | None
    tokens: int


def evaluate_compiled(
    request: ExactRequest, progress: Progress | None = None, model: Transformer | None = None
) -> CompiledResult:
    """Compile the task for numbers of so many digits, and try it on fresh problems."""
    task = task_program(request.task)
    need_compilable(task)
    problems = fresh_problems(task, request.digits, request.problems, request.seed)
    lines = max(sum(1 for _ in problem.lines()) for problem in problems) + 1
    model = model or compile_task(request.task, n=request.n, lines=lines, check=False)
    model.predict(task.vocabulary.read(problems[0].prompt), engine="sparse")  # loads the engine before threads share it
    attempts = []
    with ThreadPoolExecutor(request.workers) as pool:
        for done, one in enumerate(pool.map(partial(attempt, model, request.n), problems), 1):
            attempts.append(one)
            if progress:
                progress(done, request.problems)
    return CompiledResult(
        request=request,
        promised=sum(one.predicted is None for one in attempts),
        right=sum(one.actual is None for one in attempts),
        as_predicted=sum(one.predicted == one.actual for one in attempts),
        tokens=sum(one.tokens for one in attempts),
        layers=model.config.layers,
        parameters=model.parameter_count(),
    )


def attempt(model: Transformer, n: int, problem: Problem) -> Attempt:
    actual = actual_first_wrong(problem, partial(model.predict, engine="sparse"))
    return Attempt(predicted_first_wrong(problem, n), actual, len(text_tokens(problem)))


def fresh_problems(task: TaskProgram, digits: int, count: int, seed: int) -> list[Problem]:
    """Numbers of exactly so many digits, the first of them not 0; factors as long as the task's."""
    rng = np.random.default_rng([seed, digits])
    sign = "+" if task.name == "addition" else "*"
    second = digits if sign == "+" else factor_digits(task.name)

    def number(size: int) -> str:
        return "".join(map(str, [rng.integers(1, 10), *rng.integers(0, 10, size=size - 1)]))

    return [task.read(f"{number(digits)}{sign}{number(second)}") for _ in range(count)]
