"""Heads and units put together by tracr's `assemble_craft_model`, with bos told what to score and to carry.

tracr gives every layer the largest number of heads, keys and hidden units, and divides scores by the square root of
the key size without making up for it; here every score is multiplied by it beforehand.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from compile.errors import CompileError
from compile.tracr.craft import (
    COMPILER_BOS,
    LARGEST_SCORE,
    CraftHead,
    Direction,
    Directions,
    Unit,
    make_heads,
    make_units,
)
from compile.tracr.plan import TracrPlan
from compile.transformer.annotations import Fact

MOST_PARAMETERS = 500_000_000  # two gigabytes

Heads = Sequence[Sequence[CraftHead]]  # of every layer
Units = Sequence[Sequence[Unit]]
Weights = Mapping[tuple[Direction, Direction], float]
Contents = dict[Direction, float]  # of the residual stream at bos


@dataclass(frozen=True)
class Assembled:
    """tracr's model, what each of its outputs stands for (None: a count ran over), and what its parts are for."""

    haiku: Any
    outputs: tuple[int | None, ...]
    heads: tuple[tuple[Fact, ...], ...]
    mlps: tuple[Fact, ...]


def assemble(plan: TracrPlan) -> Assembled:
    names = Directions(plan)
    heads = [make_heads(names, layer) for layer in range(plan.layers)] or [[]]
    units = [make_units(names, layer) for layer in range(plan.layers)] or [[Unit({names.one: 1}, {names.one: 0})]]
    parameters = count_parameters(names, heads, units)
    if parameters > MOST_PARAMETERS:
        raise CompileError(_too_large(plan, parameters))
    meaning = _outputs(names)
    outputs = tuple(meaning[direction] for direction in sorted(meaning))
    return Assembled(
        _assemble(names, heads, units, outputs),
        outputs,
        tuple(tuple(head.fact for head in layer) for layer in heads),
        tuple(_mlp_fact(names, layer) for layer in range(len(units))),
    )


def _outputs(names: Directions) -> dict[Direction, int | None]:
    """The directions that are read in the end, and what each stands for."""
    view = names.plan.view(names.plan.graph.output)
    meaning: dict[Direction, int | None] = dict(zip(names.directions(view), view.values, strict=True))
    return {**meaning, names.overflow: None}


def _mlp_fact(names: Directions, layer: int) -> Fact:
    plan = names.plan
    made = [i for i in plan.attention(layer) if plan.is_number(i)] + plan.maps(layer)
    return Fact("compute" if made else "", "; ".join(names.title(i) for i in made), tuple(made))


# --- size -------------------------------------------------------------------------------------------------------------


def count_parameters(names: Directions, heads: Heads, units: Units) -> int:
    """What tracr will build: every layer as large as the largest."""
    width = max(1, max(map(len, heads))) * key_size(heads)
    hidden = max(1, max(map(len, units)))
    d_model = len(residual(names, heads))
    embedded = len(token_directions(names)) + len(names.positions()) + 1
    layer = 4 * d_model * width + 3 * width + d_model + 2 * d_model * hidden + hidden + d_model
    return embedded * d_model + len(heads) * layer


def key_size(heads: Heads) -> int:
    return max((head.key_size() for layer in heads for head in layer), default=1)


def residual(names: Directions, heads: Heads) -> list[Direction]:
    """Every direction there is: embedded, written by heads, written by MLPs."""
    written = {d for layer in heads for head in layer for d in head.outputs()}
    for i in names.plan.times:
        written.update(() if names.plan.graph.nodes[i].op == "full" else names.register(i))
    return sorted(written | {names.one, names.overflow, *token_directions(names), *names.positions()})


def token_directions(names: Directions) -> list[Direction]:
    vocabulary = names.plan.program.domains.vocabulary
    return [*(names.make("tokens", v) for v in vocabulary), names.bos]


