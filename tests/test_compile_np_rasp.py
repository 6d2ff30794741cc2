"""Programs of np-rasp's kind compile with their own token ids, some below 0, and say the same at every position.

`counting` and `addition` are the benchmark's. With NP_RASP_EXAMPLES=FOLDER, the examples that np-rasp publishes are
compiled as they are, from a copy of its folder `examples` (they are Apple's, and not in this repository).
"""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rasp
from compile import Transformer, compile_program
from compile.sparse import SparseEngine
from experiments.benchmarks.np_rasp import HINT, START, STOP, addition, count_prompt, counting, sum_prompt
from rasp import equals, full, index_select, indices, lasts, seq_map, where

BEGIN, END = -1, -2
COLUMNS = 3
DIGITS = range(10)
EXAMPLES = os.environ.get("NP_RASP_EXAMPLES", "")


def count_up(x: Any) -> Any:
    """`BEGIN first last first first+1 .. last END`, again and again: two comparisons decide what comes next."""
    begin = lasts(x, full(x, BEGIN))
    first, last = index_select(x, begin + 1), index_select(x, begin + 2)
    at_prompt_end = seq_map(indices(x), begin + 2, equals)
    return where(at_prompt_end, first, where(seq_map(x, last, equals), full(x, END), x + 1))


def written(model: Transformer, prompt: list[int], stop: int, engine: str) -> list[int]:
    return model.generate(prompt, 40, stop=stop, engine=engine).tolist()  # type: ignore[union-attr]


def need_same(program: Callable[[Any], Any], model: Transformer, vocabulary: list[int], texts: list[list[int]]) -> None:
    """At every position of the texts and of random ones."""
    rng = np.random.default_rng(0)
    soup = [rng.choice(vocabulary, size=int(rng.integers(1, 24))).tolist() for _ in range(60)]
    for text in [*texts, *soup]:
        assert model.predict(text).tolist() == program(np.array(text)).tolist(), text


@pytest.mark.parametrize("backend", ["hard_alibi", "tracr"])
def test_counting_with_two_comparisons(backend: str) -> None:
    vocabulary = [END, BEGIN, *range(8)]
    model = compile_program(count_up, vocabulary, backend, positions=40, counts=40, check=False)
    texts = [[BEGIN, 2, 5, 2, 3, 4, 5, END, BEGIN, 0, 7, 0, 1, 2, 3], [5, 6, BEGIN, 3, 3, 3, END]]
    need_same(count_up, model, vocabulary, texts)
    for engine in ("torch", "sparse") if backend == "hard_alibi" else ("torch",):
        assert written(model, [BEGIN, 3, 6], END, engine) == [BEGIN, 3, 6, 3, 4, 5, 6, END]


def test_counting_of_the_benchmark() -> None:
    vocabulary = list(range(STOP, 6))
    model = compile_program(counting, vocabulary, positions=24, check=True)
    need_same(counting, model, vocabulary, [[*count_prompt(1, 4), 1, 2, 3, 4, STOP]])
    assert written(model, count_prompt(1, 4), STOP, "torch") == [*count_prompt(1, 4), 1, 2, 3, 4, STOP]
    rows = model.generate([count_prompt(1, 4), count_prompt(0, 1)], 9, stop=STOP, engine="torch")
    assert [row.tolist()[4:] for row in rows] == [[1, 2, 3, 4, STOP], [0, 1, STOP]]  # the second has ended before


@pytest.mark.slow
def test_addition_of_the_benchmark() -> None:
    vocabulary = [STOP, START, -2, -1, *DIGITS, *range(HINT, HINT + COLUMNS)]
    program = partial(addition, columns=COLUMNS)
    model = compile_program(program, vocabulary, "tracr", max_seq_len=40, check=False)
    need_same(program, model, vocabulary, [sum_prompt(57, 64, COLUMNS)])
    answer = written(model, sum_prompt(57, 64, COLUMNS), STOP, "torch")
    assert answer[14:] == [HINT, 1, HINT + 1, 2, HINT + 2, 1, STOP]


