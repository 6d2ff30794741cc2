"""Compiled transformers on the paper's arithmetic: fresh problems of one length, each right or wrong as promised.

A model is given the true text and must predict it token by token; up to its first error that is what it would write by
itself. The contract names that error from the problem alone (`proofs_check.tasks`).
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from compile import Transformer, compile_task
from proofs_check.tasks import actual_first_wrong, predicted_first_wrong
from rasp.programs.problems import Problem
from rasp.programs.tasks import TaskProgram, task_program

PROBLEMS = 288  # per length, as in the paper
Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class CompiledResult:
    """Of `problems`, on `promised` the contract promises the whole text; `right` came out right, and `as_predicted`
    were right or first wrong exactly where the contract says."""

    task: str
    digits: int
    n: int
    problems: int
    promised: int
    right: int
    as_predicted: int
    tokens: int
    layers: int
    parameters: int
    seed: int

    @property
    def accuracy(self) -> float:
        return self.right / self.problems

    @property
    def exact(self) -> bool:
        """Nothing came out otherwise than the contract says."""
        return self.as_predicted == self.problems and self.right == self.promised

    def to_dict(self) -> dict[str, Any]:
        return {**asdict(self), "accuracy": self.accuracy}


def evaluate_compiled(
    name: str,
    digits: int,
    n: int,
    problems: int = PROBLEMS,
    seed: int = 0,
    workers: int = 1,
    progress: Progress | None = None,
    model: Transformer | None = None,
) -> CompiledResult:
    """Compile the task for numbers of so many digits, and try it on fresh problems."""
    task = task_program(name)
    chosen = fresh_problems(task, digits, problems, seed)
    lines = max(sum(1 for _ in problem.lines()) for problem in chosen) + 1
    model = model or compile_task(name, n=n, lines=lines, check=False)
    model.predict(task.vocabulary.read(chosen[0].prompt), engine="sparse")  # loads the engine before threads share it

    def attempt(problem: Problem) -> tuple[int | None, int | None, int]:
        seen: list[int] = []

        def predict(text: np.ndarray) -> np.ndarray:
            seen.append(len(text))
            return model.predict(text, engine="sparse")

        return predicted_first_wrong(problem, n), actual_first_wrong(problem, predict), seen[0]

    found = []
    with ThreadPoolExecutor(workers) as pool:
        for done, one in enumerate(pool.map(attempt, chosen), 1):
            found.append(one)
            if progress:
                progress(done, problems)
    return CompiledResult(
        task=name,
        digits=digits,
        n=n,
        problems=problems,
        promised=sum(predicted is None for predicted, _, _ in found),
        right=sum(actual is None for _, actual, _ in found),
        as_predicted=sum(predicted == actual for predicted, actual, _ in found),
        tokens=sum(size for _, _, size in found),
        layers=model.config.layers,
        parameters=model.parameter_count(),
        seed=seed,
    )


def fresh_problems(task: TaskProgram, digits: int, count: int, seed: int) -> list[Problem]:
    """Numbers of exactly so many digits, the first of them not 0; factors as long as the task's."""
    rng = np.random.default_rng([seed, digits])
    sign = "+" if task.name == "addition" else "*"
    second = digits if sign == "+" else int(task.name[-1])

    def number(size: int) -> str:
        return "".join(map(str, [rng.integers(1, 10), *rng.integers(0, 10, size=size - 1)]))

    return [task.read(f"{number(digits)}{sign}{number(second)}") for _ in range(count)]
