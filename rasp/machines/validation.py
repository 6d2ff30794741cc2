"""What a person gave, checked once and refused in a sentence."""

from __future__ import annotations

import reprlib
from collections.abc import Collection, Iterable, Mapping
from typing import Any

from rasp.machines.tape import MARKERS

MAX_VOCABULARY = 2048  # a machine's three tables are quadratic in it: 100 MB here


class InvalidMachine(ValueError):
    """A description that is not a Turing machine."""


_short = reprlib.Repr()
_short.maxstring = _short.maxother = 60


def show(value: object) -> str:
    """A short repr, safe for values of any depth."""
    return _short.repr(value)


def listed(names: Iterable[str], limit: int = 12) -> str:
    shown = list(map(repr, names))
    return ", ".join(shown[:limit]) + (f", .. ({len(shown)} in all)" if len(shown) > limit else "")


def iterate(what: str, values: Any) -> list[Any]:
    try:
        return list(values)
    except TypeError:
        raise InvalidMachine(f"{what} must be a list of names, got {show(values)}") from None


def check_names(kind: str, values: Iterable[str], reserved: tuple[str, ...] = ()) -> tuple[str, ...]:
    names = iterate(f"{kind}s", values)
    if not names:
        raise InvalidMachine(f"a machine needs at least one {kind}, none was given")
    seen: set[str] = set()
    for name in names:
        if not isinstance(name, str) or not name or not name.isprintable():
            raise InvalidMachine(f"{kind} {show(name)} is not a name: give a non-empty printable string")
        if name in reserved:
            raise InvalidMachine(f"{kind} {name!r} is the name of an end marker or filler: choose another")
        if name in seen:
            raise InvalidMachine(f"{kind} {name!r} is listed twice: list every {kind} once")
        seen.add(name)
    return tuple(names)


def one_of(what: str, name: Any, known: Collection[str], key: Any = None) -> str:
    """`name`, if it is known. `key` is the (state, symbol) whose transition is being read."""
    if not isinstance(name, str) or name not in known:
        raise InvalidMachine(f"{what}{_transition_of(key)} is {show(name)}: expected one of {listed(known)}")
    return name


def _transition_of(key: Any) -> str:
    return "" if key is None else f" of the transition of state {show(key[0])} on {show(key[1])}"


def items_of(what: str, given: Any) -> list[tuple[Any, Any]]:
    if not isinstance(given, Mapping):
        raise InvalidMachine(f"{what} must be a mapping, got {show(given)}")
    return list(given.items())


def parts_of(what: str, value: Any, count: int, expected: str, key: Any = None) -> tuple[Any, ...]:
    if not isinstance(value, tuple | list) or len(value) != count:
        raise InvalidMachine(f"{what}{_transition_of(key)} is {show(value)}: expected {expected}")
    return tuple(value)


def check_name(name: Any) -> str:
    if not isinstance(name, str) or not name.isprintable():
        raise InvalidMachine(f"the machine's name is {show(name)}: expected printable text")
    return name


def check_count(what: str, value: int) -> int:
    if value < 0:
        raise ValueError(f"{what} is {value}: expected 0 or more")
    return value


def check_size(symbols: int, states: int) -> None:
    if symbols < 1 or states < 1:
        raise InvalidMachine(f"{symbols} symbols and {states} states were asked for: at least one of each is needed")
    if len(MARKERS) + symbols + states > MAX_VOCABULARY:
        raise InvalidMachine(
            f"{symbols} symbols and {states} states were asked for: at most "
            f"{MAX_VOCABULARY - len(MARKERS)} together are supported"
        )
