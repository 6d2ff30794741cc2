"""Turing machines: tables as in the paper's listing, tapes as tokens and as text, steps, and what is refused."""

from __future__ import annotations

import copy
import pickle
import string
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rasp.gallery import machine as known
from rasp.machines.machine import InvalidMachine, InvalidTape, TuringMachine, bos, empt, eos, sep
from rasp.scalar import capture, evaluate

NAMES = st.text(alphabet=string.ascii_letters + "01_,:[]\\ <>|é∅", min_size=1, max_size=3)


@st.composite
def machines(draw: Any, symbol_names: Any = NAMES) -> TuringMachine:
    symbols = draw(st.lists(symbol_names, min_size=1, max_size=4, unique=True))
    states = draw(st.lists(NAMES, min_size=1, max_size=4, unique=True))
    final = draw(st.sets(st.sampled_from(states)))
    symbols = [a for a in symbols if a not in ("sep", "bos", "eos", "empt")] or ["x"]
    rule = st.tuples(st.sampled_from(symbols), st.sampled_from("LR"), st.sampled_from(states))
    sources = [q for q in states if q not in final]
    return TuringMachine(
        states=states,
        symbols=symbols,
        transitions={(q, a): draw(rule) for q in sources for a in symbols},
        start=draw(st.sampled_from(states)),
        final=final,
        blank=draw(st.sampled_from(symbols)),
        bounce={(q, end): draw(st.sampled_from(states)) for q in sources for end in ("bos", "eos")},
    )


@st.composite
def machines_and_tapes(draw: Any) -> tuple[TuringMachine, list[int]]:
    m = draw(machines())
    cells = draw(st.lists(st.sampled_from(m.symbols), max_size=6))
    return m, m.encode(cells, draw(st.integers(-1, len(cells))), draw(st.sampled_from(m.states)))


def small(**changes: Any) -> TuringMachine:
    """Two states and a halting one, over 0 and 1."""
    arguments: dict[str, Any] = {
        "states": ["A", "B", "Z"],
        "symbols": ["0", "1"],
        "transitions": {
            ("A", "0"): ("1", "R", "B"),
            ("A", "1"): ("1", "L", "B"),
            ("B", "0"): ("1", "L", "A"),
            ("B", "1"): ("1", "R", "Z"),
        },
        "final": ["Z"],
    }
    return TuringMachine(**(arguments | changes))


# --- tables -----------------------------------------------------------------------------------------------------------


def test_tokens_are_numbered_as_in_the_paper() -> None:
    m = TuringMachine.random(symbols=12, states=16, seed=0)
    assert (sep, bos, eos, empt) == (0, 1, 2, 3)
    assert m.symbol_tokens == range(4, 16) and m.state_tokens == range(16, 32) and m.base == 32
    assert m.vocabulary[:5] == ("sep", "bos", "eos", "empt", "a1") and m.vocabulary[16] == "q0"
    assert m.start_token == 16 and m.blank_token == 4 and m.final_tokens == frozenset()


@given(machines())
def test_tables_follow_the_listing(m: TuringMachine) -> None:
    """Case by case: symbols and end markers, with and without a state; final states keep everything."""
    for state in range(-1, m.base + 1):
        for token in range(-1, m.base + 1):
            got = (m.next_state(state, token), m.next_symbol(state, token), m.move(state, token))
            assert got == listing(m, state, token), (m.vocabulary, state, token)


def listing(m: TuringMachine, state: int, token: int) -> tuple[int, int, int]:
    inside = 0 <= state < m.base
    name = m.vocabulary[state] if inside else ""
    if token in (bos, eos):
        end = m.vocabulary[token]
        bounced = m.bounce.get((name, end), name) if state in m.state_tokens else None
        then = m.state_tokens[m.states.index(bounced)] if bounced is not None else 0
        return then, token if inside else 0, int(token == bos) if inside else 0
    if token not in m.symbol_tokens or state not in m.state_tokens:
        return 0, 0, 0
    if name in m.final:
        return state, token, 0
    write, direction, target = m.transitions[name, m.vocabulary[token]]
    return m.state_token(target), m.symbol_token(write), int(direction == "R")


def test_tables_are_read_only_and_symbolic() -> None:
    m = TuringMachine.random(3, 2, seed=1)
    assert m.next_state.values is not None
    with pytest.raises(ValueError):
        m.next_state.values[0, 0] = 1
    expression = capture(lambda q, a: m.next_symbol(q, a) + m.is_state(q), 2)
    assert expression.op != "opaque"
    for q in range(m.base):
        for a in range(m.base):
            assert evaluate(expression, (q, a)) == m.next_symbol(q, a) + (q in m.state_tokens)


