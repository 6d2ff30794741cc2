"""Pages of the inspector for a few traces of the comparison: one all get right, and one that each gets wrong."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from compile.playground import PAGE, Sizes, machine_link
from compile.transformer import Transformer
from experiments.comparison.measure import Comparison
from experiments.inspections import inspect_scene, machine_scene, write_live_page
from rasp import TuringMachine
from rasp.files import write_whole

FOLDER = "pages"
PREFERRED = ("lean", "hard_alibi", "tracr")  # few heads are easier to read
MOST_CELLS = 100  # longer tapes make pages nobody can read


def write_pages(
    folder: Path,
    name: str,
    found: Comparison,
    models: Mapping[tuple[str, int], Transformer],
    learned: Transformer | None,
) -> list[dict[str, Any]]:
    """Compiled and learned side by side, one step of the machine. What is written is listed for the report."""
    written: list[dict[str, Any]] = []
    for title, n, tape in telling_tapes(found):
        backend = min((backend for backend, of in models if of == n), key=PREFERRED.index)
        file = f"{FOLDER}/{as_file_name(name)}-{len(written) + 1}.html"
        scene = machine_scene(found.machine, tape, 1, f"{name}: {title}")
        names = (f"{backend} n={n}", f"learned {name}")
        page = inspect_scene(models[backend, n], scene, learned, names if learned is not None else names[:1])
        (folder / FOLDER).mkdir(exist_ok=True)
        write_whole(folder / file, page.html)
        live = live_link(found.machine, tape)
        written.append({"file": file, "title": title, "length": len(tape) - 3, "compiled": names[0], "live": live})
    if any(page["live"] for page in written) and not (folder / PAGE).exists():
        write_live_page(folder)
    return written


def live_link(machine: TuringMachine, tape: list[int]) -> str:
    """Where the universal transformer runs this step live; nothing if the machine is too large for its page."""
    if not Sizes().fits(machine):
        return ""
    return machine_link(machine, machine.format_tape(tape), 1, tags=False, room=False)


def telling_tapes(found: Comparison) -> Iterator[tuple[str, int, list[int]]]:
    """(what it shows, of which program, the tape): the shortest tape of each sort, if there is one."""
    known = {d.n: d.name for d in found.descriptions if d.kind == "program" and d.n is not None}
    learned = next((d.name for d in found.descriptions if d.kind == "learned"), None)
    most, least = max(known), min(known)
    sorts = [
        ("both are right", most, True, True),
        (f"the program with n = {least} is wrong", least, False, True),
        ("the learned model is wrong", most, True, False),
    ]
    for title, n, right, learned_right in sorts if learned else sorts[:2]:
        tape = first_tape(found, {known[n]: right} | ({learned: learned_right} if learned else {}))
        if tape is not None:
            yield title if learned or not right else "the program is right", n, tape


def first_tape(found: Comparison, wanted: Mapping[str, bool]) -> list[int] | None:
    """The first of the shortest tapes on which all simulators named are right or wrong as wanted."""
    for length in sorted({t.length for t in found.trials if t.length <= MOST_CELLS}):
        trials = [next(t for t in found.trials if (t.simulator, t.length) == (name, length)) for name in wanted]
        together = min(len(t.tapes) for t in trials)  # all begin with the same tapes
        fits = [t.right[:together] == right for t, right in zip(trials, wanted.values(), strict=True)]
        at = np.flatnonzero(np.logical_and.reduce(fits))
        if len(at):
            return trials[0].tapes[at[0]].tolist()
    return None


def as_file_name(name: str) -> str:
    return re.sub(r"[^\w.-]+", "-", name).strip("-.") or "machine"
