"""Whether a learned model works like a compiled one: which of its heads attend alike, and what each is worth.

Agreement. Both models read the same traces, `tape sep next-tape sep` of many lengths. For every query that writes the
next tape, a compiled head spreads b[j] over the tokens and a learned one a[j]; they agree by sum_j min(a[j], b[j]), the
attention that the two have in common: 0 to 1, and where the compiled head looks at one token, simply what the learned
head puts there. What a compiled head puts on its start tokens, which no learned model has, is left out and the rest
scaled to 1; a query that finds nothing else is not counted.

Shifts. The compiled program looks up the token after a match by a key that lies further back (VALUE_AT and KEY_AT in
compile/hard_alibi/lean.py), so it attends three tokens after the cell it has just copied; a learned head may stop at
another of its neighbours. Agreement is therefore also taken with a[j + s], and the best shift s is named.

Baseline. The same number (best shift included) after each query is given the learned attention of another trace, of
another length, at the same position. A head that attends by position alone (the token before, the start) loses nothing
by that; one that finds the matching cell loses nearly all, since tapes of another length have it elsewhere.

Ablation. A head's output is replaced by its mean over the same traces. Zero would also take away what the head adds
everywhere alike, and so count as its work what the rest of the model only takes for granted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from compile.transformer import Transformer
from experiments.evaluation.checkpoints import Checkpoint
from experiments.evaluation.evaluate import fresh_rng
from experiments.evaluation.results import wilson
from experiments.tasks.base import BoolArray, IntArray
from experiments.tasks.turing_rasp import TuringRasp, draw_tapes, follow
from rasp import TuringMachine
from rasp.machines.tape import sep

FloatArray = npt.NDArray[np.float32]

SHIFTS = tuple(range(-4, 5))
NOTHING = 1e-4  # attention that is not worth looking at
SHUFFLES = 4  # of the baseline; their mean is taken
MATCH = "match"  # the role of the compiled model's induction-style head

# A counterpart shares most of its attention with the compiled head beyond what position explains, and is used.
ALIKE = 0.5  # of (agreement - baseline) / (1 - baseline), as in Cohen's kappa
WORTH = 0.1  # of next-tape accuracy lost without the head, well beyond the noise of some 64 traces


# ------------------------------------------------------------------------------------------------------------ traces


@dataclass(frozen=True)
class TraceRows:
    """Rows `tape sep next-tape sep`, filled up with sep, and the places whose next token belongs to the answer."""

    tokens: IntArray  # (rows, T)
    queries: BoolArray  # (rows, T)

    @property
    def widths(self) -> IntArray:
        """Of every row's tape, separator included."""
        return self.queries.sum(axis=1)

    @property
    def real(self) -> BoolArray:
        """All places but those filled up."""
        return np.arange(self.tokens.shape[1]) < 2 * self.widths[:, None]


def one_step_traces(machine: TuringMachine, shortest: int, longest: int, count: int, seed: int = 0) -> TraceRows:
    """Fresh tapes of lengths shortest..longest, in turn, each with its successor."""
    if not 1 <= shortest < longest or count < 2:
        raise ValueError(
            f"{count} traces of {shortest} to {longest} cells are no sample to compare heads on; "
            "expected at least two traces of different lengths"
        )
    lengths = shortest + np.arange(count) % (longest - shortest + 1)
    tapes = draw_tapes(fresh_rng(seed, (shortest, longest, 1)), machine, lengths)
    pairs = follow(machine, tapes, 1)  # (rows, 2, longest + 4)
    widths = lengths[:, None] + 4
    places = np.arange(2 * pairs.shape[2])
    inside = np.arange(pairs.shape[2]) < widths
    tokens = np.full((count, len(places)), sep, dtype=np.int64)
    tokens[places < 2 * widths] = pairs[np.stack((inside, inside), axis=1)]
    return TraceRows(tokens, (places >= widths - 1) & (places < 2 * widths - 1))


# --------------------------------------------------------------------------------------------------------- attention


def attention(model: Transformer, traces: TraceRows) -> list[FloatArray]:
    """For every layer the attention (queries, heads, T) of the answer's places; prepended tokens are left out."""
    with torch.inference_mode():
        _, cache = model.run_with_cache(traces.tokens)
    wanted, start = torch.from_numpy(traces.queries), model.prepended
    found = []
    for layer, shape in enumerate(model.config.shapes):
        if not shape.heads:
            found.append(np.zeros((int(wanted.sum()), 0, wanted.shape[1]), dtype=np.float32))
            continue
        pattern = cache[f"blocks.{layer}.attn.hook_pattern"][:, :, start:, start:].transpose(1, 2)  # (B, T, H, T)
        found.append(pattern[wanted].float().cpu().numpy())
    return found


