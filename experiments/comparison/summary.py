"""What many machines say together: means and ranges per kind of simulator, and the table of docs/results.md.

Everything here is computed from the results alone, so whatever is printed or drawn has its numbers in results.json.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from experiments.evaluation.results import wilson

Results = dict[str, Any]
Record = dict[str, Any]
FEW = 10  # groups with fewer tapes than this say nothing
MADE = ("program", "compiled")  # compiled models equal their program at every token: that is asserted, not averaged


@dataclass(frozen=True)
class Words:
    """What was compared: tapes of machines, or problems of a task."""

    whole: str = "tape"  # right or wrong as a whole; also the name of that measure
    wholes: str = "next tapes"
    unit: str = "cells"
    law: str = "theorem"
    repeating: str = "the next tape repeats"
    start: str = "true machine"


def words_of(results: Results) -> Words:
    if "task" not in results:
        return Words()
    return Words("problem", "problems", str(results["unit"]), "contract", "a copied part repeats", "")


@dataclass(frozen=True, order=True)
class Family:
    """Simulators that play the same part on different machines: the true machine, a program, learned models."""

    order: int
    label: str
    kind: str
    n: int | None = None

    @property
    def colour(self) -> str:
        return f"n{self.n}" if self.n else self.kind


def family_of(simulator: Record) -> Family:
    kind, n = simulator["kind"], simulator["n"]
    if kind == "machine":
        return Family(0, "true machine", kind)
    if kind in MADE:
        return Family(1, f"program n = {n}", "program", n)
    if kind == "learned":
        return Family(2, "learned", kind)
    return Family(3, simulator["name"], kind)


@dataclass(frozen=True)
class Share:
    """How often right: the mean over machines. `low` and `high` are the range over machines, of one its interval."""

    mean: float
    low: float
    high: float
    machines: int
    examples: int

    def __str__(self) -> str:
        return f"{digits(self.mean)} [{digits(self.low)}, {digits(self.high)}]"


def digits(share: float) -> str:
    """.993; what is not quite 1 is never shown as 1."""
    text = f"{min(share, 0.999) if share < 1 else share:.3f}"
    return text.removeprefix("0")


def percent(share: float) -> str:
    if share in (0.0, 1.0):
        return f"{share:.0%}"
    return f"{min(max(share, 0.001), 0.999):.1%}"


def rate_text(rate: float) -> str:
    """A learning rate; written out, since 1e-05 would be broken at the end of a line."""
    return f"{rate:f}".rstrip("0").rstrip(".")


def over_machines(rows: Sequence[Record]) -> Share:
    shares = [row["accuracy"] for row in rows]
    examples = sum(row["examples"] for row in rows)
    mean = sum(shares) / len(shares)
    if len(rows) == 1:
        return Share(mean, rows[0]["low"], rows[0]["high"], 1, examples)
    return Share(mean, min(shares), max(shares), len(rows), examples)


def pooled(rows: Iterable[Record]) -> tuple[int, int]:
    """(right, of): tapes counted together, whichever machine they are from."""
    known = list(rows)
    return sum(round(row["accuracy"] * row["examples"]) for row in known), sum(row["examples"] for row in known)


def families(results: Results) -> list[Family]:
    return sorted({family_of(sim) for machine in results["machines"] for sim in machine["simulators"]})


def learned_of(results: Results) -> Family | None:
    return next((family for family in families(results) if family.kind == "learned"), None)


def programs_of(results: Results) -> list[Family]:
    return [family for family in families(results) if family.kind == "program"]


def rows_of(results: Results, family: Family, section: str = "accuracy", **wanted: Any) -> list[Record]:
    """The rows of one family in a section, with the machine each is of. A program's own come before its compilations'.

    Compiled models say what their program says, so they add nothing to an average of it.
    """
    found = []
    for machine in results["machines"]:
        sims = [sim for sim in machine["simulators"] if family_of(sim) == family]
        kinds = {sim["kind"] for sim in sims}
        names = {sim["name"] for sim in sims if sim["kind"] == "program" or "program" not in kinds}
        high = machine["train_lengths"][1]
        for row in machine[section]:
            if row["simulator"] in names and all(row.get(key) == value for key, value in wanted.items()):
                times = round(row["length"] / high, 2) if "length" in row else None
                found.append({"times": times, **row, "machine": machine["name"]})
    return found


def times_of(results: Results) -> list[float]:
    return sorted(
        {
            row["times"]
            for machine in results["machines"]
            for row in machine["accuracy"]
            if row["measure"] == words_of(results).whole
        }
    )


def length_text(results: Results, times: float) -> str:
    """2x the training length; where nothing was trained, the cells of the tape or the digits of the problem."""
    if learned_of(results) is not None:
        return f"{times:.3g}x"
    return f"{round(times * results['machines'][0]['train_lengths'][1])} {words_of(results).unit}"


def shares(results: Results, family: Family, measure: str | None = None) -> dict[float, Share]:
    """By multiple of the training length; of whole tapes or problems, unless another measure is named."""
    rows = rows_of(results, family, measure=measure or words_of(results).whole, step=1)
    return {
        times: over_machines([row for row in rows if row["times"] == times])
        for times in sorted({row["times"] for row in rows})
    }


def rollouts(results: Results, family: Family) -> dict[int, Share]:
    rows = rows_of(results, family, measure="rollout")
    return {
        step: over_machines([row for row in rows if row["step"] == step])
        for step in sorted({row["step"] for row in rows})
    }


def rollout_times(results: Results) -> float | None:
    return next(
        (row["times"] for machine in results["machines"] for row in machine["accuracy"] if row["measure"] == "rollout"),
        None,
    )


def backends_of(results: Results, family: Family) -> list[str]:
    """Where a program was compiled to."""
    found = [
        sim["backend"]
        for machine in results["machines"]
        for sim in machine["simulators"]
        if sim["backend"] and family_of(sim) == family
    ]
    return list(dict.fromkeys(found))


# --- the table --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ShareTable:
    columns: list[str]
    rows: list[tuple[Family, list[Share | None]]]


def summary_table(results: Results) -> ShareTable:
    """Whole next tapes by length, then the longest rollout."""
    all_times, at = times_of(results), rollout_times(results)
    columns = [length_text(results, times) for times in all_times]
    rows = []
    for family in families(results):
        found, rolled = shares(results, family), rollouts(results, family)
        cells = [found.get(times) for times in all_times]
        rows.append((family, [*cells, rolled[max(rolled)] if rolled else None] if at else cells))
    steps = max((max(rollouts(results, family), default=1) for family in families(results)), default=1)
    return ShareTable([*columns, f"{steps} steps at {length_text(results, at)}"] if at else columns, rows)


def label(results: Results, family: Family) -> str:
    backends = ", ".join(backends_of(results, family))
    return f"{family.label} = {backends}" if backends else family.label


def as_markdown(results: Results) -> str:
    """The table of docs/results.md, made of the results and nothing else."""
    table = summary_table(results)
    lines = [["", *table.columns], ["---"] * (len(table.columns) + 1)]
    lines += [
        [label(results, family), *("" if cell is None else str(cell) for cell in cells)] for family, cells in table.rows
    ]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n\n" + caption(results)


def caption(results: Results) -> str:
    """What the table counts, in a sentence or two."""
    machines, words = results["machines"], words_of(results)
    names = machines[0]["name"] if len(machines) == 1 else f"{len(machines)} machines"
    spread = "the 95% interval" if len(machines) == 1 else "the range over machines"
    wholes = sum(row["examples"] for m in machines for row in m["accuracy"] if row["measure"] == words.whole)
    tokens, held = promises_kept(results)
    lengths = ", by length as a multiple of the longest one trained on" if learned_of(results) else ""
    seeds = str(results["seed"]).strip("[]")
    said = (
        f"{names}, seed {seeds}: the share of {words.wholes} that are right as a whole{lengths}; with it "
        f"{spread}; {wholes:,} {words.whole}s written."
    )
    if tokens:
        said += (
            f" Compiled models, given a part of the {words.whole}s, agree with their program at all {tokens:,} "
            "tokens compared"
        )
    if held:
        joined = ", and" if tokens else ""
        said += f"{joined} {held:,} {words.whole}s are right or wrong exactly as the {words.law} says"
    return said if said.endswith(".") else f"{said}."


def promises_kept(results: Results) -> tuple[int, int]:
    """How many tokens of compiled models, and how many tapes or problems, were held to what is promised of them."""
    equal, criterion = results["checks"]["compiled_equals_program"], results["checks"]["criterion"]
    return equal["tokens"], criterion.get("problems", criterion.get("tapes", 0))


# --- more to count ----------------------------------------------------------------------------------------------------


def telling_gram(results: Results, family: Family) -> int | None:
    """The gram size whose two groups are most evenly filled."""
    sizes: dict[int, int] = {}
    for gram in sorted({row["gram"] for row in rows_of(results, family, "difficulty")}):
        sizes[gram] = min(
            pooled(rows_of(results, family, "difficulty", gram=gram, group=group))[1]
            for group in ("unique", "repeated")
        )
    best = max(sizes, key=lambda gram: sizes[gram], default=None)
    return best if best is not None and sizes[best] >= FEW else None


def anatomies(results: Results, family: Family) -> Record | None:
    """The counts of one family's errors, added up over machines."""
    rows = rows_of(results, family, "anatomy")
    if not rows:
        return None
    added: Record = {key: sum(row[key] for row in rows) for key in ("wrong", "tapes")}
    for key in ("places", "kinds"):
        names = dict.fromkeys(name for row in rows for name in row[key])
        added[key] = {name: sum(row[key].get(name, 0) for row in rows) for name in names}
    return added


def lookbacks(results: Results, family: Family) -> dict[int, tuple[int, int]]:
    """(wrong, of) copied tokens, by how many tokens one must look back to know them."""
    found: dict[int, tuple[int, int]] = {}
    for machine in results["machines"]:
        names = {sim["name"] for sim in machine["simulators"] if family_of(sim) == family}
        for row in machine.get("lookback", ()):
            if row["simulator"] in names:
                wrong, of = found.get(row["needed"], (0, 0))
                found[row["needed"]] = wrong + row["wrong"], of + row["tokens"]
    return dict(sorted(found.items()))


def inductions(results: Results) -> list[Record]:
    """Of every machine with a learned model, what became of the compiled match head."""
    return [machine["mechanism"]["induction"] for machine in results["machines"] if machine.get("mechanism")]


def interval(right: int, of: int) -> Share:
    low, high = wilson(right, of)
    return Share(right / of if of else 0.0, low, high, 1, of)
