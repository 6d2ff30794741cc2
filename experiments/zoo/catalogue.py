"""What is in the zoo: each model's program, its tokens, how it is compiled, and inputs that show what it does."""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from experiments.zoo import programs
from rasp import TuringMachine, gallery
from rasp.formats.json import to_json

STEPS, LINES = 8, 8  # that the zoo's machines and texts can count


@dataclass(frozen=True)
class ZooEntry:
    """A model to be: `recipe` says how it is compiled, `source` is the program's text, `machine` the machine's."""

    name: str
    family: str
    description: str
    recipe: Mapping[str, Any]
    source: str
    machine: str | None = None
    twin: str | None = None  # a shipped checkpoint that learned the same
    program: Callable[[Any], Any] | None = field(default=None, compare=False)


NAMES = {"induct_one": "induct"}  # the library has the better name
HEADER = "from typing import Any\n\nfrom rasp import *\n\n\n"


def _program(function: Callable[[Any], Any], family: str, tokens: int, backend: str, **options: int) -> ZooEntry:
    own = NAMES.get(function.__name__, function.__name__.replace("_", "-"))
    name = own if backend == "hard_alibi" else f"{own}-{backend}"
    recipe = {"kind": "program", "tokens": tokens, "backend": backend, **options}
    text = (inspect.getdoc(function) or "").partition("\n")[0]
    source = inspect.getsource(function)
    return ZooEntry(name, family, text, recipe, HEADER + source, program=function)


def _machine(machine: TuringMachine, name: str, description: str, backend: str, **more: Any) -> ZooEntry:
    twin = more.pop("twin", None)
    recipe = {"kind": "machine", "n": more.pop("n", 1), "steps": STEPS, "backend": backend, **more}
    source = (
        "from pathlib import Path\n\nfrom rasp import load_machine, next_tokens\n\n"
        'machine = load_machine(str(Path(__file__).with_name("machine.json")))\n\n\n'
        f'def program(x):\n    return next_tokens(x, machine, n={recipe["n"]}, packing="unbounded")\n'
    )
    family = "learned twin" if twin else "machine"
    return ZooEntry(name, family, description, recipe, source, to_json(machine), twin)


def _task(name: str, n: int, twin: str | None) -> ZooEntry:
    source = (
        "from rasp.programs.tasks import task_program\n\n\n"
        f'def program(x):\n    return task_program("{name}").program(x, {n})\n'
    )
    recipe = {"kind": "task", "task": name, "n": n, "lines": LINES, "backend": "hard_alibi"}
    return ZooEntry(name, "arithmetic", f"the paper's scratchpad of {name}", recipe, source, twin=twin)


def _universal(symbols: int, states: int) -> ZooEntry:
    source = (
        "from rasp.programs import next_tokens_universal\n\n\n"
        f"def program(x):\n    return next_tokens_universal(x, symbols={symbols}, states={states}, n=1)\n"
    )
    recipe = {"kind": "universal", "symbols": symbols, "states": states, "steps": STEPS, "backend": "hard_alibi"}
    what = f"runs whichever machine of {symbols} symbols and {states} states stands in its prompt"
    return ZooEntry(f"universal-{symbols}x{states}", "universal", what, recipe, source)