def scaled_to_one(attended: FloatArray, least: float = 1e-6) -> tuple[FloatArray, BoolArray]:
    """What a head puts on real tokens (queries, T), as shares; and which queries have any."""
    total = attended.sum(axis=1, keepdims=True)
    return attended / np.maximum(total, least), total[:, 0] > least


def overlaps(learned: FloatArray, compiled: FloatArray) -> FloatArray:
    """(shifts, heads): the mean over queries of sum_j min(learned[j + s], compiled[j]).

    `learned` is (queries, heads, T), `compiled` (queries, T): a compiled head looks at few tokens, and only at those
    can the two have anything in common.
    """
    few = int((compiled > NOTHING).sum(axis=1).max())
    at = np.argsort(-compiled, axis=1)[:, :few]
    weights = np.take_along_axis(compiled, at, axis=1)
    rows = []
    for shift in SHIFTS:
        j = at + shift
        there = (j >= 0) & (j < compiled.shape[1])
        looked = np.take_along_axis(learned, np.where(there, j, 0)[:, None], axis=2)
        rows.append(np.minimum(looked, (weights * there)[:, None]).sum(axis=2).mean(axis=0))
    return np.stack(rows)


def shuffled_queries(traces: TraceRows, rng: np.random.Generator) -> IntArray:
    """For every query (in order of rows and places) one at the same place of a row of another length; -1: none."""
    rows, places = np.nonzero(traces.queries)
    widths = traces.widths[rows]
    chosen = np.full(len(rows), -1, dtype=np.int64)
    for place in np.unique(places):
        here = np.flatnonzero(places == place)
        for query in here:
            others = here[widths[here] != widths[query]]
            chosen[query] = rng.choice(others) if len(others) else -1
    return chosen


# ----------------------------------------------------------------------------------------------------- heads compared


@dataclass(frozen=True)
class HeadMatch:
    """A learned head beside a compiled one; `shift` is how many tokens later it attends."""

    layer: int
    head: int
    agreement: float
    baseline: float
    shift: int
    unshifted: float  # agreement at shift 0

    @property
    def corrected(self) -> float:
        """The share of what position leaves open (as in Cohen's kappa)."""
        return (self.agreement - self.baseline) / max(1e-9, 1 - self.baseline)


@dataclass(frozen=True)
class HeadMatches:
    """One compiled head and all learned ones, layer by layer."""

    layer: int
    head: int
    label: str
    window: int | None
    layers: list[list[HeadMatch]]
    role: str = ""

    @property
    def all(self) -> list[HeadMatch]:
        return [match for layer in self.layers for match in layer]

    @property
    def best(self) -> HeadMatch:
        return max(self.all, key=lambda match: match.agreement)

    def to_dict(self) -> dict[str, Any]:
        """With tables [layer][head] of agreement at the best shift, of its baseline and of the shift."""
        names = {"matches": "agreement", "baseline": "baseline", "shifts": "shift"}
        tables = {name: [[getattr(m, field) for m in layer] for layer in self.layers] for name, field in names.items()}
        plain = {"layer": self.layer, "head": self.head, "label": self.label, "window": self.window}
        return {**plain, **tables, "best": {**asdict(self.best), "corrected": self.best.corrected}}


def compare_heads(
    learned: Transformer, compiled: Transformer, traces: TraceRows, seed: int = 0
) -> tuple[list[HeadMatches], int]:
    """All learned heads beside every compiled head; and how many queries they were compared on."""
    layers, theirs = attention(learned, traces), attention(compiled, traces)
    rng = np.random.default_rng(seed)
    shuffled = np.stack([shuffled_queries(traces, rng) for _ in range(SHUFFLES)])
    fair = (shuffled >= 0).all(axis=0)  # the same queries with and without shuffling
    found = []
    for row in compiled.summary():
        if row.head is None:
            continue
        attended, anything = scaled_to_one(theirs[row.layer][:, row.head])
        kept = np.flatnonzero(fair & anything)
        beside = [_beside(layer, a, attended, kept, shuffled) for layer, a in enumerate(layers)]
        found.append(HeadMatches(row.layer, row.head, row.label, row.window, beside, row.role))
    return found, int(fair.sum())


def _beside(
    layer: int, learned: FloatArray, attended: FloatArray, kept: IntArray, shuffled: IntArray
) -> list[HeadMatch]:
    """Every head of one learned layer beside one compiled head."""
    if not len(kept):
        return [HeadMatch(layer, head, 0.0, 0.0, 0, 0.0) for head in range(learned.shape[1])]
    together = overlaps(learned[kept], attended[kept])
    chance = np.mean([overlaps(learned[other[kept]], attended[kept]) for other in shuffled], axis=0).max(axis=0)
    plain = together[SHIFTS.index(0)]
    at = together.argmax(axis=0)
    return [
        HeadMatch(layer, h, float(together[at[h], h]), float(chance[h]), SHIFTS[at[h]], float(plain[h]))
        for h in range(learned.shape[1])
    ]