def test_tokens_below_zero_are_kept_in_files(tmp_path: Path) -> None:
    model = compile_program(lambda x: where(x == -3, full(x, -5), x - 1), [-5, -3, 2], check=True)
    assert (model.config.first_token, model.config.prepend) == (-5, 3)
    assert [model.config.name_of(t) for t in (-5, 2, 3)] == ["-5", "2", "start"]
    model.save_pretrained(tmp_path)
    text = [2, -3, -5, -3]
    for again in (Transformer.from_pretrained(tmp_path), SparseEngine.load(tmp_path)):
        assert again.predict(text).tolist() == [1, -5, -6, -5]
        for wrong in (-6, 3):
            with pytest.raises(ValueError, match=f"token {wrong} is"):
                again.predict([2, wrong])


def test_all_tokens_below_zero() -> None:
    model = compile_program(lambda x: x - 1, [-4, -3, -2], check=True)
    assert model.predict([-2, -4]).tolist() == [-3, -5]
    rows = model.generate([[-2], [-2, -3]], 2, stop=-4, engine="torch")
    assert [row.tolist() for row in rows] == [[-2, -3, -4], [-2, -3, -4]]


def test_long_sequences_with_tokens_below_zero() -> None:
    """After some tokens, torch writes one sequence by its nonzeros."""
    model = compile_program(lambda x: rasp.tok_map(x, lambda a: a + 1 if a < 3 else -4), range(-4, 4))
    right = [-1, *((k + 4) % 8 - 4 for k in range(36))]
    for engine in ("torch", "sparse"):
        assert model.generate([-1], 36, engine=engine).tolist() == right, engine


# --- np-rasp's own ----------------------------------------------------------------------------------------------------


def published(name: str, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A module of np-rasp's examples, on our primitives."""
    monkeypatch.setitem(sys.modules, "np_rasp", rasp)
    spec = importlib.util.spec_from_file_location(name, Path(EXAMPLES) / f"{name}.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.skipif(not EXAMPLES, reason="give np-rasp's folder of examples as NP_RASP_EXAMPLES")
@pytest.mark.parametrize("name", ["count", "count_lib"])
@pytest.mark.parametrize("backend", ["hard_alibi", "tracr"])
def test_published_counting(name: str, backend: str, monkeypatch: pytest.MonkeyPatch) -> None:
    program = getattr(published("count", monkeypatch), name)
    vocabulary = list(range(-2, 16))
    model = compile_program(program, vocabulary, backend, positions=64, counts=64)
    need_same(program, model, vocabulary, [[5, 6, -1, 0, 4, 0, 1, 2, 3, 4, -2, -1, 5, 8, 5, 6, 7, 8]])
    assert written(model, [-1, 0, 15], -2, "torch") == [-1, 0, 15, *range(16), -2]


@pytest.mark.skipif(not EXAMPLES, reason="give np-rasp's folder of examples as NP_RASP_EXAMPLES")
@pytest.mark.parametrize("reverse", [True, False])
def test_published_additions(reverse: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    program = partial(published("add", monkeypatch).next_tok_addition, reverse=reverse)
    vocabulary = [*range(-106, -99), -5, -3, -2, -1, *DIGITS]
    model = compile_program(program, vocabulary, "tracr", max_seq_len=64)
    rng = np.random.default_rng(0)
    for a, b in [(88, 842), (99999, 1), (50494, 49506), *rng.integers(10**5, size=(12, 2)).tolist()]:
        hints = [-100 - i for i in range(6)]
        given = [[t for hint, d in zip(hints, f"{k:06d}", strict=True) for t in (hint, int(d))] for k in (a, b)]
        prompt = [-1, *given[0], -2, *given[1], -3]
        text = written(model, prompt, -5, "torch")
        total = "".join(str(t) for t in text[len(prompt) :] if t >= 0)
        assert int(total[::-1] if reverse else total) == a + b
        need_same(program, model, vocabulary, [text])
