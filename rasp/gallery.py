"""Machines that people know, by name, each with a tape and what is known to come of it."""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from functools import cache

from rasp.formats.bbchallenge import from_bbchallenge, looks_like_bbchallenge
from rasp.machines.machine import TuringMachine
from rasp.machines.partial import complete
from rasp.machines.validation import InvalidMachine, listed, show


@dataclass(frozen=True)
class Entry:
    """A machine of the gallery. What is known of its run on `tape` (on an endless tape) is in the other fields."""

    name: str
    description: str
    rules: str  # bbchallenge text, or lines `state read write move next`, the start state first, `_` blank
    tape: str = ""
    state: str | None = None  # the final state it ends in; None: it never halts
    steps: int | None = None
    cells: str | None = None  # what is on the tape then, without blanks around
    score: int | None = None  # how many cells are not blank then

    @property
    def result(self) -> str:
        """The known result as a phrase."""
        if self.state is None:
            return "never halts"
        left = f"{self.score} non-blank cells" if self.cells is None else f"{self.cells or 'nothing'} on the tape"
        return f"halts in {self.state} after {self.steps:,} steps with {left}"


def gallery() -> tuple[str, ...]:
    """The names."""
    return tuple(_ENTRIES)


def entry(name: str) -> Entry:
    """What is known of a machine."""
    if name not in _ENTRIES:
        close = difflib.get_close_matches(str(name), _ENTRIES, n=1)
        hint = f"did you mean {close[0]!r}?" if close else f"expected one of {listed(_ENTRIES, limit=30)}"
        raise InvalidMachine(f"the gallery has no {show(name)}: {hint}")
    return _ENTRIES[name]


def machine(name: str) -> TuringMachine:
    """The machine of this name."""
    return _built(entry(name).name)


@cache
def _built(name: str) -> TuringMachine:
    rules = _ENTRIES[name].rules
    return from_bbchallenge(rules, name) if looks_like_bbchallenge(rules) else _from_lines(rules, name)


def _from_lines(text: str, name: str) -> TuringMachine:
    """`read` and `write` may list several symbols, taken in pairs; states without a line are final."""
    rules: dict[tuple[str, str], tuple[str, str, str]] = {}
    for line in text.strip().splitlines():
        state, read, write, direction, target = line.split()
        rules |= {(state, a): (b, direction, target) for a, b in zip(read, write, strict=True)}
    sources = list(dict.fromkeys(state for state, _ in rules))
    final = sorted({target for _, _, target in rules.values()} - set(sources))
    symbols = sorted({a for (_, read), (write, _, _) in rules.items() for a in (read, write)} - {"_"})
    return complete(
        states=[*sources, *final],
        symbols=["_", *symbols],
        transitions=rules,
        start=sources[0],
        final=final,
        blank="_",
        name=name,
    )


