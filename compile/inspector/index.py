"""An index of inspector pages: cards with a small picture of each run, one line per step."""

from __future__ import annotations

import html
from collections.abc import Sequence
from dataclasses import dataclass
from string import Template
from urllib.parse import quote

from compile.inspector.page import static

SQUARE = 6  # pixels of a cell
CLASSES = {1: "written", 2: "head"}


@dataclass(frozen=True)
class Card:
    """`picture` has a row per step and 0, 1 or 2 per cell: blank, written, under the head. `live` is a link to a page
    on which the machine runs."""

    name: str
    description: str
    result: str
    file: str
    size: int
    picture: list[list[int]]
    live: str = ""


def index_page(cards: Sequence[Card], title: str = "Gallery of compiled Turing machines") -> str:
    return Template(static("gallery.html")).substitute(
        title=html.escape(title),
        styles=static("page.css") + static("gallery.css"),
        script=static("gallery.js"),
        cards="\n".join(map(_card, cards)),
    )


def _card(card: Card) -> str:
    name, description, result = (html.escape(text) for text in (card.name, card.description, card.result))
    live = f'<a class="live" href="{html.escape(card.live)}">run it live</a>' if card.live else ""
    return (
        f'<article><a class="card panel" href="{quote(card.file)}">{_svg(card.picture)}'
        f"<span><b><bdi>{name}</bdi></b><bdi>{description}</bdi><small><bdi>{result}</bdi></small>"
        f"<small>{card.size / 1000:,.0f} KB</small></span></a>{live}</article>"
    )


def _svg(picture: list[list[int]]) -> str:
    width, height = SQUARE * max(map(len, picture), default=1), SQUARE * len(picture)
    cells = "".join(
        f'<rect class="{CLASSES[kind]}" x="{SQUARE * x}" y="{SQUARE * y}" width="{SQUARE - 1}" height="{SQUARE - 1}"/>'
        for y, row in enumerate(picture)
        for x, kind in enumerate(row)
        if kind
    )
    return f'<svg viewBox="0 0 {width} {height}" preserveAspectRatio="xMidYMin slice" aria-hidden="true">{cells}</svg>'
