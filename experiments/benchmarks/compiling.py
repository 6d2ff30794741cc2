"""The compiled transformers: size, time to compile, generation; and stock tracr where it can compile at all."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from compile import Transformer, compile_machine, compile_task, compile_universal
from experiments.benchmarks.rows import Row
from experiments.benchmarks.stock_tracr_compare import compare_with_stock, computed_rows
from proofs_check import first_wrong_step
from rasp import TuringMachine, sep

SYMBOLS, STATES = 12, 16
# layers, parameters, seconds
BUDGET: dict[str, tuple[int, float, float]] = {
    "hard_alibi": (16, 10e6, 5.0),
    "lean": (2, 3e6, 1.0),
    "addition, n = 4, 128 lines": (8, 25e6, 30.0),
    "multiplication by 1 digit, n = 4, 128 lines": (12, 60e6, 60.0),
    "multiplication by 3 digits, n = 4, 128 lines": (12, 60e6, 60.0),
    "universal 15 x 5, n = 2, 128 steps": (8, 10e6, 60.0),
}


def bench_compile(stock: bool = True) -> list[Row]:
    import torch

    torch.set_num_threads(1)
    machine = TuringMachine.random(symbols=SYMBOLS, states=STATES, seed=0)
    compile_machine(TuringMachine.random(symbols=2, states=2, seed=0), backend="lean", steps=2)  # imports, not measured
    rows: list[Row] = []
    for backend in ("hard_alibi", "lean"):
        model, taken = _compiled(machine, backend)
        rows += _against_budget(backend, model, taken)
        if backend == "lean":
            rows += _generation(machine, model)
    for name, make in PROGRAMS.items():
        rows += _against_budget(name, *_timed(make))
    rows += [_beside_stock(row) for row in computed_rows(SYMBOLS, STATES)]
    comparisons = compare_with_stock() if stock else []
    return rows + [_beside_stock(row) for comparison in comparisons for row in comparison.rows()]


PROGRAMS: dict[str, Callable[[], Transformer]] = {
    "addition, n = 4, 128 lines": lambda: compile_task("addition", n=4, lines=128, check=False),
    "multiplication by 1 digit, n = 4, 128 lines": lambda: compile_task("multiplication1", n=4, check=False),
    "multiplication by 3 digits, n = 4, 128 lines": lambda: compile_task("multiplication3", n=4, check=False),
    "universal 15 x 5, n = 2, 128 steps": lambda: compile_universal(15, 5, n=2, steps=128, check=False),
}


def _compiled(machine: TuringMachine, backend: str) -> tuple[Transformer, float]:
    return _timed(lambda: compile_machine(machine, backend=backend, steps=64, check=False))


def _timed(make: Callable[[], Transformer]) -> tuple[Transformer, float]:
    start = time.thread_time()
    model = make()
    return model, time.thread_time() - start


def _against_budget(name: str, model: Transformer, taken: float) -> list[Row]:
    """Ratios to the budget: below 1 is within it."""
    layers, parameters, limit = BUDGET[name]
    count = model.parameter_count()
    return [
        Row(f"{name}: layers", model.config.layers, "", f"budget {layers}", model.config.layers / layers),
        Row(f"{name}: parameters", count, "", f"budget {parameters:,.0f}", count / parameters),
        Row(f"{name}: parameters not zero", model.nonzero_count(), "", "parameters", model.nonzero_count() / count),
        Row(f"{name}: CPU seconds to compile", taken, "s", f"budget {limit:g} s", taken / limit),
    ]


def _generation(machine: TuringMachine, model: Any, tapes: int = 64) -> list[Row]:
    """Batched generation with KV cache, and what a token costs in a context four times as long."""
    prompts = _simulable_tapes(machine, tapes)
    model.generate(prompts[:2], 8)
    short, long = _tokens_per_second(model, prompts, 128), _tokens_per_second(model, prompts, 512)
    return [
        Row(f"lean: {tapes} tapes, contexts to 144", short, "tokens/s", "budget 1,000", short / 1000),
        Row(f"lean: {tapes} tapes, contexts to 528", long, "tokens/s", "contexts to 144", long / short),
    ]


def _simulable_tapes(machine: TuringMachine, count: int, cells: int = 12, steps: int = 36) -> list[list[int]]:
    """Random tapes that the program runs rightly to the end: elsewhere it writes separators beyond any capacity."""
    rng = np.random.default_rng(0)
    found: list[list[int]] = []
    while len(found) < count:
        names = [machine.symbols[c] for c in rng.integers(SYMBOLS, size=cells)]
        tape = machine.encode(names, int(rng.integers(cells)), str(rng.choice(machine.states)))
        if first_wrong_step(machine, tape, steps, packing="unbounded") is None:
            found.append([*tape, sep])
    return found


def _tokens_per_second(model: Any, prompts: list[list[int]], count: int) -> float:
    start = time.perf_counter()
    model.generate(prompts, count)
    return len(prompts) * count / (time.perf_counter() - start)


def _beside_stock(row: dict[str, Any]) -> Row:
    """`ratio`: how many times smaller or faster than stock; wrong positions have none."""
    stock = "" if row["baseline"] is None else f"stock tracr: {row['baseline']:,.4g}"
    return Row(row["name"], row["value"], row["unit"], stock, row["ratio"])