_ENTRIES = {
    e.name: e
    for e in [
        Entry(
            "bb2",
            "busy beaver of 2 states: most steps and most ones",
            "1RB1LB_1LA1RZ",
            state="Z",
            steps=6,
            cells="1111",
            score=4,
        ),
        Entry(
            "bb3",
            "busy beaver of 3 states by steps (21); bb3-ones leaves more ones",
            "1RB1RZ_1LB0RC_1LC1LA",
            state="Z",
            steps=21,
            cells="11111",
            score=5,
        ),
        Entry(
            "bb3-ones",
            "busy beaver of 3 states by ones (6)",
            "1RB1RZ_0RC1RB_1LC1LA",
            state="Z",
            steps=14,
            cells="111111",
            score=6,
        ),
        Entry(
            "bb4",
            "busy beaver of 4 states: most steps and most ones",
            "1RB1LB_1LA0LC_1RZ1LD_1RD0RA",
            state="Z",
            steps=107,
            cells="10111111111111",
            score=13,
        ),
        Entry(
            "bb5",
            "busy beaver of 5 states, found by Marxen and Buntrock",
            "1RB1LC_1RC1RB_1RD0LE_1LA1LD_1RZ0LA",
            state="Z",
            steps=47_176_870,
            score=4098,
        ),
        Entry("bb2x3", "busy beaver of 2 states and 3 symbols", "1RB2LB1RZ_2LA2RB1LB", state="Z", steps=38, score=9),
        Entry("wolfram23", "Wolfram's 2-state 3-symbol machine, which Smith proved universal", "1RB2LA1LA_2LA2RB0RA"),
        Entry(
            "increment",
            "adds one to a binary number",
            """
        right  01 01 R right
        right  _  _  L carry
        carry  1  0  L carry
        carry  0_ 11 L done
        """,
            tape="1011",
            state="done",
            steps=8,
            cells="1100",
        ),
        Entry(
            "decrement",
            "takes one from a binary number; 0 underflows to all ones",
            """
        right   01 01 R right
        right   _  _  L borrow
        borrow  0  1  L borrow
        borrow  1  0  L done
        borrow  _  _  R underflow
        """,
            tape="1100",
            state="done",
            steps=8,
            cells="1011",
        ),
        Entry(
            "add",
            "adds two binary numbers by counting the second down and the first up",
            """
        end    01+ 01+ R end
        end    _   _   L down
        down   1   0   L home
        down   0   1   L down
        down   +   _   R clean
        home   01  01  L home
        home   +   +   L up
        up     1   0   L up
        up     0_  11  R end
        clean  1   _   R clean
        clean  _   _   L done
        """,
            tape="1011+110",
            state="done",
            steps=91,
            cells="10001",
        ),
        Entry(
            "unary-add",
            "adds two unary numbers",
            """
        find   1 1 R find
        find   + 1 R end
        end    1 1 R end
        end    _ _ L erase
        erase  1 _ L done
        """,
            tape="111+11",
            state="done",
            steps=8,
            cells="11111",
        ),
        Entry(
            "unary-multiply",
            "multiplies two unary numbers, `a*b=`",
            """
        each     1  _  R toB
        each     *  _  R wipe
        toB      1  1  R toB
        toB      *  *  R copy
        copy     1  x  R append
        copy     =  =  L restore
        append   1= 1= R append
        append   _  1  L back
        back     1= 1= L back
        back     x  x  R copy
        restore  x  1  L restore
        restore  *  *  L home
        home     1  1  L home
        home     _  _  R each
        wipe     1  _  R wipe
        wipe     =  _  R done
        """,
            tape="11*111=",
            state="done",
            steps=95,
            cells="111111",
        ),
        Entry(
            "copy",
            "copies a block of ones, with a blank between",
            """
        each     1 x R skip
        each     _ _ L restore
        skip     1 1 R skip
        skip     _ _ R write
        write    1 1 R write
        write    _ 1 L return
        return   1 1 L return
        return   _ _ L mark
        mark     1 1 L mark
        mark     x x R each
        restore  x 1 L restore
        restore  _ _ R done
        """,
            tape="111",
            state="done",
            steps=32,
            cells="111_111",
        ),
        Entry(
            "palindrome",
            "accepts words of a and b that read the same backwards, erasing them",
            """
        start   a  _  R haveA
        start   b  _  R haveB
        start   _  _  R accept
        haveA   ab ab R haveA
        haveA   _  _  L wantA
        haveB   ab ab R haveB
        haveB   _  _  L wantB
        wantA   a  _  L back
        wantA   b  b  R reject
        wantA   _  _  R accept
        wantB   b  _  L back
        wantB   a  a  R reject
        wantB   _  _  R accept
        back    ab ab L back
        back    _  _  R start
        """,
            tape="abbabba",
            state="accept",
            steps=36,
            cells="",
        ),
        Entry(
            "parentheses",
            "accepts balanced parentheses, crossing out innermost pairs",
            """
        find   (x (x R find
        find   )  x  L match
        find   _  _  L check
        match  x  x  L match
        match  (  x  R find
        match  _  _  R reject
        check  x  x  L check
        check  (  (  R reject
        check  _  _  R accept
        """,
            tape="(()())()",
            state="accept",
            steps=34,
            cells="xxxxxxxx",
        ),
        Entry(
            "anbn",
            "accepts as many a as b, in this order",
            """
        start   a  x  R seek
        start   y  y  R verify
        start   b  b  R reject
        start   _  _  R accept
        seek    ay ay R seek
        seek    b  y  L back
        seek    _  _  R reject
        back    ay ay L back
        back    x  x  R start
        verify  y  y  R verify
        verify  ab ab R reject
        verify  _  _  R accept
        """,
            tape="aaabbb",
            state="accept",
            steps=25,
            cells="xxxyyy",
        ),
        Entry(
            "divisible-by-3",
            "accepts binary multiples of three in one pass",
            """
        r0  0 0 R r0
        r0  1 1 R r1
        r0  _ _ R accept
        r1  0 0 R r2
        r1  1 1 R r0
        r1  _ _ R reject
        r2  0 0 R r1
        r2  1 1 R r2
        r2  _ _ R reject
        """,
            tape="101010",
            state="accept",
            steps=7,
            cells="101010",
        ),
        Entry(
            "collatz",
            "halves even and triples-plus-one odd binary numbers until 1 (no leading zeros)",
            """
        right  01 01 R right
        right  _  _  L test
        test   0  _  L test
        test   1  1  L alone
        alone  _  _  R done
        alone  01 01 R times3+1
        times3+0  0  0  L times3+0
        times3+0  1  1  L times3+1
        times3+0  _  _  R right
        times3+1  0  1  L times3+0
        times3+1  1  0  L times3+2
        times3+1  _  1  R right
        times3+2  0_ 00 L times3+1
        times3+2  1  1  L times3+2
        """,
            tape="111",
            state="done",
            steps=83,
            cells="1",
        ),
    ]
}
