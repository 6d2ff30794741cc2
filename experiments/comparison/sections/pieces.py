"""Pieces of HTML that the sections share. What is no `Markup` is shown as text."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from compile.markup import Markup, joined, markup
from experiments.comparison.drawing import COLOURS, as_svg
from experiments.comparison.summary import Family, Results, Share, backends_of, digits

NOTHING = Markup("")


def table(head: Iterable[str], rows: Iterable[Sequence[str]], kinds: Sequence[str] = ()) -> Markup:
    """`kinds` are classes of the rows."""
    top = joined(markup("<th>{}</th>", cell) for cell in head)
    lines = []
    for index, (first, *rest) in enumerate(rows):
        kind = markup(' class="{}"', kinds[index]) if kinds and kinds[index] else NOTHING
        cells = joined(markup("<td>{}</td>", cell) for cell in rest)
        lines.append(markup('<tr{}><th scope="row">{}</th>{}</tr>', kind, first, cells))
    return markup(
        '<div class="scroll"><table><thead><tr>{}</tr></thead><tbody>{}</tbody></table></div>', top, joined(lines)
    )


def figure(drawn: Any, name: str, description: str, said: str = "") -> Markup:
    words = markup("<figcaption>{}</figcaption>", said) if said else NOTHING
    return markup("<figure>{}{}</figure>", as_svg(drawn, name, description), words)


def note(words: str) -> Markup:
    return markup('<p class="note">{}</p>', words)


def folded(title: str, inside: Markup, unfolded: bool = False) -> Markup:
    return markup("<details{}><summary>{}</summary>{}</details>", " open" * unfolded, title, inside)


def facts(known: Mapping[str, str]) -> Markup:
    return markup("<dl>{}</dl>", joined(markup("<dt>{}</dt><dd>{}</dd>", *item) for item in known.items()))


def swatch(colour: str) -> Markup:
    return markup('<span class="swatch" style="--colour: var(--{})"></span>', colour)


def with_small(large: str, small: str) -> Markup:
    """Something, and beneath it in small letters what belongs to it."""
    return markup("{}<small>{}</small>", large, small)


def named(results: Results, family: Family) -> Markup:
    """The name of a kind of simulator, with its colour, and to what it was compiled."""
    under = ", ".join(backends_of(results, family))
    small = markup("<small>= {}</small>", under) if under else NOTHING
    colour = family.colour if family.colour in COLOURS else "own"
    return markup("{}{}{}", swatch(colour), family.label, small)


def share_cell(share: Share | None) -> Markup:
    if share is None:
        return NOTHING
    same = share.low == share.high == share.mean  # nothing more to say
    return with_small(digits(share.mean), "" if same else f"{digits(share.low)} – {digits(share.high)}")


def verdict(kind: str, words: str) -> Markup:
    """`kind` is good, bad or some (of both)."""
    return markup('<span class="{}">{}</span>', kind, words)


def short(value: float) -> str:
    for size, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= size:
            return f"{value / size:.3g} {unit}"
    return f"{value:.3g} "


def duration(seconds: float) -> str:
    return f"{seconds / 60:.3g} min" if seconds >= 120 else f"{seconds:.2g} s"
