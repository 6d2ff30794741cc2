"""What a file of JSON must look like, checked once where it is read: the first thing that is otherwise is named."""

from __future__ import annotations

import reprlib
from collections.abc import Callable, Collection
from typing import Any

Shape = Callable[[Any, str], None]  # (value, where it stands) -> raises Misshapen
MOST = 10**15  # of any number: sums of many stay exact
MISSING = object()  # in the place of a value that is not there


class Misshapen(ValueError):
    """A value that is not of the shape expected, and where it stands."""

    def __init__(self, value: Any, where: str, expected: str) -> None:
        found = "was expected and is missing" if value is MISSING else f"is {reprlib.repr(value)}, expected {expected}"
        super().__init__(f"{where or 'the whole'} {found}")


def number(least: float = -MOST, most: float = MOST) -> Shape:
    def check(value: Any, where: str) -> None:
        if isinstance(value, bool) or not isinstance(value, int | float) or not least <= value <= most:
            raise Misshapen(value, where, f"a number from {least:g} to {most:g}")

    return check


def whole(least: int = 0, most: int = MOST) -> Shape:
    def check(value: Any, where: str) -> None:
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
            raise Misshapen(value, where, f"a whole number from {least} to {most:g}")

    return check


def flag(value: Any, where: str) -> None:
    if not isinstance(value, bool):
        raise Misshapen(value, where, "true or false")


def text(value: Any, where: str) -> None:
    """Without control characters, which a terminal would obey."""
    if not isinstance(value, str) or not value.replace("\n", " ").replace("\t", " ").isprintable():
        raise Misshapen(value, where, "printable text")


def one_of(known: Collection[str]) -> Shape:
    def check(value: Any, where: str) -> None:
        if not isinstance(value, str) or value not in known:
            raise Misshapen(value, where, f"one of {', '.join(map(repr, known))}")

    return check


def maybe(shape: Shape) -> Shape:
    """Or null."""

    def check(value: Any, where: str) -> None:
        if value is not None:
            shape(value, where)

    return check


def rows(shape: Shape, least: int = 0, most: int | None = None) -> Shape:
    """A list of such."""
    expected = f"a list of {least} to {most}" if most is not None else f"a list of at least {least}"

    def check(value: Any, where: str) -> None:
        if not isinstance(value, list) or len(value) < least or (most is not None and len(value) > most):
            raise Misshapen(value, where, expected)
        for index, one in enumerate(value):
            shape(one, f"{where}[{index}]")

    return check


def by_name(shape: Shape, names: Shape = text) -> Shape:
    """An object with any names."""

    def check(value: Any, where: str) -> None:
        if not isinstance(value, dict):
            raise Misshapen(value, where, "an object")
        for name, one in value.items():
            names(name, f"a name in {where}")
            shape(one, f"{where}.{name}")

    return check


def record(needed: dict[str, Shape], optional: dict[str, Shape] | None = None) -> Shape:
    """An object with these fields; what else it has is not looked at."""

    def check(value: Any, where: str) -> None:
        if not isinstance(value, dict):
            raise Misshapen(value, where, "an object")
        for name, shape in {**(optional or {}), **needed}.items():
            at = f"{where}.{name}".lstrip(".")
            if name in value:
                shape(value[name], at)
            elif name in needed:
                raise Misshapen(MISSING, at, "something")

    return check
