"""Backend lean: two layers, equal to the program at every position of single-head tapes."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from compiled_machines import (
    PAPER,
    SMALL,
    check_many_machines,
    program,
    random_tape,
    random_traces,
    repeats,
    wrong_positions,
)

from compile import CapacityError, CompileError, Transformer, compile_machine
from compile.hard_alibi.lean import BEFORE, next_tape_boxes
from compile.hard_alibi.shapes import PAPER as PAPER_SHAPE
from rasp import generate
from rasp.machines.machine import TuringMachine

torch.set_num_threads(1)


@pytest.fixture(scope="module")
def paper() -> Transformer:
    return compile_machine(PAPER, backend="lean", steps=64)


# --- exactness --------------------------------------------------------------------------------------------------------


def test_traces_with_and_without_repeats(paper: Transformer) -> None:
    traces = random_traces(PAPER, count=24, most_cells=40, most_tokens=300, seed=1)
    assert {repeats(x, 1) for x in traces} == {True, False}
    assert wrong_positions(paper, program(PAPER), traces) == 0


@pytest.mark.parametrize("n", [1, 2, 3])
def test_longer_grams_on_a_small_machine(n: int) -> None:
    model = compile_machine(SMALL, backend="lean", n=n, steps=40)
    traces = random_traces(SMALL, count=30, most_cells=12, most_tokens=200, seed=n, steps=40)
    assert model.config.layers == 2
    assert wrong_positions(model, program(SMALL, n), traces) == 0


def test_every_head_position_every_state_every_short_tape() -> None:
    """All tapes of up to three cells: the head on bos, on each symbol and on eos; a separator in front or not."""
    model = compile_machine(SMALL, backend="lean", steps=4)
    expected = program(SMALL)
    tapes = [
        SMALL.encode([SMALL.symbols[c] for c in np.unravel_index(k, (2,) * cells)] if cells else [], head, state)
        for cells in range(4)
        for k in range(2**cells)
        for head in range(-1, cells + 1)
        for state in SMALL.states
    ]
    inputs = [np.array([*front, *SMALL.trace(tape, 4)]) for tape in tapes for front in ((), (0,))]
    assert wrong_positions(model, expected, inputs) == 0


@pytest.mark.slow
@pytest.mark.parametrize("n", [1, 2, 3])
def test_many_traces_of_many_machines(n: int) -> None:
    check_many_machines("lean", n)


def test_one_set_of_weights_for_every_length(paper: Transformer) -> None:
    rng = np.random.default_rng(3)
    tapes = [random_tape(PAPER, cells, rng) for cells in (0, 1, 2, 50, 120, 400)]
    assert wrong_positions(paper, program(PAPER), [PAPER.trace(tape, 1) for tape in tapes]) == 0


def test_a_machine_with_final_states() -> None:
    machine = TuringMachine(
        states=["go", "stop"],
        symbols=["0", "1"],
        final=["stop"],
        transitions={("go", "0"): ("1", "R", "go"), ("go", "1"): ("1", "L", "stop")},
    )
    model = compile_machine(machine, backend="lean", steps=8)
    traces = random_traces(machine, count=12, most_cells=8, most_tokens=100, seed=0, steps=8)
    assert wrong_positions(model, program(machine), traces) == 0


def test_generation_is_the_programs(paper: Transformer) -> None:
    """64 tapes at once; `bench compile` has the speed."""
    rng = np.random.default_rng(4)
    prompts = [[*random_tape(PAPER, 11, rng, distinct=True), 0] for _ in range(64)]
    rows = paper.generate(prompts, 45)
    for prompt, found in zip(prompts[:12], rows, strict=False):
        assert found.tolist() == generate(prompt, PAPER, 45, 1, "unbounded", engine="stream").tolist()


# --- size and shape ---------------------------------------------------------------------------------------------------


def test_size_is_within_the_budget(paper: Transformer) -> None:
    assert paper.config.layers == 2
    assert paper.parameter_count() < 2_800_000  # budget: 3 million
    assert [row.label for row in paper.summary() if row.layer == 1] == ["match next 2-gram"]
    assert all(row.label for row in paper.summary())


@pytest.mark.parametrize("n", [1, 2])
def test_it_sits_inside_the_papers_shape(n: int) -> None:
    machine = PAPER if n == 1 else SMALL
    model = compile_machine(machine, backend="lean", n=n, steps=64, paper_shape=True)
    for shape in model.config.shapes:
        assert shape.windows == (*range(1, 9), *([None] * 8)) and shape.d_head == 64 and shape.d_mlp == 4096
    assert model.config.d_model == PAPER_SHAPE.d_model == 1024
    traces = random_traces(machine, count=4, most_cells=12, most_tokens=120, seed=2)
    assert wrong_positions(model, program(machine, n), traces) == 0


def test_what_does_not_fit_the_shape_is_refused() -> None:
    with pytest.raises(CompileError, match="no free head of window 9"):
        compile_machine(SMALL, backend="lean", n=3, paper_shape=True)
    with pytest.raises(CompileError, match="MLP units, and the shape has 4096"):
        compile_machine(TuringMachine.random(symbols=40, states=20), backend="lean", paper_shape=True, check=False)


# --- capacity, and the checks themselves ------------------------------------------------------------------------------


def test_capacity() -> None:
    model = compile_machine(SMALL, backend="lean", steps=5)
    trace = SMALL.trace(random_tape(SMALL, 2, np.random.default_rng(0)), 5)
    assert wrong_positions(model, program(SMALL), [np.array([0, *trace])]) == 0
    with pytest.raises(CapacityError, match="compiled to count to 7"):
        model.predict([0, *trace, 1, 0])
    with pytest.raises(CapacityError):
        model.generate([0, *trace], 30)
    with pytest.raises(CompileError, match="float32 is good for 4096"):
        compile_machine(SMALL, backend="lean", steps=4095)


def test_several_hundred_steps() -> None:
    model = compile_machine(SMALL, backend="lean", steps=400, check=False)
    trace = SMALL.trace(random_tape(SMALL, 1, np.random.default_rng(1)), 400)
    assert wrong_positions(model, program(SMALL), [trace]) == 0


def test_boxes_are_the_machines_step() -> None:
    """Around one head, exactly one box (or, for a separator, none) holds, and it says what `step` does."""
    rng = np.random.default_rng(5)
    boxes = next_tape_boxes(PAPER)
    for _ in range(30):
        tape = random_tape(PAPER, int(rng.integers(0, 8)), rng)
        x, after = [BEFORE, BEFORE, *tape, 0, 1], PAPER.step(tape)
        for p in range(len(tape)):
            around = x[p : p + 4]
            held = [box.value for box in boxes if all(around[i] in tokens for i, tokens in box.sides)]
            assert held == [after[p]]


def test_damaged_weights_are_noticed() -> None:
    """The comparison used above fails on a model with one of its busiest units turned off."""
    model = compile_machine(SMALL, backend="lean", steps=8)
    traces = random_traces(SMALL, count=40, most_cells=8, most_tokens=80, seed=0, steps=8)
    weight = model.blocks[0].mlp.down.weight.detach()
    busy = model.run_with_cache(traces[0])[1]["blocks.0.mlp.hook_post"][0].mean(dim=0)
    for unit in busy.argsort(descending=True)[:4].tolist():
        kept = weight[:, unit].clone()
        weight[:, unit] = 0
        assert wrong_positions(model, program(SMALL), traces) > 0
        weight[:, unit] = kept
    assert wrong_positions(model, program(SMALL), traces) == 0


def test_the_check_at_compile_time_sees_a_wrong_step(monkeypatch: pytest.MonkeyPatch) -> None:
    import compile.hard_alibi.lean as lean

    right = lean.next_tape_boxes
    monkeypatch.setattr(lean, "next_tape_boxes", lambda machine: right(machine)[1:])
    with pytest.raises(CompileError, match="differs from the program"):
        compile_machine(SMALL, backend="lean", steps=8, examples=random_traces(SMALL, 20, 6, 80, 0, steps=8))
