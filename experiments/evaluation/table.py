"""The paper's Table 1 beside what is shipped here: learned models by the results kept beside their checkpoints,
compiled ones by kept runs of `exact`. Nothing is measured."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from statistics import mean
from typing import TYPE_CHECKING, Any

from experiments.evaluation.figures import seeds_of
from experiments.evaluation.results import Result
from experiments.evaluation.shipped import FOLDER, kept_results, need_checkout, read_recipe_of
from experiments.files import read_json, write_json

if TYPE_CHECKING:
    from experiments.evaluation.compiled import CompiledResult

EXACT = FOLDER / "exact.json"


@dataclass(frozen=True)
class PaperRow:
    """What the paper reached, which shipped checkpoints do the same here, and at which multiple of their length."""

    task: str
    paper: str
    checkpoints: tuple[str, ...]
    times: float
    unit: str
    exact: str = ""  # the task of `exact`
    compiled: str = "not measured"  # what is said where there is no run of it

    def here(self) -> list[str]:
        return [name for name in self.checkpoints if (FOLDER / name).is_dir()]


ROWS = (
    PaperRow("addition", "50 to 100 digits: 98%", seeds_of("addition"), 2, "digits", "addition"),
    PaperRow(
        "multiplication by 1 digit", "50 to 100 digits: 97%", ("multiplication1",), 2, "digits", "multiplication1"
    ),
    PaperRow(
        "multiplication by 3 digits", "50 to 100 digits: 97%", ("multiplication3",), 2, "digits", "multiplication3"
    ),
    PaperRow("SGD", "50 to 80 examples: 95%", ("sgd",), 1.6, "examples", compiled="a RASP-L program, not compiled"),
    PaperRow(
        "Turing machines, next tape",
        "50 to 150 cells: almost 100%",
        tuple(f"tm50-{k}" for k in range(10)),
        3,
        "cells",
        compiled="every length and machine, wherever no gram repeats",
    ),
    PaperRow(
        "the same, from shorter tapes",
        "",
        tuple(f"tm-{k}" for k in range(10)),
        3,
        "cells",
        compiled="the same weights",
    ),
)


@dataclass(frozen=True)
class TableRow:
    task: str
    paper: str
    learned: str
    compiled: str
    models: tuple[dict[str, Any], ...]  # of each: name, to, length, 1x, accuracy, low, high

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def paper_table() -> list[TableRow]:
    compiled = {found["task"]: found for found in kept_exact()}
    return [_row(row, compiled) for row in ROWS]


def _row(row: PaperRow, compiled: Mapping[str, Mapping[str, Any]]) -> TableRow:
    models = tuple(found for name in row.here() if (found := _model(name, row.times)))
    exact = _exact_text(compiled[row.exact]) if row.exact in compiled else row.compiled
    learned = _learned_text(models, row.unit) if models else "not measured" if row.here() else "not learned here"
    return TableRow(row.task, row.paper, learned, exact, models)


def _model(name: str, times: float) -> dict[str, Any] | None:
    """One checkpoint at its own length, and at the longest measured up to so many times that; None: at none."""
    to = read_recipe_of(FOLDER / name)["lengths"][1]
    whole = [r for r in kept_results([name]) if r.rollout == 1 and r.group == "all" and isinstance(r.length, int)]
    kept = {int(r.length): r for r in whole if to <= int(r.length) <= round(to * times)}
    if to not in kept or len(kept) == 1:
        return None
    return {"name": name, "to": to, "once": kept[to].accuracy, **_shown(kept[max(kept)])}


def _shown(found: Result) -> dict[str, Any]:
    return {key: value for key, value in found.to_dict().items() if key in ("length", "accuracy", "low", "high")}


def _learned_text(models: Sequence[Mapping[str, Any]], unit: str) -> str:
    first = models[0]
    lengths = f"{first['to']} to {first['length']} {unit}"
    if len(models) == 1:
        return f"{lengths}: {_percent(first['accuracy'])} [{_percent(first['low'])}, {_percent(first['high'])}]"
    shares = [model["accuracy"] for model in models]
    return f"{lengths}: {_percent(mean(shares))} ({len(models)} models, the worst {_percent(min(shares))})"


def _percent(share: float) -> str:
    """Never rounded up to all."""
    return f"{math.floor(share * 1000 + 0.5 if share < 0.9995 else share * 1000) / 10:g}%"


def _exact_text(found: Mapping[str, Any]) -> str:
    return (
        f"{found['digits']} digits, n = {found['n']}: {found['promised']} of {found['problems']} promised, "
        f"{'all ' if found['right'] == found['promised'] else ''}{found['right']} right"
    )


def table_markdown(rows: Sequence[TableRow]) -> str:
    lines = [["", "paper, trained on a GPU", "learned here, on a CPU", "compiled, by construction"], ["---"] * 4]
    lines += [[row.task, row.paper, row.learned, row.compiled] for row in rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


# --- what compiled models were seen to do


def kept_exact() -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = read_json(EXACT)["results"] if EXACT.is_file() else []
    return found


def keep_exact(found: CompiledResult, versions: Mapping[str, str]) -> None:
    """Beside those of other tasks."""
    need_checkout()
    others = [one for one in kept_exact() if one["task"] != found.request.task]
    write_json(EXACT, {"results": [*others, {**found.to_dict(), "versions": dict(versions)}]})
