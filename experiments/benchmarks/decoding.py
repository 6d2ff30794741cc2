"""How fast compiled weights write: the sparse engine and torch on the same models, one core unless said otherwise.

Speeds are tokens per second of this process's CPU time, after warm-up. Beside them stand the products a token takes and
the time of each: how far the engine is from what memory allows.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from functools import partial

import numpy as np

from compile import Transformer, compile_machine, compile_task, compile_universal
from compile.sparse import SparseEngine
from compile.sparse.memory import Memory
from experiments.benchmarks.rows import Row, seconds
from rasp import TuringMachine, sep
from rasp.programs.problems import text_tokens
from rasp.programs.tasks import task_program
from rasp.programs.universal import universal_prompt

SYMBOLS, STATES = 12, 16
PIECE = 20_000  # tokens over which a speed is taken
OTHERS = 44_000  # tokens/s of CPU time that transformer-vm's sparse C++ engine reached on a machine of this kind


def bench_decode(longest: int = 1_000_000) -> list[Row]:
    import torch

    torch.set_num_threads(1)
    machine = TuringMachine.random(symbols=SYMBOLS, states=STATES, seed=0)
    rows = list(_lean(machine, longest))
    general = compile_machine(machine, n=2, steps=600, check=False)
    rows += _one("hard_alibi, 12 x 16, n = 2", general, _trace(machine, 250, 120))
    rows += _one("universal, 15 x 5, n = 2", compile_universal(n=2, steps=128, check=False), _universal_text())
    rows += _one("addition, n = 4", compile_task("addition", n=4, lines=128, check=False), _sum_text())
    return rows + list(_many_tapes(machine))


def _lean(machine: TuringMachine, longest: int) -> Iterator[Row]:
    """One long run: short tapes would need more steps than float32 counts."""
    cells = 280
    model = compile_machine(machine, backend="lean", n=2, steps=longest // (cells + 4) + 8, check=False)
    text = _trace(machine, cells, longest // (cells + 4) + 2)[:longest]
    before = _torch_speed(model, text[:1000])
    memory = _engine(model).memory()
    memory.feed(text[:1000])
    base = None
    for context in (1_000, 100_000, 1_000_000):
        if context > longest:
            return
        start = max(0, context - PIECE) if context > PIECE else 1_000
        memory.feed(text[memory.position : start])
        speed, products = _speed(memory, text[start : start + PIECE])
        base = base or speed
        against = (
            (f"torch, {before:,.0f} tokens/s", speed / before) if base == speed else ("context 1,000", speed / base)
        )
        yield Row(f"lean, 12 x 16, n = 2, context {context:,}", speed, "tokens/s", *against)
        if base == speed:
            yield Row("the same", speed, "tokens/s", f"transformer-vm, {OTHERS:,} tokens/s", speed / OTHERS)
            yield Row("products per token", products, "")
            yield Row("time per product", 1e9 / speed / products, "ns")
    yield Row("memory per token of context", memory.bytes / longest, "bytes", "64 bytes", memory.bytes / longest / 64)
    yield Row("largest share of attention left out", memory.left_out, "")


def _one(name: str, model: Transformer, text: np.ndarray) -> list[Row]:
    before = _torch_speed(model, text[:400])
    memory = _engine(model).memory()
    memory.feed(text[:400])
    speed, products = _speed(memory, text[400:])
    against = f"torch, {before:,.0f} tokens/s"
    return [
        Row(f"{name}, {len(text):,} tokens", speed, "tokens/s", against, speed / before),
        Row("products per token", products, ""),
    ]


def _many_tapes(machine: TuringMachine, tapes: int = 64, count: int = 2_000) -> Iterator[Row]:
    engine = _engine(compile_machine(machine, backend="lean", n=4, steps=200, check=False))
    rng = np.random.default_rng(0)
    prompts = [[*_tape(machine, 20, rng), sep] for _ in range(tapes)]
    one, two = (seconds(partial(engine.generate, prompts, count, workers=workers), 2) for workers in (1, 2))
    yield Row(f"lean, {tapes} tapes, two cores", tapes * count / two, "tokens/s", "one core", one / two)


def _engine(model: Transformer) -> SparseEngine:
    return SparseEngine(model.config.to_dict(), {name: p.numpy() for name, p in model.state_dict().items()})


def _speed(memory: Memory, tokens: np.ndarray) -> tuple[float, float]:
    """Tokens per second of CPU time, and products per token."""
    products, start = memory.touched, time.process_time()
    memory.feed(tokens)
    taken = time.process_time() - start
    return len(tokens) / taken, (memory.touched - products) / len(tokens)


def _torch_speed(model: Transformer, text: np.ndarray, count: int = 64) -> float:
    """Tokens per second of CPU time, one after the other, after this text."""
    model.generate(text[:20], 4)
    for _ in model.stream(text, 1):
        pass
    start = time.process_time()
    stream = model.stream(text, count + 1)
    next(stream)
    start = time.process_time()
    for _ in stream:
        pass
    return count / (time.process_time() - start)


def _tape(machine: TuringMachine, cells: int, rng: np.random.Generator) -> list[int]:
    names = [machine.symbols[c] for c in rng.integers(len(machine.symbols), size=cells)]
    return list(machine.encode(names, int(rng.integers(cells)), str(rng.choice(machine.states))))


def _trace(machine: TuringMachine, cells: int, steps: int) -> np.ndarray:
    return machine.trace(_tape(machine, cells, np.random.default_rng(0)), steps)


def _universal_text() -> np.ndarray:
    machine = TuringMachine.random(symbols=15, states=5, seed=0)
    tape = _tape(machine, 60, np.random.default_rng(0))
    return np.concatenate((universal_prompt(machine, tape), machine.trace(tape, 100)[len(tape) + 1 :]))


def _sum_text(digits: int = 100) -> np.ndarray:
    rng = np.random.default_rng(0)
    left, right = ("".join(map(str, rng.integers(1, 10, size=digits))) for _ in range(2))
    return text_tokens(task_program("addition").read(f"{left}+{right}"))