@given(machines())
def test_membership_on_numbers_and_arrays(m: TuringMachine) -> None:
    tokens = np.arange(-2, m.base + 2)
    assert m.is_state(tokens).tolist() == [t in m.state_tokens for t in tokens]
    assert m.is_symbol(tokens).tolist() == [t in m.symbol_tokens for t in tokens]
    assert m.is_state(m.start_token) and not m.is_symbol(m.start_token)


def test_random_machines() -> None:
    assert TuringMachine.random(seed=3) == TuringMachine.random(seed=3) != TuringMachine.random(seed=4)
    assert TuringMachine.random(1, 1).base == 6
    many = [TuringMachine.random(3, 2, seed=s) for s in range(300)]
    drawn = [rule for m in many for rule in m.transitions.values()]
    for part, choices in zip(zip(*drawn, strict=True), (("a1", "a2", "a3"), "LR", ("q0", "q1")), strict=True):
        for choice in choices:  # 1,800 draws: six standard deviations
            assert abs(part.count(choice) / len(drawn) - 1 / len(choices)) < 6 * 0.5 / len(drawn) ** 0.5
    bounced = [target for m in many for target in m.bounce.values()]
    assert abs(bounced.count("q0") / len(bounced) - 1 / 2) < 0.1


# --- value semantics --------------------------------------------------------------------------------------------------


@given(machines())
def test_a_machine_is_a_value(m: TuringMachine) -> None:
    for twin in (copy.deepcopy(m), pickle.loads(pickle.dumps(m)), m.replace(), m.replace(name="other")):
        assert twin == m and hash(twin) == hash(m)
    assert m != m.replace(start=m.states[-1]) or m.start == m.states[-1]
    assert m != "m"


def test_a_machine_is_immutable() -> None:
    m = small()
    with pytest.raises(AttributeError, match="replace"):
        m.start = "B"
    with pytest.raises(AttributeError):
        del m.start
    with pytest.raises(TypeError):
        m.transitions["A", "0"] = ("0", "R", "A")  # type: ignore[index]
    assert repr(m) == "TuringMachine('', 2 symbols, 3 states)"


BAD_MACHINES: list[tuple[dict[str, Any], str]] = [
    ({"states": []}, "at least one state"),
    ({"symbols": []}, "at least one symbol"),
    ({"states": None}, "states must be a list"),
    ({"states": ["A", "A"]}, "'A' is listed twice"),
    ({"symbols": ["0", 1]}, "symbol 1 is not a name"),
    ({"symbols": ["0", ""]}, "'' is not a name"),
    ({"symbols": ["0", "a\nb"]}, "not a name"),
    ({"symbols": ["0", "eos"]}, "'eos' is the name of an end marker"),
    ({"start": "Q"}, "start state is 'Q'"),
    ({"blank": "2"}, "blank is '2': expected one of '0', '1'"),
    ({"final": ["Q"]}, "final state is 'Q'"),
    ({"final": 3}, "final states must be a list"),
    ({"final": []}, "state 'Z' has no transition on '0' (2 missing"),
    ({"final": ["B", "Z"]}, "final state 'B' has a transition"),
    ({"name": 5}, "name is 5"),
    ({"transitions": None}, "transitions must be a mapping"),
    ({"transitions": {}}, "(4 missing in all)"),
    ({"transitions": {"A0": ("1", "R", "B")}}, "'A0'"),
    ({"transitions": {("A", "0"): "1RB"}}, "'1RB': expected (write"),
    ({"transitions": {("Q", "0"): ("1", "R", "B")}}, "the state of the transition of state 'Q'"),
    ({"transitions": {("A", "9"): ("1", "R", "B")}}, "the symbol of the transition"),
    ({"transitions": {("A", "0"): ("9", "R", "B")}}, "the symbol written of the transition of state 'A' on '0' is '9'"),
    ({"transitions": {("A", "0"): ("1", "N", "B")}}, "the direction of the transition of state 'A' on '0' is 'N'"),
    ({"transitions": {("A", "0"): ("1", "R", [])}}, "the next state of the transition"),
    ({"transitions": {(("A",), "0"): ("1", "R", "B")}}, "('A',)"),
    ({"bounce": {("A", "left"): "B"}}, "the end marker"),
    ({"bounce": {("A", "bos"): "Q"}}, "'Q'"),
    ({"bounce": {("Z", "bos"): "A"}}, "final state 'Z'"),
    ({"bounce": []}, "bounce must be a mapping"),
    ({"symbols": [str(i) for i in range(3000)]}, "at most 2048"),
]


