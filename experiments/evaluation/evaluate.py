"""Evaluation as in the paper: fresh problems of one length, greedy generation, exact (or tolerant) match.

The model sees at most its training context, advanced by 20 tokens when it is full. Intervals are Wilson's, at 95%.

Where an answer must be exact, nothing is generated: what a model writes greedily is the right answer if and only if it
predicts every token of it from the right ones before. So whole windows of right texts are predicted at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import torch

from compile.transformer import Transformer
from compile.transformer.decoding import TOKENS_AT_ONCE
from experiments.evaluation.checkpoints import Checkpoint
from experiments.evaluation.results import Result, result
from experiments.tasks import Samples, Task, TuringRasp
from experiments.tasks.base import BoolArray
from experiments.tasks.turing_rasp import draw_tapes, follow
from rasp.errors import check_whole
from rasp.memory import need_memory

PROBLEM_BYTES = 16  # for each cell or digit, at least: tokens of the problem and of its answer
EXAMPLES = 288  # per length, as in the paper
GRID_EXAMPLES = 96  # per pair of operand lengths
ADVANCE = 20
TOKENS_TOGETHER = 2**17  # prompts decoded in one batch are bounded by the memory of their keys and values


def answers(model: Transformer, samples: Samples, context: int | None) -> list[np.ndarray]:
    """What the model says to every prompt, as many tokens as the right answer has. Rows are decoded together."""
    sizes = np.diff(samples.starts)
    order = np.argsort(sizes, kind="stable")  # rows of like size together: short ones do not wait for long ones
    together = max(1, TOKENS_TOGETHER // int(min(sizes.max(), context or sizes.max())))
    found: list[np.ndarray] = [np.empty(0, dtype=np.int64)] * len(samples)
    for start in range(0, len(order), together):
        part = order[start : start + together]
        counts = [len(samples.answer(i)) for i in part]
        prompts = [samples.prompt(i).tolist() for i in part]
        said = decoded(model, prompts, max(counts), context)
        for i, prompt, row, count in zip(part, prompts, said, counts, strict=True):
            found[i] = np.asarray(row)[len(prompt) : len(prompt) + count]
    return found


def decoded(model: Transformer, prompts: list[list[int]], count: int, context: int | None) -> list[np.ndarray]:
    """Every prompt with `count` more tokens."""
    with torch.inference_mode():
        return list(model.generate(prompts, count, context=context, advance=min(ADVANCE, context or ADVANCE)))


def answered_rightly(model: Transformer, task: Task, samples: Samples, context: int | None) -> BoolArray:
    if task.is_exact:
        return written_exactly(model, samples, context)
    return task.check(samples, answers(model, samples, context))


@torch.inference_mode()
def written_exactly(model: Transformer, samples: Samples, context: int | None) -> BoolArray:
    """Whether greedy decoding of each prompt gives its right answer, token by token."""
    right = np.ones(len(samples), dtype=np.bool_)
    windows = [answer_windows(len(samples.row(i)), int(samples.prompts[i]), context) for i in range(len(samples))]
    for turn in range(max(map(len, windows), default=0)):
        rows = [i for i in np.flatnonzero(right).tolist() if turn < len(windows[i])]  # one wrong token is enough
        longest = max((windows[i][turn].stop - windows[i][turn].start for i in rows), default=1)
        together = max(1, TOKENS_AT_ONCE // longest)
        for part in (rows[k : k + together] for k in range(0, len(rows), together)):
            right[part] = predicted(model, [(samples.row(i), windows[i][turn]) for i in part], longest)
    return right


class AnswerWindow(NamedTuple):
    """Tokens start..stop of a text are seen; those from `first` up to the one after them are to be predicted."""

    start: int
    stop: int
    first: int


def answer_windows(size: int, prompt: int, context: int | None) -> list[AnswerWindow]:
    """What is seen in the course of writing the answer of a text of `size` tokens, as `Transformer.generate` does."""
    if prompt == size:
        return []
    seen = size - 1 if context is None else context
    advance = min(ADVANCE, seen)
    start, first, windows = max(0, prompt - seen), prompt, []
    while first < size:
        stop = min(start + seen, size - 1)
        windows.append(AnswerWindow(start, stop, first))
        start, first = start + advance, stop + 1
    return windows


def predicted(model: Transformer, parts: Sequence[tuple[np.ndarray, AnswerWindow]], width: int) -> BoolArray:
    """Whether, in each of these windows, every token that is to be predicted is."""
    tokens = np.zeros((len(parts), width), dtype=np.int64)
    expected = np.zeros_like(tokens)
    wanted = np.zeros_like(tokens, dtype=np.bool_)
    for row, (text, (start, stop, first)) in enumerate(parts):
        tokens[row, : stop - start] = text[start:stop]
        expected[row, : stop - start] = text[start + 1 : stop + 1]
        wanted[row, first - 1 - start : stop - start] = True
    best = model(model.as_input(tokens), torch.from_numpy(wanted).to(model.device)).argmax(dim=-1)
    said = model.need_answers(model.output_tokens[best].cpu().numpy())
    right = ~wanted
    right[wanted] = said == expected[wanted]
    return np.all(right, axis=1)


def accuracy(
    model: Transformer,
    task: Task,
    length: int | tuple[int, int],
    examples: int = EXAMPLES,
    *,
    seed: int = 0,
    context: int | None = None,
    name: str = "",
) -> Result:
    """The share of `examples` fresh problems of one length (or pair of operand lengths) that are answered rightly."""
    check_whole("examples", examples, "a share is of so many problems")
    if context is not None:
        check_whole("context", context, "the model sees so many tokens")
    samples = task.sample(fresh_rng(seed, length), length, count=examples)
    label = length if isinstance(length, int) else "x".join(map(str, length))
    return result(name, label, answered_rightly(model, task, samples, context))


def fresh_rng(seed: int, length: int | tuple[int, ...]) -> np.random.Generator:
    """Streams that training never draws from (those begin with [seed, 0] and [seed, 1])."""
    return np.random.default_rng([seed, 2, *np.atleast_1d(length).tolist()])


# --------------------------------------------------------------------------------------- Turing machines


def rollout(
    model: Transformer,
    task: TuringRasp,
    length: int,
    steps: int,
    examples: int = EXAMPLES,
    *,
    seed: int = 0,
    context: int | None = None,
    name: str = "",
) -> list[Result]:
    """The share of runs without an error after 1, 2, ... steps, each step on the tape that the model wrote itself."""
    tapes = draw_tapes(fresh_rng(seed, (length, 0)), task.machine, np.full(examples, length))
    truth = follow(task.machine, tapes, steps)  # (runs, steps + 1, tape and sep)
    alive, results = np.ones(examples, dtype=np.bool_), []
    for step in range(1, steps + 1):
        rows = np.flatnonzero(alive)  # a run that went wrong stays wrong: no need to follow it
        if len(rows):
            prompts = truth[rows, step - 1]  # what the model wrote, since it has been right so far
            width = prompts.shape[1]
            said = decoded(model, prompts.tolist(), width, context)
            alive[rows] = (np.array(said)[:, width:] == truth[rows, step]).all(axis=1)
        results.append(result(name, length, alive.copy(), step))
    return results


def by_repeats(
    model: Transformer,
    task: TuringRasp,
    length: int,
    gram: int,
    examples: int = EXAMPLES,
    *,
    seed: int = 0,
    context: int | None = None,
    name: str = "",
) -> list[Result]:
    """One-step accuracy on tapes whose successor has a repeated n-gram, and on those where it has none; a group that no
    tape is of is left out."""
    samples = task.sample(fresh_rng(seed, length), length, count=examples)
    right = answered_rightly(model, task, samples, context)
    repeats = np.array([has_repeat(samples.answer(i), gram) for i in range(len(samples))], dtype=np.bool_)
    return [
        replace(result(name, length, right[repeats == wanted]), group=group)
        for wanted, group in ((True, f"repeated {gram}-gram"), (False, f"no repeated {gram}-gram"))
        if (repeats == wanted).any()
    ]


def has_repeat(tokens: np.ndarray, gram: int) -> bool:
    if gram < 1:
        raise ValueError(f"{gram} is not the size of an n-gram; expected at least 1")
    if len(tokens) <= gram:
        return False
    grams = np.lib.stride_tricks.sliding_window_view(tokens, gram)
    return len(np.unique(grams, axis=0)) < len(grams)


# ---------------------------------------------------------------------------------- whole checkpoints


def evaluate(
    checkpoint: Checkpoint,
    lengths: Sequence[int] = (),
    steps: int = 0,
    *,
    examples: int = EXAMPLES,
    seed: int = 0,
    gram: int = 0,
    grid: Sequence[int] = (),
    grid_examples: int = GRID_EXAMPLES,
) -> list[Result]:
    """Accuracy per length; also of every rollout, of tapes with and without repeats, and of the operand grid.

    Where no lengths are asked for, these are the usual ones, and rollouts are at twice the training length only. They
    begin with the tapes of the accuracy at that length, which is their first step.
    """
    c, chosen = checkpoint, list(lengths) or checkpoint.usual_lengths
    if (steps or gram) and not c.is_machine:
        raise ValueError(f"{c.name} is no Turing machine: rollouts and repeats are only of machines (RASP format)")
    if grid and c.task.operands != 2:
        raise ValueError(f"{c.name} has problems of one operand length; a grid needs two")
    longest = max(*chosen, *grid, 1)
    what = f"{examples:,} problems of length {longest:,}"
    need_memory(what, PROBLEM_BYTES * examples * longest, "give fewer --examples or smaller --lengths")
    options: dict[str, Any] = {"seed": seed, "context": c.context, "name": c.name}
    results = [accuracy(c.model, c.task, length, examples, **options) for length in chosen]
    for length in chosen:
        if steps and isinstance(c.task, TuringRasp) and (lengths or length == 2 * c.lengths[1]):
            results += rollout(c.model, c.task, length, steps, examples, **options)[1:]
        if gram and isinstance(c.task, TuringRasp):
            results += by_repeats(c.model, c.task, length, gram, examples, **options)
    each = min(examples, grid_examples)
    return results + [accuracy(c.model, c.task, (a, b), each, **options) for a in grid for b in grid]
