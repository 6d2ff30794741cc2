"""Compiled tasks beyond addition, and one saved set of weights that runs machine after machine to its end."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from compile import CompileError, Transformer, compile_task, compile_universal
from experiments.evaluation.compiled import ExactRequest, evaluate_compiled
from experiments.machines import first_tape, tagged_start
from experiments.playback import Playback, play
from experiments.universal import universal_writer
from proofs_check import first_wrong_step
from rasp import TuringMachine
from rasp.gallery import machine
from rasp.programs.problems import Sum, text_tokens


def test_multiplication_by_three_digits_keeps_its_contract() -> None:
    model = compile_task("multiplication3", n=2, lines=16, check=False)
    assert model.config.layers <= 12
    for digits, problems in ((1, 4), (4, 12), (8, 12)):
        request = ExactRequest(task="multiplication3", digits=digits, n=2, problems=problems, seed=3)
        found = evaluate_compiled(request, model=model)
        assert found.exact and found.as_predicted == problems, digits


def test_sgd_is_refused_with_the_size_it_would_need() -> None:
    with pytest.raises(CompileError, match=r"sgd: the product of two of its 200 numbers is a map of 40,000 cases"):
        compile_task("sgd")


def test_a_small_sum_on_tracr() -> None:
    model = compile_task("addition", n=1, lines=6, backend="tracr", max_seq_len=40, check=False)
    for problem in (Sum("47", "86"), Sum("5", "5"), Sum("30", "9")):
        text = text_tokens(problem)[:40]
        prompt = len(problem.prompt)
        assert model.predict(text)[prompt - 1 : -1].tolist() == text[prompt:].tolist()


def test_a_task_too_large_for_tracr_is_refused_in_a_sentence() -> None:
    with pytest.raises(CompileError, match="parameters; at most .* are built"):
        compile_task("addition", n=4, lines=128, backend="tracr", max_seq_len=20_000, check=False)


# --- one model, many machines -----------------------------------------------------------------------------------------


def on_universal(model: Transformer, name: str, tape: str | None, n: int, steps: int) -> Playback:
    """A gallery machine, its cells tagged so that no gram repeats, by a model that has its table in the prompt."""
    chosen = machine(name)
    start = tagged_start(chosen, first_tape(chosen, name, tape, steps, room=None), n, kinds=1)
    return play(start.machine, start.tape, steps, universal_writer(start.machine, model))


def need_right_on_random_machines(model: Transformer, symbols: int, states: int, n: int, steps: int) -> None:
    """Ten machines, each on a tape that the theorem promises."""
    rng = np.random.default_rng(0)
    for seed in range(10):
        m = TuringMachine.random(symbols=symbols, states=states, seed=seed)
        while True:
            cells = [m.symbols[c] for c in rng.integers(symbols, size=8)]
            tape = m.encode(cells, int(rng.integers(8)), str(rng.choice(m.states)))
            if first_wrong_step(m, tape, steps, n=n, packing="unbounded") is None:
                break
        played = play(m, list(tape), steps, universal_writer(m, model))
        assert played.correct and played.steps == steps, seed


def test_a_saved_universal_model_runs_machines_to_their_end(tmp_path: Path) -> None:
    compile_universal(symbols=4, states=4, n=2, steps=24, check=False).save_pretrained(tmp_path)
    model = Transformer.from_pretrained(tmp_path)
    played = on_universal(model, "bb3", None, n=2, steps=24)
    assert played.correct and played.halted and played.steps == 21
    need_right_on_random_machines(model, 4, 4, n=2, steps=3)


@pytest.mark.slow
def test_one_universal_model_of_the_papers_size_runs_them_all(tmp_path: Path) -> None:
    compile_universal(symbols=15, states=8, n=2, steps=128, check=False).save_pretrained(tmp_path)
    model = Transformer.from_pretrained(tmp_path)
    ends = {}
    for name, tape in (("bb3", None), ("bb4", None), ("palindrome", None), ("unary-add", None)):
        played = on_universal(model, name, tape, n=2, steps=128)
        assert played.correct and played.halted, name
        ends[name] = played.steps
    assert (ends["bb3"], ends["bb4"]) == (21, 107)
    need_right_on_random_machines(model, 15, 5, n=2, steps=32)
