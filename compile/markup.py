"""HTML is made here and nowhere else: of templates, into which every value goes as text unless it is markup already."""

from __future__ import annotations

import html
from collections.abc import Iterable
from string import Formatter
from typing import Any, LiteralString


class Markup(str):
    """HTML that stands in a page as it is."""

    __slots__ = ()


class _Escaping(Formatter):
    def format_field(self, value: Any, format_spec: str) -> str:
        return value if isinstance(value, Markup) else html.escape(format(value, format_spec))


_FORMATTER = _Escaping()


def markup(template: LiteralString, /, *values: Any, **named: Any) -> Markup:
    """`template.format(...)`, in which all values but markup are escaped, for text and for quoted attributes."""
    return Markup(_FORMATTER.vformat(template, values, named))


def shown(value: Any) -> Markup:
    """A value as text, or markup as it is."""
    return markup("{}", value)


def joined(parts: Iterable[Any], between: LiteralString = "") -> Markup:
    return Markup(between.join(map(shown, parts)))
