"""Backend hard_alibi: equal to the program on every input there is, refused where it cannot be."""

from __future__ import annotations

import itertools
import subprocess
import sys
from pathlib import Path
from typing import Any

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
from compiled_programs import finite

from compile import CapacityError, CompileError, Transformer, compile_machine, compile_program
from compile.front.domains import Capacity
from compile.front.program import FiniteProgram
from compile.front.record import record_program
from compile.front.schedule import schedule
from compile.hard_alibi.assemble import assemble
from compile.hard_alibi.lower import lower
from compile.hard_alibi.network import MOST_COUNT, Network
from compile.hard_alibi.readings import START
from compile.hurting import hurting_inputs
from compile.source import Built
from compile.transformer.annotations import Fact
from compile.validate import final_stream, first_wrong, shows, validate
from rasp import cumsum, generate, next_tokens
from rasp.engines.reference import Plain
from rasp.graph import evaluate
from rasp.machines.machine import TuringMachine
from rasp.programs.turing import next_token_turing

torch.set_num_threads(1)


@pytest.fixture(scope="module")
def small() -> Transformer:
    return compile_machine(SMALL, steps=12)


@pytest.fixture(scope="module")
def paper() -> Transformer:
    return compile_machine(PAPER, steps=64)


# --- exactness --------------------------------------------------------------------------------------------------------


def test_a_sample_of_all_short_sequences(small: Transformer) -> None:
    rows = np.random.default_rng(0).integers(0, SMALL.base, size=(1500, 6))
    expected = program(SMALL)
    assert small.predict(rows).tolist() == [expected(x).tolist() for x in rows]
    for x in rows[:60].tolist():  # and the definition, word by word
        assert small.predict(x).tolist() == list(next_tokens(Plain(x), SMALL, 1, "unbounded"))


@pytest.mark.slow
def test_all_sequences_of_length_six(small: Transformer) -> None:
    """Every prefix is checked with it: all sequences of length 1 to 6 over eight tokens."""
    rows = np.array(list(itertools.product(range(SMALL.base), repeat=6)))
    assert len(rows) == 8**6
    expected, wrong = program(SMALL), 0
    for part in np.array_split(rows, 64):
        found = small.predict(part)
        wrong += sum(int((row != expected(x)).sum()) for row, x in zip(found, part, strict=True))
    assert wrong == 0


def test_traces_with_and_without_repeats(paper: Transformer) -> None:
    traces = random_traces(PAPER, count=16, most_cells=24, most_tokens=300, seed=1)
    assert {repeats(x, 1) for x in traces} == {True, False}
    assert wrong_positions(paper, program(PAPER), traces) == 0


@pytest.mark.slow
@pytest.mark.parametrize("n", [1, 2, 3])
def test_many_traces_of_many_machines(n: int) -> None:
    check_many_machines("hard_alibi", n)


def test_token_soup_at_every_length_with_the_same_weights(paper: Transformer) -> None:
    rng = np.random.default_rng(2)
    soups = [rng.integers(0, PAPER.base, size=length) for length in (1, 2, 3, 4, 5, 6, 7, 9, 17, 60, 250)]
    soups += [rng.choice([0, 3, 5, 20, 21], size=30), np.full(40, 20), np.arange(PAPER.base)]
    assert wrong_positions(paper, program(PAPER), soups) == 0


@pytest.mark.parametrize("n", [2, 3])
def test_longer_grams(n: int) -> None:
    model = compile_machine(SMALL, n=n, steps=20)
    rng = np.random.default_rng(n)
    soups = [rng.integers(0, SMALL.base, size=30) for _ in range(20)]
    traces = random_traces(SMALL, count=10, most_cells=12, most_tokens=200, seed=n, steps=20)
    assert model.config.layers == 4  # as for n = 1: every shift is taken from x directly
    assert wrong_positions(model, program(SMALL, n), [*soups, *traces]) == 0


def test_the_papers_packing_within_its_bound() -> None:
    model = compile_machine(SMALL, n=2, steps=60, packing="paper")
    traces = random_traces(SMALL, count=6, most_cells=6, most_tokens=300, seed=4, steps=60)
    assert wrong_positions(model, program(SMALL, 2, "paper"), traces) == 0
    with pytest.raises(CompileError, match="run into the one counted in units of 8"):
        compile_machine(SMALL, n=1, steps=64, packing="paper")


def test_generation_is_the_programs(paper: Transformer) -> None:
    rng = np.random.default_rng(5)
    prompts = [[*random_tape(PAPER, cells, rng, distinct=True), 0] for cells in (3, 8, 11, 5)]
    for prompt, found in zip(prompts, paper.generate(prompts, 60), strict=True):
        assert found.tolist() == generate(prompt, PAPER, 60, 1, "unbounded", engine="stream").tolist()
    x = prompts[0]
    assert paper.generate(x, 1)[-1] == next_token_turing(np.array(x), PAPER, 1, "unbounded")


