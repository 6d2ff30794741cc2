"""The interpreters of RASP-L against each other, on the paper's program for a 12 x 16 machine."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial

import numpy as np

from experiments.benchmarks.np_rasp import addition, count_prompt, counting, generated, sum_prompt
from experiments.benchmarks.rows import Row, seconds
from rasp import Graph, TuringMachine, simplify, trace, universal_prompt
from rasp.engines.jit import Kernel
from rasp.engines.stream import Stream
from rasp.engines.turing import predict, tables_of, turing_graph, turing_kernel
from rasp.machines.simulate import batch_traces, random_tables, random_tapes
from rasp.programs import next_tokens_addition, next_tokens_universal
from rasp.programs.problems import Sum, text_tokens

SYMBOLS, STATES = 12, 16
MACHINES, LENGTH, STEPS = 4096, 10, 32


def bench_interpreters() -> list[Row]:
    machine = TuringMachine.random(symbols=SYMBOLS, states=STATES, seed=0)
    rows = _quadratic(machine)
    rows += _streaming(machine)
    rows += _compiled(machine, reference=rows[0].value)
    rows += _tuples("addition, n = 4", simplify(trace(next_tokens_addition)), _sum)
    rows += _tuples("universal 15 x 5, n = 1", simplify(trace(next_tokens_universal)), _universal)
    return rows + _as_np_rasp() + _start_up()


def _trace(machine: TuringMachine, tokens: int) -> np.ndarray:
    """A trace of about this many tokens."""
    rng = np.random.default_rng(1)
    tape = machine.encode([machine.symbols[i] for i in rng.integers(SYMBOLS, size=LENGTH)], head=LENGTH // 2)
    return machine.trace(tape, tokens // (len(tape) + 1) + 1)[:tokens]


def _quadratic(machine: TuringMachine) -> list[Row]:
    """One more token of a 512-token context, for the interpreters that look at all of it again."""
    x = _trace(machine, 512)
    reference = seconds(lambda: predict(x, machine, engine="reference"), repeats=1)
    eager = seconds(lambda: predict(x, machine, engine="eager"))
    return [
        Row("reference, context 512", reference * 1e6, "us/token"),
        Row("eager numpy, context 512", eager * 1e6, "us/token", "reference", reference / eager),
    ]


def _as_np_rasp() -> list[Row]:
    """Programs of np-rasp's own kind, token by token, against its primitives written out."""
    examples = {
        "sum of two 5-digit numbers": (addition, sum_prompt(48123, 91879)),
        "counting from 0 to 15": (counting, count_prompt(0, 15)),
        "counting from 0 to 60": (counting, count_prompt(0, 60)),
    }
    rows = []
    for name, (program, prompt) in examples.items():
        naive, ours = (seconds(partial(generated, program, prompt, way), repeats=7) for way in (True, False))
        rows.append(Row(f"eager numpy, {name}", ours * 1e3, "ms", "np-rasp's primitives", naive / ours))
    return rows


def _streaming(machine: TuringMachine, probe: int = 500, rounds: int = 15) -> list[Row]:
    """The cost of a token after a long context, against one after a short context.

    One stream for each context, measured in turn so that all meet the same conditions; the best round counts.
    """
    contexts = [1_000, 10_000, 100_000, 1_000_000]
    x = _trace(machine, contexts[-1] + 2 * probe * rounds)
    streams = {context: Stream(turing_graph(SYMBOLS, STATES), tables_of(machine)) for context in contexts}
    for context, running in streams.items():
        running.run(x[:context])
    cost = dict.fromkeys(contexts, float("inf"))
    for at in range(0, 2 * probe * rounds, 2 * probe):
        for context, running in streams.items():
            if context == contexts[0]:  # would soon be longer than it is called
                running.reset()
                running.run(x[at : at + context])
            running.run(x[context + at :][:probe])  # its memory back into the caches
            start = time.thread_time()
            running.run(x[context + at + probe :][:probe])
            cost[context] = min(cost[context], (time.thread_time() - start) / probe * 1e6)
    against = "stream, context 1,000"
    return [Row(f"stream, context {c:,}", cost[c], "us/token", against, cost[c] / cost[contexts[0]]) for c in contexts]


