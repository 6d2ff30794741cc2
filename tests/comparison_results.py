"""Results of a comparison made up in the shape of the real ones, so that the page can be tested in no time."""

from __future__ import annotations

from typing import Any

import numpy as np

from experiments.evaluation.results import wilson
from experiments.tasks.turing_rasp import draw_tapes, follow
from rasp import TuringMachine
from rasp.formats.json import to_json

TIMES = (1.0, 1.5, 2.0, 3.0, 5.0, 10.0)
LEARNED = (0.99, 0.96, 0.94, 0.85, 0.5, 0.08)
GRAMS = (1, 2, 3, 4, 5)


def made_up(machines: int = 3, seed: int = 0, length: int = 20, learned: float = 1.0) -> dict[str, Any]:
    """`learned` scales how often the learned models are right: 0 for a damaged checkpoint."""
    rng = np.random.default_rng(seed)
    return {
        "command": "turing-programs compare --shipped",
        "seed": seed,
        "steps": 10,
        "seconds": 412.0,
        "versions": {"python": "3.11", "torch": "2.13"},
        "checks": {
            "compiled_equals_program": {"tokens": 1_234_567, "mismatches": 0},
            "criterion": {"tapes": 54_321, "mismatches": 0},
        },
        "machines": [_machine(rng, index, length, learned) for index in range(machines)],
        "from_compiled": _from_compiled(length),
    }


def _machine(rng: np.random.Generator, index: int, length: int, learned: float) -> dict[str, Any]:
    machine = TuringMachine.random(symbols=15, states=5, seed=index)
    name = f"learned tm-{index}"
    sims = [
        {"name": "machine", "kind": "machine", "n": None, "backend": None},
        *({"name": f"program n={n}", "kind": "program", "n": n, "backend": None} for n in (1, 2, 3, 4)),
        *(
            {"name": f"{b} n={n}", "kind": "compiled", "n": n, "backend": b}
            for b in ("hard_alibi", "lean")
            for n in (1, 2, 3, 4)
        ),
        {"name": name, "kind": "learned", "n": None, "backend": None},
    ]
    return {
        "name": f"tm-{index}",
        "machine": to_json(machine),
        "symbols": 15,
        "states": 5,
        "train_lengths": [2, length],
        "simulators": sims,
        "accuracy": [row for sim in sims for row in _accuracy(rng, sim, length, learned)],
        "difficulty": [row for sim in sims for row in _difficulty(rng, sim, length, learned)],
        "anatomy": [_anatomy(rng, machine, sim["name"], wrong) for sim, wrong in ((sims[1], 90), (sims[-1], 40))],
        "mechanism": _mechanism(rng, learned),
        "cost": [_cost(sim) for sim in sims],
        "inspector": [{"file": f"pages/tm-{index}-right.html", "title": "both are right", "length": length}],
    }


def _share(sim: dict[str, Any], times: float, learned: float) -> float:
    if sim["kind"] == "machine":
        return 1.0
    if sim["kind"] == "learned":
        return float(np.interp(times, TIMES, LEARNED)) * learned
    return float(np.exp(-((20 * times) ** 2) / 2 / 12.0 ** (sim["n"] + 1)))


def _row(rng: np.random.Generator, share: float, examples: int) -> dict[str, Any]:
    right = int(rng.binomial(examples, share))
    low, high = wilson(right, examples)
    return {"accuracy": right / examples if examples else 0.0, "low": low, "high": high, "examples": examples}


def _accuracy(rng: np.random.Generator, sim: dict[str, Any], length: int, learned: float) -> list[dict[str, Any]]:
    rows = []
    for times in TIMES:
        noise = rng.normal(0, 0.02 * learned * (sim["kind"] == "learned"))
        share = float(np.clip(_share(sim, times, learned) + noise, 0, 1))
        where = {"simulator": sim["name"], "length": round(length * times), "times": times, "step": 1}
        token = 1 - (1 - share) / 25
        rows.append({**where, "measure": "token", **_row(rng, token, 96 * round(length * times))})
        rows.append({**where, "measure": "tape", **_row(rng, share, 96)})
    for step in range(1, 11):
        share = _share(sim, 2.0, learned) ** step
        rows.append(
            {
                "simulator": sim["name"],
                "length": 2 * length,
                "times": 2.0,
                "measure": "rollout",
                "step": step,
                **_row(rng, share, 96),
            }
        )
    return rows


def _difficulty(rng: np.random.Generator, sim: dict[str, Any], length: int, learned: float) -> list[dict[str, Any]]:
    rows = []
    for gram in GRAMS:
        for times in TIMES[:4]:
            unique = int(96 * np.exp(-((length * times) ** 2) / 2 / 12.0**gram))
            for group, examples in (("unique", unique), ("repeated", 96 - unique)):
                share = _share(sim, times, learned) - 0.1 * (group == "repeated") * learned
                if sim["kind"] in ("program", "compiled"):
                    share = _program_share(sim["n"] + 1, gram, group)
                rows.append(
                    {
                        "simulator": sim["name"],
                        "gram": gram,
                        "group": group,
                        "length": round(length * times),
                        **_row(rng, max(share, 0) if sim["kind"] != "machine" else 1.0, examples),
                    }
                )
    return rows