def test_gelu_is_as_good_as_relu() -> None:
    model = compile_machine(SMALL, steps=8, activation="gelu")
    soups = [np.random.default_rng(s).integers(0, SMALL.base, size=12) for s in range(20)]
    assert wrong_positions(model, program(SMALL), soups) == 0


# --- size, labels, files ----------------------------------------------------------------------------------------------


def test_size_is_within_the_budget(paper: Transformer) -> None:
    assert paper.config.layers == 4  # budget: 16
    assert paper.parameter_count() < 3_200_000  # budget: 10 million
    assert paper.nonzero_count() < 25_000


def test_every_head_and_mlp_says_what_it_does(paper: Transformer) -> None:
    rows = paper.summary()
    assert all(row.label for row in rows)
    labels = [row.label for row in rows if row.head is not None]
    assert any("shift_right(x, 2)" in label for label in labels)
    assert "match next 2-gram" in labels and any(label.startswith("count") for label in labels)
    assert any("next_tape" in row.label for row in rows if row.head is None)


def test_registers_name_the_whole_residual_stream(paper: Transformer) -> None:
    places = [place for r in paper.config.annotations.registers for place in range(r.start, r.stop)]
    assert places == list(range(paper.config.d_model))


def test_a_saved_model_is_the_same_model(small: Transformer, tmp_path: Path) -> None:
    small.save_pretrained(tmp_path)
    loaded = Transformer.from_pretrained(tmp_path)
    x = np.random.default_rng(6).integers(0, SMALL.base, size=40)
    assert loaded.predict(x).tolist() == small.predict(x).tolist() and loaded.config == small.config
    with pytest.raises(CapacityError):
        loaded.predict([0] * 15)


def test_importing_compile_is_light() -> None:
    heavy = "[m for m in ('torch', 'jax', 'tracr') if m in sys.modules]"
    code = f"import sys, compile; compile.CompileError; print({heavy})"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"


# --- capacity and float limits ----------------------------------------------------------------------------------------


def test_capacity_is_what_was_asked_for_and_no_more(small: Transformer) -> None:
    """steps = 12: a trace of 12 steps has 13 separators, and one more may stand in front."""
    trace = SMALL.trace(random_tape(SMALL, 3, np.random.default_rng(0)), 12)
    assert wrong_positions(small, program(SMALL), [np.array([0, *trace])]) == 0
    with pytest.raises(CapacityError, match="compiled to count to 14"):
        small.predict([0, *trace, 1, 0])
    with pytest.raises(CapacityError, match="shorten the input or compile with a larger capacity"):
        small.generate([0, *trace], 40)


def test_other_rows_still_run_when_one_has_stopped(small: Transformer) -> None:
    """Rows that have stopped are no longer asked whether a count ran over."""
    rng = np.random.default_rng(7)
    prompts = [[*random_tape(SMALL, cells, rng), 0] for cells in (0, 1, 1, 9)]
    for prompt, found in zip(prompts, small.generate(prompts, 12, stop=0), strict=True):
        whole = generate(prompt, SMALL, 12, 1, "unbounded", engine="stream")
        ends = np.flatnonzero(whole[len(prompt) :] == 0)
        assert found.tolist() == whole[: len(prompt) + (ends[0] + 1 if len(ends) else 12)].tolist()


def test_a_key_count_may_run_over_unseen() -> None:
    """Soup can make more separators on the next tape than there are: such keys match nothing, as they should."""
    model = compile_machine(SMALL, steps=1)
    soup = np.full(30, SMALL.state_tokens[0])  # a state next to a state: the paper's tables say 0, a separator
    assert program(SMALL)(soup).tolist() == model.predict(soup).tolist()


def test_the_start_token_is_no_token_of_inputs(small: Transformer) -> None:
    with pytest.raises(ValueError, match="token 8"):
        small.predict([1, SMALL.base])


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_decoded_counts_are_clean_up_to_the_limit(dtype: str) -> None:
    """The MLP that decodes counts, on the shares that attention brings, at every count up to float32's limit."""
    most = MOST_COUNT["float32"]
    network = Network((0,), copies=1, layers=1, dtype=dtype)
    share = network.allocate(Fact("share", "share"), ["share"])
    digits = network.onehot(Fact("count", "low digit"), range(64))
    network.decode(0, share, {c: digits[c % 64] for c in range(most + 1)})
    network.watch(0, share, most)
    network.answer = digits
    model = assemble(network)
    counts = torch.arange(most + 2, dtype=model.embed.weight.dtype)
    stream = torch.zeros(most + 2, model.config.d_model, dtype=counts.dtype)
    stream[:, share] = 1 / (1 + counts)
    with torch.no_grad():
        out = model.blocks[0].mlp(stream, lambda _, value: value).numpy()
    first = next(iter(digits[0]))
    found, expected = out[:-1, first : first + 64], np.eye(64)[np.arange(most + 1) % 64]
    assert np.abs(found - expected).max() < (0.02 if dtype == "float32" else 1e-10)
    overflow = out[:, network.overflow]
    assert np.abs(overflow[:-1]).max() < 1e-3 and overflow[-1] > 0.9
    assert np.abs(out[:, START]).max() == 0


