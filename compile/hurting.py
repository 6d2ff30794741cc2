"""Inputs made to hurt a compiled model: every token alone, ties, no matches, the longest, and counts that run over."""

from __future__ import annotations

import numpy as np

from compile.front.domains import Capacity
from compile.front.program import FiniteProgram
from compile.front.watch import is_counted, is_mean
from rasp.graph import Graph, evaluate

LENGTHS = (1, 2, 3, 5, 8, 13, 21, 34)
MOST_TOKENS = 6_000  # of an input: counts beyond it are not run over when a model is checked
MOST_IN_ALL = 12_000  # tokens of the inputs that run over one count
MOST_ALONE = 256  # tokens given alone, where a vocabulary has very many
TAIL = 12  # tokens after a count ran over
DRIVERS = 4  # tokens that are repeated to drive a count up
RUNS = 6  # inputs for each of them


def hurting_inputs(program: FiniteProgram, seed: int = 0, longest: int | None = None) -> list[np.ndarray]:
    """Inputs of at most `longest` tokens, for a model compiled from `program`."""
    rng = np.random.default_rng(seed)
    tokens = np.array(program.domains.vocabulary)
    inputs = [*_alone(tokens, rng), *_random(tokens, rng), *_longest(tokens, program.domains.capacity, rng)]
    inputs += running_over(program, rng)
    return [x[:longest] for x in inputs]


def _alone(tokens: np.ndarray, rng: np.random.Generator) -> list[np.ndarray]:
    """Each token alone (nothing before it to match), all of them once, and all of them twice."""
    some = tokens if len(tokens) <= MOST_ALONE else rng.choice(tokens, size=MOST_ALONE, replace=False)
    return [*some[:, None], rng.permutation(some), rng.permutation(np.repeat(some, 2))]


def _random(tokens: np.ndarray, rng: np.random.Generator) -> list[np.ndarray]:
    """Of growing length: over all tokens, and over two or three so that keys are tied."""
    inputs = []
    for length in LENGTHS:
        few = rng.choice(tokens, size=min(len(tokens), int(rng.integers(2, 4))), replace=False)
        inputs += [rng.choice(tokens, size=length), rng.choice(few, size=length)]
    return inputs


def _longest(tokens: np.ndarray, capacity: Capacity, rng: np.random.Generator) -> list[np.ndarray]:
    """As long as positions go, and longer."""
    if capacity.positions is None or capacity.positions + TAIL > MOST_TOKENS:
        return []
    return [rng.choice(tokens, size=capacity.positions), rng.choice(tokens, size=capacity.positions + TAIL)]


# --- past each capacity -----------------------------------------------------------------------------------------------


def running_over(program: FiniteProgram, rng: np.random.Generator) -> list[np.ndarray]:
    """For each count of the program, inputs on which it goes past its capacity, if any were found."""
    graph, tokens = program.written, np.array(program.domains.vocabulary)
    most = program.domains.capacity.counts
    if 2 * most + TAIL > MOST_TOKENS or not any(is_counted(node) for node in graph.nodes):
        return []
    candidates = _candidates(tokens, most, rng)
    reached = [_reached(graph, x) for x in candidates]
    inputs: dict[int, np.ndarray] = {}
    for count in reached[0]:
        over = [k for k, counts in enumerate(reached) if counts[count] > most]
        room = max(2, MOST_IN_ALL // (2 * most + TAIL))
        inputs.update({k: candidates[k] for k in _spread(over, min(room, DRIVERS * RUNS))})
    return list(inputs.values())


def _candidates(tokens: np.ndarray, most: int, rng: np.random.Generator) -> list[np.ndarray]:
    """One token again and again, then others: the count is over when they come. And mixtures of few tokens."""
    some = tokens if len(tokens) <= 2 * DRIVERS else rng.choice(tokens, size=2 * DRIVERS, replace=False)
    found = []
    for token in some:
        for repeats in rng.integers(most, 2 * most + 1, size=RUNS).tolist():
            found.append(np.concatenate([np.full(repeats + 1, token), rng.choice(tokens, size=TAIL)]))
    for _ in range(2 * RUNS):
        few = rng.choice(tokens, size=min(len(tokens), int(rng.integers(2, 5))), replace=False)
        found.append(rng.choice(few, size=2 * most + TAIL))
    return found


def _spread(places: list[int], most: int) -> list[int]:
    """At most so many of the places, evenly spread."""
    return [places[k * len(places) // most] for k in range(most)] if len(places) > most else places


def _reached(graph: Graph, tokens: np.ndarray) -> dict[int, int]:
    """How far each count of the graph goes; of a mean, how many values there are at most."""
    values = evaluate(graph, [tokens])
    return {
        i: len(tokens) if is_mean(node) else int(values[i].max())
        for i, node in enumerate(graph.nodes)
        if is_counted(node)
    }
