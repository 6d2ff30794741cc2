"""Where the theorem stops being true: for each hypothesis the smallest run that breaks it, found by search.

Nothing here is written down beforehand. Runs are gone through from the smallest on (or drawn at random where there are
too many), and what is reported is what the program did on them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from itertools import product

import numpy as np

from proofs_check.hypotheses import WrongStep, first_wrong_step
from proofs_check.programs import predictions
from proofs_check.sampled import batched
from rasp.errors import FunctionError
from rasp.machines.machine import TuringMachine, default_names
from rasp.machines.simulate import batch_traces, machine_from_tables, random_tables, random_tapes
from rasp.machines.tape import MARKERS, bos, sep
from rasp.programs.turing import hash_n_gram_iter, key_fits, next_tokens
from rasp.rewrite import simplify
from rasp.tracing import trace

MAX_CELLS = 8
MAX_BATCHES = 64


@dataclass(frozen=True)
class SmallRun:
    """A machine, a tape, and the step at which the program goes wrong."""

    machine: TuringMachine
    tape: tuple[int, ...]
    step: int
    tokens: int  # how many tokens the program reads until then

    def __str__(self) -> str:
        size = f"{len(self.machine.symbols)} symbols x {len(self.machine.states)} states"
        tape = f"{self.machine.format_tape(self.tape)} (tokens {' '.join(map(str, self.tape))})"
        return f"{tape} on a machine of {size}: wrong at step {self.step}, after {self.tokens:,} tokens"


def first_error(machine: TuringMachine, tape: tuple[int, ...], steps: int, n: int, packing: str) -> int | None:
    """The position of the program's first wrong prediction after the prompt, by running it."""
    tokens = machine.trace(tape, steps)
    start = len(tape) - 1
    wrong = np.flatnonzero(predictions(tokens[:-1], machine, n, packing)[start:] != tokens[start + 1 :])
    return start + int(wrong[0]) if len(wrong) else None


