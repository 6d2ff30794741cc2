"""Stock tracr beside this compiler, on machines small enough for stock: the rows of `turing-programs bench compile`."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from compile import Transformer, compile_machine, compile_program
from compile.front.trace import rewrite
from compile.front.trace import trace as record
from experiments.benchmarks.stock_tracr import StockModel, compile_stock
from experiments.benchmarks.stock_tracr_size import stock_size
from rasp.machines.machine import TuringMachine
from rasp.programs.turing import next_tokens

SIZES = ((2, 2), (3, 2))  # symbols x states that stock tracr can compile in a few gigabytes


@dataclass(frozen=True)
class Measured:
    """One compiler's result: `parameters` of tracr's model, seconds to compile and to predict a trace, share wrong."""

    parameters: int
    seconds: float
    forward: float
    wrong: float


@dataclass(frozen=True)
class StockComparison:
    symbols: int
    states: int
    steps: int
    positions: int
    ours: Measured
    stock: Measured

    def rows(self) -> list[dict[str, Any]]:
        """`value` is ours, `baseline` stock's, `ratio` how many times smaller or faster ours is."""
        name = f"{self.symbols}x{self.states}, {self.steps} steps"
        units = (("parameters", ""), ("seconds", "s"), ("forward", "s"), ("wrong", "of positions"))
        return [
            _row(f"tracr {name}: {what}", unit, getattr(self.ours, what), getattr(self.stock, what))
            for what, unit in units
        ]


def _row(name: str, unit: str, value: float, baseline: float | None = None) -> dict[str, Any]:
    ratio = baseline / value if value and baseline is not None else None
    return {"name": name, "value": value, "unit": unit, "baseline": baseline, "ratio": ratio}


def compare_with_stock(sizes: Iterable[Sequence[int]] = SIZES, steps: int = 4, seed: int = 0) -> list[StockComparison]:
    """Both compilers on random machines and the trace of a tape with one cell, the shortest there is."""
    return [_compare(symbols, states, steps, seed) for symbols, states in sizes]


def _compare(symbols: int, states: int, steps: int, seed: int) -> StockComparison:
    machine = TuringMachine.random(symbols=symbols, states=states, seed=seed)
    tape = machine.encode([machine.symbols[0]], 0, machine.states[0])
    trace = np.asarray(machine.trace(tape, steps))
    return StockComparison(symbols, states, steps, len(trace), _ours(machine, trace, steps), _stock(machine, trace))


def computed_rows(
    symbols: int = 12, states: int = 16, steps: int = 32, positions: int = 256, seed: int = 0
) -> list[dict[str, Any]]:
    """Where stock is beyond any memory (the paper's size): ours is built, stock's size is computed."""
    machine = TuringMachine.random(symbols=symbols, states=states, seed=seed)
    needed = stock_size(rewrite(record(lambda x: next_tokens(x, machine))), range(machine.base), positions)
    start = time.perf_counter()
    model = compile_machine(machine, backend="tracr", steps=steps, max_seq_len=positions)
    seconds = time.perf_counter() - start
    built = model.config.note("tracr", dict)
    name = f"tracr {symbols}x{states}, {steps} steps, {positions} positions"
    return [
        _row(f"{name}: parameters", "", built["parameters"], needed.parameters),
        _row(f"{name}: parameters without padding", "", model.parameter_count(), needed.parameters),
        _row(f"{name}: layers", "", built["layers"], needed.layers),
        _row(f"{name}: seconds", "s", seconds),
    ]


def _ours(machine: TuringMachine, trace: np.ndarray, steps: int) -> Measured:
    counts = min(steps + 2, machine.base - 1)
    start = time.perf_counter()
    model = compile_program(
        lambda x: next_tokens(x, machine),
        range(machine.base),
        backend="tracr",
        max_seq_len=len(trace),
        counts=counts,
        check=False,
    )
    seconds = time.perf_counter() - start
    return _measured(model, model.config.note("tracr", dict)["parameters"], seconds, machine, trace)


def _stock(machine: TuringMachine, trace: np.ndarray) -> Measured:
    start = time.perf_counter()
    graph = rewrite(record(lambda x: next_tokens(x, machine)))
    model = compile_stock(graph, range(machine.base), len(trace))
    return _measured(model, model.parameters, time.perf_counter() - start, machine, trace)


def _measured(
    model: Transformer | StockModel, parameters: int, seconds: float, machine: TuringMachine, trace: np.ndarray
) -> Measured:
    wrong = float((model.predict(trace) != next_tokens(trace, machine)).mean())
    return Measured(parameters, seconds, _best_time(lambda: model.predict(trace)), wrong)


def _best_time(call: Callable[[], Any], times: int = 3) -> float:
    """The fastest of a few calls, after one that warms up."""
    call()
    taken = []
    for _ in range(times):
        start = time.perf_counter()
        call()
        taken.append(time.perf_counter() - start)
    return min(taken)