def _compiled(machine: TuringMachine, reference: float) -> list[Row]:
    kernel = turing_kernel(SYMBOLS, STATES)
    long = _trace(machine, 1_000_000)
    tables = tables_of(machine)
    one = _per_token(lambda: kernel.predict(long, tables=tables), long.size)
    stacked = random_tables(MACHINES, SYMBOLS, STATES, 0)
    tapes = random_tapes(MACHINES, SYMBOLS, STATES, LENGTH, 0)
    traces = batch_traces(*stacked, tapes, STEPS)
    batched = _per_token(lambda: kernel.predict_batch(traces, stacked), traces.size)
    direct = _per_token(lambda: batch_traces(*stacked, tapes, STEPS), traces.size)
    return [
        Row("jit, one machine, 10^6 tokens", one, "ns/token"),
        Row("jit, batched over machines", batched, "ns/token", "reference at context 512", reference * 1e3 / batched),
        Row("jit, batched over machines", 1e3 / batched, "M tokens/s"),
        Row("numba Turing machine, batched", direct, "ns/token"),
        Row("jit, batched over machines", batched, "ns/token", "numba Turing machine, batched", batched / direct),
    ]


def _tuples(name: str, graph: Graph, text: Callable[[int], np.ndarray]) -> list[Row]:
    """Programs that look up tuples, one token at a time and compiled."""
    contexts = (1_000, 1_000_000)
    x = text(contexts[-1] + STREAMED)
    cost = {context: _streamed(graph, x[: context + STREAMED]) for context in contexts}
    kernel = Kernel(graph)
    per_token = _per_token(lambda: kernel.predict(x), x.size)
    against = f"stream, {name}, context {contexts[0]:,}"
    return [
        *(
            Row(f"stream, {name}, context {c:,}", cost[c], "us/token", against, cost[c] / cost[contexts[0]])
            for c in cost
        ),
        Row(f"jit, {name}, 10^6 tokens", 1e3 / per_token, "M tokens/s"),
    ]


STREAMED = 2_000  # tokens over which the cost of one is measured


def _streamed(graph: Graph, x: np.ndarray, rounds: int = 5) -> float:
    """Microseconds per token at the end of the text: the best of some rounds, each on the same few tokens."""
    running = Stream(graph)
    running.run(x[:-STREAMED])
    pieces = np.array_split(x[-STREAMED:], rounds)
    best = float("inf")
    for piece in pieces:
        start = time.thread_time()
        running.run(piece)
        best = min(best, (time.thread_time() - start) / len(piece) * 1e6)
    return best


def _sum(tokens: int) -> np.ndarray:
    """A sum with a text of at least this many tokens: about 2 d**2 of them for d digits; its first `tokens`."""
    rng = np.random.default_rng(2)
    digits = int((tokens / 1.5) ** 0.5) + 2
    left, right = ("".join(map(str, rng.integers(10, size=digits))) for _ in range(2))
    return text_tokens(Sum(left, right))[:tokens]


def _universal(tokens: int) -> np.ndarray:
    """A machine's table and its run."""
    machine = TuringMachine.random(symbols=15, states=5, seed=0)
    tape = machine.encode(machine.symbols[:LENGTH])
    prompt = universal_prompt(machine, tape)
    run = machine.trace(tape, tokens // (len(tape) + 1))
    return np.concatenate([prompt[: prompt.index(0) + 1], run])[:tokens]


def _per_token(function: object, tokens: int) -> float:
    assert callable(function)
    function()  # compile
    return seconds(function, repeats=5) / tokens * 1e9


def _start_up() -> list[Row]:
    def run(*arguments: str) -> float:
        return seconds(lambda: subprocess.run([sys.executable, *arguments], check=True, capture_output=True), repeats=5)

    bare = run("-c", "pass")
    imported = run("-c", "import rasp")
    shown = run("-m", "experiments.cli", "--help")
    return [
        Row("import rasp", imported, "s", "bare python", imported / bare),
        Row("turing-programs --help", shown, "s", "bare python", shown / bare),
    ]
