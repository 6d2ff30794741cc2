"""Tags make every machine simulable: the argument, and the program on every machine of the gallery."""

from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from proofs_check import first_on_marker, first_repeat, first_wrong_step
from rasp import TuringMachine, make_simulable, next_tokens
from rasp.engines.turing import generate
from rasp.gallery import entry, gallery, machine
from rasp.machines.machine import InvalidTape
from rasp.machines.simulable import Simulable, de_bruijn, plain_name, tag_row, tagged_name

PREFIX = 300  # steps of the machines that run long, or for ever


def free_run_is_exact(simulable: Simulable, tape: list[int], steps: int) -> bool:
    """The program, given the first tape, writes the machine's whole run."""
    trace = simulable.machine.trace(tape, steps)
    count = len(trace) - len(tape)
    return bool((generate(tape, simulable.machine, count, simulable.n, "unbounded", "stream") == trace).all())


@pytest.mark.parametrize(("kinds", "size"), [(1, 2), (2, 2), (2, 4), (3, 2), (4, 2), (3, 3), (7, 2)])
def test_a_de_bruijn_sequence_has_every_word_once(kinds: int, size: int) -> None:
    cycle = list(de_bruijn(kinds, size))
    words = {tuple((cycle + cycle)[i : i + size]) for i in range(len(cycle))}
    assert len(cycle) == kinds**size == len(words)


@given(st.integers(1, 200), st.integers(1, 3))
def test_tags_do_not_repeat_and_are_as_few_as_possible(cells: int, n: int) -> None:
    tags = tag_row(cells, n)
    grams = [tags[i : i + n + 1] for i in range(cells - n)]
    assert len(tags) == cells and len(set(grams)) == len(grams)
    kinds = max(tags) + 1
    assert set(tags) == set(range(kinds))
    assert kinds == 1 or (kinds - 1) ** (n + 1) + n < cells  # with one kind fewer, two of the grams would be equal


@given(st.integers(0, 10_000), st.integers(1, 12), st.integers(1, 2), st.data())
@settings(max_examples=40, deadline=None)
def test_the_tagged_machine_does_what_the_original_does(seed: int, cells: int, n: int, data: st.DataObject) -> None:
    original = TuringMachine.random(symbols=3, states=2, seed=seed)
    simulable = make_simulable(original, cells, n)
    given_cells = data.draw(st.lists(st.sampled_from(original.symbols), min_size=cells, max_size=cells))
    head = data.draw(st.integers(-1, cells))
    tape, plain = simulable.encode(given_cells, head, origin=0), original.encode(given_cells, head)
    for _ in range(30):
        assert simulable.decode(tape) == original.decode(plain)
        assert first_repeat(tape, n) is None
        tape, plain = simulable.machine.step(tape), original.step(plain)


@pytest.mark.parametrize("name", gallery())
def test_every_machine_of_the_gallery_is_simulated_exactly(name: str) -> None:
    known, original = entry(name), machine(name)
    steps = min(known.steps or PREFIX, PREFIX)
    simulable = make_simulable(original, tape=known.tape, steps=steps)
    tape = simulable.encode(known.tape)
    assert simulable.certify().rules == len(simulable.machine.transitions)
    assert free_run_is_exact(simulable, tape, steps)
    last = simulable.decode(simulable.machine.trace(tape, steps)[-len(tape) - 1 : -1])
    ran = original.run(known.tape, steps=steps)
    assert (last.cells, last.head + ran.left, last.state) == (ran.cells, ran.head, ran.state)
    if known.steps == steps:
        assert last.state == known.state and original.blank not in (ran.written[:1] + ran.written[-1:])
        assert known.cells is None or "".join(ran.written) == known.cells


def test_the_busy_beaver_of_four_states_runs_to_its_halt() -> None:
    original = machine("bb4")
    simulable = make_simulable(original)
    tape = simulable.encode()
    trace = simulable.machine.trace(tape, 10_000)
    assert len(trace) == 108 * (len(tape) + 1)
    assert simulable.cells <= 17 and simulable.machine.base <= 20
    assert (next_tokens(trace[:-1], simulable.machine, 1, "unbounded")[len(tape) :] == trace[len(tape) + 1 :]).all()
    last = simulable.decode(trace[-len(tape) - 1 : -1])
    assert last.state in original.final and last.cells.count("1") == 13


def test_untagged_the_busy_beaver_repeats_itself_and_goes_wrong() -> None:
    original = machine("bb4")
    tape = original.with_room(original.encode(["0"]), 107)
    wrong = first_wrong_step(original, tape, 107, 1, "unbounded")
    assert wrong is not None and wrong.step < 20
    assert first_repeat(original.trace(tape, 107)) is not None


@pytest.mark.parametrize("n", [1, 2, 3])
def test_larger_n_needs_fewer_tags(n: int) -> None:
    simulable = make_simulable(machine("bb4"), n=n)
    assert len(set(simulable.tags)) == {1: 4, 2: 3, 3: 2}[n]
    assert free_run_is_exact(simulable, simulable.encode(), 107)


def test_the_argument_fails_when_a_tag_pair_repeats() -> None:
    simulable = make_simulable(machine("bb3"), cells=8)
    broken = dataclasses.replace(simulable, tags=(0, 1, 0, 1, 0, 1, 0, 1))
    with pytest.raises(AssertionError, match="may stand twice"):
        broken.certify()


def test_the_argument_fails_when_a_rule_changes_a_tag() -> None:
    simulable = make_simulable(machine("bb3"), cells=8)
    rules = dict(simulable.machine.transitions)
    key = next(iter(rules))
    write, move, to = rules[key]
    symbol, tag = plain_name(write)
    rules[key] = tagged_name(symbol, 1 - tag), move, to
    broken = dataclasses.replace(simulable, machine=simulable.machine.replace(transitions=rules))
    with pytest.raises(AssertionError, match="another tag"):
        broken.certify()


def test_the_input_is_placed_where_the_head_stays_inside_longest() -> None:
    simulable = make_simulable(machine("bb4"), cells=20)
    trace = simulable.machine.trace(simulable.encode(), 10_000)
    assert len(trace) == 108 * (20 + 4)  # halts: never bounced
    narrow = make_simulable(machine("bb4"), cells=5)
    best = _steps_inside(narrow, None)
    assert best == max(_steps_inside(narrow, origin) for origin in range(5))


def _steps_inside(simulable: Simulable, origin: int | None) -> int:
    """How many steps of a run from a blank tape the head stays off the end markers."""
    tape = simulable.encode(origin=origin)
    outside = first_on_marker(simulable.machine.trace(tape, 107), simulable.machine)
    return 107 if outside is None else outside.step


def test_what_does_not_fit_is_refused_in_a_sentence() -> None:
    simulable = make_simulable(machine("increment"), cells=4)
    with pytest.raises(InvalidTape, match="do not fit"):
        simulable.encode("10110")
    with pytest.raises(InvalidTape, match="unknown symbol"):
        simulable.encode("7")
    with pytest.raises(InvalidTape, match="at least one"):
        make_simulable(machine("increment"), cells=0)
    with pytest.raises(ValueError, match="n must be"):
        make_simulable(machine("increment"), cells=4, n=0)
    other = make_simulable(machine("increment"), cells=5)
    with pytest.raises(InvalidTape, match="tags"):
        simulable.decode(other.encode("1"))
