"""How well a method that looks for circuits finds the ones that are known.

A method is a function of two arguments, a model of the zoo and inputs, that gives every edge of `model.edges` a number:
above 0 it claims the edge, and the larger the number, the surer it is. Edges that change no answer alone, as far as is
known, and yet are in the circuit (guards) count neither for it nor against it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from scipy.stats import rankdata

from compile.circuits import Edge, Patching
from compile.circuits.ablation import padded
from experiments.imports import imported, is_import
from experiments.zoo.loading import ZooModel

Inputs = Sequence[np.ndarray]
SHARES = ("precision", "recall", "recall_cut")
Method = Callable[[ZooModel, Inputs], Mapping[Edge, float]]


@dataclass(frozen=True)
class Score:
    """Of one model, over the edges that change an answer alone or are outside the circuit. `cut` of those in the
    circuit are shown by cutting them; the others carry the same nearly everywhere. `auroc` is the chance that one in
    the circuit is ranked above one outside; None if there are none of one kind."""

    model: str
    edges: int
    circuit: int
    cut: int
    claimed: int
    right: int
    cut_right: int
    auroc: float | None

    @property
    def precision(self) -> float | None:
        return self.right / self.claimed if self.claimed else None

    @property
    def recall(self) -> float | None:
        return self.right / self.circuit if self.circuit else None

    @property
    def recall_cut(self) -> float | None:
        """Of the edges that cutting shows."""
        return self.cut_right / self.cut if self.cut else None

    def to_dict(self) -> dict[str, Any]:
        return {**asdict(self), **{name: getattr(self, name) for name in SHARES}}


def score(method: Method, models: Iterable[ZooModel]) -> Iterator[Score]:
    """Each model's score; the method sees the inputs of its test vectors."""
    for zoo in models:
        yield score_one(zoo, method(zoo, [vector.tokens for vector in zoo.vectors]))


def score_one(zoo: ZooModel, found: Mapping[Edge, float]) -> Score:
    missing = [edge for edge in zoo.edges if edge not in found]
    if missing:
        raise ValueError(f"the method gives no number for {missing[0]} of {zoo.name}; it must for every model.edges")
    inside, cut = zoo.circuit.alone, zoo.circuit.of_kind("cut")
    judged = [edge for edge in zoo.edges if edge in inside or edge not in zoo.circuit.edges]
    numbers = np.array([float(found[edge]) for edge in judged])
    if np.isnan(numbers).any():
        raise ValueError(f"the method gives {judged[int(np.isnan(numbers).argmax())]} of {zoo.name} no number: nan")
    truth, by_cutting = (np.array([edge in known for edge in judged]) for known in (inside, cut))
    claimed = numbers > 0
    return Score(
        zoo.name,
        len(truth),
        circuit=int(truth.sum()),
        cut=int(by_cutting.sum()),
        claimed=int(claimed.sum()),
        right=int((claimed & truth).sum()),
        cut_right=int((claimed & by_cutting).sum()),
        auroc=auroc(numbers, truth),
    )


def auroc(numbers: np.ndarray, truth: np.ndarray) -> float | None:
    """By ranks (Mann-Whitney): equal numbers count half."""
    inside = int(truth.sum())
    outside = len(truth) - inside
    if not inside or not outside:
        return None
    above = rankdata(numbers)[truth].sum() - inside * (inside + 1) / 2
    return float(above / (inside * outside))


# --- methods ----------------------------------------------------------------------------------------------------------


def activation_patching(zoo: ZooModel, inputs: Inputs) -> dict[Edge, float]:
    """Let each edge carry what it carries on another input: how far the logits of the right answers move on average.

    The other input is the next one of the list, and of the same length after padding.
    """
    rows, own = padded(inputs)
    clean = Patching(zoo.wiring, rows)
    other = Patching(zoo.wiring, np.roll(rows, 1, axis=0) if len(rows) > 1 else rows[:, ::-1].copy())
    best = clean.logits.argmax(dim=-1, keepdim=True)
    before = clean.logits.gather(-1, best).squeeze(-1).numpy()
    found = {}
    for edge, logits in clean.replaced((edge, other.parts[edge.source]) for edge in zoo.edges):
        after = logits.gather(-1, best).squeeze(-1).numpy()
        found[edge] = float(np.abs(before - after)[own].mean())
    return found


def random_baseline(zoo: ZooModel, inputs: Inputs) -> dict[Edge, float]:
    """A number between -1 and 1 for every edge, the same each time: what a method must beat."""
    rng = np.random.default_rng(0)
    return dict(zip(zoo.edges, rng.uniform(-1, 1, size=len(zoo.edges)), strict=True))


METHODS: dict[str, Method] = {"patching": activation_patching, "random": random_baseline}


def find_method(name: str) -> Method:
    """A built-in one, or a person's own."""
    if name in METHODS:
        return METHODS[name]
    if not is_import(name):
        raise ValueError(f"{name!r} is no method; choose {', '.join(METHODS)}, or give your own as FILE.py:FUNCTION")
    method: Method = imported(name)
    return method
