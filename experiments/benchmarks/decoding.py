"""How fast compiled weights write: the sparse engine and torch on the same models, one core unless said otherwise.

Speeds are tokens per second of this process's CPU time, after warm-up. Beside them stand the nonzeros that a token
touches and the time of each: how far the engine is from what memory allows.
"""

from __future__ import annotations

import threading
import time
from collections import defaultdict
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from unittest import mock

import numpy as np

from compile import Transformer, compile_machine, compile_task, compile_universal
from compile.sparse import SparseEngine
from compile.sparse.memory import Memory
from compile.transformer import decoding
from experiments.benchmarks.rows import Row, seconds
from rasp import TuringMachine, sep
from rasp.programs.problems import text_tokens
from rasp.programs.tasks import task_program
from rasp.programs.universal import universal_prompt

SYMBOLS, STATES = 12, 16
CELLS = 280  # of the long run: on short tapes a million tokens take more steps than float32 counts
PIECE = 20_000  # tokens over which a speed is taken
OTHERS = 44_000  # tokens/s of CPU time that transformer-vm's sparse C++ engine reached on a machine of this kind


def bench_decode(longest: int = 1_000_000) -> list[Row]:
    import torch

    torch.set_num_threads(1)
    machine = TuringMachine.random(symbols=SYMBOLS, states=STATES, seed=0)
    fast, plain = _through_torch(machine)
    name = "torch, lean, 12 x 16, n = 2, context 1,000"
    rows = [Row(name, fast, "tokens/s", f"as a batch, {plain:,.0f}", fast / plain), *_lean(machine, longest, plain)]
    general = compile_machine(machine, n=2, steps=600, check=False)
    rows += _one("hard_alibi, 12 x 16, n = 2", general, _trace(machine, 250, 120), 50_000)
    universal = compile_universal(n=2, steps=128, check=False)
    rows += _one("universal, 15 x 5, n = 2", universal, _universal_text(), 30_000)
    rows += _one("addition, n = 4", compile_task("addition", n=4, lines=128, check=False), _sum_text(), 30_000)
    return [*rows, *_many_tapes(machine)]


def _through_torch(machine: TuringMachine) -> tuple[float, float]:
    """One sequence, by nonzeros, and as many rows are written: with dense products, masks and caches for a batch."""
    model = compile_machine(machine, backend="lean", n=2, steps=64, check=False)
    text = _trace(machine, 60, 16)[:1_000]
    fast = _torch_speed(model, text, 400)
    with mock.patch.object(decoding, "suits", return_value=False):
        plain = _torch_speed(model, text, 64)
    return fast, plain


def _lean(machine: TuringMachine, longest: int, by_torch: float) -> Iterator[Row]:
    """One long run, also against torch with dense products."""
    model = compile_machine(machine, backend="lean", n=2, steps=longest // (CELLS + 4) + 8, check=False)
    text = _trace(machine, CELLS, longest // (CELLS + 4) + 2)[:longest]
    memory = _engine(model).memory()
    memory.feed(text[:1_000])
    first = 0.0
    for context in (1_000, 100_000, 1_000_000):
        if context > longest:
            break
        start = max(1_000, context - PIECE)
        memory.feed(text[memory.position : start])
        speed, touched = _speed(memory, text[start : start + PIECE])
        name = f"lean, 12 x 16, n = 2, context {context:,}"
        if first:
            yield Row(name, speed, "tokens/s", "context 1,000", speed / first)
            continue
        first = speed
        yield Row(name, speed, "tokens/s", f"transformer-vm, {OTHERS:,}", speed / OTHERS)
        yield Row("the same", speed, "tokens/s", f"torch as a batch, {by_torch:,.0f}", speed / by_torch)
        yield from _touched(speed, touched)
    yield Row("memory per token of context", memory.bytes / longest, "bytes", "64 bytes", memory.bytes / longest / 64)
    yield Row("largest share of attention left out", memory.left_out, "")


def _one(name: str, model: Transformer, text: np.ndarray, wanted: int) -> list[Row]:
    """After the first tokens, and over the last quarter of the text."""
    memory = _engine(model).memory()
    memory.feed(text[:400])
    quarter = len(text) * 3 // 4
    speed, touched = _speed(memory, text[400:quarter])
    last, _ = _speed(memory, text[quarter:])
    return [
        Row(f"{name}, {len(text):,} tokens", speed, "tokens/s", f"{wanted:,}", speed / wanted),
        *_touched(speed, touched),
        Row("its last quarter", last, "tokens/s", "before", last / speed),
    ]


def _touched(speed: float, touched: float) -> Iterator[Row]:
    yield Row("nonzeros touched per token", touched, "")
    yield Row("time per nonzero", 1e9 / speed / touched, "ns")


def _many_tapes(machine: TuringMachine, tapes: int = 64, count: int = 2_000) -> Iterator[Row]:
    """By the clock, and by the CPU time of each thread, which other work on the machine hardly changes."""
    engine = _engine(compile_machine(machine, backend="lean", n=4, steps=200, check=False))
    rng = np.random.default_rng(0)
    prompts = [[*_tape(machine, 20, rng), sep] for _ in range(tapes)]
    one, two = (seconds(partial(engine.generate, prompts, count, workers=workers), 2) for workers in (1, 2))
    yield Row(f"lean, {tapes} tapes, two cores, by the clock", tapes * count / two, "tokens/s", "one core", one / two)
    alone, shared = (max(_thread_times(engine, prompts, count, workers)) for workers in (1, 2))
    name = f"lean, {tapes} tapes, two cores, by threads' CPU time"
    yield Row(name, tapes * count / shared, "tokens/s", "one core", alone / shared)


def _thread_times(engine: SparseEngine, prompts: list[list[int]], count: int, workers: int) -> list[float]:
    """The CPU time of each worker, with the work of `generate`."""
    spent: defaultdict[int, float] = defaultdict(float)

    def write(prompt: list[int]) -> None:
        start = time.thread_time()
        for _ in engine.stream(prompt, count):
            pass
        spent[threading.get_ident()] += time.thread_time() - start

    with ThreadPoolExecutor(workers) as pool:
        list(pool.map(write, prompts))
    return list(spent.values())


def _engine(model: Transformer) -> SparseEngine:
    return SparseEngine(model.config.to_dict(), {name: p.numpy() for name, p in model.state_dict().items()})


def _speed(memory: Memory, tokens: np.ndarray) -> tuple[float, float]:
    """Tokens per second of CPU time, and nonzeros per token."""
    touched, start = memory.touched, time.process_time()
    memory.feed(tokens)
    taken = time.process_time() - start
    return len(tokens) / taken, (memory.touched - touched) / len(tokens)


def _torch_speed(model: Transformer, text: np.ndarray, count: int, warm_up: int = 12) -> float:
    """Tokens per second of CPU time, one after the other, after this text."""
    stream = model.stream(text, count + warm_up, engine="torch")
    for _ in range(warm_up):
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
