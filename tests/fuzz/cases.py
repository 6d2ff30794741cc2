"""Which program, inputs and models number `i` of a seed is: everything follows from the two."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .grammar import ODD, TAME, WILD
from .programs import Grower, Program
from .ways import Array, Model

LARGE = (2**63 - 1, -(2**63), 2**62, -(2**62) - 1, 2**53 + 1, 2**31, 3037000500)


@dataclass(frozen=True)
class Shares:
    """How wild programs may be, and how often the costly ways are run: one program in so many."""

    machine_code: int = 500
    hard_alibi: int = 6
    tracr: int = 40
    texts: int = 20
    decoded: int = 200
    saved: int = 50
    files: int = 20
    level: int = ODD


@dataclass(frozen=True)
class Case:
    program: Program
    inputs: tuple[tuple[Array, ...], ...]
    machine_code: bool
    models: tuple[tuple[Model, tuple[Array, ...]], ...]


def make_case(seed: int, number: int, shares: Shares | None = None) -> Case:
    shares = shares or Shares()
    rng = np.random.default_rng([seed, number])
    level = min(shares.level, int(rng.choice([TAME, WILD, ODD], p=[0.5, 0.3, 0.2])))
    names = ("x",) if rng.random() < 0.85 else ("x", "y")
    program = Grower(rng, level).program(names, lines=int(rng.integers(1, 9)))
    while program.overwhelms_python:
        program = Grower(rng, level).program(names, lines=int(rng.integers(1, 9)))
    inputs = _inputs(rng, len(names), level)
    models = []
    for backend, share in (("hard_alibi", shares.hard_alibi), ("tracr", shares.tracr)):
        if len(names) == 1 and share and rng.integers(share) == 0:
            models.append(_model(rng, backend))
    machine_code = bool(shares.machine_code) and rng.integers(shares.machine_code) == 0
    return Case(program, inputs, machine_code, tuple(models))


def _inputs(rng: np.random.Generator, arity: int, level: int) -> tuple[tuple[Array, ...], ...]:
    """Of no tokens, of one, of a few, of many."""
    truth_values = [rng.random() < 0.06 for _ in range(arity)]
    lengths = [int(rng.integers(0, 2)), int(rng.integers(2, 9)), int(rng.integers(9, 26))]
    return tuple(tuple(_sequence(rng, n, level, flag) for flag in truth_values) for n in lengths)


def _sequence(rng: np.random.Generator, length: int, level: int, truth_values: bool) -> Array:
    if truth_values:
        return rng.integers(0, 2, length).astype(np.bool_)
    low, high = [(-2, 6), (0, 2), (0, 4), (-1, 2), (-30, 30)][int(rng.integers(5))]
    drawn = rng.integers(low, high, length)
    if level > TAME and rng.random() < 0.3:
        drawn = np.where(rng.random(length) < 0.4, rng.choice(LARGE, length), drawn)
    return drawn.astype(np.int64)


def _model(rng: np.random.Generator, backend: str) -> tuple[Model, tuple[Array, ...]]:
    vocabulary = tuple(range(int(rng.integers(1, 6)))) if rng.random() < 0.8 else (0, 2, 5)
    counts = int(rng.choice([1, 2, 3, 5, 8, 12]))
    longest = int(rng.choice([4, 7, 12, 16]))
    options: dict[str, object] = {"counts": counts}
    if backend == "tracr":
        options["max_seq_len"] = longest
    elif rng.random() < 0.7:
        options["positions"] = longest
    if backend == "hard_alibi" and rng.random() < 0.2:
        options["dtype"] = "float64"
    if backend == "hard_alibi" and rng.random() < 0.1:
        options["activation"] = "gelu"
    engine = "sparse" if backend == "hard_alibi" and rng.random() < 0.25 else "torch"
    return Model(backend, vocabulary, tuple(options.items()), engine), _model_inputs(rng, vocabulary, counts, longest)


def _model_inputs(
    rng: np.random.Generator, vocabulary: tuple[int, ...], counts: int, longest: int
) -> tuple[Array, ...]:
    """No token, one, runs of a token past every count, blocks, few tokens (ties), the longest input and one more."""
    tokens = np.array(vocabulary)
    beyond = int(rng.integers(counts + 1, 2 * max(counts, longest) + 3))
    blocks = np.repeat(rng.choice(tokens, 3), rng.integers(1, counts + 4, 3))
    few = rng.choice(tokens, min(2, len(tokens)), replace=False)
    chosen = [
        tokens[:0],
        rng.choice(tokens, 1),
        np.repeat(rng.choice(tokens, 1), beyond),
        np.concatenate([blocks, rng.choice(tokens, int(rng.integers(1, 12)))]),
        rng.choice(few, longest),
        rng.choice(tokens, longest),
        rng.choice(tokens, longest + 1 + int(rng.integers(0, 8))),
        rng.choice(tokens, int(rng.integers(2, 6))),
    ]
    return tuple(np.asarray(c, dtype=np.int64) for c in chosen)
