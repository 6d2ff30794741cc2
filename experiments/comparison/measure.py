"""The comparison: every simulator tries every tape (`trials.py`), and the rows of the report are counted from trials.

So comparisons of different simulators, lengths or tapes can be added up.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from compile.machine import machine_of
from compile.transformer import Transformer
from experiments.comparison.anatomy import anatomy
from experiments.comparison.checks import Checks
from experiments.comparison.simulators import Description, IntArray, LearnedSimulator, Simulator, describe
from experiments.comparison.trials import BoolArray, Trial, attempt
from experiments.evaluation.evaluate import fresh_rng, has_repeat
from experiments.evaluation.results import result
from experiments.tasks.symbols import Repetition
from experiments.tasks.turing_rasp import draw_tapes, follow
from rasp import TuringMachine

Tapes = IntArray | Sequence[Sequence[int]]
NS = (1, 2, 3, 4)  # of the programs whose grams make a tape easy or hard


# --- tapes ------------------------------------------------------------------------------------------------------------


def fresh_tapes(machine: TuringMachine, length: int, count: int, seed: int = 0) -> IntArray:
    """(count, length + 3): the very tapes on which `turing-programs evaluate` asks for one step."""
    return draw_tapes(fresh_rng(seed, length), machine, np.full(count, length))


def repetitive_tapes(machine: TuringMachine, length: int, count: int, seed: int = 0) -> IntArray:
    """A fifth each of 2, 3, 4, 6 and all symbols: grams of every size repeat on some of them, on random tapes only
    short ones do."""
    variety = np.resize([2, 3, 4, 6, len(machine.symbols)], count)
    return draw_tapes(fresh_rng(seed, (length, 1)), machine, np.full(count, length), Repetition(variety))


# --- rows -------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Comparison:
    """Trials of any number of simulators, and the rows of the report that follow from them."""

    machine: TuringMachine
    descriptions: tuple[Description, ...]
    trials: tuple[Trial, ...]
    checks: Checks

    def __add__(self, other: Comparison) -> Comparison:
        if self.machine != other.machine:
            raise ValueError("comparisons of different machines do not add up; keep them apart")
        known = tuple(dict.fromkeys((*self.descriptions, *other.descriptions)))
        return Comparison(self.machine, known, self.trials + other.trials, self.checks + other.checks)

    def simulators(self) -> list[dict[str, Any]]:
        return [d.to_dict() for d in self.descriptions]

    def accuracy(self, trained: int | None = None) -> list[dict[str, Any]]:
        """Next token, next tape and rollouts, per simulator and length; `times` is of the `trained` length."""
        rows = []
        for name, length, trials in self._groups():
            about = {"simulator": name, "length": length, "times": round(length / trained, 2) if trained else None}
            tokens = np.concatenate([(t.predicted == t.expected).ravel() for t in trials])
            tapes = np.concatenate([t.right for t in trials])
            rows += [{**about, "measure": "token", "step": 1, **share(tokens)}]
            rows += [{**about, "measure": "tape", "step": 1, **share(tapes)}]
            followed = [t.alive for t in trials if len(t.alive) > 1]
            for step in range(max(map(len, followed), default=0)):
                alive = np.concatenate([a[step] for a in followed if len(a) > step])
                rows += [{**about, "measure": "rollout", "step": step + 1, **share(alive)}]
        return rows

    def difficulty(self, ns: Sequence[int] = NS) -> list[dict[str, Any]]:
        """Next tapes that repeat a gram of n + 1 tokens (`gram`), on which program n fails, and those that do not."""
        rows = []
        for name, length, trials in self._groups():
            right = np.concatenate([t.right for t in trials])
            for n in ns:
                hard = np.array([has_repeat(row, n + 1) for t in trials for row in t.expected], dtype=np.bool_)
                about = {"simulator": name, "length": length, "n": n, "gram": n + 1}
                for group, wanted in (("unique", ~hard), ("repeated", hard)):
                    rows += [{**about, "group": group, **share(right[wanted])}] if wanted.any() else []
        return rows

    def anatomy(self, shown: int = 3, length: int | None = None) -> list[dict[str, Any]]:
        """One row per simulator: its wrong tapes (of one length, or of all) by place and kind, `shown` of each kind."""
        rows = []
        for who in self.descriptions:
            trials = [t for t in self.trials if t.simulator == who.name and length in (None, t.length)]
            failures = [f for t in trials for f in t.failures(self.machine)]
            rows.append(anatomy(who.name, failures, sum(len(t.tapes) for t in trials), shown))
        return rows

    def to_dict(self, trained: int | None = None) -> dict[str, Any]:
        return {
            "simulators": self.simulators(),
            "accuracy": self.accuracy(trained),
            "difficulty": self.difficulty(),
            "anatomy": self.anatomy(),
            "checks": self.checks.to_dict(),
        }

    def _groups(self) -> Iterator[tuple[str, int, list[Trial]]]:
        """Trials by simulator, then by length."""
        for who in self.descriptions:
            own = [t for t in self.trials if t.simulator == who.name]
            for length in sorted({t.length for t in own}):
                yield who.name, length, [t for t in own if t.length == length]


def share(right: BoolArray) -> dict[str, Any]:
    """The part of a row that says how many were right."""
    found = result("", 0, right)
    return {"accuracy": found.accuracy, "low": found.low, "high": found.high, "examples": found.examples}


# --- the comparison ---------------------------------------------------------------------------------------------------


def compare(simulators: Mapping[str, Simulator], machine: TuringMachine, tapes: Tapes, steps: int = 1) -> Comparison:
    """Every simulator on every tape (`bos .. eos`, of any lengths), for `steps` steps of the machine.

    Programs and compiled models are held to their promises: `Disagreement` is raised if one breaks them.
    """
    if not simulators or not len(tapes) or steps < 1:
        raise ValueError(f"{len(simulators)} simulators, {len(tapes)} tapes and {steps} steps leave nothing to compare")
    descriptions = tuple(describe(name, simulator) for name, simulator in simulators.items())
    for who in descriptions:
        need_machine(who, simulators[who.name], machine)
    trials, checks = [], Checks()
    for group in by_width(machine, tapes):
        truth = follow(machine, group, steps)  # (tapes, steps + 1, tape and sep)
        for who in descriptions:
            trial, checked = attempt(who, simulators[who.name], machine, truth)
            trials.append(trial)
            checks += checked
    return Comparison(machine, descriptions, tuple(trials), checks)


def need_machine(who: Description, simulator: Simulator, machine: TuringMachine) -> None:
    """Refuse what was made for another machine: its errors would say nothing."""
    own = getattr(simulator, "machine", None)
    model = simulator.model if isinstance(simulator, LearnedSimulator) else simulator
    if isinstance(model, Transformer):
        own = machine_of(model)
    if isinstance(own, TuringMachine) and own != machine:
        raise ValueError(f"{who.name} was made for another machine than the one it is compared on; choose its own")


def by_width(machine: TuringMachine, tapes: Tapes) -> list[IntArray]:
    """Tapes of equally many tokens together, shortest first."""
    checked = [machine.check_tape(tape) for tape in tapes]
    widths = sorted({len(tape) for tape in checked})
    return [np.array([tape for tape in checked if len(tape) == width], dtype=np.int64) for width in widths]
