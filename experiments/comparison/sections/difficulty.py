"""Tapes that repeat a gram, and tapes that do not: what the theorem says of the program, and what learned models do."""

from __future__ import annotations

from compile.markup import Markup, joined, markup
from experiments.comparison import drawing
from experiments.comparison.sections.pieces import NOTHING, figure, table, verdict, with_small
from experiments.comparison.summary import Results, digits, learned_of, pooled, programs_of, rows_of, words_of

GROUPS = {"unique": "no such gram twice", "repeated": "one repeated"}
WORDS = """<p>The program with parameter n looks for the last n + 1 tokens. The theorem says: it writes the next tape
rightly if and only if that tape repeats no (n + 1)-gram. So it must be right on all tapes of the one sort and on none
of the other; the learned model is free to do something else. To the tapes of random symbols, on which long grams
hardly ever repeat, tapes of few symbols are added here.</p>"""
CAPTION = f"""Long {{wholes}} repeat more, and are harder for other reasons as well: compare the two curves at one
length. Groups of fewer than {drawing.FEW} are left out; bands: 95% intervals."""


PROBLEMS = """<p>The program with parameter n looks for the last n + 1 tokens. Its contract says: it writes the whole
text rightly if and only if no copied part of it repeats an (n + 1)-gram. So it must be right on all problems of the
one sort and on none of the other; the learned model is free to do something else. To problems of random digits, some
of few different digits are added here.</p>"""


def difficulty(results: Results) -> Markup:
    if not drawing.grams_of(results):
        return NOTHING
    learned, programs = learned_of(results), {family.n: family for family in programs_of(results)}
    rows = []
    for gram in drawing.grams_of(results):
        taking = [family for family in (programs.get(gram - 1), learned) if family]
        cells = [
            pooled(rows_of(results, family, "difficulty", gram=gram, group=group))
            for group in GROUPS
            for family in taking
        ]
        rows.append([with_small(f"{gram}-grams", f"program n = {gram - 1}"), *map(_right_of, cells)])
    who = ["program", "learned"] if learned else ["program"]
    head = ["", *(with_small(name, words) for words in GROUPS.values() for name in who)]
    words = markup(PROBLEMS if "task" in results else WORDS)
    found, drawn = joined((words, table(head, rows))), drawing.difficulty_figure(results)
    if drawn is None:
        return found
    whole = words_of(results).whole
    about = f"learned models on {whole}s with and without repeats"
    return joined((found, figure(drawn, "difficulty", about, CAPTION.format(wholes=f"{whole}s"))))


def _right_of(counts: tuple[int, int]) -> str:
    right, of = counts
    if not of:
        return "–"
    kind = "good" if right == of else "bad" if right == 0 else "some"
    return with_small(verdict(kind, digits(right / of)), f"{right:,} of {of:,}")
