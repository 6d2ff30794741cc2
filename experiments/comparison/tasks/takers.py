"""Who takes part: programs, compiled and learned models, each asked what comes next at every token of true texts.

A model's first wrong token is the same whether it is given the right text before it or has written that itself, so
whole answers are judged from this, too. Learned models look through the window with which `evaluate` runs them.
"""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from compile.transformer import Transformer
from compile.transformer.engines import fingerprint
from experiments.comparison.simulators import Description, LearnedSimulator
from experiments.comparison.tasks.problems import WrittenProblem, as_rows
from experiments.evaluation.checkpoints import Checkpoint
from rasp.files import becoming

TOGETHER = 4  # problems that a learned model reads at once
Said = np.ndarray  # of 16 bits: no vocabulary is larger, and long texts are many
Ask = Callable[[Sequence[WrittenProblem]], list[Said]]  # what is said at each token, of every problem


@dataclass(frozen=True)
class Taker:
    about: Description
    ask: Ask
    together: int  # problems asked at once; what is asked at once is kept as a whole
    identity: str  # changes with everything that decides the answers


def program_taker(program: Callable[[Any, int], Any], n: int) -> Taker:
    from rasp import simplify, trace
    from rasp.engines.jit import Kernel

    kernel = Kernel(simplify(trace(lambda x: program(x, n))))
    name = f"program n={n}"
    return Taker(Description(name, "program", n), lambda ps: [kernel.predict(p.tokens) for p in ps], 2**30, "")


def compiled_taker(model: Transformer, backend: str, n: int) -> Taker:
    engine = "sparse" if backend == "hard_alibi" else "torch"
    return Taker(
        Description(f"{backend} n={n}", "compiled", n, backend),
        lambda ps: [model.predict(p.tokens, engine=engine) for p in ps],
        2**30,
        "",
    )


def learned_taker(checkpoint: Checkpoint) -> Taker:
    import torch

    window = LearnedSimulator.of(checkpoint)

    def ask(problems: Sequence[WrittenProblem]) -> list[Said]:
        with torch.inference_mode():
            said = window.predict(as_rows(problems))
        return [row[: len(p.tokens)] for row, p in zip(said, problems, strict=True)]

    marks = f"{fingerprint(checkpoint.model)} {checkpoint.context}"
    return Taker(Description(f"learned {checkpoint.name}", "learned"), ask, TOGETHER, marks)


# --- asked part by part, so that an interrupted comparison goes on where it was ---------------------------------------


@dataclass(frozen=True)
class Kept:
    """Answers that took long, each in a file of its own until the page is written. Without a folder nothing is kept."""

    folder: Path | None

    def answers(self, taker: Taker, problems: Sequence[WrittenProblem]) -> Iterator[list[Said]]:
        for start in range(0, len(problems), taker.together):
            part = problems[start : start + taker.together]
            path = self.path(taker, part)
            said = self.read(path, part) if path is not None and path.is_file() else None
            if said is not None:
                yield said
                continue
            said = [row.astype(np.int16) for row in taker.ask(part)]
            if path is not None:
                path.parent.mkdir(exist_ok=True)
                with becoming(path) as partial, partial.open("wb") as file:
                    np.save(file, np.concatenate(said))
            yield said

    def read(self, path: Path, part: Sequence[WrittenProblem]) -> list[Said] | None:
        """None if the file is damaged: the model is asked again."""
        ends = np.cumsum([len(p.tokens) for p in part])
        try:
            said = np.load(path)
        except (ValueError, OSError):
            return None
        whole = isinstance(said, np.ndarray) and said.shape == (ends[-1],) and said.dtype == np.int16
        return list(np.split(said, ends[:-1])) if whole else None

    def path(self, taker: Taker, part: Sequence[WrittenProblem]) -> Path | None:
        if self.folder is None or not taker.identity:
            return None
        about = hashlib.sha256(taker.identity.encode())
        for problem in part:
            about.update(problem.tokens.tobytes())
        return self.folder / f"{about.hexdigest()[:24]}.npy"

    def clear(self) -> None:
        if self.folder is not None:
            shutil.rmtree(self.folder, ignore_errors=True)