def _too_large(plan: TracrPlan, parameters: int) -> str:
    largest = max(plan.times, key=lambda i: len(plan.domain(i)))
    return (
        f"{plan.graph.describe(largest)} has {len(plan.domain(largest))} values, the most of any operation, and the "
        f"model would have {parameters:.2g} parameters; at most {MOST_PARAMETERS:.2g} are built. "
        "Compile for fewer positions or counts."
    )


# --- craft ------------------------------------------------------------------------------------------------------------


def _assemble(
    names: Directions,
    heads: Heads,
    units: Units,
    outputs: tuple[int | None, ...],
) -> Any:
    from tracr.compiler.assemble import assemble_craft_model
    from tracr.craft.bases import VectorSpaceWithBasis
    from tracr.craft.transformers import SeriesWithResiduals
    from tracr.transformer.encoder import CategoricalEncoder

    space = VectorSpaceWithBasis(residual(names, heads))
    tokens = VectorSpaceWithBasis(token_directions(names))
    blocks = _blocks(names, space, heads, units)
    model = from_zero(
        lambda: assemble_craft_model(
            SeriesWithResiduals(blocks),
            tokens_space=tokens,
            indices_space=VectorSpaceWithBasis(names.positions()),
            output_space=VectorSpaceWithBasis(list(_outputs(names))),
            categorical_output=True,
            causal=True,
        )
    )
    longest = names.plan.positions + 1
    model.input_encoder = CategoricalEncoder(tokens.basis, True, COMPILER_BOS, max_seq_len=longest)
    model.output_encoder = _readout(outputs)
    return model


def from_zero(make: Callable[[], Any]) -> Any:
    """`make()` with zeros where Haiku would draw random matrices, which tracr overwrites anyway: half the time."""
    import haiku as hk

    made: list[Any] = []

    def zeros(next_creator: Any, shape: Any, dtype: Any, init: Any, context: Any) -> Any:
        embeds = context.full_name.endswith("embeddings")
        return next_creator(shape, dtype, init if embeds else np.zeros)

    def run() -> None:
        with hk.custom_creator(zeros):
            made.append(make())

    pure: Any = hk.transform(run)
    pure.init(None)
    return made[0]


def _readout(outputs: tuple[int | None, ...]) -> Any:
    """Decodes the output's number into the value it stands for (two may stand for the same)."""
    from tracr.transformer.encoder import Encoder

    class Readout(Encoder):
        def encode(self, inputs: list[Any]) -> list[int]:
            return [outputs.index(value) for value in inputs]

        def decode(self, encodings: list[int]) -> list[Any]:
            return [outputs[number] for number in encodings]

    return Readout()


def _blocks(names: Directions, space: Any, heads: Heads, units: Units) -> list[Any]:
    """Attention and MLP of every layer in turn, keeping track of what stands at bos."""
    from tracr.craft.transformers import MultiAttentionHead

    contents: Contents = {names.bos: 1.0, names.one: 1.0}
    size = key_size(heads)
    blocks: list[Any] = []
    for layer_heads, layer_units in zip(heads, units, strict=True):
        if layer_heads:
            made = [_craft_head(names, space, head, size, contents) for head in layer_heads]
            blocks.append(MultiAttentionHead(made))
            _add_to(contents, [head.bos_moves for head in layer_heads])
        if layer_units:
            blocks.append(_craft_mlp(space, layer_units))
            _add_to(contents, [_fired(unit, contents) for unit in layer_units])
    return blocks


def _add_to(contents: Contents, more: Iterable[Mapping[Direction, float]]) -> None:
    for directions in list(more):
        for direction, amount in directions.items():
            contents[direction] = contents.get(direction, 0.0) + amount


def _fired(unit: Unit, contents: Contents) -> Contents:
    level = max(0.0, sum(weight * contents.get(d, 0.0) for d, weight in unit.reads.items()))
    return {d: level * weight for d, weight in unit.writes.items()}


