"""The direct simulator writes the traces that the machines themselves write."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rasp.gallery import machine as known
from rasp.machines import simulate
from rasp.machines.machine import InvalidMachine, InvalidTape, TuringMachine

SIZES = [(12, 16), (2, 3), (1, 1), (100, 60)]  # the last does not fit int8


def one(tables: simulate.Tables, i: int, symbols: int, states: int) -> TuringMachine:
    return simulate.machine_from_tables(*(table[i] for table in tables), symbols, states)


@pytest.mark.parametrize(("symbols", "states"), SIZES)
@pytest.mark.parametrize("length", [1, 2, 9])
def test_batches_write_what_machines_write(symbols: int, states: int, length: int) -> None:
    tables = simulate.random_tables(12, symbols, states, seed=1)
    tapes = simulate.random_tapes(12, symbols, states, length, seed=2)
    rows = simulate.batch_traces(*tables, tapes, 40)
    assert rows.shape == (12, 41 * (length + 4)) and rows.dtype == np.int64
    for i, row in enumerate(rows):
        m = one(tables, i, symbols, states)
        assert m.trace(tapes[i], 40).tolist() == row.tolist() == simulate.trace(m, tapes[i], 40).tolist()


def test_the_tables_of_a_machine_are_the_machine() -> None:
    tables = simulate.random_tables(5, 4, 3, seed=9)
    ms = [one(tables, i, 4, 3) for i in range(5)]
    stacked = simulate.stack_tables(ms)
    assert all(np.array_equal(a, b) for a, b in zip(stacked, tables, strict=True))
    tapes = simulate.random_tapes(5, 4, 3, 6)
    assert np.array_equal(simulate.traces(ms, tapes.tolist(), 9), simulate.batch_traces(*tables, tapes, 9))


def test_heads_may_start_on_the_end_markers() -> None:
    m = TuringMachine.random(3, 4, seed=5)
    for cells in (["a1", "a2", "a3"], []):
        tapes = [m.encode(cells, -1, "q2"), m.encode(cells, len(cells), "q1")]
        rows = simulate.traces([m, m], tapes, 25)
        assert [row.tolist() for row in rows] == [m.trace(tape, 25).tolist() for tape in tapes]


@pytest.mark.parametrize("dtype", [np.int8, np.int16, np.int32])
def test_small_dtypes_write_the_same_tokens(dtype: Any) -> None:
    tables = simulate.random_tables(8)
    wide, narrow = simulate.random_tapes(8), simulate.random_tapes(8, dtype=dtype)
    rows = simulate.batch_traces(*tables, narrow, 20)
    assert rows.dtype == dtype and np.array_equal(rows, simulate.batch_traces(*tables, wide, 20))


@pytest.mark.parametrize("name", ["bb4", "increment", "palindrome"])
def test_long_traces_stop_at_final_states(name: str) -> None:
    m = known(name)
    tape = m.with_room(m.parse_tape(""), 1000)
    for steps in (0, 1, 50, 1000):
        assert np.array_equal(simulate.trace(m, tape, steps), m.trace(tape, steps))


# --- random machines and tapes ----------------------------------------------------------------------------------------


@given(st.integers(0, 2**70), st.integers(0, 2**40), st.lists(st.integers(0, 5), min_size=1, max_size=4))
@settings(deadline=None, max_examples=20)
def test_numbers_do_not_depend_on_chunks(seed: int, first: int, chunks: list[int]) -> None:
    """Machine and tape number i are the same, however the numbers are cut into batches."""

    def drawn(count: int, at: int) -> list[np.ndarray]:
        tables = simulate.random_tables(count, 3, 4, seed, first + at)
        return [*tables, simulate.random_tapes(count, 3, 4, 5, seed, first + at)]

    whole, at = drawn(sum(chunks), 0), 0
    for count in chunks:
        part = drawn(count, at)
        assert all(np.array_equal(p, w[at : at + count]) for p, w in zip(part, whole, strict=True))
        at += count


def test_choices_are_uniform_and_unrelated() -> None:
    """Every entry of 20,000 machines, within five standard deviations of uniform; pairs of entries likewise."""
    count, symbols, states = 20_000, 3, 4
    tables = simulate.random_tables(count, symbols, states, seed=7)
    low = 4 + symbols
    entries = [
        (tables.next_state[:, low:, 4:low] - low, states),
        (tables.next_symbol[:, low:, 4:low] - 4, symbols),
        (tables.move[:, low:, 4:low], 2),
        (tables.next_state[:, low:, 1:3] - low, states),
    ]
    columns = [(column, k) for entry, k in entries for column in entry.reshape(count, -1).T]
    for column, k in columns:
        check_uniform(column, k)
    for (a, k), (b, n) in zip(columns, columns[1:], strict=False):
        check_uniform(a.astype(int) * n + b, k * n)


def check_uniform(values: np.ndarray, k: int) -> None:
    shares = np.bincount(values, minlength=k) / len(values)
    assert len(shares) == k and np.all(np.abs(shares - 1 / k) < 5 * np.sqrt((1 / k) * (1 - 1 / k) / len(values)))


def test_random_tapes_are_tapes() -> None:
    m = TuringMachine.random(3, 4)
    tapes = simulate.random_tapes(3_000, 3, 4, length=5, seed=3)
    decoded = [m.decode(tape) for tape in tapes]
    assert {c.head for c in decoded} == set(range(5)) and {c.state for c in decoded} == set(m.states)
    check_uniform(np.array([c.head for c in decoded]), 5)
    check_uniform(np.array([m.states.index(c.state) for c in decoded]), 4)
    for i in range(5):
        check_uniform(np.array([m.symbols.index(c.cells[i]) for c in decoded]), 3)
    assert not np.array_equal(tapes, simulate.random_tapes(3_000, 3, 4, length=5, seed=4))


# --- endless tapes ----------------------------------------------------------------------------------------------------


@given(st.integers(0, 10**6), st.integers(0, 2_000), st.integers(-3, 9))
@settings(deadline=None, max_examples=40)
def test_fast_runs_are_runs(seed: int, steps: int, head: int) -> None:
    m = TuringMachine.random(3, 4, seed)
    m = m.replace(
        final=["q3"], transitions={key: rule for key, rule in m.transitions.items() if key[0] != "q3"}, bounce=None
    )
    cells = [m.symbols[(seed // 3**i) % 3] for i in range(seed % 7)]
    for state in (None, "q2", "q3"):
        assert simulate.run(m, cells, head, steps, state) == m.run(cells, head, steps, state)


def test_busy_beaver_five() -> None:
    ran = simulate.run(known("bb5"), steps=50_000_000)
    assert (ran.steps, ran.halted, ran.score) == (47_176_870, True, 4098)
    assert ran.right - ran.left + 1 == len(ran.cells) == 12_289


# --- refusals ---------------------------------------------------------------------------------------------------------


def test_bad_batches_are_refused() -> None:
    tables, tapes = simulate.random_tables(3, 3, 4), simulate.random_tapes(3, 3, 4, 5)
    with pytest.raises(InvalidTape, match="expected \\(B, W\\)"):
        simulate.batch_traces(*tables, tapes[:2], 4)
    with pytest.raises(InvalidTape, match="expected \\(B, W\\)"):
        simulate.batch_traces(*tables, tapes[0], 4)
    with pytest.raises(InvalidTape, match="these tables know 0 to 10"):
        simulate.batch_traces(*tables, tapes + 9, 4)
    headless = np.minimum(tapes, 5)
    with pytest.raises(InvalidTape, match="tape 0 of the batch has no state token"):
        simulate.batch_traces(*tables, headless, 4)
    with pytest.raises(InvalidTape, match="tape 0 of the batch"):  # tables that would lead out of memory
        simulate.batch_traces(tables.next_state + 90, tables.next_symbol, tables.move, tapes, 4)
    with pytest.raises(InvalidTape, match="tape 0 of the batch"):  # a head driven off the end
        simulate.batch_traces(tables.next_state, tables.next_symbol, np.ones_like(tables.move), tapes, 40)
    with pytest.raises(ValueError, match="steps is -1"):
        simulate.batch_traces(*tables, tapes, -1)


def test_bad_arguments_are_refused() -> None:
    small, large = TuringMachine.random(2, 2), TuringMachine.random(3, 2)
    with pytest.raises(InvalidMachine, match="one vocabulary size"):
        simulate.stack_tables([small, large])
    with pytest.raises(InvalidMachine, match="at least one"):
        simulate.stack_tables([])
    with pytest.raises(InvalidTape, match="one length"):
        simulate.traces([small, small], [small.encode(["a1"]), small.encode(["a1", "a1"])], 3)
    with pytest.raises(InvalidMachine, match="0 symbols"):
        simulate.random_tables(1, 0, 2)
    with pytest.raises(InvalidTape, match="length is 0"):
        simulate.random_tapes(1, length=0)
    with pytest.raises(ValueError, match="count is -1"):
        simulate.random_tables(-1)
    with pytest.raises(InvalidTape, match="exactly one state token"):
        simulate.trace(small, [1, 4, 2], 3)
    with pytest.raises(ValueError, match="steps is -5"):
        simulate.run(small, steps=-5)