def test_float32_counts_beyond_the_limit_are_refused_and_float64_lifts_it() -> None:
    def count(x: Any) -> Any:
        return cumsum(x == 1) % 3

    with pytest.raises(CompileError, match=r"counts up to 5000 .* float32 is good for 4096.*dtype='float64'"):
        compile_program(count, range(2), counts=5000)
    model = compile_program(count, range(2), counts=5000, dtype="float64", check=False)
    assert model.predict([1] * 4500)[-5:].tolist() == [2, 0, 1, 2, 0]
    with pytest.raises(CompileError, match="float32 is good for 4096"):
        compile_machine(SMALL, steps=4095)


def test_several_hundred_steps_in_float32() -> None:
    """Past 200 steps, where a squared count in float32 gives out: here counts are two one-hot digits."""
    model = compile_machine(SMALL, steps=500, check=False)
    trace = SMALL.trace(random_tape(SMALL, 1, np.random.default_rng(1)), 500)
    assert wrong_positions(model, program(SMALL), [trace]) == 0


@pytest.mark.slow
def test_the_largest_capacity_of_float32() -> None:
    model = compile_machine(SMALL, steps=4094, check=False)
    trace = SMALL.trace(random_tape(SMALL, 1, np.random.default_rng(1)), 4094)
    assert wrong_positions(model, program(SMALL), [trace]) == 0


def test_bad_arguments_are_refused() -> None:
    with pytest.raises(CompileError, match="backend 'gpu'"):
        compile_machine(SMALL, backend="gpu")
    with pytest.raises(CompileError, match="steps is 0"):
        compile_machine(SMALL, steps=0)
    with pytest.raises(CompileError, match="dtype 'float16'"):
        compile_machine(SMALL, dtype="float16")
    with pytest.raises(CompileError, match="activation 'tanh'"):
        compile_machine(SMALL, activation="tanh")


# --- the checks themselves are checked --------------------------------------------------------------------------------


def built_small() -> tuple[FiniteProgram, Built]:
    prepared = finite(lambda x: next_tokens(x, SMALL, 1, "unbounded"), range(SMALL.base), Capacity(counts=14))
    lowered = lower(schedule(prepared, short_counts=True))
    return prepared, Built(assemble(lowered.network, program=record_program(prepared.graph)), lowered.views)


def registers_are_right(prepared: FiniteProgram, built: Built, x: np.ndarray) -> bool:
    values, stream = evaluate(prepared.graph, [x]), final_stream(built.model, x)
    return all(shows(view, stream, values[i]) for i, view in built.views.items())


def test_validation_passes_a_right_model_and_reads_every_register() -> None:
    prepared, built = built_small()
    validate(built, prepared)
    x = np.random.default_rng(9).integers(0, SMALL.base, size=25)
    assert registers_are_right(prepared, built, x)


@pytest.mark.parametrize(
    ("layer", "part", "culprit"),
    [
        (0, "mlp.down", "written"),
        (1, "attn.out", r"shift_right\(is_head"),
        (1, "mlp.down", "next_tape"),
        (3, "attn.out", "next token"),
    ],
)
def test_validation_names_the_operation_of_damaged_weights(layer: int, part: str, culprit: str) -> None:
    prepared, built = built_small()
    module = built.model.blocks[layer].get_submodule(part)
    with torch.no_grad():
        module.weight.mul_(-1.0)
    with pytest.raises(CompileError, match=f"differs from the program .* first wrong operation: n\\d+ = {culprit}"):
        validate(built, prepared)


@pytest.mark.parametrize("seed", range(4))
def test_one_wrong_weight_is_noticed(seed: int) -> None:
    """Any single nonzero weight of an MLP, negated, shows up in some register on soup."""
    prepared, built = built_small()
    rng = np.random.default_rng(seed)
    weight = built.model.blocks[int(rng.integers(2))].mlp.down.weight.detach()
    places = weight.nonzero()
    row, column = places[int(rng.integers(len(places)))].tolist()
    weight[row, column] *= -1
    soups = [rng.integers(0, SMALL.base, size=300) for _ in range(10)]
    assert not all(registers_are_right(prepared, built, x) for x in [*hurting_inputs(prepared), *soups])


def test_validation_notices_another_program() -> None:
    prepared, built = built_small()
    other = compile_machine(TuringMachine.random(symbols=2, states=2, seed=4), steps=12, check=False)
    with pytest.raises(CompileError, match="differs from the program"):
        validate(Built(other, built.views), prepared, random_traces(SMALL, 4, 6, 100, 0, steps=12))


def test_validation_notices_a_false_alarm() -> None:
    prepared, built = built_small()
    with torch.no_grad():
        built.model.unembed.bias[-1] = 1000.0
    with pytest.raises(CompileError, match="says a count ran over"):
        validate(built, prepared)
    assert first_wrong(built, prepared, np.array([1, 2])).startswith("none in the residual stream")
