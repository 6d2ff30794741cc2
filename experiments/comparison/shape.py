"""What results.json looks like. A file that passes can be printed and drawn; what is wrong with another is named.

Beyond the shape of every part, its rows must fit together: they are of simulators that are listed, their counts add
up, and whoever takes part was tried.
"""

from __future__ import annotations

import re
from typing import Any

from experiments.comparison.sections.heads import VERDICTS
from experiments.comparison.summary import Record, Results, learned_of, programs_of, shares
from experiments.shapes import Misshapen, Shape, by_name, flag, maybe, number, one_of, record, rows, text, whole
from rasp.formats.json import from_json

KINDS = ("machine", "program", "compiled", "learned", "own")
GROUPS = ("unique", "repeated")
SECTIONS = ("accuracy", "difficulty", "anatomy", "cost", "parts", "lookback")  # whose rows name a simulator
PAGE = re.compile(r"(pages/)?[\w.-]+\.html(#.*)?")  # beside the report, and nowhere else


def page_name(value: Any, where: str) -> None:
    text(value, where)
    if value and not PAGE.fullmatch(value):
        raise Misshapen(value, where, "the name of a page beside the report")


def counted(value: Any, where: str) -> None:
    """A number that is the name of a field."""
    if not re.fullmatch(r"-?\d{1,9}", value):
        raise Misshapen(value, where, "a whole number")


def machine_text(value: Any, where: str) -> None:
    try:
        from_json(value if isinstance(value, str) else "")
    except ValueError as error:
        raise Misshapen(value, where, f"a machine ({error})") from None


# --- the shape of every part ------------------------------------------------------------------------------------------

COUNT, SIZE, SHARE, NEAR = whole(0), whole(1), number(0, 1), number(-2, 2)
PLACE: dict[str, Shape] = {"layer": COUNT, "head": COUNT}
RIGHT: dict[str, Shape] = {"accuracy": SHARE, "low": SHARE, "high": SHARE}
WHO: dict[str, Shape] = {"simulator": text}
LENGTHS = rows(SIZE, 2, 2)

SIMULATOR = record({"name": text, "kind": one_of(KINDS), "n": maybe(SIZE), "backend": maybe(text)})
TRIED = {"length": SIZE, "times": number(0.001, 10**6), "measure": text, "step": SIZE, "examples": SIZE}
ACCURACY = record({**WHO, **TRIED, **RIGHT})
DIFFICULTY = record({**WHO, "length": SIZE, "gram": SIZE, "group": one_of(GROUPS), "examples": COUNT, **RIGHT})
FAILED: dict[str, Shape] = {"at": COUNT, "place": text, "kind": text}
TAPES = record({**FAILED, "tape": rows(COUNT), "expected": rows(COUNT, 4), "written": rows(COUNT)})
WORDS = rows(text)
LINES = record({**FAILED, "length": SIZE, "cut": flag, "before": WORDS, "expected": WORDS, "said": WORDS})
COSTS = ("parameters", "nonzero", "flops_per_token", "tokens_per_second", "bytes", "cache_bytes", "seconds_to_make")
COST = record(WHO, {name: maybe(number(0)) for name in (*COSTS, "rows")})
PART = record({**WHO, "part": text, "tokens": SIZE, "wrong": COUNT})
LOOKBACK = record({**WHO, "needed": COUNT, "tokens": SIZE, "wrong": COUNT, "followed": by_name(COUNT, counted)})
MATCHES = rows(rows(NEAR), 1)
HEAD = record({**PLACE, "label": text, "matches": MATCHES, "baseline": MATCHES})
ABLATION = record({**PLACE, "window": maybe(COUNT), "lost": NEAR})
INDUCTION = record(
    {
        **PLACE,
        "label": text,
        "agreement": NEAR,
        "baseline": NEAR,
        "lost_when_ablated": NEAR,
        "verdict": one_of(VERDICTS),
    },
    {"shift": whole(-(10**6), 10**6), "others": rows(record(PLACE))},
)
MECHANISM = record({"compiled": text, "heads": rows(HEAD, 1), "ablation": rows(ABLATION), "induction": INDUCTION})
INSPECTED = record({"file": page_name, "title": text, "length": COUNT}, {"live": maybe(page_name)})
BY_LENGTH = rows(record({"length": SIZE, **RIGHT}))
TRAINED: dict[str, Shape] = {
    "rate": number(0, 10**6),
    "steps": COUNT,
    "before": BY_LENGTH,
    "after": BY_LENGTH,
    "relative_change": record({"all": number(0)}),
}
FROM_SCRATCH = record({**TRAINED, "start": one_of(["scratch"])})
GOING_ON = record({**TRAINED, "start": one_of(["compiled"]), "lost": NEAR, "keeps": flag, "generalises": flag})
FROM_COMPILED = record(
    {
        "machine": text,
        "n": SIZE,
        "parameters": COUNT,
        "exactness": record({"tokens": COUNT, "mismatches": COUNT}),
        "recipe": record({"steps": COUNT, "batch": COUNT, "context": COUNT, "lengths": LENGTHS}),
        "runs": rows(GOING_ON, 1),
        "scratch": maybe(FROM_SCRATCH),
    }
)