@pytest.mark.parametrize(("changes", "culprit"), BAD_MACHINES)
def test_bad_machines_are_refused_in_a_sentence(changes: dict[str, Any], culprit: str) -> None:
    with pytest.raises(InvalidMachine) as refused:
        small(**changes)
    assert culprit in str(refused.value)


def test_bad_sizes_are_refused() -> None:
    for symbols, states in [(0, 1), (1, 0), (-1, 3), (2000, 2000)]:
        with pytest.raises(InvalidMachine, match=f"{symbols} symbols and {states} states"):
            TuringMachine.random(symbols, states)
    for call in (lambda: small().trace(small().encode("01"), -1), lambda: small().run(steps=-1)):
        with pytest.raises(ValueError, match="steps is -1: expected 0 or more"):
            call()


def test_machines_do_without_numba() -> None:
    code = "import sys, rasp.machines.machine, rasp.loading, rasp.gallery as g; g.machine('bb4').run(); "
    code += "sys.exit(any(m in sys.modules for m in ('numba', 'yaml', 'automata', 'networkx', 'matplotlib')))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


# --- tapes ------------------------------------------------------------------------------------------------------------


def test_encoding() -> None:
    m = small()
    zero, one, a, b = 4, 5, 6, 7
    assert m.encode("011") == [bos, zero, a, one, one, eos]
    assert m.encode(["0", "1"], head=1, state="B") == [bos, zero, one, b, eos]
    assert m.encode("01", head=-1) == [bos, a, zero, one, eos]
    assert m.encode("01", head=2) == [bos, zero, one, eos, a]
    assert m.encode("", head=-1) == [bos, a, eos] and m.encode("", head=0) == [bos, eos, a]
    for head in (-2, 3):
        with pytest.raises(InvalidTape, match=f"head {head} is off a tape of 2 cells"):
            m.encode("01", head=head)
    with pytest.raises(InvalidTape, match="unknown symbol '2'"):
        m.encode("012")
    with pytest.raises(InvalidTape, match="unknown state 'Q'"):
        m.encode("01", state="Q")


@given(machines_and_tapes())
def test_tokens_and_text_round_trip(given_: tuple[TuringMachine, list[int]]) -> None:
    m, tape = given_
    names = m.decode(tape)
    assert m.encode(names.cells, names.head, names.state) == tape == m.check_tape(np.array(tape))
    assert m.parse_tape(m.format_tape(tape)) == tape


BAD_TAPES = [
    ([], "exactly one state token"),
    ([1, 4, 5, 2], "exactly one state token, this one has 0"),
    ([1, 4, 6, 5, 7, 2], "positions 2 and 4"),
    ([1, 4, 9, 2], "position 2 holds 9: this machine's tokens are 0 to 8"),
    ([1, 4, -1, 2], "position 2 holds -1"),
    ([1, 4, 6, 2, 0], "position 4 holds sep"),
    ([1, 4, 6, 3, 2], "position 3 holds empt"),
    ([4, 6, 5, 2], "position 0 holds '0': a tape begins with bos"),
    ([6, 1, 5, 2], "position 0 holds 'A'"),
    ([1, 4, 6, 5], "position 3 holds '1'"),
    ([1, 4, 6], "the last cell is followed by eos"),
    ([1, 6], "followed by eos"),
    ([1, 4, 1, 6, 2], "position 2 holds a second bos"),
    ([1, 2, 6, 4, 2], "position 1 holds a second eos"),
    ([1, 4, 2, 6, 4, 2], "second eos"),
    ([1.5, 4], "integer tokens"),
    ("1[0]", "integer tokens"),
    (None, "integer tokens"),
]


@pytest.mark.parametrize(("tokens", "culprit"), BAD_TAPES)
def test_bad_tapes_are_refused_in_a_sentence(tokens: Any, culprit: str) -> None:
    m = small()
    for refuse in (m.decode, m.check_tape, m.step, m.format_tape, lambda t: m.trace(t, 3)):
        with pytest.raises(InvalidTape) as refused:
            refuse(tokens)
        assert culprit in str(refused.value)


def test_typed_tapes() -> None:
    m = small()
    assert m.parse_tape("10110") == m.encode("10110")
    assert m.parse_tape("10[1]10") == m.encode("10110", 2)
    assert m.parse_tape("10[B:1]10") == m.parse_tape("1 0, [ B : 1 ] 10") == m.encode("10110", 2, "B")
    assert m.parse_tape("") == m.parse_tape("  ") == m.encode("0")
    assert m.parse_tape("[bos]10") == m.encode("10", -1) and m.parse_tape("10[Z:eos]") == m.encode("10", 2, "Z")
    assert m.format_tape(m.encode("10110", 2, "B")) == "10[B:1]10"
    r = TuringMachine.random(3, 2)
    assert r.parse_tape("a1 a3,[q1:a2]") == r.encode(["a1", "a3", "a2"], 2, "q1")
    assert r.format_tape(r.encode(["a1", "a3"], 1)) == "a1 [q0:a3]"
    spaced = small(symbols=[" ", ":"], transitions={(q, a): (a, "R", "Z") for q in "AB" for a in " :"})
    assert spaced.parse_tape(" [:] ") == spaced.encode(" : ", 1)
    assert spaced.parse_tape("[ ]:") == spaced.encode(" :", 0)


