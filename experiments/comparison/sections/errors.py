"""Where and how wrong tapes go wrong: counts as bars, and real tapes."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from experiments.comparison.anatomy import KINDS, PLACES
from experiments.comparison.sections.pieces import facts, folded, note, swatch, text
from experiments.comparison.sections.tapes import example_html
from experiments.comparison.summary import Family, Record, Results, anatomies, families, family_of
from rasp.formats.json import from_json

AT_FIRST = 7  # examples shown before one asks for more
EXPLANATION = """Shaded: the head, the state standing right of the cell it reads. Outlined: the first wrong token, and
what should stand there. What is written after it is faint. ⊢ and ⊣ are the ends of the tape, | is the separator."""


def anatomy(results: Results) -> str:
    wrong = wrong_by_family(results)
    if not wrong:
        return "<p>No simulator wrote a wrong tape.</p>"
    shown = places_and_kinds(wrong, "Where the first wrong token stands")
    meanings = {name: text(what) for name, what in {**PLACES, **KINDS}.items()}
    return (
        "<p>The first wrong token of a written tape decides where and how it went wrong.</p>"
        + shown
        + folded("What the words mean", facts(meanings))
        + _examples(results)
    )


def wrong_by_family(results: Results) -> list[tuple[Family, Record]]:
    """The anatomy of errors of everyone who made any."""
    found = [(family, counts) for family in families(results) if (counts := anatomies(results, family))]
    return [(family, counts) for family, counts in found if counts["wrong"]]


def places_and_kinds(wrong: Sequence[tuple[Family, Record]], where: str) -> str:
    titles = {"places": where, "kinds": "What went wrong"}
    return "".join(f"<h3>{title}</h3>{_bars(wrong, key)}" for key, title in titles.items())


def _bars(wrong: Sequence[tuple[Family, Record]], key: str) -> str:
    names = list(dict.fromkeys(name for _, counts in wrong for name in counts[key]))
    lines = []
    for family, counts in wrong:
        bar = "".join(_piece(name, i, counts[key].get(name, 0), counts["wrong"]) for i, name in enumerate(names))
        lines.append(
            f'<span>{text(family.label)}</span><div class="bar">{bar}</div>'
            f'<span class="count">{counts["wrong"]:,} wrong of {counts["tapes"]:,}</span>'
        )
    legend = "".join(f"<span>{swatch(f'b{i}')}{text(name)}</span>" for i, name in enumerate(names))
    return f'<div class="bars">{"".join(lines)}</div><div class="legend">{legend}</div>'


def _piece(name: str, colour: int, count: int, total: int) -> str:
    share = 100 * count / total
    return f'<span style="width: {share:.2f}%; background: var(--b{colour})" title="{text(name)}: {count:,}"></span>'


def _examples(results: Results) -> str:
    machines = {machine["name"]: from_json(machine["machine"]) for machine in results["machines"]}

    def show(machine: Record, family: Family, example: Record) -> str:
        return example_html(example, machines[machine["name"]], f"{family.label}, {machine['name']}")

    return real_examples(results, show, EXPLANATION)


def real_examples(results: Results, show: Callable[[Record, Family, Record], str], explanation: str) -> str:
    """Of each kind of error one example, learned models first; the rest can be unfolded."""
    shown: dict[tuple[bool, str], str] = {}
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
        return ""
    more = folded(f"{len(rest)} more", "".join(rest)) if rest else ""
    return f"<h3>Real examples</h3>{note(explanation)}{''.join(shown.values())}{more}"
