"""Where and how wrong tapes go wrong: counts as bars, and real tapes."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from compile.markup import Markup, joined, markup
from experiments.comparison.anatomy import KINDS, PLACES
from experiments.comparison.sections.pieces import NOTHING, facts, folded, note, swatch
from experiments.comparison.sections.tapes import example_html
from experiments.comparison.summary import Family, Record, Results, anatomies, families, family_of
from rasp.formats.json import from_json

AT_FIRST = 7  # examples shown before one asks for more
EXPLANATION = """Shaded: the head, the state standing right of the cell it reads. Outlined: the first wrong token, and
what should stand there. What is written after it is faint. ⊢ and ⊣ are the ends of the tape, | is the separator."""


def anatomy(results: Results) -> Markup:
    wrong = wrong_by_family(results)
    if not wrong:
        return Markup("<p>No simulator wrote a wrong tape.</p>")
    parts = (
        Markup("<p>The first wrong token of a written tape decides where and how it went wrong.</p>"),
        places_and_kinds(wrong, "Where the first wrong token stands"),
        folded("What the words mean", facts({**PLACES, **KINDS})),
        _examples(results),
    )
    return joined(parts)


def wrong_by_family(results: Results) -> list[tuple[Family, Record]]:
    """The anatomy of errors of everyone who made any."""
    found = [(family, counts) for family in families(results) if (counts := anatomies(results, family))]
    return [(family, counts) for family, counts in found if counts["wrong"]]


def places_and_kinds(wrong: Sequence[tuple[Family, Record]], where: str) -> Markup:
    titles = {"places": where, "kinds": "What went wrong"}
    return joined(markup("<h3>{}</h3>{}", title, _bars(wrong, key)) for key, title in titles.items())


def _bars(wrong: Sequence[tuple[Family, Record]], key: str) -> Markup:
    names = list(dict.fromkeys(name for _, counts in wrong for name in counts[key]))
    lines = []
    for family, counts in wrong:
        bar = joined(_piece(name, i, counts[key].get(name, 0), counts["wrong"]) for i, name in enumerate(names))
        lines.append(
            markup(
                '<span>{}</span><div class="bar">{}</div><span class="count">{:,} wrong of {:,}</span>',
                *(family.label, bar, counts["wrong"], counts["tapes"]),
            )
        )
    legend = joined(markup("<span>{}{}</span>", swatch(f"b{i}"), name) for i, name in enumerate(names))
    return markup('<div class="bars">{}</div><div class="legend">{}</div>', joined(lines), legend)


def _piece(name: str, colour: int, count: int, total: int) -> Markup:
    return markup(
        '<span style="width: {:.2f}%; background: var(--b{})" title="{}: {:,}"></span>',
        *(100 * count / total, colour, name, count),
    )


def _examples(results: Results) -> Markup:
    machines = {machine["name"]: from_json(machine["machine"]) for machine in results["machines"]}

    def show(machine: Record, family: Family, example: Record) -> Markup:
        return example_html(example, machines[machine["name"]], f"{family.label}, {machine['name']}")

    return real_examples(results, show, EXPLANATION)


def real_examples(results: Results, show: Callable[[Record, Family, Record], Markup], explanation: str) -> Markup:
    """Of each kind of error one example, learned models first; the rest can be unfolded."""
    shown: dict[tuple[bool, str], Markup] = {}
    rest = []
    for machine in results["machines"]:
        kinds = {sim["name"]: family_of(sim) for sim in machine["simulators"]}
        for row in sorted(machine["anatomy"], key=lambda row: kinds[row["simulator"]].kind == "program"):
            family = kinds[row["simulator"]]
            for example in row["examples"]:
                made = show(machine, family, example)
                key = (family.kind == "program", example["kind"])
                if key in shown or len(shown) >= AT_FIRST:
                    rest.append(made)
                else:
                    shown[key] = made
    if not shown:
        return NOTHING
    more = folded(f"{len(rest)} more", joined(rest)) if rest else NOTHING
    return markup("<h3>Real examples</h3>{}{}{}", note(explanation), joined(shown.values()), more)
