"""Decoding: one sequence through torch, streams that say who writes, bounds, and runs that are cut short."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from itertools import islice
from typing import Any

import numpy as np
import pytest

from compile import CapacityError, CompileError, Transformer, compile_machine, compile_program
from compile.sparse import NotSparse, SparseEngine
from compile.sparse.bounds import check_bounds
from compile.transformer import one_row
from compile.transformer.engines import looked_up_by
from experiments import playback
from experiments.engine_agreement import CompiledMachine, EngineAgreement, check_agreement, compare, subjects
from experiments.playback import PlaybackRequest, play, play_request
from rasp import TuringMachine, kqv, leq, make_simulable, memory, next_tokens, run, sep


@cache
def compiled(backend: str = "lean", n: int = 2, steps: int = 40) -> tuple[TuringMachine, Transformer]:
    machine = TuringMachine.random(symbols=5, states=4, seed=1)
    return machine, compile_machine(machine, backend=backend, n=n, steps=steps, check=False)


def prompt_of(machine: TuringMachine, cells: int = 9) -> list[int]:
    names = [machine.symbols[(3 * i + 1) % len(machine.symbols)] for i in range(cells)]
    return [*machine.encode(names, cells // 2), sep]


# --- one sequence through torch ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(("backend", "n"), [("lean", 2), ("hard_alibi", 1)])
def test_one_row_writes_what_whole_sequences_predict(backend: str, n: int) -> None:
    machine, model = compiled(backend, n)
    prompt = prompt_of(machine)
    written = model.generate(prompt, 40, engine="torch")
    assert model.predict(written, engine="torch")[len(prompt) - 1 : -1].tolist() == written[len(prompt) :].tolist()
    several = model.generate([prompt, prompt[:5]], 40, engine="torch")
    assert several[0].tolist() == written.tolist()


def test_a_wrong_mask_of_windows_would_be_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    machine, model = compiled()
    prompt = prompt_of(machine)
    right = model.generate(prompt, 40, engine="torch").tolist()

    class Forgetful(one_row.Group):
        def __init__(self, *given: Any) -> None:
            super().__init__(*given)
            if self.masks is not None:
                self.masks = self.masks.roll(1, 0)  # as if every token stood one place further

    monkeypatch.setattr(one_row, "Group", Forgetful)
    try:
        wrong = model.generate(prompt, 40, engine="torch").tolist()
    except (CapacityError, ValueError):
        return
    assert wrong != right


def test_learned_models_keep_to_torch_and_to_the_way_of_many_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    from experiments.evaluation.shipped import FOLDER

    model = Transformer.from_pretrained(FOLDER / "tm-0")

    def forbidden(*_: Any) -> None:
        raise AssertionError("a learned model was decoded as if it were compiled")

    monkeypatch.setattr(one_row.OneRow, "__init__", forbidden)
    monkeypatch.setattr(SparseEngine, "__init__", forbidden)
    stream = model.stream([1, 5, 6, 20, 7, 2, 0], 300)
    assert len(list(islice(stream, 20))) == 20 and stream.engine == "torch"
    model.predict(np.ones(5000, dtype=np.int64)[:300])
    with pytest.raises(NotSparse, match="norm"):
        monkeypatch.undo()
        model.generate([1, 5, 6], 4, engine="sparse")


# --- streams ----------------------------------------------------------------------------------------------------------


def test_a_stream_says_who_writes_and_what_it_holds() -> None:
    machine, model = compiled()
    stream = model.stream(prompt_of(machine), 400)
    first = list(islice(stream, 200))
    assert stream.engine == "sparse" and 0 < stream.memory_bytes < 10**6
    by_torch = model.stream(prompt_of(machine), 60, engine="torch")
    assert list(by_torch) == first[:60] and by_torch.engine == "torch" and by_torch.memory_bytes > 0


def test_a_stream_that_cannot_be_looked_up_goes_on_through_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    machine, model = compiled()
    right = model.generate(prompt_of(machine), 260, engine="sparse")[len(prompt_of(machine)) :].tolist()

    def stops(self: SparseEngine, prompt: Any, count: int, *rest: Any) -> Iterator[np.ndarray]:
        yield np.array(right[:230])
        raise NotSparse("layer 0 head 1: a reason")

    monkeypatch.setattr(SparseEngine, "stream", stops)
    with pytest.warns(UserWarning, match="through torch.*a reason"):
        stream = model.stream(prompt_of(machine), 260).translated(lambda token: token + 1)
        assert list(stream) == [token + 1 for token in right]
    assert stream.engine == "torch"
    with pytest.raises(NotSparse, match="a reason"):
        list(model.stream(prompt_of(machine), 260, engine="sparse"))


# --- bounds, and both engines at compile time -------------------------------------------------------------------------


def test_every_head_has_a_bound_that_no_run_exceeds() -> None:
    for backend in ("lean", "hard_alibi"):
        machine, model = compiled(backend, 2 if backend == "lean" else 1)
        engine = looked_up_by(model)
        assert isinstance(engine, SparseEngine)
        unbounded = sum(window is None for layer in model.config.shapes for window in layer.windows)
        assert len(engine.bounds) == unbounded and all(0 <= b.total < 1e-3 for b in engine.bounds)
        memory = engine.memory()
        memory.feed(machine.trace(prompt_of(machine, 60)[:-1], 30))
        assert 0 < memory.left_out <= max(bound.total for bound in engine.bounds)


def test_heads_with_close_scores_are_refused_when_the_model_is_read() -> None:
    _, model = compiled()
    engine = looked_up_by(model)
    assert isinstance(engine, SparseEngine)
    starts = engine.memory().state.start_level
    layers = [list(layer.scores) for layer in engine.weights.layers]
    (match,) = (scores for scores in layers[1] if scores is not None)
    for change, reason in (
        ({"strength": 2 * match.strength}, "equality"),
        ({"step": 3.0}, "levels"),
        ({"query_parts": 9}, "equality"),
    ):
        with pytest.raises(NotSparse, match=f"layer 1 head 0: .*{reason}"):
            check_bounds([layers[0], [replace(match, **change)]], starts)


def test_registers_that_are_not_recorded_are_not_taken_for_one_hot() -> None:
    _, model = compiled()
    config = model.config.to_dict()
    config["annotations"] = {**config["annotations"], "registers": ()}
    with pytest.raises(NotSparse, match="more than equality"):
        SparseEngine(config, {name: p.numpy() for name, p in model.state_dict().items()})


def test_compile_sees_a_sparse_engine_that_differs(monkeypatch: pytest.MonkeyPatch) -> None:
    right = SparseEngine.answers
    monkeypatch.setattr(SparseEngine, "answers", lambda self, tokens: right(self, tokens) + (np.asarray(tokens) == 5))
    with pytest.raises(CompileError, match="differs from the program.*the sparse engine"):
        compile_program(lambda x: x + 1, range(8))
    with pytest.raises(CompileError, match="differs from the program"):
        compile_machine(TuringMachine.random(symbols=3, states=2, seed=0), backend="lean", steps=12)


def test_compile_takes_models_that_only_torch_decodes() -> None:
    model = compile_program(lambda x: kqv(x, x, x, leq, reduction="max"), range(4), counts=9)
    assert isinstance(looked_up_by(model), NotSparse)


# --- engines against each other ---------------------------------------------------------------------------------------


def test_the_agreement_covers_all_machines_sizes_and_layouts() -> None:
    from rasp.gallery import gallery

    asked = subjects(0)
    assert {s.name for s in asked} >= set(gallery())
    assert {s.n for s in asked} == {1, 2, 3, 4} and {s.digits for s in asked} == {1, 2}


def test_a_disagreement_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    machine, model = compiled("hard_alibi", 1)
    subject, texts = CompiledMachine("random:5x4:1", "hard_alibi", 1, 40), [machine.trace(prompt_of(machine)[:-1], 12)]
    found = EngineAgreement(0)
    compare(subject, model, texts, found)
    assert found.tokens == len(texts[0]) and not found.disagreements
    engine = looked_up_by(model)
    assert isinstance(engine, SparseEngine)
    outputs = engine.weights.outputs.copy()
    outputs[[4, 5]] = outputs[[5, 4]]
    monkeypatch.setattr(engine, "weights", replace(engine.weights, outputs=outputs))
    compare(subject, model, texts, found)
    (wrong,) = found.disagreements
    assert {wrong.torch, wrong.sparse} == {4, 5} and len(wrong.tokens) == wrong.at + 1


@pytest.mark.slow
def test_both_engines_agree_on_two_million_tokens() -> None:
    found = check_agreement(2_000_000, seed=0)
    assert found.tokens >= 2_000_000 and not found.disagreements
    assert min(found.repeating, found.texts - found.repeating - found.soup, found.soup, found.refused) > 100


@pytest.mark.slow
def test_a_million_tokens_of_one_machine_are_the_programs() -> None:
    """Tagged cells, so that no gram repeats: the text is the machine's own run, and the program's."""
    cells, n = 280, 4
    tagged = make_simulable(TuringMachine.random(symbols=3, states=4, seed=0), cells, n)
    machine, names = tagged.machine, np.random.default_rng(0).choice(["a1", "a2", "a3"], size=cells).tolist()
    prompt = [*tagged.encode(names, cells // 2), sep]
    steps = 1_000_000 // len(prompt) + 1
    model = compile_machine(machine, backend="lean", n=n, steps=steps, check=False)
    written = model.generate(prompt, steps * len(prompt), engine="sparse")
    assert len(written) > 1_000_000
    expected = run(lambda x: next_tokens(x, machine, n, "unbounded"), written, engine="jit")
    assert written[len(prompt) :].tolist() == expected[len(prompt) - 1 : -1].tolist()
    assert written.tolist() == machine.trace(prompt[:-1], steps).tolist()


# --- runs that are cut short ------------------------------------------------------------------------------------------


def test_a_capacity_reached_in_mid_run_keeps_the_tapes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(playback, "countable_steps", lambda steps: min(steps, 9))
    played = play_request(PlaybackRequest(machine="random:3x2:1", on="compiled", steps=50))
    cut, speed = played.playback.cut, played.playback.speed
    assert cut is not None and "count to 11" in cut.reason and not cut.interrupted
    assert played.playback.correct and played.playback.steps >= 9
    assert len(played.playback.tapes) == played.playback.steps + 1
    assert speed is not None and speed.tokens > 9 and speed.engine == "sparse"


def test_an_interrupt_in_mid_run_keeps_the_tapes() -> None:
    machine, _ = compiled()
    tape = prompt_of(machine)[:-1]
    truth = machine.trace(tape, 20)

    def write(prompt: np.ndarray, count: int) -> Iterator[int]:
        yield from truth[len(prompt) : 7 * len(prompt) + 3].tolist()
        raise KeyboardInterrupt

    played = play(machine, tape, 20, write)
    assert played.cut is not None and played.cut.interrupted and played.correct and played.steps == 6
    assert [t for tape in played.tapes for t in (*tape, 0)] == truth[: 7 * (len(tape) + 1)].tolist()


def test_ctrl_c_shows_what_was_written_and_ends_with_130() -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", INTERRUPTED_RUN], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None and process.stdout.readline() == "writing\n"
    time.sleep(0.2)
    os.kill(process.pid, signal.SIGINT)
    said, errors = process.communicate(timeout=500)
    assert process.returncode == 130, errors
    assert "Traceback" not in errors and errors.strip().startswith("interrupted: what was written up to step ")
    assert json.loads(said)["cut"] == "interrupted" and json.loads(said)["correct"]


INTERRUPTED_RUN = """
import signal, sys, time
from experiments import cli, playback

signal.signal(signal.SIGINT, signal.default_int_handler)  # shells let what runs in the background ignore it

def slowly(request, machine, packing, steps, model):
    def write(prompt, count):
        print("writing", flush=True)
        for token in machine.trace(prompt[:-1].tolist(), 5000)[len(prompt):].tolist():
            time.sleep(0.001)
            yield token
    return write

playback.make_writer = slowly
sys.argv = ["turing-programs", "run", "random:3x2:1", "--on", "compiled", "--steps", "5000", "--json"]
cli.main()
"""


def test_a_model_too_large_for_this_machine_is_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "free_bytes", lambda: 100_000)
    with pytest.raises(CompileError, match=r"parameters would take .* of memory, and .* are free; ask for fewer steps"):
        compile_machine(TuringMachine.random(symbols=3, states=2, seed=0), backend="lean", steps=12)
    with pytest.raises(CompileError, match="counts up to 5002 were asked for.*4096; ask for less"):
        compile_machine(TuringMachine.random(symbols=3, states=2, seed=0), backend="lean", steps=5000)
