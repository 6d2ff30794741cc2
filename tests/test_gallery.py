"""The gallery's machines do what they are known for, and automata-lib agrees step by step."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rasp.formats.dtm import to_dtm
from rasp.gallery import entry, gallery, machine
from rasp.machines import simulate
from rasp.machines.machine import InvalidMachine, RunResult, TuringMachine
from rasp.machines.partial import STUCK


def run(name: str, tape: str, steps: int = 100_000) -> RunResult:
    return machine(name).run(tape, steps=steps)


def written(name: str, tape: str) -> str:
    """What is left on the tape, which must have been reached by halting as intended."""
    ran = run(name, tape)
    assert ran.halted and ran.state != STUCK
    return "".join(ran.written)


@pytest.mark.parametrize("name", gallery())
def test_known_results(name: str) -> None:
    known, m = entry(name), machine(name)
    start = m.decode(m.parse_tape(known.tape))
    ran = simulate.run(m, start.cells, start.head, steps=50_000_000 if known.state else 100_000)
    assert m.name == name and known.description and known.result
    assert ran.halted == (known.state is not None)
    if ran.halted:
        assert (ran.state, ran.steps) == (known.state, known.steps)
        assert known.cells is not None or known.score is not None
        assert known.cells in (None, "".join(ran.written)) and known.score in (None, ran.score)


def test_the_gallery_has_what_people_look_for() -> None:
    assert {"bb2", "bb3", "bb4", "bb5", "increment", "unary-add", "palindrome", "copy"} <= set(gallery())
    assert len(gallery()) >= 10
    assert entry("bb4").result == "halts in Z after 107 steps with 10111111111111 on the tape"
    assert entry("bb5").result == "halts in Z after 47,176,870 steps with 4098 non-blank cells"
    assert entry("palindrome").result == "halts in accept after 36 steps with nothing on the tape"
    assert entry("wolfram23").result == "never halts" and machine("wolfram23").final == frozenset()


def test_unknown_names_are_refused() -> None:
    with pytest.raises(InvalidMachine, match="no 'bb9': did you mean 'bb5'"):
        machine("bb9" if "bb9" not in gallery() else "")
    with pytest.raises(InvalidMachine, match="expected one of 'bb2'"):
        entry("")


# --- beyond the default tape: every machine against the function it computes ------------------------------------------


@pytest.mark.parametrize("n", range(20))
def test_arithmetic_of_one_number(n: int) -> None:
    assert int(written("increment", f"{n:b}"), 2) == n + 1
    assert written("decrement", f"{n + 1:b}").lstrip("0") == (f"{n:b}" if n else "")
    assert written("copy", "1" * n) == ("1" * n + "_" + "1" * n if n else "")
    assert run("divisible-by-3", f"{n:b}").state == ("reject" if n % 3 else "accept")
    if n:
        assert written("collatz", f"{n:b}") == "1"


@pytest.mark.parametrize(("a", "b"), product(range(5), repeat=2))
def test_arithmetic_of_two_numbers(a: int, b: int) -> None:
    assert int(written("add", f"{a:b}+{b:b}"), 2) == a + b
    assert written("unary-add", "1" * a + "+" + "1" * b) == "1" * (a + b)
    assert written("unary-multiply", "1" * a + "*" + "1" * b + "=") == "1" * (a * b)


def balanced(word: str) -> bool:
    depths = [word[:i].count("(") - word[:i].count(")") for i in range(len(word) + 1)]
    return min(depths) >= 0 and depths[-1] == 0


LANGUAGES: list[tuple[str, str, Callable[[str], bool]]] = [
    ("palindrome", "ab", lambda w: w == w[::-1]),
    ("parentheses", "()", balanced),
    ("anbn", "ab", lambda w: w == "a" * (len(w) // 2) + "b" * (len(w) // 2)),
]


@pytest.mark.parametrize(("name", "letters", "belongs"), LANGUAGES)
def test_languages(name: str, letters: str, belongs: Callable[[str], bool]) -> None:
    for length in range(8):
        for word in map("".join, product(letters, repeat=length)):
            assert run(name, word).state == ("accept" if belongs(word) else "reject"), word


def test_collatz_goes_through_the_collatz_sequence() -> None:
    """The binary numbers standing on the tape whenever the machine begins a round are n's odd-step sequence."""
    m, n = machine("collatz"), 27
    trace, seen = m.trace(m.with_room(m.parse_tape(f"{n:b}"), 20_000), 20_000), []
    rows = trace.reshape(-1, (trace == 0).argmax() + 1)[:, :-1]
    for row in map(m.decode, rows):
        digits = "".join(row.cells).strip("_")
        if row.state == "test" and row.cells[row.head] == "1":
            seen.append(int(digits, 2))
    expected = [n]
    while expected[-1] != 1:
        k = 3 * expected[-1] + 1
        expected.append(k // (k & -k))
    assert seen == expected


# --- automata-lib -----------------------------------------------------------------------------------------------------

HALTING = [name for name in gallery() if entry(name).state is not None and name != "bb5"]


def same_as_automata_lib(m: TuringMachine, word: str, limit: int = 300) -> None:
    """Configuration by configuration: state, tape without outer blanks, and the symbol under the head."""
    theirs = to_dtm(m).read_input_stepwise(word)
    for steps in range(limit):
        ours = m.run(word, steps=steps)
        if ours.state == STUCK:  # automata-lib raises instead of entering a state
            return
        configuration = next(theirs)
        tape = configuration.tape
        assert configuration.state == ours.state
        assert "".join(tape).strip(m.blank) == "".join(ours.written)
        assert tape.read_symbol() == ours.cells[ours.head - ours.left]
        if ours.halted:
            assert next(theirs, None) is None
            return


@pytest.mark.parametrize("name", HALTING)
def test_automata_lib_agrees_on_the_known_tapes(name: str) -> None:
    same_as_automata_lib(machine(name), entry(name).tape)


@given(st.sampled_from(HALTING), st.data())
def test_automata_lib_agrees_on_any_tape(name: str, data: st.DataObject) -> None:
    word = data.draw(st.text(alphabet="".join(machine(name).symbols[1:]), max_size=5))
    same_as_automata_lib(machine(name), word, limit=40)


def test_automata_lib_agrees_on_wolframs_machine() -> None:
    same_as_automata_lib(machine("wolfram23"), "12")
