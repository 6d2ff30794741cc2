"""The plan of a compiled model, derived once more from what the model notes about itself, and run as one.

The plan says which registers there are and what each is computed from. `run_plan` evaluates it value by value, so it
tells what a model must say when a register is made to hold something else: what is decoded from a count does not
notice that the count's register was changed, and a map that was taken into another is computed from its inputs.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from compile.errors import CompileError
from compile.front.record import record_program
from compile.front.schedule import Placements
from compile.front.trace import check_vocabulary
from compile.hard_alibi.backend import HardAlibiBackend, HardAlibiOptions
from compile.machine import machine_source
from compile.pipeline import plan_stages
from compile.source import Source
from compile.tasks import task_source, universal_source
from compile.transformer import Transformer
from rasp.core import Program
from rasp.engines.attention import map_arrays
from rasp.formats.json import from_json
from rasp.graph import evaluate_node
from rasp.programs.tasks import task_program
from rasp.programs.universal import Size

Held = Mapping[tuple[int, int], int]  # (node, position) -> the value that its register is made to hold


def plan_of(model: Transformer) -> Placements:
    """The plan that this model's weights carry out; derived when it is first asked for."""
    kept = model.__dict__.setdefault("_plan", [])
    if not kept:
        kept.append(_derived(model))
    plan: Placements = kept[0]
    return plan


def _derived(model: Transformer) -> Placements:
    extra, known = model.config.extra, model.config.annotations.program
    if known is None or extra.get("backend") != "hard_alibi":
        raise CompileError("only models of the backend hard_alibi that were compiled from a named program have a plan")
    program, tokens, counts = _noted(model)
    source = Source(program, check_vocabulary(range(tokens)))
    plan = plan_stages(source, HardAlibiBackend(), HardAlibiOptions(counts=counts))
    if record_program(plan.graph) != known:
        raise CompileError("this model's program is not the one that is compiled here now; compile the model again")
    return plan


def _noted(model: Transformer) -> tuple[Program, int, int]:
    """The program, its number of tokens, and how far it counts."""
    extra = model.config.extra
    n = int(str(extra["n"]))
    if "universal" in extra:
        size = Size(*model.config.note("universal", list))
        return universal_source(*size, n), len(size.vocabulary), int(str(extra["steps"])) + 2
    if "task" in extra:
        name = str(extra["task"])
        return task_source(name, n), len(task_program(name).vocabulary), int(str(extra["lines"]))
    if "machine" in extra:
        machine = from_json(str(extra["machine"]))
        return machine_source(machine, n, str(extra["packing"])), machine.base, int(str(extra["steps"])) + 2
    raise CompileError("this model notes neither a machine nor a task that it was compiled from")


def run_plan(plan: Placements, tokens: np.ndarray, held: Held | None = None) -> list[np.ndarray]:
    """The value of every node, where registers are made to hold other values at some positions."""
    changes: dict[int, list[tuple[int, int]]] = {}
    for (changed, position), value in (held or {}).items():
        changes.setdefault(changed, []).append((position, value))
    computed: list[np.ndarray] = []
    values: list[np.ndarray] = []
    for i, node in enumerate(plan.graph.nodes):
        place = plan[i]
        if place.counted is not None and place.counted.count != i:
            found = map_arrays(place.counted.function, computed[place.counted.count])
        elif place.form is not None:
            found = map_arrays(place.form.expr, *(values[j] for j in place.form.inputs))
        elif place.function is not None:
            found = map_arrays(place.function, values[place.register])
        else:
            found = evaluate_node(node, values, [np.asarray(tokens)])
        computed.append(found)
        if i in changes:
            found = found.copy()
            for position, value in changes[i]:
                found[position] = value
        values.append(found)
    return values
