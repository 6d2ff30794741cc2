"""Machines in bbchallenge.org's one-line text: `1RB1LB_1LA1RZ`.

States are separated by `_`; each lists, for symbols 0, 1, .., what to write, where to go and the next state.
"""

from __future__ import annotations

import re
import string

from rasp.machines.machine import TuringMachine
from rasp.machines.partial import refuse_unwritable
from rasp.machines.validation import InvalidMachine, show

HALT = "Z"
HALTS = ("Z", "H")  # both are in use
UNDEFINED = "---"
MAX_STATES = 25  # A to Y
MAX_SYMBOLS = 10

_SHAPE = re.compile(r"(?:[0-9][LR][A-Z]|---)+(?:_(?:[0-9][LR][A-Z]|---)+)*")


def looks_like_bbchallenge(text: str) -> bool:
    return _SHAPE.fullmatch(text.strip()) is not None


def from_bbchallenge(text: str, name: str = "") -> TuringMachine:
    """The machine; `---` is read as `1RZ` (`0RZ` if 0 is the only symbol), with Z the final state."""
    if not looks_like_bbchallenge(text):
        raise InvalidMachine(f"{show(text)} is not bbchallenge text: expected states like 1RB1LA joined by _")
    rows = [[row[i : i + 3] for i in range(0, len(row), 3)] for row in text.strip().split("_")]
    symbols = string.digits[: len(rows[0])]
    if len(rows) > MAX_STATES or len(rows[0]) > MAX_SYMBOLS:
        raise InvalidMachine(f"{len(rows)} states and {len(rows[0])} symbols: at most {MAX_STATES} and {MAX_SYMBOLS}")
    letters = string.ascii_uppercase[: len(rows)]
    rules: dict[tuple[str, str], tuple[str, str, str]] = {}
    for letter, row in zip(letters, rows, strict=True):
        if len(row) != len(symbols):
            raise InvalidMachine(f"state {letter} has {len(row)} transitions: expected {len(symbols)}, as state A has")
        for symbol, triple in zip(symbols, row, strict=True):
            rules[letter, symbol] = _rule(triple, letters, symbols)
    halts = any(target == HALT for _, _, target in rules.values())
    states = [*letters, *([HALT] if halts else [])]
    return TuringMachine(
        states=states, symbols=symbols, transitions=rules, final=[HALT] if halts else [], name=name or text.strip()
    )


def _rule(triple: str, letters: str, symbols: str) -> tuple[str, str, str]:
    if triple == UNDEFINED:
        return symbols[:2][-1], "R", HALT
    write, direction, target = tuple(triple)
    if target not in letters and target not in HALTS:
        raise InvalidMachine(f"{triple} goes to state {target}: expected {letters[0]} to {letters[-1]}, or Z to halt")
    return write, direction, target if target in letters else HALT


def to_bbchallenge(machine: TuringMachine) -> str:
    """The text: start state first as A, blank first as 0, the others in order. Names are lost."""
    refuse_unwritable(machine, "bbchallenge text", single_characters=False)
    states = sorted((q for q in machine.states if q not in machine.final), key=lambda q: q != machine.start)
    symbols = sorted(machine.symbols, key=lambda a: a != machine.blank)
    if len(states) > MAX_STATES or len(symbols) > MAX_SYMBOLS:
        raise InvalidMachine(
            f"bbchallenge text has at most {MAX_STATES} states and {MAX_SYMBOLS} symbols, "
            f"this machine has {len(states)} and {len(symbols)}: save as .json"
        )
    if len(machine.final) > 1:
        raise InvalidMachine(
            f"bbchallenge text has one way to halt, this machine has final states "
            f"{sorted(machine.final)}: save as .json"
        )
    letter = dict(zip(states, string.ascii_uppercase, strict=False)) | dict.fromkeys(machine.final, HALT)
    digit = {name: str(i) for i, name in enumerate(symbols)}
    rules = machine.transitions
    return "_".join(
        "".join(digit[write] + move + letter[then] for write, move, then in (rules[q, a] for a in symbols))
        for q in states
    )
