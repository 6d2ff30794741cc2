"""Programs that a person names, compiled, and run on tokens that a person types."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from experiments.imports import is_import, own_errors
from experiments.programs import UNIVERSAL, NamedProgram, read_program
from rasp.engines.dispatch import check_engine, run
from rasp.programs.tasks import is_task

if TYPE_CHECKING:
    from compile import Transformer

MOST_TOKENS = 4096  # of a typed input


def compile_named(
    name: str,
    *,
    n: int | None = None,
    counts: int = 64,
    positions: int | None = None,
    tokens: int | None = None,
    backend: str = "hard_alibi",
    check: bool = True,
    **options: Any,
) -> Transformer:
    """A task of the paper (`counts` lines), the universal program (`counts` steps), or a program over some tokens.

    `options` are the backend's.
    """
    from compile import compile_program, compile_task, compile_universal

    if is_task(name):
        return compile_task(name, n=4 if n is None else n, lines=counts, backend=backend, check=check, **options)
    if name == "universal":
        return compile_universal(
            *UNIVERSAL, n=1 if n is None else n, steps=counts, backend=backend, check=check, **options
        )
    program = read_program(name)
    program.need_one_sequence()
    program.trace()  # what is no RASP-L program is refused before anything is compiled
    if tokens is None:
        raise ValueError(f"say how many tokens {name} reads: with --tokens 8 its input is made of 0 to 7")
    if backend != "tracr":
        options |= {"counts": counts, "positions": positions}
    with own_errors(f"{name} cannot be compiled"):
        return compile_program(
            program.function,
            range(tokens),
            backend,
            check=check,
            extra={"backend": backend, "program": name},
            **options,
        )


# --- on tokens that were typed


@dataclass(frozen=True, kw_only=True)
class ProgramRun:
    """Which program runs on which tokens, by what: `program` on an engine, or `compiled`."""

    program: str
    tokens: str | None
    on: str = "program"
    engine: str = "jit"
    backend: str = "hard_alibi"

    def __post_init__(self) -> None:
        check_engine(self.engine)
        if self.on not in ("program", "compiled", "machine"):
            raise ValueError(f"--on is {self.on!r}; a program runs on `program` or `compiled`")


@dataclass(frozen=True)
class ProgramAnswer:
    """What the program says at every position, and what was said instead by a model compiled from it."""

    tokens: np.ndarray
    expected: np.ndarray
    said: np.ndarray

    @property
    def correct(self) -> bool:
        return bool(np.array_equal(self.said, self.expected))


def run_program(request: ProgramRun) -> ProgramAnswer:
    program = read_program(request.program)
    program.need_one_sequence()
    tokens = read_tokens(request.program, request.tokens)
    expected = said = answers(program, tokens, request.engine)
    if request.on == "compiled":
        said = compile_for_tokens(request.program, tokens, request.backend).predict(tokens)
    return ProgramAnswer(tokens, expected, said)


def answers(program: NamedProgram, tokens: np.ndarray, engine: str = "eager") -> np.ndarray:
    if is_import(program.name):
        program.trace()
        with own_errors(f"{program.name} fails on these tokens"):
            return run(program.function, tokens, engine=engine)
    return run(program.function, tokens, engine=engine)


def compile_for_tokens(name: str, tokens: np.ndarray, backend: str = "hard_alibi") -> Transformer:
    """Just large enough for these tokens."""
    if (tokens < 0).any():
        raise ValueError(f"token {tokens.min()} cannot be compiled; give whole numbers from 0 on")
    room = {"max_seq_len": len(tokens)} if backend == "tracr" else {}
    chosen = "hard_alibi" if backend == "lean" else backend  # lean is of machines only
    size = len(tokens)
    return compile_named(
        name, counts=size, positions=size, tokens=int(tokens.max()) + 1, backend=chosen, check=False, **room
    )


def read_tokens(name: str, text: str | None) -> np.ndarray:
    """The whole numbers of `1 0 1 1`, with blanks or commas between them."""
    parts = re.split(r"[\s,]+", (text or "").strip())
    if not text or not text.strip():
        raise ValueError(f"give {name} tokens to read, such as '1 0 1 1'")
    strange = next((part for part in parts if not re.fullmatch(r"-?\d{1,9}", part)), None)
    if strange is not None:
        raise ValueError(f"{strange!r} is no token; give whole numbers of at most 9 digits, such as '1 0 1 1'")
    if len(parts) > MOST_TOKENS:
        raise ValueError(f"{len(parts)} tokens were given; at most {MOST_TOKENS} can be typed")
    return np.array([int(part) for part in parts], dtype=np.int64)
