"""Problems of a task: how far back learned models look, where texts go wrong, and lines as they were written."""

from __future__ import annotations

from typing import Any

from compile.markup import Markup, joined, markup
from experiments.comparison import drawing
from experiments.comparison.sections.errors import places_and_kinds, real_examples, wrong_by_family
from experiments.comparison.sections.pieces import (
    NOTHING,
    facts,
    figure,
    folded,
    named,
    note,
    table,
    with_small,
)
from experiments.comparison.summary import Family, Record, Results, digits, families, family_of, learned_of, lookbacks
from experiments.comparison.tasks.measure import FAR, KINDS
from experiments.comparison.tasks.problems import COMPUTED, PLACES

LOOKBACK = """<p>Does the learned model behave like a program that looks k tokens back? Every copied token can be
known from the line before by looking for the last few tokens in it: some by the last one, some only by the last four.
The program with parameter n looks for n + 1, so it is never wrong on tokens that need no more, and takes the larger
of the possible answers on the others. A learned model like it would show the same step. All are asked on the same
texts, at every token.</p>"""
EXAMPLES = """The line before, the line as it should be, and what is said at each of its tokens after the right ones
before it. Outlined: the first wrong token, and what should stand there."""


def lookback(results: Results) -> Markup:
    learned = learned_of(results)
    drawn = drawing.lookback_figure(results) if learned is not None else None
    if learned is None or drawn is None:
        return NOTHING
    columns = sorted({back for family in families(results) for back in lookbacks(results, family) if back})
    rows = []
    for family in families(results):
        found = lookbacks(results, family)
        rows.append([named(results, family), *(_wrong(*found.get(back, (0, 0))) for back in columns)])
    kinds = [family.kind for family in families(results)]
    heads = [f"{back}{' or more' if back == FAR else ''}" for back in columns]
    said = "Share of copied tokens that are wrong, by how many tokens one must look back to know them; band: 95%."
    parts = (
        markup(LOOKBACK),
        table(["tokens back", *heads], rows, kinds),
        figure(drawn, "lookback", "copied tokens wrong by the tokens one must look back", said),
        _followed(results),
    )
    return joined(parts)


def _wrong(wrong: int, of: int) -> str:
    return with_small(digits(wrong / of), f"{wrong:,} of {of:,}") if of else "–"


def _followed(results: Results) -> Markup:
    """Whether wrong copies are what a program that looks less far back could say."""
    learned = {sim["name"] for m in results["machines"] for sim in m["simulators"] if family_of(sim).kind == "learned"}
    counts: dict[int, int] = {}
    for machine in results["machines"]:
        for row in machine["lookback"]:
            for back, count in row["followed"].items() if row["simulator"] in learned else ():
                counts[int(back)] = counts.get(int(back), 0) + count
    total = sum(counts.values())
    if not total:
        return note("No copied token was wrong.")
    lost = sum(count for back, count in counts.items() if back >= 1)
    parts = ", ".join(f"{count:,} after the same last {back}" for back, count in sorted(counts.items()) if back >= 1)
    return note(
        f"Of {total:,} copied tokens that learned models get wrong, {lost:,} stand elsewhere in the same part of the "
        f"line before after some of the same tokens ({parts or 'none'}): another place was taken for this one."
    )


def anatomy(results: Results) -> Markup:
    wrong = wrong_by_family(results)
    if not wrong:
        return Markup("<p>Nobody wrote a wrong text.</p>")
    used = {place for _, counts in wrong for place in counts["places"]}
    meanings = {name: what for name, what in {**PLACES, **KINDS}.items() if name in used or name in KINDS}
    parts = (
        Markup("<p>The first wrong token of a text decides where and how it went wrong.</p>"),
        places_and_kinds(wrong, "In which part of the text"),
        _by_part(results),
        folded("What the words mean", facts(meanings)),
        _examples(results),
    )
    return joined(parts)


def _by_part(results: Results) -> Markup:
    """Single wrong tokens, part by part."""
    parts = list(dict.fromkeys(row["part"] for m in results["machines"] for row in m["parts"]))
    rows, kinds = [], []
    for family in families(results):
        counts = {part: [0, 0] for part in parts}
        for machine in results["machines"]:
            names = {sim["name"] for sim in machine["simulators"] if family_of(sim) == family}
            for row in machine["parts"]:
                if row["simulator"] in names:
                    counts[row["part"]][0] += row["wrong"]
                    counts[row["part"]][1] += row["tokens"]
        if any(of for _, of in counts.values()):
            rows.append([named(results, family), *(_wrong(*counts[part]) for part in parts)])
            kinds.append(family.kind)
    if not rows:
        return NOTHING
    heads = [with_small(part, "computed" if part in COMPUTED else "") for part in parts]
    return markup("<h3>Single wrong tokens, part by part</h3>{}", table(["", *heads], rows, kinds))


def _examples(results: Results) -> Markup:
    def show(_: Record, family: Family, example: Record) -> Markup:
        return example_html(example, f"{family.label}, {example['length']} {results['unit']}")

    return real_examples(results, show, EXAMPLES)


def example_html(example: dict[str, Any], who: str) -> Markup:
    at = example["at"]
    cut = ["…"] if example["cut"] else []
    lines = [
        _line("before", example["before"], {}),
        _line("should be", [*cut, *example["expected"]], {at + len(cut): "due"}),
        _line("said", [*cut, *example["said"]], {at + len(cut): "wrong"}),
    ]
    said = markup("<p><b>{}</b>: {}, in the {}.</p>", who, example["kind"], example["place"])
    return markup('<div class="example">{}<div class="tapes close">{}</div></div>', said, joined(lines))


def _line(name: str, words: list[str], marks: dict[int, str]) -> Markup:
    cells = joined(markup('<i class="{}">{}</i>', marks.get(i, ""), word) for i, word in enumerate(words))
    return markup('<div class="tape"><span class="who">{}</span>{}</div>', name, cells)
