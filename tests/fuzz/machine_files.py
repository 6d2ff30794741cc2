"""Machines by chance, written in every format and read back; and their files with something changed.

What is read back is the same machine, as far as the format can hold it. What is changed is another machine, which can
itself be written and read, or is refused in a sentence.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np

from rasp import TuringMachine, load_machine
from rasp.formats.bbchallenge import from_bbchallenge, to_bbchallenge
from rasp.formats.dtm import from_dtm, to_dtm
from rasp.formats.json import from_json, to_json
from rasp.formats.yaml import from_yaml, to_yaml
from rasp.loading import save_machine
from rasp.machines.validation import InvalidMachine

from .changes import changed_bytes, sentence_faults
from .compare import Figures, patience
from .saved import Unequal

CHANGES = 12
NAMES = (
    "0",
    "1",
    "a",
    "b",
    "_",
    " ",
    "'",
    '"',
    "#",
    ":",
    ",",
    "{",
    "[",
    "]",
    "-",
    "~",
    "&",
    "*",
    "!",
    "|",
    ">",
    "%",
    "é",
    "∅",
)
WORDS = ("A", "B", "q0", "yes", "null", "stuck", "no", "1.5", "0x1", "[b]", "a b", "\\", "L", "write", "🂡", "Z", "H")
ENDS = ("bos", "eos")


def draw_machine(rng: np.random.Generator) -> TuringMachine:
    """With odd names, final states, bounces; half of them such as every format can hold."""
    plain = bool(rng.integers(2))
    symbols = _some(rng, NAMES if plain or rng.integers(2) else (*NAMES, *WORDS), 4)
    states = _some(rng, (*WORDS, *NAMES), 4)
    final = [q for q in states if rng.random() < 0.25 and q != states[0]]
    sources = [q for q in states if q not in final]
    return TuringMachine(
        states=states,
        symbols=symbols,
        transitions={
            (q, a): (_one(rng, symbols), _one(rng, "LR"), _one(rng, states)) for q in sources for a in symbols
        },
        start=_one(rng, sources if plain else states),
        final=final,
        blank=_one(rng, symbols),
        bounce=None if plain else {(q, end): _one(rng, states) for q in sources for end in ENDS},
        name=_one(rng, ("", "", "beaver", "é: [x]", "null")),
    )


def _one(rng: np.random.Generator, names: list[str] | tuple[str, ...] | str) -> str:
    return names[int(rng.integers(len(names)))]


def _some(rng: np.random.Generator, names: tuple[str, ...], most: int) -> list[str]:
    return [str(name) for name in rng.choice(list(names), int(rng.integers(1, most + 1)), replace=False)]


# --- written and read back --------------------------------------------------------------------------------------------


def same_machine(a: TuringMachine, b: TuringMachine) -> bool:
    return a == b and a.name == b.name


def same_behaviour(a: TuringMachine, b: TuringMachine) -> bool:
    """Equal up to the order in which states and symbols are listed."""
    return (a.transitions, a.start, a.final, a.blank, a.bounce) == (b.transitions, b.start, b.final, b.blank, b.bounce)


def same_runs(a: TuringMachine, b: TuringMachine, rename: dict[str, str] | None = None) -> bool:
    """Equal step counts and tapes on a few inputs; states may be named differently."""
    rename = rename or {name: name for name in a.symbols}
    for cells in ([], list(a.symbols), list(a.symbols) * 2):
        for head in (0, 1):
            one, two = a.run(cells, head, 40), b.run([rename[c] for c in cells], head, 40)
            if [rename[c] for c in one.cells] != list(two.cells):
                return False
            if (one.steps, one.halted, one.head) != (two.steps, two.halted, two.head):
                return False
    return True


def same_renamed_runs(a: TuringMachine, b: TuringMachine) -> bool:
    """As bbchallenge text has it: the blank is 0, the other symbols follow in order."""
    in_order = sorted(a.symbols, key=lambda symbol: symbol != a.blank)
    return same_runs(a, b, {name: str(i) for i, name in enumerate(in_order)})


class Format(NamedTuple):
    again: Callable[[TuringMachine], TuringMachine]  # written and read
    same: Callable[[TuringMachine, TuringMachine], bool]


FORMATS: dict[str, Format] = {
    "json": Format(lambda m: from_json(to_json(m)), same_machine),
    "yaml": Format(lambda m: from_yaml(to_yaml(m)), same_behaviour),
    "bbchallenge": Format(lambda m: from_bbchallenge(to_bbchallenge(m)), same_renamed_runs),
    "dtm": Format(lambda m: from_dtm(to_dtm(m)), same_behaviour),
}
FILES = {".json": "json", ".yaml": "yaml", ".txt": "bbchallenge"}


def compare_files(seed: int, number: int, figures: Figures) -> list[Unequal]:
    rng = np.random.default_rng([seed, number, 4])
    machine = draw_machine(rng)
    found = [fault for name in FORMATS if (fault := through_format(machine, name, figures))]
    with tempfile.TemporaryDirectory(prefix="fuzz-machine-") as folder:
        for suffix in FILES:
            found += changed_files(machine, Path(folder) / f"machine{suffix}", rng, figures)
    return found[:1]


def through_format(machine: TuringMachine, name: str, figures: Figures) -> Unequal | None:
    """Written and read back, or refused in a sentence; JSON refuses nothing."""
    label, told = f"machines as {name}", f"# {name} of\n{to_json(machine)}"
    figures.tried[label] += 1
    try:
        with patience():
            same = FORMATS[name].same(machine, FORMATS[name].again(machine))
    except InvalidMachine as refusal:
        figures.refusals[f"{label}: refused"] += 1
        faults = sentence_faults(str(refusal)) or ([f"refused: {refusal}"] if name == "json" else [])
        return Unequal(f"{label}: {faults[0].split(':')[0]}", f"{told}# {faults[0]}") if faults else None
    except Exception as error:
        return Unequal(f"{label}: {type(error).__name__}", f"{told}# {error}")
    figures.answered[label] += 1
    return None if same else Unequal(f"{label}: another machine", told)


def changed_files(machine: TuringMachine, path: Path, rng: np.random.Generator, figures: Figures) -> list[Unequal]:
    try:
        save_machine(machine, path)
    except InvalidMachine:
        return []
    whole = path.read_bytes()
    found = []
    for _ in range(CHANGES):
        path.write_bytes(changed_bytes(rng, whole))
        fault = read_changed(path, figures)
        found += [fault] if fault else []
    return found


def read_changed(path: Path, figures: Figures) -> Unequal | None:
    """A changed file is refused in a sentence, or is a machine that comes back from JSON as it is."""
    label = f"changed {path.suffix} files"
    figures.tried[label] += 1
    try:
        with patience():
            machine = load_machine(path)
            fault = through_format(machine, "json", Figures())
    except InvalidMachine as refusal:
        figures.refusals[f"{label}: refused"] += 1
        faults = sentence_faults(str(refusal))
        return (
            Unequal(f"{label}: {faults[0].split(':')[0]}", f"{path.read_bytes()!r}\n# {faults[0]}") if faults else None
        )
    except Exception as error:
        return Unequal(f"{label}: {type(error).__name__}", f"{path.read_bytes()!r}\n# {error}")
    figures.answered[label] += 1
    return fault
