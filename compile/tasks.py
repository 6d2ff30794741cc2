"""The paper's other programs as transformers: addition, multiplication, and one set of weights for every machine."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from compile.errors import CompileError
from compile.front.cover import MOST_BOXES
from compile.pipeline import compile_program
from compile.source import Option, Tokens
from compile.transformer import Transformer
from rasp.core import Program, named
from rasp.machines.machine import TuringMachine
from rasp.programs.problems import Problem, text_tokens
from rasp.programs.tasks import TaskProgram, task_program
from rasp.programs.universal import Size, next_tokens_universal, universal_prompt
from rasp.programs.vocabulary import NUMBERS, ZERO


def compile_task(
    name: str, n: int = 4, lines: int = 128, backend: str = "hard_alibi", **options: Option
) -> Transformer:
    """A model of `addition`, `multiplication1`, `multiplication3`, .. that writes texts of up to `lines` lines.

    A sum of numbers with d digits has d + 2 lines, a product by k digits d + k + 1 or so. It says what the program with
    this `n` says, at every position; unless `check` is False, that is seen on generated texts. `sgd` is refused.
    """
    task = task_program(name)
    need_compilable(task)
    return compile_program(
        task_source(name, n),
        range(len(task.vocabulary)),
        backend,
        counts=lines,
        examples=[text_tokens(problem) for problem in sample_problems(task)],
        token_names=task.vocabulary.names,
        extra={"backend": backend, "task": name, "n": n, "lines": lines},
        **options,
    )


def compile_universal(
    symbols: int = 15,
    states: int = 5,
    n: int = 1,
    steps: int = 64,
    backend: str = "hard_alibi",
    examples: Iterable[Tokens] = (),
    **options: Option,
) -> Transformer:
    """A model that runs whichever machine of this size stands in its prompt (`universal_prompt`), for `steps` steps."""
    machine = TuringMachine.random(symbols=symbols, states=states, seed=0)
    vocabulary = Size(symbols, states).vocabulary
    return compile_program(
        universal_source(symbols, states, n),
        range(len(vocabulary)),
        backend,
        counts=steps + 2,
        examples=[sample_run(machine, min(steps, 4)), *examples],
        token_names=vocabulary.names,
        extra={"backend": backend, "universal": [symbols, states], "n": n, "steps": steps},
        **options,
    )


def need_compilable(task: TaskProgram) -> None:
    """All but SGD, of whose arithmetic the refusal says the size."""
    if task.name != "sgd":
        return
    levels = np.arange(NUMBERS) - ZERO
    products = len(np.unique(np.outer(levels, levels)))
    raise CompileError(
        f"sgd: the product of two of its {NUMBERS} numbers is a map of {NUMBERS**2:,} cases, and the sum of two "
        f"products one of {products**2:,}; {MOST_BOXES:,} are the most a layer is made for. Run it as a program "
        "instead (turing-programs run sgd PROBLEM --on program)"
    )


def task_source(name: str, n: int) -> Program:
    """The program that `compile_task` compiles."""
    task = task_program(name)
    return lambda x: named(task.program(x, n), f"next {n + 1}-gram")


def universal_source(symbols: int, states: int, n: int) -> Program:
    """The program that `compile_universal` compiles."""
    return lambda x: named(next_tokens_universal(x, symbols, states, n), f"next {n + 1}-gram")


def sample_problems(task: TaskProgram, seed: int = 0) -> list[Problem]:
    """The printed example, and one with random digits."""
    rng = np.random.default_rng(seed)
    left, right = ("".join(map(str, rng.integers(1, 10, size=size))) for size in (6, 6))
    sign = next((sign for sign in "+*" if sign in task.example), "")
    if not sign:
        return [task.read(task.example)]
    return [task.read(task.example), task.read(left + sign + right[: len(task.example.partition(sign)[2])])]


def sample_run(machine: TuringMachine, steps: int) -> np.ndarray:
    """A prompt and the machine's trace after it."""
    symbols = list(machine.symbols[:6])
    tape = machine.encode(symbols, min(2, len(symbols) - 1))
    prompt = universal_prompt(machine, tape)
    return np.concatenate((prompt, machine.trace(tape, steps)[len(tape) + 1 :]))