def _program_share(own: int, gram: int, group: str) -> float:
    if group == "unique":
        return 1.0 if gram <= own else 0.5
    return 0.0 if gram >= own else 0.5


def _anatomy(rng: np.random.Generator, machine: TuringMachine, name: str, wrong: int) -> dict[str, Any]:
    examples = []
    for width, kind in ((18, "lost place"), (40, "wrong transition")):
        tape, expected = follow(machine, draw_tapes(rng, machine, np.array([width])), 1)[0].tolist()
        at = int(rng.integers(3, width))
        written = [*expected[:at], *expected[at + 3 :], 0, 0, 0][: len(expected)]
        examples.append(
            {"tape": tape, "expected": expected, "written": written, "at": at, "place": "copy", "kind": kind}
        )
    near, end = wrong // 5, wrong // 10
    return {
        "simulator": name,
        "wrong": wrong,
        "tapes": 288,
        "examples": examples,
        "places": {"near head": near, "copy": wrong - near - end, "end marker": end},
        "kinds": {
            "wrong transition": near,
            "lost place": wrong - near - end,
            "early stop": end,
            "ran on": 0,
            "other": 0,
        },
    }


def _mechanism(rng: np.random.Generator, learned: float) -> dict[str, Any]:
    labels = [*(f"uniform over the last {w}" for w in range(2, 8)), "count sep", "match next 5-gram"]
    heads = []
    for i, label in enumerate(labels):
        matches = rng.uniform(0, 0.2, (3, 8))
        matches[i % 3, i % 8] = 0.8 * learned
        baseline = rng.uniform(0.02, 0.1, (3, 8))
        layer, head = (int(k) for k in np.unravel_index(matches.argmax(), matches.shape))
        heads.append(
            {
                "layer": int(i == len(labels) - 1),
                "head": i % (len(labels) - 1),
                "label": label,
                "matches": matches.tolist(),
                "baseline": baseline.tolist(),
                "best": {
                    "layer": layer,
                    "head": head,
                    "agreement": float(matches.max()),
                    "baseline": float(baseline[layer, head]),
                },
            }
        )
    lost = rng.uniform(0, 0.3, (3, 8)) * learned
    lost[1, 7] = 0.9 * learned
    ablation = [
        {
            "layer": a,
            "head": b,
            "window": b + 1 if b < 4 else None,
            "accuracy": float(learned - lost[a, b]),
            "lost": float(lost[a, b]),
        }
        for a in range(3)
        for b in range(8)
    ]
    return {
        "compiled": "lean n=4",
        "tokens": 4000,
        "heads": heads,
        "ablation": ablation,
        "unablated": learned,
        "induction": {
            "label": labels[-1],
            "layer": 1,
            "head": 7,
            "agreement": 0.8 * learned,
            "baseline": 0.05,
            "lost_when_ablated": float(lost[1, 7]),
            "verdict": "found" if learned else "not found",
        },
    }


def _cost(sim: dict[str, Any]) -> dict[str, Any]:
    if sim["kind"] == "learned":
        sizes: tuple[Any, ...] = (594_688, 594_688, 1_189_376, 9000.0, 2_378_752, 1500.0)
    elif sim["kind"] == "compiled":
        sizes = (3_000_000 * sim["n"], 25_000, 6_000_000, 4000.0, 12_000_000, 2.0)
    else:
        sizes = (None, None, None, 3e7, None, 0.1)
    keys = ("parameters", "nonzero", "flops_per_token", "tokens_per_second", "bytes", "seconds_to_make")
    return {"simulator": sim["name"], **dict(zip(keys, sizes, strict=True))}


def _from_compiled(length: int) -> dict[str, Any]:
    def rows(*shares: float) -> list[dict[str, Any]]:
        return [
            {"length": length * times, "accuracy": share, "low": share, "high": share}
            for times, share in zip((1, 2, 3, 5), shares, strict=True)
        ]

    def run(start: str, rate: float, after: list[dict[str, Any]], lost: float) -> dict[str, Any]:
        before = rows(1.0, 1.0, 0.99, 0.95) if start == "compiled" else []
        return {
            "start": start,
            "rate": rate,
            "steps": 60,
            "before": before,
            "after": after,
            "lost": lost,
            "keeps": lost < 0.05,
            "generalises": lost < 0.5,
            "relative_change": {"all": rate},
        }

    return {
        "machine": "tm-0",
        "n": 3,
        "parameters": 2_000_000,
        "exactness": {"tokens": 5000, "mismatches": 0},
        "recipe": {"steps": 60, "batch": 16, "context": 64, "lengths": [2, length]},
        "runs": [
            run("compiled", 1e-5, rows(1.0, 1.0, 0.99, 0.95), 0.0),
            run("compiled", 1e-3, rows(0.3, 0.0, 0.0, 0.0), 1.0),
        ],
        "scratch": run("scratch", 1e-3, rows(0.0, 0.0, 0.0, 0.0), 0.0),
    }
