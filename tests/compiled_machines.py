"""Machines, traces and the comparison that tests of compiled models share."""

from __future__ import annotations

from typing import Any

import numpy as np

from compile import compile_machine
from rasp.engines.stream import Stream
from rasp.engines.turing import turing_graph
from rasp.machines.machine import TuringMachine

SMALL = TuringMachine.random(symbols=2, states=2, seed=3)
PAPER = TuringMachine.random(symbols=12, states=16, seed=0)


def random_tape(machine: TuringMachine, cells: int, rng: np.random.Generator, distinct: bool = False) -> list[int]:
    """A tape with the head anywhere, the end markers included; with `distinct`, no symbol twice where possible."""
    k = len(machine.symbols)
    order = np.concatenate([rng.permutation(k) for _ in range(cells // k + 1)])[:cells]
    symbols = order if distinct else rng.integers(k, size=cells)
    head = int(rng.integers(-1, cells + 1))
    return machine.encode([machine.symbols[i] for i in symbols], head, str(rng.choice(machine.states)))


def random_traces(
    machine: TuringMachine, count: int, most_cells: int, most_tokens: int, seed: int, steps: int = 64
) -> list[np.ndarray]:
    """Traces with repeated grams and without, of short tapes run long and long tapes run short."""
    rng = np.random.default_rng(seed)
    found = []
    for trial in range(count):
        cells = int(rng.integers(0, most_cells + 1))
        tape = random_tape(machine, cells, rng, distinct=trial % 2 == 0)
        found.append(machine.trace(tape, min(steps, max(1, most_tokens // (cells + 4)))))
    return found


def repeats(trace: np.ndarray, n: int) -> bool:
    """Whether a generated tape of the trace has an (n+1)-gram twice."""
    tapes = np.split(trace, np.flatnonzero(trace == 0))[1:]
    grams = [[tuple(t[i : i + n + 1]) for i in range(len(t) - n)] for t in tapes]
    return any(len(set(g)) < len(g) for g in grams)


def check_many_machines(backend: str, n: int) -> None:
    """80 traces, tapes of up to 200 cells, from eight machines of the paper's size: models say what programs say."""
    held = set()
    for seed in range(8):
        machine = TuringMachine.random(symbols=12, states=16, seed=seed)
        model = compile_machine(machine, backend=backend, n=n, steps=64)
        traces = random_traces(machine, count=10, most_cells=200, most_tokens=700, seed=seed)
        held |= {repeats(x, n) for x in traces}
        assert wrong_positions(model, program(machine, n), traces) == 0
    assert held == {True, False}


def program(machine: TuringMachine, n: int = 1, packing: str = "unbounded") -> Any:
    """The paper's program, by the interpreter that takes one token at a time: fast for many short inputs."""
    graph = turing_graph(len(machine.symbols), len(machine.states), n, packing)
    stream = Stream(graph, [getattr(machine, t.name).values for t in graph.tables()])

    def run(x: np.ndarray) -> np.ndarray:
        stream.reset()
        return stream.run(x)

    return run


def wrong_positions(model: Any, expected: Any, inputs: list[np.ndarray]) -> int:
    """At how many positions of these inputs the model is not the program."""
    return sum(int((model.predict(x) != expected(x)).sum()) for x in inputs)
