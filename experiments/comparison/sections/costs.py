"""What each costs, and as a multiple of the learned model."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from compile.markup import Markup, joined
from experiments.comparison.sections.pieces import NOTHING, duration, note, short, table, with_small
from experiments.comparison.summary import Record, Results, words_of

COSTS: dict[str, tuple[str, Callable[[float], str]]] = {
    "parameters": ("parameters", short),
    "nonzero": ("not zero", short),
    "flops_per_token": ("FLOPs per token", short),
    "tokens_per_second": ("tokens/s", short),
    "bytes": ("weights", lambda value: f"{short(value)}B"),
    "cache_bytes": ("KV cache", lambda value: f"{short(value)}B"),
    "seconds_to_make": ("time to make", duration),
}
LEARNED = "learned"
WORDS = """Measured in this run, on this computer; under each number its ratio to the learned model's.{means} Tokens
per second: greedy generation of {rows} {wholes} of the training length together, with a cache. The time to make a
learned model is its training, as recorded in its folder."""


def cost(results: Results) -> Markup:
    rows = rows_by_name(results)
    if not rows:
        return NOTHING
    base = {key: _mean(rows.get(LEARNED, []), key) for key in COSTS}
    body = [
        [name, *(_cell(_mean(found, key), base[key] if name != LEARNED else None, key) for key in COSTS)]
        for name, found in rows.items()
    ]
    some = next(iter(rows.values()))[0]
    means = "" if "task" in results else f" Means over machines ({len(results['machines'])}; tracr on the first only)."
    words = WORDS.format(means=means, rows=some.get("rows", "several"), wholes=f"{words_of(results).whole}s")
    kinds = [LEARNED if name == LEARNED else "" for name in rows]
    return joined((table(["", *(title for title, _ in COSTS.values())], body, kinds), note(words)))


def rows_by_name(results: Results) -> dict[str, list[Record]]:
    """Of all machines: learned models together, the others by their names."""
    found: dict[str, list[Record]] = {}
    for machine in results["machines"]:
        kinds = {sim["name"]: sim["kind"] for sim in machine["simulators"]}
        for row in machine["cost"]:
            name = LEARNED if kinds[row["simulator"]] == "learned" else row["simulator"]
            found.setdefault(name, []).append(row)
    return found


def _mean(rows: Sequence[Record], key: str) -> float | None:
    known = [row[key] for row in rows if row.get(key) is not None]
    return sum(known) / len(known) if known else None


def _cell(value: float | None, base: float | None, key: str) -> str:
    if value is None:
        return "–"
    said = COSTS[key][1](value).strip()
    return with_small(said, ratio_text(value / base)) if base else said


def ratio_text(ratio: float) -> str:
    """4.2x, 1/31."""
    if ratio <= 0:
        return "0"
    large = max(ratio, 1 / ratio)
    digits = f"{large:.3g}" if large < 1000 else f"{large:,.0f}"
    return f"{digits}x" if ratio >= 1 else f"1/{digits}"