def errors(example: Shape) -> Shape:
    counts = by_name(COUNT)
    return record({**WHO, "wrong": COUNT, "tapes": COUNT, "places": counts, "kinds": counts, "examples": rows(example)})


def compared(example: Shape, more: dict[str, Shape]) -> Shape:
    """One machine, or one task."""
    return record(
        {
            "name": text,
            "train_lengths": LENGTHS,
            "simulators": rows(SIMULATOR, 1),
            "accuracy": rows(ACCURACY, 1),
            "difficulty": rows(DIFFICULTY),
            "anatomy": rows(errors(example)),
            "mechanism": maybe(MECHANISM),
            "cost": rows(COST),
            "inspector": rows(INSPECTED),
            **more,
        }
    )


MACHINE = compared(TAPES, {"machine": machine_text, "symbols": SIZE, "states": SIZE})
TASK = compared(LINES, {"parts": rows(PART), "lookback": rows(LOOKBACK)})
CHECKS = record(
    {
        "compiled_equals_program": record({"tokens": COUNT}),
        "criterion": record({}, {"problems": COUNT, "tapes": COUNT}),
    }
)


def seeds(value: Any, where: str) -> None:
    rows(COUNT, 1)(value if isinstance(value, list) else [value], where)


def whole_file(is_task: bool) -> Shape:
    return record(
        {
            "command": text,
            "seed": seeds,
            "seconds": number(0),
            "versions": by_name(text),
            "checks": CHECKS,
            "machines": rows(TASK if is_task else MACHINE, 1),
            **({"task": text, "unit": text} if is_task else {}),
        },
        {"from_compiled": maybe(FROM_COMPILED), "without": rows(text)},
    )


# --- how the parts fit together ---------------------------------------------------------------------------------------


def check_results(results: Any) -> Results:
    """The results, if they are what `compare` writes; otherwise `Misshapen`."""
    whole_file(isinstance(results, dict) and "task" in results)(results, "")
    for index, machine in enumerate(results["machines"]):
        check_machine(machine, f"machines[{index}]")
    names = [machine["name"] for machine in results["machines"]]
    if len(set(names)) < len(names):
        raise Misshapen(names, "machines", "a name of its own for each")
    check_tried(results)
    return results  # type: ignore[no-any-return]


def check_machine(machine: Record, where: str) -> None:
    known = {sim["name"] for sim in machine["simulators"]}
    for index, sim in enumerate(machine["simulators"]):
        if sim["kind"] in ("program", "compiled") and sim["n"] is None:
            raise Misshapen(None, f"{where}.simulators[{index}].n", "the n of the program")
    for section in SECTIONS:
        for index, row in enumerate(machine.get(section, ())):
            if row["simulator"] not in known:
                raise Misshapen(row["simulator"], f"{where}.{section}[{index}].simulator", "one that is listed")
    for index, row in enumerate(machine["anatomy"]):
        sums = {key: sum(row[key].values()) for key in ("places", "kinds")}
        if set(sums.values()) != {row["wrong"]} or row["wrong"] > row["tapes"]:
            raise Misshapen(row["wrong"], f"{where}.anatomy[{index}].wrong", f"what its parts add up to ({sums})")
    if machine["mechanism"] is not None:
        check_mechanism(machine["mechanism"], f"{where}.mechanism")


def check_mechanism(found: Record, where: str) -> None:
    sizes = [len(row) for row in found["heads"][0]["matches"]]
    for index, head in enumerate(found["heads"]):
        for key in ("matches", "baseline"):
            if [len(row) for row in head[key]] != sizes:
                raise Misshapen(head[key], f"{where}.heads[{index}].{key}", f"layers of {sizes} heads")
    if found["induction"]["label"] not in {head["label"] for head in found["heads"]}:
        raise Misshapen(found["induction"]["label"], f"{where}.induction.label", "that of one of the heads")
    ablated = {(row["layer"], row["head"]) for row in found["ablation"]}
    lacking = {(layer, head) for layer, size in enumerate(sizes) for head in range(size)} - ablated
    if lacking:
        raise Misshapen(sorted(ablated), f"{where}.ablation", f"a row for each head, also for {min(lacking)}")


def check_tried(results: Results) -> None:
    """Whoever the headline is about was tried, and programs at every length at which learned models were."""
    learned, programs = learned_of(results), programs_of(results)
    if learned is None and not programs:
        kinds = [sim["kind"] for sim in results["machines"][0]["simulators"]]
        raise Misshapen(kinds, "simulators", "a program or a learned model among them")
    needed = set(shares(results, learned)) if learned is not None else set()
    for family in (*programs, *([learned] if learned else [])):
        found = set(shares(results, family))
        if not found or not needed <= found:
            raise Misshapen(sorted(found), f"the lengths of {family.label}", f"at least {sorted(needed) or 'one'}")
