"""RASP-L programs other than the paper's: compiled and compared with the definition, word by word; what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from compiled_programs import LENGTH, PROGRAMS

from compile import CapacityError, CompileError, compile_program
from rasp import argmax, cumsum, equals, full, indices, kqv, num_prev, sel_width, select, seq_map, shift_right, tok_map
from rasp.engines.reference import Plain

torch.set_num_threads(1)


def random_inputs(vocabulary: range, count: int, seed: int) -> list[list[int]]:
    """Over all tokens and over few, of every length up to the longest that programs with positions are compiled for."""
    rng = np.random.default_rng(seed)
    tokens = np.array(vocabulary)
    chosen = [rng.choice(tokens, size=int(rng.integers(1, len(tokens) + 1)), replace=False) for _ in range(count)]
    return [rng.choice(some, size=1 + k * (LENGTH - 1) // (count - 1)).tolist() for k, some in enumerate(chosen)]


@pytest.mark.parametrize("name", PROGRAMS)
def test_program(name: str) -> None:
    program = PROGRAMS[name]
    model = compile_program(program.run, program.vocabulary, **program.options)
    for x in random_inputs(program.vocabulary, 40, seed=1):
        expected = [int(v) for v in program.run(Plain(x))]
        assert model.predict(x).tolist() == expected, x


@pytest.mark.parametrize("name", ["mode", "mean_so_far", "induct", "add_reversed"])
def test_a_compiled_program_is_not_another(name: str) -> None:
    """The comparison above fails between programs: each of these differs from every other."""
    program = PROGRAMS[name]
    model = compile_program(program.run, program.vocabulary, **program.options)
    for other in {"mode", "mean_so_far", "induct", "count_ones"} - {name}:
        inputs = random_inputs(program.vocabulary, 12, seed=2)
        assert any(model.predict(x).tolist() != [int(v) for v in PROGRAMS[other].run(Plain(x))] for x in inputs)


@pytest.mark.parametrize("name", ["mode", "mean_of_larger", "induct", "first_true"])
def test_in_float64(name: str) -> None:
    program = PROGRAMS[name]
    model = compile_program(program.run, program.vocabulary, dtype="float64", **program.options)
    x = random_inputs(program.vocabulary, 3, seed=3)[-1]
    assert model.predict(x).tolist() == [int(v) for v in program.run(Plain(x))]


def test_a_vocabulary_with_gaps() -> None:
    model = compile_program(lambda x: shift_right(x, 1) + x, (2, 5, 11))
    assert model.predict([5, 11, 2]).tolist() == [5, 16, 13]


def test_random_programs() -> None:
    """Chains of random maps, shifts, counts and lookups; nothing here was written with the compiler in mind."""
    rng = np.random.default_rng(0)
    for _ in range(25):
        steps = rng.integers(0, 6, size=5).tolist()
        constants = rng.integers(1, 4, size=5).tolist()

        def program(x: Any, steps: list[int] = steps, constants: list[int] = constants) -> Any:
            y, z = x, shift_right(x, 1)
            for step, c in zip(steps, constants, strict=True):
                y, z = _random_step(step, c, y, z), y
            return seq_map(y, z, lambda a, b: (a + 2 * b) % 7)

        model = compile_program(program, range(4), counts=LENGTH, check=False)
        for x in random_inputs(range(4), 6, seed=int(rng.integers(99))):
            assert model.predict(x).tolist() == [int(v) for v in program(Plain(x))], (steps, constants, x)


def _random_step(step: int, c: int, y: Any, z: Any) -> Any:
    match step:
        case 0:
            return shift_right(y, c, default=c)
        case 1:
            return seq_map(y, z, lambda a, b: (a * c + b) % 5)
        case 2:
            return tok_map(sel_width(select(y, z, equals)), lambda a: min(a, 4))
        case 3:
            return kqv(y, z, tok_map(y, lambda a: (a + c) % 4), equals, default=c, reduction="max")
        case 4:
            return kqv(z, y, z, lambda k, q: k <= q, default=0, reduction="min")
    return tok_map(cumsum(tok_map(y, lambda a: a == c)), lambda a: a % 3)


# --- capacity ---------------------------------------------------------------------------------------------------------


def test_counts_and_positions_that_run_over_are_an_error() -> None:
    count = compile_program(PROGRAMS["count_ones"].run, range(3), counts=4)
    assert count.predict([1, 1, 1, 1, 0]).tolist() == [1, 2, 3, 4, 4]
    with pytest.raises(CapacityError, match="compiled to count to 4"):
        count.predict([1, 1, 1, 1, 1])
    last = compile_program(lambda x: indices(x) % 3, range(3), positions=5)
    assert last.predict([0] * 5).tolist() == [0, 1, 2, 0, 1]
    with pytest.raises(CapacityError, match="5 positions"):
        last.predict([0] * 6)
    mean = compile_program(PROGRAMS["mean_so_far"].run, range(3), counts=4)
    with pytest.raises(CapacityError):
        mean.predict([1] * 5)


# --- what is refused, and in which words ------------------------------------------------------------------------------


def far_apart(x: Any) -> Any:
    return kqv(x, x, tok_map(x, lambda z: z * 10**16), equals, reduction="max")


def chain_of_counts(x: Any) -> Any:
    """Each count counts the one before: noise would grow a thousandfold at every link."""
    for _ in range(5):
        x = tok_map(sel_width(select(x, x, equals)), lambda z: z % 4)
    return x


def test_a_long_chain_of_counts() -> None:
    """Found by `test_random_programs`: without cutting noise off, the fourth count is wrong."""
    model = compile_program(chain_of_counts, range(4), counts=60)
    for x in ([1] * 60, [0, 1, 2, 3] * 15, *random_inputs(range(4), 6, seed=5)):
        assert model.predict(x).tolist() == [int(v) for v in chain_of_counts(Plain(x))]


def whole_count(x: Any) -> Any:
    count = sel_width(select(x, x, equals))
    return sel_width(select(count, count, equals))


def many_cases(x: Any) -> Any:
    return seq_map(x, shift_right(x, 1), lambda a, b: (a * a * 7919 + b * b * 104729 + a * b) % 1000003)


REFUSED: dict[str, tuple[Any, dict[str, Any], str]] = {
    "positions": (argmax, {}, "indices.*positions have no bound.*give positions=N"),
    "future": (lambda x: sel_width(select(x, x, equals, causal=False)), {}, "not causal: it looks at the future"),
    "branch": (lambda x: x if x else full(x, 1), {}, "cannot be recorded: a program cannot branch"),
    "huge value": (far_apart, {"vocabulary": range(10)}, "reaches .* beyond"),
    "huge constant": (lambda x: full(x, -(2**63)), {}, "reaches -9223372036854775808, beyond"),
    "huge default": (lambda x: kqv(x, x, x, equals, default=2**62), {}, "reaches 4611686018427387904, beyond"),
    "huge shift": (lambda x: shift_right(x, 1, 2**62), {"backend": "tracr"}, "reaches 4611686018427387904, beyond"),
    "cases": (many_cases, {"vocabulary": range(300)}, "at least 20000 cases; 20000 are the most"),
    "count": (lambda x: cumsum(x == 1), {"counts": 10**5}, "count .* float32 is good for 4096"),
    "noise": (whole_count, {"counts": 1000}, "rounding in float32 blurs what is counted .* use dtype='float64'"),
    "noisy mean": (
        lambda x: kqv(num_prev(x, x), num_prev(x, x), x, equals),
        {"counts": 400},
        "rounding in float32 blurs",
    ),
    "mean": (
        lambda x: kqv(x, x, tok_map(x, lambda z: 1000 * z), lambda k, q: True),
        {"counts": 100, "vocabulary": range(50)},
        "mean of up to 100 values as large as 49000 is too fine for float32",
    ),
    "rank": (
        lambda x: kqv(x, x, indices(x), equals, reduction="max"),
        {"positions": 3000},
        "scores up to .* are needed to rank its values, more than float32",
    ),
    "backend": (lambda x: x, {"backend": "abacus"}, "backend 'abacus' is not one of"),
    "no tokens": (lambda x: x, {"vocabulary": ()}, "the vocabulary is empty"),
    "half a token": (lambda x: x, {"vocabulary": (0.5, 2)}, "0.5 is no token id"),
    "counts": (lambda x: x, {"counts": 0}, "counts is 0"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str) -> None:
    program, options, reason = REFUSED[name]
    with pytest.raises(CompileError, match=reason):
        compile_program(program, **{"vocabulary": range(3), **options})
