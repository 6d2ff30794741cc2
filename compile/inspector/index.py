"""An index of inspector pages: cards with a small picture of each run, one line per step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from string import Template
from urllib.parse import quote

from compile.inspector.page import static
from compile.markup import Markup, joined, markup, shown

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
        title=shown(title),
        styles=static("page.css") + static("gallery.css"),
        script=static("gallery.js"),
        cards=joined(map(_card, cards), "\n"),
    )


def _card(card: Card) -> Markup:
    live = markup('<a class="live" href="{}">run it live</a>', card.live) if card.live else Markup("")
    return markup(
        '<article><a class="card panel" href="{}">{}<span><b><bdi>{}</bdi></b><bdi>{}</bdi><small><bdi>{}</bdi></small>'
        "<small>{:,.0f} KB</small></span></a>{}</article>",
        *(quote(card.file), _svg(card.picture), card.name, card.description, card.result, card.size / 1000, live),
    )


def _svg(picture: list[list[int]]) -> Markup:
    width, height = SQUARE * max(map(len, picture), default=1), SQUARE * len(picture)
    cells = joined(
        markup(
            '<rect class="{}" x="{}" y="{}" width="{side}" height="{side}"/>',
            *(CLASSES[kind], SQUARE * x, SQUARE * y),
            side=SQUARE - 1,
        )
        for y, row in enumerate(picture)
        for x, kind in enumerate(row)
        if kind
    )
    return markup(
        '<svg viewBox="0 0 {} {}" preserveAspectRatio="xMidYMin slice" aria-hidden="true">{}</svg>',
        *(width, height, cells),
    )
