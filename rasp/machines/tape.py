"""Tapes: the paper's token format, and the text a person types.

A tape of tokens is `bos s .. s q s .. s eos`: the state token stands right of the symbol under the head, so `bos q ..`
is a head on the left end marker and `.. eos q` a head on the right one.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol, SupportsIndex

sep, bos, eos, empt = 0, 1, 2, 3
MARKERS = ("sep", "bos", "eos", "empt")


class InvalidTape(ValueError):
    """A tape that this machine cannot stand on."""


class Alphabet(Protocol):
    """What a tape must know of the machine it belongs to: names and tokens."""

    @property
    def symbols(self) -> tuple[str, ...]: ...
    @property
    def states(self) -> tuple[str, ...]: ...
    @property
    def blank(self) -> str: ...
    @property
    def base(self) -> int: ...
    @property
    def vocabulary(self) -> Sequence[str]: ...
    @property
    def symbol_tokens(self) -> range: ...
    @property
    def state_tokens(self) -> range: ...
    @property
    def start_token(self) -> int: ...
    def symbol_token(self, name: str, /) -> int: ...
    def state_token(self, name: str, /) -> int: ...


@dataclass(frozen=True)
class Configuration:
    """A tape as names. `head` is the index of the cell under the head; -1 is `bos`, `len(cells)` is `eos`."""

    cells: tuple[str, ...]
    head: int
    state: str


# --- tokens -----------------------------------------------------------------------------------------------------------


def encode(machine: Alphabet, cells: Iterable[str], head: int = 0, state: str | None = None) -> list[int]:
    """The tokens of a tape given by names."""
    tokens = [bos, *map(machine.symbol_token, cells), eos]
    cell_count = len(tokens) - 2
    if not -1 <= head <= cell_count:
        raise InvalidTape(f"head {head} is off a tape of {cell_count} cells: give -1 (on bos) to {cell_count} (on eos)")
    tokens.insert(head + 2, machine.start_token if state is None else machine.state_token(state))
    return tokens


def decode(machine: Alphabet, tokens: Iterable[SupportsIndex]) -> Configuration:
    """The names of a tape given by tokens; refuses what is not one well-formed tape."""
    tape = as_tokens(tokens)
    at = find_head(machine, tape)
    cells = tuple(machine.vocabulary[t] for t in tape if t in machine.symbol_tokens)
    return Configuration(cells, at - 2, machine.vocabulary[tape[at]])


def as_tokens(tokens: Iterable[SupportsIndex]) -> list[int]:
    """Plain ints, whatever sequence of integers was given."""
    if hasattr(tokens, "tolist"):  # numpy: a hundred times faster than an int at a time
        tokens = tokens.tolist()
    try:
        return [operator.index(t) for t in tokens]
    except TypeError:
        raise InvalidTape(
            f"a tape is a sequence of integer tokens, got {type(tokens).__name__} {tokens!r:.60}; parse_tape reads text"
        ) from None


def find_head(machine: Alphabet, tape: Sequence[int]) -> int:
    """The position of the state token of a tape that is checked to be well formed."""
    _check_tokens(machine, tape)
    heads = [i for i, t in enumerate(tape) if t in machine.state_tokens]
    if len(heads) != 1:
        where = f"positions {heads[0]} and {heads[1]}" if heads else "no position"
        raise InvalidTape(f"a tape has exactly one state token, this one has {len(heads)} (at {where})")
    if not tape or tape[0] != bos:
        raise InvalidTape(f"position 0 holds {machine.vocabulary[tape[0]]!r}: a tape begins with bos ({bos})")
    last = len(tape) - 1 - (heads[0] == len(tape) - 1)
    if tape[last] != eos:
        raise InvalidTape(
            f"position {last} holds {machine.vocabulary[tape[last]]!r}: the last cell is followed by eos ({eos})"
        )
    for i in range(1, last):
        if tape[i] in (bos, eos):
            raise InvalidTape(f"position {i} holds a second {machine.vocabulary[tape[i]]}: a tape has one of each end")
    return heads[0]


def _check_tokens(machine: Alphabet, tape: Sequence[int]) -> None:
    for i, token in enumerate(tape):
        if not 0 <= token < machine.base:
            raise InvalidTape(f"position {i} holds {token}: this machine's tokens are 0 to {machine.base - 1}")
        if token == sep:
            raise InvalidTape(f"position {i} holds sep (0): give one tape, without separators")
        if token == empt:
            raise InvalidTape(f"position {i} holds empt (3), which fills prompts and never stands on a tape")


# --- text -------------------------------------------------------------------------------------------------------------
#
# `10[q1:1]10`. A backslash takes the next character literally, so that every name can be written.

_Chars = list[tuple[str, bool]]  # (character, was it escaped)


def parse_tape(machine: Alphabet, text: str) -> list[int]:
    """The tokens of a typed tape: `10110`, `10[1]10`, `10[q1:1]10`, `a1 a2 [q0:a3]`; empty text is one blank cell."""
    chars = _unescape(text)
    opening = [i for i, c in enumerate(chars) if c == ("[", False)]
    closing = [i for i, c in enumerate(chars) if c == ("]", False)]
    if not opening and not closing:
        return encode(machine, _names(machine, chars) or [machine.blank])
    if len(opening) != 1 or len(closing) != 1 or closing[0] < opening[0]:
        raise InvalidTape(f"{text!r} must mark the head by one pair of brackets, as in 10[1]10 (or none: first cell)")
    left, right = _names(machine, chars[: opening[0]]), _names(machine, chars[closing[0] + 1 :])
    state, under = _marked(machine, chars[opening[0] + 1 : closing[0]])
    if under == "bos" and left or under == "eos" and right:
        raise InvalidTape(f"{text!r} has cells beyond {under}: write [{under}] at its own end of the tape")
    marker = under in ("bos", "eos")
    return encode(machine, [*left, *([] if marker else [under]), *right], -1 if under == "bos" else len(left), state)


def format_tape(machine: Alphabet, tokens: Iterable[SupportsIndex]) -> str:
    """The text that `parse_tape` reads back as these tokens."""
    tape = decode(machine, tokens)
    single = _single_characters(machine)
    parts = [_escape(name, "[]\\" if single else "[]\\, ") for name in tape.cells]
    on_marker = not 0 <= tape.head < len(parts)
    under = ("bos" if tape.head < 0 else "eos") if on_marker else _escape(tape.cells[tape.head], "[]\\:")
    after = max(tape.head, 0) + (not on_marker)
    parts[max(tape.head, 0) : after] = [f"[{_escape(tape.state, '[]:' + chr(92))}:{under}]"]
    return ("" if single else " ").join(parts)


def _single_characters(machine: Alphabet) -> bool:
    return all(len(name) == 1 for name in machine.symbols)


def _escape(name: str, special: str) -> str:
    return "".join("\\" + c if c in special else c for c in name)


def _unescape(text: str) -> _Chars:
    chars: _Chars = []
    rest = iter(text)
    for c in rest:
        if c != "\\":
            chars.append((c, False))
        elif (literal := next(rest, None)) is not None:
            chars.append((literal, True))
        else:
            raise InvalidTape(f"{text!r} ends in a lone backslash: write two for a backslash symbol")
    return chars


def _names(machine: Alphabet, chars: _Chars) -> list[str]:
    """Symbol names: one per character when all names are that short, else separated by blanks or commas."""
    if _single_characters(machine):
        return [c for c, literal in chars if literal or c in machine.symbols or not (c.isspace() or c == ",")]
    names = [""]
    for c, literal in chars:
        if not literal and (c.isspace() or c == ","):
            names.append("")
        else:
            names[-1] += c
    return [name for name in names if name]


def _marked(machine: Alphabet, chars: _Chars) -> tuple[str | None, str]:
    """What stands between the brackets: (state or None, symbol or end marker)."""
    colon = next((i for i, c in enumerate(chars) if c == (":", False)), 0)
    state = _known(chars[:colon], machine.states) if colon else None
    return state, _known(chars[colon + 1 if colon else 0 :], (*machine.symbols, "bos", "eos"))


def _known(chars: _Chars, names: Sequence[str]) -> str:
    name = "".join(c for c, _ in chars)
    return name if name in names else name.strip()
