"""The paper's arithmetic tasks by name: each one's program, vocabulary and problems."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from rasp.programs.addition import next_tokens_addition
from rasp.programs.multiplication import next_tokens_multiplication
from rasp.programs.problems import MOST_DIGITS, Problem, Product, Regression, Sum
from rasp.programs.sgd import next_tokens_sgd
from rasp.programs.vocabulary import ADDITION, MULTIPLICATION, SGD, InvalidProblem, Vocabulary


@dataclass(frozen=True)
class TaskProgram:
    """A task: `program(x, n)` predicts every next token, `read` makes a problem of what a person types."""

    name: str
    vocabulary: Vocabulary
    program: Callable[[Any, int], Any]
    read: Callable[[str], Problem]
    example: str  # a problem, as it is typed
    default_n: int = 4


def is_task(name: str) -> bool:
    return re.fullmatch(rf"addition|sgd|multiplication[1-{MOST_DIGITS}]", name) is not None


def task_program(name: str) -> TaskProgram:
    """`addition`, `multiplication1` to `multiplication9` (so many digits has the factor), or `sgd`."""
    if name == "addition":
        return TaskProgram(name, ADDITION, next_tokens_addition, Sum.read, "4324+139")
    if name == "sgd":
        return TaskProgram(name, SGD, next_tokens_sgd, Regression.read, "d a179 a166 , a76 d a80 a145 , a102")
    return _multiplication(name, factor_digits(name))


def factor_digits(name: str) -> int:
    """How many digits the factor of `multiplication3` has."""
    if match := re.fullmatch(rf"multiplication([1-{MOST_DIGITS}])", name):
        return int(match[1])
    raise InvalidProblem(
        f"{name!r} is not a task; choose addition, multiplication1 to multiplication{MOST_DIGITS} or sgd"
    )


def _multiplication(name: str, digits: int) -> TaskProgram:
    def program(x: Any, n: int = 4) -> Any:
        return next_tokens_multiplication(x, digits, n)

    def read(text: str) -> Product:
        problem = Product.read(text)
        if problem.digits != digits:
            raise InvalidProblem(f"the factor {problem.factor} has {problem.digits} digits: {name} takes {digits}")
        return problem

    return TaskProgram(name, MULTIPLICATION, program, read, f"4324*{'135791357'[:digits]}")