def _craft_head(names: Directions, space: Any, head: CraftHead, size: int, contents: Contents) -> Any:
    from tracr.craft.transformers import AttentionHead

    bos_score = {names.one: head.bos_score * _unit(head, size)}
    scores = _with_bos(_whole_scores(head, size), bos_score, names, contents)
    moves = _turned(_with_bos(_turned(head.moves), head.bos_moves, names, contents))
    w_qk = _bilinear(scores, len(head.outputs()), space)
    return AttentionHead(w_qk, _linear(moves), residual_space=space, causal=True)


def _unit(head: CraftHead, size: int) -> int:
    """The score of one match: a whole number, divisible by four for the quarter by which bos stays below."""
    unit = 4 * math.ceil(head.coldness * math.sqrt(size) / 4)
    if unit * max(1.0, head.bos_score + 1) > LARGEST_SCORE:
        raise CompileError(
            f"{head.fact.label}: telling {head.finest} values apart takes scores beyond {LARGEST_SCORE}, where float32 "
            "no longer counts in ones; compile for fewer positions or values"
        )
    return unit


def _whole_scores(head: CraftHead, size: int) -> Weights:
    unit = _unit(head, size)
    step = unit // (2 * head.finest)
    scores = {pair: match * unit for pair, match in head.scores.items()}
    for pair, rank in head.ranks.items():
        scores[pair] = scores.get(pair, 0) + rank * step
    return scores


def _turned(weights: Weights) -> Weights:
    return {(b, a): w for (a, b), w in weights.items()}


def _with_bos(matrix: Weights, wanted: Mapping[Direction, float], names: Directions, contents: Contents) -> Weights:
    """Rows of `matrix` that give, at bos, `wanted`: the bos column makes up for what else stands there."""
    result = dict(matrix)
    for row, amount in wanted.items():
        result[row, names.bos] = result.get((row, names.bos), 0.0) + amount
    for (row, column), weight in matrix.items():
        there = contents.get(column, 0.0) * weight
        if there:
            result[row, names.bos] = result.get((row, names.bos), 0.0) - there
    return result


def _bilinear(scores: Weights, moved: int, space: Any) -> Any:
    """Scores as a matrix; tracr sizes heads by their keys alone, so a head that moves more gets keys that score 0."""
    from tracr.craft.bases import VectorSpaceWithBasis
    from tracr.craft.vectorspace_fns import ScalarBilinear

    keys = {k for _, k in scores}
    idle = [d for d in space.basis if d not in keys][: max(0, moved - len(keys))]
    left, right = VectorSpaceWithBasis(list({q for q, _ in scores})), VectorSpaceWithBasis([*keys, *idle])
    return ScalarBilinear(left, right, _dense(scores, left, right))


def _linear(weights: Weights) -> Any:
    from tracr.craft.bases import VectorSpaceWithBasis
    from tracr.craft.vectorspace_fns import Linear

    into = VectorSpaceWithBasis(list({a for a, _ in weights}))
    out = VectorSpaceWithBasis(list({b for _, b in weights}))
    return Linear(into, out, _dense(weights, into, out))


def _dense(weights: Weights, rows: Any, columns: Any) -> np.ndarray:
    matrix = np.zeros((rows.num_dims, columns.num_dims))
    row, column = rows.index_by_direction, columns.index_by_direction
    for (a, b), weight in weights.items():
        matrix[row[a], column[b]] = weight
    return matrix


def _craft_mlp(space: Any, units: Sequence[Unit]) -> Any:
    from tracr.craft.bases import BasisDirection
    from tracr.craft.transformers import MLP

    hidden = [BasisDirection("hidden", j) for j in range(len(units))]
    first = {(d, h): w for unit, h in zip(units, hidden, strict=True) for d, w in unit.reads.items()}
    second = {(h, d): w for unit, h in zip(units, hidden, strict=True) for d, w in unit.writes.items()}
    return MLP(_linear(first), _linear(second), residual_space=space)