# ----------------------------------------------------------------------------------------------------------- ablation


@dataclass(frozen=True)
class Ablation:
    layer: int
    head: int
    window: int | None
    accuracy: float
    low: float
    high: float
    lost: float


def ablate(model: Transformer, traces: TraceRows) -> tuple[float, list[Ablation]]:
    """Next-tape accuracy of the model, and of the model with each head's output replaced by its mean.

    The traces are given and every prediction of the answer must be right: exactly when greedy decoding would be.
    """
    real = torch.from_numpy(traces.real)
    with torch.inference_mode():
        logits, cache = model.run_with_cache(traces.tokens)
        whole = float(_right(model, traces, logits).mean())
        found = []
        for row in model.summary():
            if row.head is None:
                continue
            name = f"blocks.{row.layer}.attn.hook_z"
            mean = cache[name][:, model.prepended :][real][:, row.head].mean(dim=0)
            right = _right(model, traces, model.run_with_hooks(traces.tokens, {name: partial(_put, row.head, mean)}))
            low, high = wilson(int(right.sum()), len(right))
            share = float(right.mean())
            found.append(Ablation(row.layer, row.head, row.window, share, low, high, whole - share))
    return whole, found


def _put(head: int, value: Tensor, z: Tensor) -> Tensor:
    z = z.clone()
    z[:, :, head] = value
    return z


def _right(model: Transformer, traces: TraceRows, logits: Tensor) -> BoolArray:
    said = model.output_tokens[logits.argmax(dim=-1)].cpu().numpy()
    return ((said[:, :-1] == traces.tokens[:, 1:]) | ~traces.queries[:, :-1]).all(axis=1)


# ------------------------------------------------------------------------------------------------------- the question


@dataclass(frozen=True)
class Induction:
    """Whether the compiled model's match head has a learned counterpart, and which."""

    label: str
    layer: int
    head: int
    agreement: float
    baseline: float
    corrected: float
    shift: int
    lost_when_ablated: float
    verdict: str  # found, partly, not found
    others: list[HeadMatch]  # heads that attend as much alike, perhaps at another shift: one lookup shared by several


@dataclass(frozen=True)
class Mechanism:
    compiled: str
    tokens: int  # queries that agreement is averaged over
    traces: int
    lengths: tuple[int, int]
    heads: list[HeadMatches]
    ablation: list[Ablation]
    unablated: float
    induction: Induction

    def to_dict(self) -> dict[str, Any]:
        """Plain data, as results.json has it."""
        return {**asdict(self), "lengths": list(self.lengths), "heads": [head.to_dict() for head in self.heads]}


def mechanism(
    learned: Transformer, compiled: Transformer, traces: TraceRows, name: str = "lean n=4", seed: int = 0
) -> Mechanism:
    """Everything about the heads of two models that read the same tokens."""
    heads, tokens = compare_heads(learned, compiled, traces, seed)
    unablated, ablation = ablate(learned, traces)
    cells = traces.widths - 4
    return Mechanism(
        name,
        tokens,
        len(cells),
        (int(cells.min()), int(cells.max())),
        heads,
        ablation,
        unablated,
        find_induction(heads, ablation),
    )


def mechanism_of(
    checkpoint: Checkpoint, backend: str = "lean", n: int = 4, count: int = 64, seed: int = 0
) -> Mechanism:
    """Of a trained machine, on fresh tapes of the upper part of its training lengths."""
    from compile import compile_machine

    if not isinstance(checkpoint.task, TuringRasp):
        raise ValueError(f"{checkpoint.name} is no Turing machine in RASP format: nothing is compiled to compare with")
    machine, (low, high) = checkpoint.task.machine, checkpoint.lengths
    traces = one_step_traces(machine, max(low, high * 3 // 5), high, count, seed)
    compiled = compile_machine(machine, backend, n=n, steps=4, check=False)
    return mechanism(checkpoint.model, compiled, traces, f"{backend} n={n}", seed)


def find_induction(heads: Sequence[HeadMatches], ablation: Sequence[Ablation]) -> Induction:
    """Found: alike and of use. Partly: one of the two."""
    compiled = next((head for head in heads if head.role == MATCH), None)
    if compiled is None:
        raise ValueError(f"no head of the compiled model has the role {MATCH!r}; compile it with compile_machine")
    best = compiled.best
    lost = next(a.lost for a in ablation if (a.layer, a.head) == (best.layer, best.head))
    signs = (best.corrected >= ALIKE) + (lost >= WORTH)
    others = [match for match in compiled.all if match != best and match.corrected >= ALIKE]
    return Induction(
        compiled.label,
        best.layer,
        best.head,
        best.agreement,
        best.baseline,
        best.corrected,
        best.shift,
        lost,
        ("not found", "partly", "found")[signs],
        others,
    )
