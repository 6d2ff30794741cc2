"""What becomes of a compiled model that is trained on."""

from __future__ import annotations

from collections.abc import Sequence

from compile.markup import Markup, joined, markup
from experiments.comparison.sections.pieces import NOTHING, note, short, table, verdict, with_small
from experiments.comparison.summary import Record, Results, digits, rate_text

WORDS = """<p>The compiled <code>lean n={n}</code> model of {machine}, written into the weights of a trainable one
(RMSNorm before every part, GELU, no biases; {parameters} parameters), says the same as before: {mismatches} of
{tokens:,} tokens differ. Then it is trained on, on the data that the learned model had ({steps} steps of {batch} rows
of {context} tokens), at several learning rates, and a model of the same shape is trained from scratch. Does it keep
what was compiled?</p>"""
NOTE = """Share of next tapes right as a whole, by multiple of the training length; small: 95% intervals. Changed by:
the distance that all weights together moved, as a share of their size."""


def from_compiled(results: Results) -> Markup:
    found = results.get("from_compiled")
    if not found:
        return NOTHING
    recipe, exact = found["recipe"], found["exactness"]
    words = markup(
        WORDS,
        n=found["n"],
        machine=found["machine"],
        parameters=short(found["parameters"]).strip(),
        tokens=exact["tokens"],
        mismatches=exact["mismatches"],
        steps=recipe["steps"],
        batch=recipe["batch"],
        context=recipe["context"],
    )
    runs = [*found["runs"], *([found["scratch"]] if found["scratch"] else [])]
    lengths = [row["length"] / recipe["lengths"][1] for row in runs[0]["after"]]
    body = [["as compiled", *_shares(runs[0]["before"]), "", ""], *map(_row, runs)]
    head = ["", *(f"{times:g}x" for times in lengths), "changed by", "accuracy"]
    return joined((words, table(head, body), note(NOTE)))


def _row(run: Record) -> list[str]:
    name = "from scratch" if run["start"] == "scratch" else "trained on"
    first = with_small(name, f"rate {rate_text(run['rate'])}, {run['steps']} steps")
    return [first, *_shares(run["after"]), f"{run['relative_change']['all']:.2g}", _verdict(run)]


def _verdict(run: Record) -> Markup:
    if run["start"] == "scratch":
        return NOTHING
    if run["keeps"]:
        return verdict("good", "kept")
    return verdict("some" if run["generalises"] else "bad", f"lost up to {digits(run['lost'])}")


def _shares(rows: Sequence[Record]) -> list[str]:
    return [with_small(digits(row["accuracy"]), f"{digits(row['low'])} – {digits(row['high'])}") for row in rows]