def _run_to_error(machine: TuringMachine, tape: tuple[int, ...], at: int) -> SmallRun:
    return SmallRun(machine, tape, (at + 1) // (len(tape) + 1), at + 1)


# --- all small runs ---------------------------------------------------------------------------------------------------


def all_machines(symbols: int, states: int) -> Iterator[TuringMachine]:
    """Every machine of this size, states kept on bouncing."""
    q, a = default_names(symbols, states)
    keys = list(product(q, a))
    for rules in product(product(a, "LR", q), repeat=len(keys)):
        yield TuringMachine(states=q, symbols=a, transitions=dict(zip(keys, rules, strict=True)))


def all_tapes(machine: TuringMachine, length: int) -> Iterator[tuple[int, ...]]:
    """Every tape of this many cells, with every state on every cell and end marker."""
    for cells in product(machine.symbols, repeat=length):
        for head, state in product(range(-1, length + 1), machine.states):
            yield tuple(machine.encode(cells, head, state))


def smallest_repeat(n: int = 1, packing: str = "unbounded") -> SmallRun:
    """Hypothesis 1, no repeated (n+1)-gram: the shortest run the program gets wrong, of all runs of all machines.

    One symbol and one state are enough: more of them only make tokens differ. `unbounded`, so that only this
    hypothesis can fail.
    """
    for length, steps in product(range(MAX_CELLS), (1, 2, 3)):
        for machine in all_machines(1, 1):
            for tape in all_tapes(machine, length):
                at = first_error(machine, tape, steps, n, packing)
                if at is not None:
                    return _run_to_error(machine, tape, at)
    raise AssertionError(f"no run of up to {MAX_CELLS} cells goes wrong")


def smallest_escape() -> SmallRun:
    """Hypothesis 2, in-memory: the shortest run on which the tape with ends and the endless tape part.

    The program follows the tape with ends, correctly; it is the textbook machine that it then no longer simulates.
    """
    for steps, length in product(range(1, MAX_CELLS), range(1, MAX_CELLS)):
        for machine in all_machines(1, 1):
            for tape in all_tapes(machine, length):
                here = machine.decode(tape)
                if 0 <= here.head < length and _parted(machine, tape, steps):
                    return SmallRun(machine, tape, steps, steps * (len(tape) + 1))
    raise AssertionError("no machine leaves its memory")


def _parted(machine: TuringMachine, tape: tuple[int, ...], steps: int) -> bool:
    here = machine.decode(tape)
    endless = machine.run(here.cells, here.head, steps, here.state)
    ended = machine.decode(machine.trace(tape, steps)[-len(tape) - 1 : -1])
    return (ended.head, ended.state) != (endless.head, endless.state)


# --- the step bound ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class BoundRow:
    """What became of runs without repeats, with the paper's packing, past the bound of base**n steps."""

    base: int
    n: int
    bound: int
    runs: int
    earliest: SmallRun | None  # the first to go wrong, on the shortest tape
    witness: WrongStep | None


def past_the_bound(
    n: int = 1, symbols: int = 12, states: int = 16, extra: int = 8, machines: int = 256, seed: int = 0
) -> BoundRow:
    """Hypothesis 3, at most base**n steps: the earliest step at which two keys collide, over random machines.

    Tapes of 1, 2, .. n+1 cells, which cannot repeat an (n+1)-gram: all that can go wrong is the key. More machines are
    drawn until one fails right after the bound.
    """
    base = len(MARKERS) + symbols + states
    best: SmallRun | None = None
    runs = 0
    for batch, length in product(range(MAX_BATCHES), range(1, n + 2)):
        found = _earliest_collision(n, symbols, states, length, base**n + extra, machines, seed, batch * machines)
        runs += machines
        if found and (best is None or (found.step, found.tokens) < (best.step, best.tokens)):
            best = found
        if best and best.step == base**n + 1 and length == n + 1:
            break
    if best is None:
        return BoundRow(base, n, base**n, runs, None, None)
    confirmed = first_error(best.machine, best.tape, best.step, n, "paper")
    assert confirmed is not None and confirmed + 1 == best.tokens, "the program does not go wrong where keys collide"
    return BoundRow(base, n, base**n, runs, best, first_wrong_step(best.machine, best.tape, best.step, n))


def _earliest_collision(
    n: int, symbols: int, states: int, length: int, steps: int, machines: int, seed: int, first: int
) -> SmallRun | None:
    tables = random_tables(machines, symbols, states, seed, first)
    tapes = random_tapes(machines, symbols, states, length, seed, first)
    traces = batch_traces(*tables, tapes, steps)
    at = batched.wrong_by_key(traces, length + 3, n, len(MARKERS) + symbols + states)
    if (at < 0).all():
        return None
    b = int(np.where(at < 0, at.max() + 1, at).argmin())
    machine = machine_from_tables(tables[0][b], tables[1][b], tables[2][b], symbols, states)
    return _run_to_error(machine, tuple(tapes[b].tolist()), int(at[b]))


@dataclass(frozen=True)
class Ceiling:
    """How long any run stays right with the paper's packing."""

    base: int
    n: int
    limit: int  # base**(2n)
    runs: int
    right_past_limit: int
    longest: int  # the last right step of the run that stays right longest
    longest_tape: str


def ceiling(n: int = 1, symbols: int = 12, states: int = 16, machines: int = 256, seed: int = 0) -> Ceiling:
    """Nothing is right past base**(2n) steps: then the key of a separator is that of the first `bos`.

    Random machines on random tapes, and on the tape without cells, which stays right longest.
    """
    base = len(MARKERS) + symbols + states
    limit = base ** (2 * n)
    last: list[tuple[int, str]] = []
    for length in (0, 1, 2, 4):
        tables = random_tables(machines, symbols, states, seed)
        tapes = _tapes(machines, symbols, states, length, seed)
        at = batched.wrong_by_key(batch_traces(*tables, tapes, limit + 1), length + 3, n, base)
        right = np.where(at < 0, limit + 1, batched.steps_of(at, length + 3) - 1)
        b = int(right.argmax())
        machine = machine_from_tables(tables[0][b], tables[1][b], tables[2][b], symbols, states)
        last += [(int(r), "") for r in right]
        last[-1] = max(last[-1], (int(right[b]), machine.format_tape(tapes[b])))
    longest, tape = max(last)
    return Ceiling(base, n, limit, len(last), sum(step > limit for step, _ in last), longest, tape)


def _tapes(count: int, symbols: int, states: int, length: int, seed: int) -> np.ndarray:
    if length:
        return random_tapes(count, symbols, states, length, seed)
    first_state = len(MARKERS) + symbols
    return np.array([[1, first_state + b % states, 2] for b in range(count)], dtype=np.int64)


# --- int64 ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class KeyRow:
    """The paper's key as an int64, for one n: `twins` are two tokens whose keys, each first on its tape, are equal."""

    n: int
    fits: bool
    twins: tuple[int, int] | None
    overflows: bool

    def __str__(self) -> str:
        if self.overflows:
            return "numpy refuses: the factor base**n is itself too large"
        if self.twins is None:
            return "all keys differ"
        fatal = self.twins == (sep, bos)
        kind = "separator and bos: every run fails at its first token" if fatal else "the leading bit is lost"
        return f"tokens {self.twins[0]} and {self.twins[1]} share a key ({kind})"


def key_limits(largest: int = 14, base: int = 32) -> list[KeyRow]:
    """For each n, whether keys still tell tokens apart, by computing the program's keys without its safety check."""
    return [_key_row(n, base) for n in range(1, largest + 1)]


def _key_row(n: int, base: int) -> KeyRow:
    seen: dict[int, int] = {}
    try:
        for token in range(base):
            count = int(token == 0)  # so that all of them stand on tape 0
            key = int(hash_n_gram_iter(np.array([token]), n, base)[0]) - count
            if key in seen:
                return KeyRow(n, key_fits(n, base, "paper"), (seen[key], token), False)
            seen[key] = token
    except FunctionError:  # the constant base**n itself is no 64-bit number
        return KeyRow(n, key_fits(n, base, "paper"), None, True)
    return KeyRow(n, key_fits(n, base, "paper"), None, False)


# --- rates and sizes --------------------------------------------------------------------------------------------------


def hypothesis_rates(
    lengths: tuple[int, ...] = (5, 10, 20, 50, 100),
    ns: tuple[int, ...] = (1, 2, 3, 4),
    machines: int = 1000,
    steps: int = 32,
    symbols: int = 12,
    states: int = 16,
    seed: int = 0,
) -> dict[int, list[float]]:
    """For each n, the share of random runs of each length on which no tape repeats an (n+1)-gram."""
    tables = random_tables(machines, symbols, states, seed)
    base = len(MARKERS) + symbols + states
    rates: dict[int, list[float]] = {n: [] for n in ns}
    for length in lengths:
        tapes = random_tapes(machines, symbols, states, length, seed)
        traces = batch_traces(*tables, tapes, steps)
        for n in ns:
            rates[n].append(float(np.mean(batched.wrong_by_repeat(traces, length + 3, n, base) < 0)))
    return rates


@dataclass(frozen=True)
class SizeRow:
    """The program for one n: as written, and rewritten for a transformer."""

    n: int
    nodes: int
    depth: int
    rewritten_nodes: int
    rewritten_depth: int


def program_sizes(ns: tuple[int, ...] = (1, 2, 3, 4, 5)) -> list[SizeRow]:
    """O(n) lines: nodes of the traced program and its attention depth, against n."""
    machine = TuringMachine.random()
    rows = []
    for n in ns:
        graph = trace(partial(next_tokens, machine=machine, n=n))
        plain = simplify(graph, hoist=False)
        rows.append(SizeRow(n, len(graph), graph.attention_depth(), len(plain), plain.attention_depth()))
    return rows


def is_linear(values: list[int]) -> bool:
    """Whether the values grow by the same amount each time."""
    return len({b - a for a, b in zip(values, values[1:], strict=False)}) <= 1
