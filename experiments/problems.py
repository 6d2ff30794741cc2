"""One problem of the paper's tasks worked out by whoever is asked to, compared with the true scratchpad.

`WorkedProblem` is what `turing-programs run addition 4324+139` shows: the text as written, its first wrong token,
and why it is wrong where that is known.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial

import numpy as np

from experiments.evaluation.shipped import find
from experiments.writers import Writer
from proofs_check.tasks import copied_regions, predicted_first_wrong
from rasp.programs.problems import Problem, Regression, prompt_tokens, text_tokens
from rasp.programs.tasks import TaskProgram, task_program

WRITERS = ("program", "compiled")


@dataclass(frozen=True)
class WorkedProblem:
    """`written` is the whole text, up to the end of the line that goes wrong; `wrong` the place of the first error."""

    task: TaskProgram
    problem: Problem
    written: np.ndarray
    wrong: int | None

    @property
    def correct(self) -> bool:
        return self.wrong is None

    @property
    def text(self) -> str:
        return self.task.vocabulary.text(self.written)

    @property
    def lines(self) -> list[str]:
        """The text as a person reads it, a line of the scratchpad each."""
        *ended, rest = self.text.split("|")
        return [*(f"{line.strip()}{self.task.vocabulary.joiner}|" for line in ended), *([rest.strip()] if rest else [])]

    @property
    def answer(self) -> str:
        """The last line: the sum or product; for SGD the last weights."""
        last = self.lines[-1]
        return " ".join(last.split()[-3:-1]) if isinstance(self.problem, Regression) else last.rstrip(".")

    @property
    def true_line(self) -> str:
        """What the line that goes wrong should be."""
        assert self.wrong is not None
        truth = text_tokens(self.problem)
        start, stop = line_around(truth, self.wrong, self.task)
        return self.task.vocabulary.text(truth[start:stop])

    def explain(self, n: int) -> str:
        """Why the program, which looks n+1 tokens back, went wrong where it did."""
        assert self.wrong is not None
        if self.wrong != predicted_first_wrong(self.problem, n):
            return "The program's contract does not predict this failure: please report it."
        names = self.task.vocabulary
        for region in copied_regions(self.problem):
            if region.start <= self.wrong < region.start + len(region.tokens):
                place = self.wrong - region.start
                gram = region.tokens[max(place - n - 1, 0) : place]
                return (
                    f"What is copied here, `{names.text(region.tokens)}`, holds `{names.text(gram)}` twice: asked what "
                    f"follows it, the program takes the larger of the answers. A larger n tells them apart."
                )
        return "The token is computed, not copied: please report this."


@dataclass(frozen=True, kw_only=True)
class ProblemRequest:
    """Which problem of which task, and who works it out."""

    task: str
    problem: str | None = None  # None: the task's example
    on: str = "program"  # or compiled, or a checkpoint; `machine` means the program, too
    n: int | None = None  # None: as many as the task needs
    backend: str = "hard_alibi"
    precision: str = "float32"
    threads: int | None = None

    @property
    def writer(self) -> str:
        return "program" if self.on == "machine" else self.on

    @property
    def size(self) -> int:
        return task_program(self.task).default_n if self.n is None else self.n


def work_request(request: ProblemRequest) -> WorkedProblem:
    text = request.problem or task_program(request.task).example
    backend = "hard_alibi" if request.backend == "lean" else request.backend  # which is of machines only
    if request.threads is not None and request.writer != "program":
        from experiments.devices import use_threads

        use_threads(request.threads)
    return work(request.task, text, request.writer, request.size, backend, request.precision)


def work(
    name: str,
    text: str,
    on: str = "program",
    n: int | None = None,
    backend: str = "hard_alibi",
    precision: str = "float32",
) -> WorkedProblem:
    """Work a problem out by the RASP-L program, a compiled transformer, or the checkpoint in a folder."""
    task = task_program(name)
    problem = task.read(text)
    prompt, truth = prompt_tokens(problem), text_tokens(problem)
    tokens = prompt.tolist()
    wrong: int | None = None
    write = make_writer(task, problem, on, task.default_n if n is None else n, backend, precision)
    for token in write(prompt, len(truth) - len(prompt)):
        if token != truth[len(tokens)] and wrong is None:
            wrong = len(tokens)
        tokens.append(int(token))
        if wrong is not None and (len(tokens) == len(truth) or token in line_ends(task)):
            break
    return WorkedProblem(task, problem, np.array(tokens), wrong)


def make_writer(task: TaskProgram, problem: Problem, on: str, n: int, backend: str, precision: str) -> Writer:
    if on == "program":
        return program_writer(task, n)
    if on == "compiled":
        from compile import compile_task
        from experiments.models import use_precision

        lines = int((text_tokens(problem) == task.vocabulary.token("|")).sum()) + 2
        model = compile_task(task.name, n=n, lines=lines, backend=backend, check=False)
        use_precision(precision, model)
        return model.stream
    if not find(on).is_dir():
        raise ValueError(
            f"a problem is worked out by the program, by a compiled model or by a checkpoint; --on is {on!r}, which is "
            "none: give program, compiled, or the folder or name of a checkpoint"
        )
    return checkpoint_writer(task, on, precision)


def program_writer(task: TaskProgram, n: int) -> Writer:
    """Token by token through the engine whose cost does not grow with the text."""
    from rasp import simplify, trace
    from rasp.engines.stream import Stream

    def write(prompt: np.ndarray, count: int) -> Iterable[int]:
        running = Stream(simplify(trace(lambda x: task.program(x, n))))
        token = int(running.run(prompt)[-1])
        for _ in range(count):
            yield token
            token = running.step(token)

    return write


def checkpoint_writer(task: TaskProgram, folder: str, precision: str) -> Writer:
    from experiments.evaluation.checkpoints import load_checkpoint
    from experiments.evaluation.evaluate import ADVANCE
    from experiments.models import use_precision

    checkpoint = load_checkpoint(find(folder))
    names = tuple(checkpoint.task.vocabulary)
    if names != task.vocabulary.names:
        raise ValueError(f"{folder} was trained on another task than {task.name}; give one of its own problems")
    advance = min(ADVANCE, checkpoint.context or ADVANCE)
    use_precision(precision, checkpoint.model)
    return partial(checkpoint.model.stream, context=checkpoint.context, advance=advance)


def line_ends(task: TaskProgram) -> set[int]:
    return {task.vocabulary.token(mark) for mark in "|." if mark in task.vocabulary.names}


def line_around(tokens: np.ndarray, place: int, task: TaskProgram) -> tuple[int, int]:
    """Where the line that holds this place begins and ends."""
    ends = np.flatnonzero(np.isin(tokens, list(line_ends(task))))
    before, after = ends[ends < place], ends[ends >= place]
    return int(before[-1]) + 1 if len(before) else 0, int(after[0]) + 1 if len(after) else len(tokens)
