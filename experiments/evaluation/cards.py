"""The card of a shipped checkpoint: what it is, how it was trained, how good it is, and how to train it again."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

TASKS = {
    "turing_rasp": "one step of a Turing machine (RASP format)",
    "turing_paper": "one step of a Turing machine (the paper's format)",
    "addition": "addition",
    "multiplication": "multiplication by a number of {digits} digit(s)",
    "sgd": "SGD on linear regression",
}
SAME = (
    "`turing-programs reproduce {name}` trains it again from `recipe.json`: to the same weights with the same versions "
    "on the same kind of CPU in the same precision, to others that are about as good elsewhere."
)


def card(name: str, recipe: Mapping[str, Any], record: Mapping[str, Any], weights: bool = True) -> str:
    task, model = recipe["task"], recipe["model"]
    learned = TASKS[task["name"]].format(**{"digits": 1, **task})
    learned += "" if task.get("scratchpad", True) else ", without scratchpad"
    low, high = recipe["lengths"]
    facts = {
        "task": f"{learned}; lengths {low} to {high} in training",
        "model": f"{model['layers']} layers of width {model['d_model']}, encoding {model['encoding']}, "
        f"{record['parameters']:,} parameters, {'stored in half precision' if weights else 'which are not stored'}",
        "begins with": f"the weights of `{recipe['start']}`" if recipe.get("start") else "fresh weights",
        "training": f"{record['steps_done']:,} steps, {record['tokens']:,} tokens, "
        f"{record['seconds'] / 60:.0f} minutes in {record['precision']} on {record['threads']} thread(s), "
        f"torch {record['torch']}",
    }
    lines = [f"# {name}", "", *(f"- {key}: {value}" for key, value in facts.items()), ""]
    lines += ["| length | steps in a row | right | 95% interval | of |", "| --- | --- | --- | --- | --- |"]
    lines += [
        f"| {r['length']} | {r['rollout']} | {r['accuracy']:.3f} | {r['low']:.3f} - {r['high']:.3f} | {r['examples']} |"
        for r in record.get("evaluation", [])
        if isinstance(r["length"], int)  # not the grid of operand lengths
    ]
    return "\n".join([*lines, "", record.get("retraining", SAME.format(name=name)), ""])