@pytest.mark.parametrize(
    ("text", "culprit"),
    [
        ("102", "unknown symbol '2'"),
        ("1[0", "one pair of brackets"),
        ("1]0[", "one pair of brackets"),
        ("[1][0]", "one pair of brackets"),
        ("1[10]", "unknown symbol '10'"),
        ("1[]0", "unknown symbol ''"),
        ("1[Q:0]", "unknown state 'Q'"),
        ("1[A:]", "unknown symbol ''"),
        ("1[bos]0", "cells beyond bos"),
        ("[eos]0", "cells beyond eos"),
        ("1\\", "lone backslash"),
    ],
)
def test_bad_typed_tapes_are_refused(text: str, culprit: str) -> None:
    with pytest.raises(InvalidTape) as refused:
        small().parse_tape(text)
    assert culprit in str(refused.value)


@given(machines(), st.text(max_size=12))
def test_any_typed_text_is_read_or_refused(m: TuringMachine, text: str) -> None:
    try:
        tape = m.parse_tape(text)
    except InvalidTape:
        return
    assert m.parse_tape(m.format_tape(tape)) == tape


# --- steps ------------------------------------------------------------------------------------------------------------


def by_names(m: TuringMachine, tape: list[int]) -> list[int]:
    """One step of a linear bounded automaton, told in names: an independent `step`."""
    names = m.decode(tape)
    cells, head, state = list(names.cells), names.head, names.state
    if head == -1:
        return m.encode(cells, 0, m.bounce.get((state, "bos"), state))
    if head == len(cells):
        return m.encode(cells, head - 1, m.bounce.get((state, "eos"), state))
    if state in m.final:
        return m.encode(cells, head - 1, state)
    cells[head], direction, state = m.transitions[state, cells[head]]
    return m.encode(cells, head + (1 if direction == "R" else -1), state)


@given(machines_and_tapes(), st.integers(0, 12))
def test_steps_and_traces(given_: tuple[TuringMachine, list[int]], steps: int) -> None:
    m, tape = given_
    expected = [tape]
    for _ in range(steps):
        assert m.step(expected[-1]) == by_names(m, expected[-1])
        if m.decode(expected[-1]).state not in m.final:
            expected.append(m.step(expected[-1]))
    trace = m.trace(tape, steps)
    assert trace.dtype == np.int64
    assert trace.tolist() == [token for row in expected for token in [*row, sep]]


def test_step_leaves_its_argument_alone() -> None:
    m, tape = small(), small().encode("01")
    m.step(tape)
    assert tape == m.encode("01")


@settings(deadline=None)
@given(machines_and_tapes(), st.integers(0, 30))
def test_an_endless_tape_is_a_tape_with_room(given_: tuple[TuringMachine, list[int]], steps: int) -> None:
    """`run` (dictionary of names) and `trace` (tokens between markers) agree where the head meets no marker."""
    m, tape = given_
    start = m.decode(tape)
    ran = m.run(start.cells, start.head, steps, start.state)
    roomy = m.with_room(tape, steps)
    last = m.trace(roomy, steps).reshape(-1, len(roomy) + 1)[-1, :-1]
    end = m.decode(last)
    assert (end.cells, end.head, end.state) == (ran.cells, ran.head - ran.left, ran.state)
    assert ran.halted == (ran.state in m.final) and (ran.halted or ran.steps == steps)
    assert ran.left <= min(0, ran.head) and ran.right >= max(len(start.cells) - 1, ran.head)


def test_busy_beaver_four() -> None:
    ran = known("bb4").run()
    assert (ran.steps, ran.halted, ran.state, ran.score) == (107, True, "Z", 13)
    assert "".join(ran.written) == "10111111111111" and ran.cells.count("1") == 13
    assert known("bb4").run(steps=106).halted is False


def test_a_run_from_a_final_state_is_over() -> None:
    ran = small().run("01", state="Z")
    assert (ran.steps, ran.halted, ran.cells, ran.written) == (0, True, ("0", "1"), ("1",))
    assert small().run("00", state="Z").written == ()
    with pytest.raises(InvalidTape, match="unknown symbol '7'"):
        small().run("07")