COUNTS, POSITIONS = {"counts": 10}, {"counts": 10, "positions": 14}
PROGRAMS: Sequence[tuple[Callable[[Any], Any], str, int, Mapping[str, int]]] = [
    *(
        (function, "library", 5, options)
        for options, functions in (
            (
                COUNTS,
                (
                    programs.shift_right_1,
                    programs.shift_right_3,
                    programs.cumsum_ones,
                    programs.where_repeated,
                    programs.mask_after_zero,
                    programs.running_maximum,
                    programs.running_minimum,
                    programs.num_prev_same,
                    programs.has_seen_successor,
                    programs.binary_mode_so_far,
                    programs.prefix_fill_3,
                    programs.where3_choice,
                ),
            ),
            (
                POSITIONS,
                (
                    programs.argmax_position,
                    programs.argmin_position,
                    programs.firsts_position,
                    programs.lasts_of_previous,
                    programs.index_select_by_token,
                    programs.first_true_three,
                    programs.mode_so_far,
                    programs.induct_one,
                    programs.induct_two,
                    programs.induct_kqv_double,
                    programs.induct_prev_one,
                ),
            ),
        )
        for function in functions
    ),
    (programs.count_to, "np-rasp", 11, POSITIONS),
    (programs.add_with_hints, "np-rasp", 9, COUNTS),
    (programs.copy_unique, "tasks", 8, COUNTS),
    (programs.copy_by_pairs, "tasks", 6, COUNTS),
    (programs.sort_next, "tasks", 8, COUNTS),
    (programs.parity, "tasks", 3, COUNTS),
    (programs.parity_scratchpad, "tasks", 2, COUNTS),
    (programs.majority, "tasks", 3, POSITIONS),
    (programs.add_reversed, "tasks", 16, COUNTS),
    (programs.position_parity, "patterns", 3, POSITIONS),
    (programs.length_so_far, "patterns", 3, POSITIONS),
    (programs.rank_below, "patterns", 5, COUNTS),
    (programs.mean_so_far, "patterns", 8, COUNTS),
    (programs.mean_of_larger, "patterns", 6, COUNTS),
    (programs.smallest_double, "patterns", 8, COUNTS),
    (programs.count_pairs, "patterns", 4, COUNTS),
    (programs.count_either, "patterns", 4, COUNTS),
    (programs.as_many_ones_as_twos, "patterns", 4, COUNTS),
    (programs.depth_of_brackets, "patterns", 4, COUNTS),
    (programs.since_separator, "patterns", 6, COUNTS),
    (programs.first_of_line, "patterns", 6, COUNTS),
    (programs.two_counts_compared, "patterns", 4, COUNTS),
    (programs.skip_gram, "patterns", 4, COUNTS),
    (programs.detect_pattern, "patterns", 4, COUNTS),
    (programs.sum_modulo_4, "patterns", 4, COUNTS),
    (programs.previous_same_neighbour, "patterns", 6, COUNTS),
    (programs.bigram_after_first, "patterns", 6, POSITIONS),
]
THROUGH_TRACR = (programs.shift_right_1, programs.cumsum_ones, programs.copy_unique, programs.parity)


def _entries() -> Iterable[ZooEntry]:
    for function, family, tokens, options in PROGRAMS:
        yield _program(function, family, tokens, "hard_alibi", **options)
    for function, _, tokens, _ in (row for row in PROGRAMS if row[0] in THROUGH_TRACR):
        yield _program(function, "tracr", tokens, "tracr", counts=10, positions=14)
    for name in gallery.gallery():
        known = gallery.entry(name)
        yield _machine(gallery.machine(name), name, known.description, "hard_alibi")
    yield _machine(gallery.machine("bb3"), "bb3-lean", "busy beaver of 3 states, built by hand in two layers", "lean")
    yield _machine(gallery.machine("bb2"), "bb2-tracr", "busy beaver of 2 states through tracr", "tracr", positions=48)
    yield _universal(2, 2)
    yield _task("addition", 2, "addition")
    yield _task("multiplication1", 2, "multiplication1")
    yield from _twins()


def _twins() -> Iterable[ZooEntry]:
    """The machines that shipped checkpoints were trained on."""
    from experiments.evaluation.shipped import FOLDER
    from experiments.files import read_json
    from rasp.formats.json import from_json

    for folder in sorted(FOLDER.glob("tm-[0-9]")):
        text = read_json(folder / "config.json")["extra"]["machine"]
        what = "a random machine of 15 symbols and 5 states, which a transformer has also learned"
        yield _machine(from_json(text), folder.name, what, "lean", twin=folder.name)


@cache
def catalogue() -> dict[str, ZooEntry]:
    return {entry.name: entry for entry in _entries()}


def chosen(names: Sequence[str]) -> list[str]:
    """These, or all if none are given; an error about one that the zoo does not have."""
    for name in names:
        if name not in catalogue():
            close = difflib.get_close_matches(str(name), catalogue(), n=3)
            hint = f"did you mean {' or '.join(close)}?" if close else "`turing-programs zoo --list` has them all"
            raise ValueError(f"the zoo has no {name!r}: {hint}")
    return list(names) or list(catalogue())
