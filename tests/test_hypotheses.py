"""Witnesses are true, and the exact criterion names the very token at which the program goes wrong."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from proofs_check import beyond_bound, first_on_marker, first_repeat, first_wrong_step
from proofs_check.hypotheses import Repeat, StoredPair, WrongStep, key_of, repeat_on, split_tapes
from proofs_check.sampled.batched import marker_steps, repeats_literally, steps_of, wrong_by_key, wrong_by_repeat
from rasp import TuringMachine, next_tokens
from rasp.machines.simulate import batch_traces, machine_from_tables, random_tables, random_tapes
from rasp.programs.turing import hash_n_gram_iter

TAPES = st.lists(st.integers(3, 6), max_size=30).map(lambda cells: [1, *cells, 2])


def observed_error(machine: TuringMachine, tape: list[int], steps: int, n: int, packing: str, lead: bool) -> int | None:
    """The first position after the prompt at which the program predicts a wrong token; `lead`: a separator before."""
    trace = machine.trace(tape, steps)
    x = np.concatenate([[0], trace[:-1]]) if lead else trace[:-1]
    predicted = next_tokens(x, machine, n, packing)[int(lead) :]
    wrong = np.flatnonzero(predicted[len(tape) - 1 :] != trace[len(tape) :])
    return int(wrong[0]) + len(tape) - 1 if len(wrong) else None


def random_run(seed: int) -> tuple[TuringMachine, list[int], int, int, str]:
    """Small alphabets and long horizons: runs of every kind, most of which break some hypothesis."""
    rng = np.random.default_rng(seed)
    machine = TuringMachine.random(int(rng.integers(1, 6)), int(rng.integers(1, 5)), seed=seed)
    length = int(rng.integers(0, 7))
    cells = [machine.symbols[i] for i in rng.integers(len(machine.symbols), size=length)]
    tape = machine.encode(cells, int(rng.integers(-1, length + 1)), str(rng.choice(machine.states)))
    steps = int(rng.choice([3, 10, machine.base + 3, machine.base**2 + 3]))
    return machine, tape, steps, int(rng.choice([1, 1, 1, 2, 3])), str(rng.choice(["paper", "paper", "unbounded"]))


# --- witnesses --------------------------------------------------------------------------------------------------------


@given(TAPES, st.integers(1, 4))
def test_a_repeat_is_there_and_none_is_missed(tape: list[int], n: int) -> None:
    grams = [tuple(tape[i : i + n + 1]) for i in range(len(tape) - n)]
    found = first_repeat(tape, n)
    assert (found is None) == (len(set(grams)) == len(grams))
    if found:
        assert found.step == 0 and found.first < found.second
        assert grams[found.first] == grams[found.second] == found.gram


def test_of_a_trace_the_input_may_repeat() -> None:
    trace = [1, 4, 4, 4, 8, 2, 0, 1, 4, 4, 8, 5, 2, 0, 1, 4, 4, 4, 8, 2]
    assert first_repeat(trace, 1) == Repeat(step=2, first=1, second=2, gram=(4, 4))
    assert first_repeat(trace, 1, start=0) == Repeat(step=0, first=1, second=2, gram=(4, 4))
    assert first_repeat([0, *trace, 0], 1) == first_repeat(trace, 1)
    assert "2-gram 4 4 twice" in str(first_repeat(trace, 1))


def test_the_head_on_an_end_marker_is_seen() -> None:
    machine = TuringMachine.random(symbols=2, states=2, seed=0)
    inside, left, right = machine.encode(["a1", "a2"], 1), machine.encode(["a1"], -1), machine.encode(["a1"], 1)
    assert first_on_marker(inside, machine) is None
    for tape, marker, position in ((left, "bos", 0), (right, "eos", 2)):
        found = first_on_marker([*tape, 0, *tape], machine)
        assert found is not None and (found.step, found.position, found.marker) == (0, position, marker)


@pytest.mark.parametrize(("symbols", "states", "n", "bound"), [(12, 16, 1, 32), (12, 16, 2, 1024), (1, 1, 1, 6)])
def test_the_step_bound_is_base_to_the_n(symbols: int, states: int, n: int, bound: int) -> None:
    machine = TuringMachine.random(symbols, states)
    assert beyond_bound(machine, bound, n) is None
    assert beyond_bound(machine, bound + 1, n, "unbounded") is None
    found = beyond_bound(machine, bound + 1, n)
    assert found is not None and found.bound == bound and str(bound) in str(found)


@pytest.mark.parametrize("n", [0, -1, True, 1.5])
def test_a_bad_n_is_refused(n: int) -> None:
    with pytest.raises(ValueError, match="n must be a whole number"):
        first_repeat([1, 4, 2], n)


# --- the exact criterion ----------------------------------------------------------------------------------------------


@given(st.lists(st.integers(0, 9), min_size=1, max_size=40), st.integers(1, 4), st.sampled_from(["paper", "unbounded"]))
def test_keys_are_those_of_the_program(tokens: list[int], n: int, packing: str) -> None:
    keys = hash_n_gram_iter(np.array(tokens), n, 10, packing)
    for i in range(len(tokens)):
        since = tokens[: i + 1]
        count, tape = since.count(0), since[max((j + 1 for j, t in enumerate(since) if t == 0), default=0) :]
        assert keys[i] == key_of(StoredPair(count, len(tape) - 1, tuple(tape[-n - 1 :]), 0), 10, n, packing)


def check_criterion(seed: int) -> WrongStep | None:
    machine, tape, steps, n, packing = random_run(seed)
    observed = observed_error(machine, tape, steps, n, packing, lead=bool(seed % 2))
    wrong = first_wrong_step(machine, tape, steps, n, packing)
    assert observed == (None if wrong is None else wrong.index), (seed, wrong)
    repeat = first_repeat(machine.trace(tape, steps), n)
    if packing == "unbounded" or steps <= machine.base**n:
        assert (None if wrong is None else wrong.step) == (None if repeat is None or steps < 1 else repeat.step)
    return wrong


def test_the_criterion_names_the_wrong_token_of_every_run() -> None:
    wrong = [w for w in map(check_criterion, range(200)) if w is not None]
    collisions = sum(w.asked.step != w.answered.step for w in wrong)
    assert len(wrong) < 150 and collisions > 10 and len(wrong) - collisions > 20  # runs of every kind were met


@pytest.mark.slow
def test_the_criterion_on_thousands_of_runs() -> None:
    for seed in range(1000, 9000):
        check_criterion(seed)


def test_a_witness_says_what_the_program_does() -> None:
    for seed in range(60):
        machine, tape, steps, n, packing = random_run(seed)
        wrong = first_wrong_step(machine, tape, steps, n, packing)
        if wrong is None:
            continue
        trace = machine.trace(tape, steps)
        assert next_tokens(trace[: wrong.index + 1], machine, n, packing)[-1] == wrong.predicted > wrong.expected
        assert trace[wrong.index + 1] == wrong.expected
        assert wrong.key == key_of(wrong.asked, machine.base, n, packing)
        assert wrong.key == key_of(wrong.answered, machine.base, n, packing)
        for place in (wrong.asked, wrong.answered):
            followed = [*split_tapes(trace)[place.step], 0]
            assert followed[place.position + 1] == place.value
        assert f"step {wrong.step} goes wrong" in str(wrong)


# --- batches ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("symbols", "states", "length", "steps", "n"),
    [
        (12, 16, 10, 32, 1),
        (12, 16, 6, 70, 1),
        (2, 2, 1, 80, 1),
        (3, 1, 5, 100, 1),
        (3, 2, 12, 90, 2),
        (2, 2, 9, 40, 3),
    ],
)
def test_batches_find_what_the_definitions_find(symbols: int, states: int, length: int, steps: int, n: int) -> None:
    tables = random_tables(60, symbols, states, seed=n)
    tapes = random_tapes(60, symbols, states, length, seed=n)
    traces = batch_traces(*tables, tapes, steps)
    width, base = tapes.shape[1], 4 + symbols + states
    by_repeat, by_key = (f(traces, width, n, base) for f in (wrong_by_repeat, wrong_by_key))
    markers = marker_steps(traces, width, base - states)
    per_tape, anywhere = repeats_literally(traces, width, n, base)
    for b in range(60):
        machine = machine_from_tables(tables[0][b], tables[1][b], tables[2][b], symbols, states)
        split = split_tapes(traces[b])
        for found, packing in ((by_repeat[b], "unbounded"), (by_key[b], "paper")):
            wrong = first_wrong_step(machine, tapes[b], steps, n, packing)
            assert found == (-1 if wrong is None else wrong.index)
            assert steps_of(found, width) == (-1 if wrong is None else wrong.step)
        outside = first_on_marker(traces[b], machine)
        assert markers[b] == (-1 if outside is None else outside.step)
        assert per_tape[b] == next((t for t, tape in enumerate(split) if repeat_on(tape, n)), -1)
        grams = [tuple(tape[i : i + n]) for tape in split for i in range(len(tape) - n + 1)]
        assert (anywhere[b] >= 0) == (len(set(grams)) < len(grams))


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 3))
def test_tapes_up_to_n_plus_one_cells_never_repeat(seed: int, n: int) -> None:
    """Then the program is right for all base**n steps."""
    tables = random_tables(20, 2, 2, seed)
    tapes = random_tapes(20, 2, 2, n + 1, seed)
    assert (wrong_by_key(batch_traces(*tables, tapes, 8**n), n + 4, n, 8) == -1).all()
