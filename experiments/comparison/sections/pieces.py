"""Pieces of HTML that the sections share."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence
from typing import Any

from experiments.comparison.drawing import COLOURS, as_svg
from experiments.comparison.summary import Family, Results, Share, backends_of, digits

text = html.escape


def table(head: Iterable[str], rows: Iterable[Sequence[str]], kinds: Sequence[str] = ()) -> str:
    """Cells are HTML already; `kinds` are classes of the rows."""
    top = "".join(f"<th>{cell}</th>" for cell in head)
    lines = []
    for index, (first, *rest) in enumerate(rows):
        kind = f' class="{kinds[index]}"' if kinds and kinds[index] else ""
        lines.append(f'<tr{kind}><th scope="row">{first}</th>{"".join(f"<td>{cell}</td>" for cell in rest)}</tr>')
    return f'<div class="scroll"><table><thead><tr>{top}</tr></thead><tbody>{"".join(lines)}</tbody></table></div>'


def figure(drawn: Any, name: str, description: str, said: str = "") -> str:
    words = f"<figcaption>{said}</figcaption>" if said else ""
    return f"<figure>{as_svg(drawn, name, text(description))}{words}</figure>"


def note(words: str) -> str:
    return f'<p class="note">{words}</p>'


def folded(title: str, inside: str, unfolded: bool = False) -> str:
    return f"<details{' open' * unfolded}><summary>{title}</summary>{inside}</details>"


def facts(known: dict[str, str]) -> str:
    """Names are text, values HTML."""
    return f"<dl>{''.join(f'<dt>{text(name)}</dt><dd>{value}</dd>' for name, value in known.items())}</dl>"


def swatch(colour: str) -> str:
    return f'<span class="swatch" style="--colour: var(--{colour})"></span>'


def named(results: Results, family: Family) -> str:
    """The name of a kind of simulator, with its colour, and to what it was compiled."""
    under = ", ".join(backends_of(results, family))
    small = f"<small>= {text(under)}</small>" if under else ""
    return f"{swatch(family.colour if family.colour in COLOURS else 'own')}{text(family.label)}{small}"


def share_cell(share: Share | None) -> str:
    if share is None:
        return ""
    same = share.low == share.high == share.mean  # nothing more to say
    return f"{digits(share.mean)}<small>{'' if same else f'{digits(share.low)} – {digits(share.high)}'}</small>"


def verdict(kind: str, words: str) -> str:
    """`kind` is good, bad or some (of both)."""
    return f'<span class="{kind}">{words}</span>'


def short(value: float) -> str:
    for size, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= size:
            return f"{value / size:.3g} {unit}"
    return f"{value:.3g} "


def duration(seconds: float) -> str:
    return f"{seconds / 60:.3g} min" if seconds >= 120 else f"{seconds:.2g} s"
