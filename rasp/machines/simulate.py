"""The direct simulator: Turing machines run at the speed of the memory they write to.

Nothing here knows RASP-L. It is what programs are compared with, for truth and for speed. Tables may have any integer
dtype: `random_tables` picks the smallest, because a thousand 12x16 machines are then 3 MB of int8 and stay in cache.
Traces and tapes default to int64, because hashes computed from them in numpy would overflow anything smaller.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, SupportsIndex

import numpy as np
import numpy.typing as npt

from rasp.machine_code import compiled
from rasp.machines.machine import RunResult, TuringMachine, default_names
from rasp.machines.tape import MARKERS, InvalidTape, bos, eos, sep
from rasp.machines.validation import InvalidMachine, check_count, check_size
from rasp.memory import free_bytes, need_memory

IntArray = npt.NDArray[Any]


class Tables(NamedTuple):
    """Transition tables of many machines, each array (machine, state, token)."""

    next_state: IntArray
    next_symbol: IntArray
    move: IntArray


# --- traces on a bounded tape -----------------------------------------------------------------------------------------


def batch_traces(next_state: IntArray, next_symbol: IntArray, move: IntArray, tapes: IntArray, steps: int) -> IntArray:
    """Row b is `tape_0 sep .. tape_steps sep` of machine b on tape b, in the dtype of `tapes`.

    Final states are not stopped at: the tables are followed for all `steps`.
    """
    tables = [np.ascontiguousarray(table) for table in (next_state, next_symbol, move)]
    tapes = np.ascontiguousarray(tapes)
    _check_batch(tables, tapes)
    count, width = tapes.shape
    size = count * (check_count("steps", steps) + 1) * (width + 1) * tapes.itemsize
    need_memory(f"{count:,} texts of {steps} steps", size, "ask for fewer steps, or fewer at a time")
    out = np.empty((count, steps + 1, width + 1), dtype=tapes.dtype)
    bad = _batch_kernel(tables[0], tables[1], tables[2], tapes, out)
    if bad >= 0:
        raise InvalidTape(
            f"tape {bad} of the batch has no state token, or its head leaves the tape or the tables: "
            "give tapes bos .. symbol state .. eos of the machines they stand beside"
        )
    return out.reshape(count, -1)


def traces(machines: Sequence[TuringMachine], tapes: Sequence[Iterable[SupportsIndex]], steps: int) -> IntArray:
    """`batch_traces` of machines of one vocabulary size, on tapes of one length."""
    checked = [machine.check_tape(tape) for machine, tape in zip(machines, tapes, strict=True)]
    if len({len(tape) for tape in checked}) > 1:
        raise InvalidTape("the tapes of a batch must have one length: pad them, or run them one by one")
    return batch_traces(*stack_tables(machines), np.array(checked, dtype=np.int64), steps)


def stack_tables(machines: Sequence[TuringMachine]) -> Tables:
    """The tables of machines of one vocabulary size, stacked."""
    if len({machine.base for machine in machines}) != 1:
        raise InvalidMachine("the machines of a batch must be at least one, and have one vocabulary size")
    dtype = _smallest_dtype(machines[0].base)
    stacked = (
        [np.asarray(table.values, dtype=dtype) for table in (m.next_state, m.next_symbol, m.move)] for m in machines
    )
    return Tables(*map(np.stack, zip(*stacked, strict=True)))


def trace(
    machine: TuringMachine, tape: Iterable[SupportsIndex], steps: int, bytes_per_token: int = 8
) -> npt.NDArray[np.int64]:
    """What `machine.trace` returns, for long runs; refused if the steps before its halt do not fit into memory."""
    start = np.array(machine.check_tape(tape), dtype=np.int64)
    final = _final(machine)
    fitting = max(1, free_bytes() // (bytes_per_token * (len(start) + 1)) - 1)
    if check_count("steps", steps) > fitting:
        done = _count_kernel(*_packed(machine), final, start, fitting)
        size = bytes_per_token * (steps + 1) * (len(start) + 1)
        if done == fitting:
            need_memory(f"a run of {steps} steps on {len(start) - 3} cells", size, "ask for fewer steps")
        steps = done
    out = np.empty((steps + 1, len(start) + 1), dtype=np.int64)
    rows = _trace_kernel(*_packed(machine), final, start, out)
    return out[:rows].ravel()


def _final(machine: TuringMachine) -> npt.NDArray[np.bool_]:
    final = np.zeros(machine.base, dtype=np.bool_)
    final[list(machine.final_tokens)] = True
    return final


def _packed(machine: TuringMachine) -> tuple[npt.NDArray[np.int64], int]:
    """The three tables in one, so that a step waits for one look-up: (2 * symbol + move) * 2**bits + state."""
    bits = int(machine.base).bit_length()
    state, symbol, move = (np.asarray(t.values) for t in (machine.next_state, machine.next_symbol, machine.move))
    return (((2 * symbol + move) << bits) + state).astype(np.int64), bits


def _check_batch(tables: Sequence[IntArray], tapes: IntArray) -> None:
    base = tables[0].shape[-1] if tables[0].ndim else 0
    if tapes.ndim != 2 or any(table.shape != (len(tapes), base, base) for table in tables):
        shapes = [table.shape for table in tables]
        raise InvalidTape(f"tapes have shape {tapes.shape} and tables {shapes}: expected (B, W) and (B, base, base)")
    if tapes.size and (tapes.min() < 0 or tapes.max() >= base):
        raise InvalidTape(f"the tapes hold tokens {tapes.min()} to {tapes.max()}: these tables know 0 to {base - 1}")


@compiled
def _batch_kernel(next_state, next_symbol, move, tapes, out):  # type: ignore[no-untyped-def]
    """Writes every trace; returns the index of the first impossible tape, or -1."""
    count, width = tapes.shape
    base, steps = next_state.shape[1], out.shape[1] - 1
    for b in range(count):
        head = 0
        for i in range(width):
            out[b, 0, i] = tapes[b, i]
            # only states have a state after `bos`: this finds the head without being told which tokens are states
            if head == 0 and next_state[b, tapes[b, i], bos] != 0:
                head = i
        out[b, 0, width] = sep
        if head == 0:
            return b
        state, under = out[b, 0, head], out[b, 0, head - 1]
        for t in range(steps):
            before, after = out[b, t], out[b, t + 1]
            for i in range(width + 1):
                after[i] = before[i]
            then, write = next_state[b, state, under], next_symbol[b, state, under]
            if not (0 <= then < base and 0 <= write < base):  # indices of the next look-up
                return b
            if move[b, state, under] != 0:
                if head + 1 >= width:
                    return b
                under = before[head + 1]
                after[head - 1], after[head], after[head + 1] = write, under, then
                head += 1
            else:
                if head < 2:
                    return b
                under = before[head - 2]
                after[head - 1], after[head] = then, write
                head -= 1
            state = then
    return -1


@compiled
def _trace_kernel(packed, bits, final, start, out):  # type: ignore[no-untyped-def]
    """Writes one trace up to the first tape in a final state; returns the number of tapes written."""
    width = len(start)
    out[0, :width], out[0, width] = start, sep
    head = _head(packed, bits, start)
    for t in range(len(out) - 1):
        before, after = out[t], out[t + 1]
        if final[before[head]]:
            return t + 1
        for i in range(width + 1):
            after[i] = before[i]
        head = _step(packed, bits, after, head)
    return len(out)


@compiled
def _count_kernel(packed, bits, final, start, steps):  # type: ignore[no-untyped-def]
    """How many steps there are before a final state, at most `steps`; nothing is written down."""
    tape, head = start.copy(), _head(packed, bits, start)
    for t in range(steps):
        if final[tape[head]]:
            return t
        head = _step(packed, bits, tape, head)
    return steps


@compiled
def _head(packed, bits, tape):  # type: ignore[no-untyped-def]
    """Where the state stands: only states have a state after `bos`."""
    head = 1
    while packed[tape[head], bos] & ((1 << bits) - 1) == 0:
        head += 1
    return head


@compiled
def _step(packed, bits, tape, head):  # type: ignore[no-untyped-def]
    """One step on the tape itself; returns where the state stands then."""
    rule = packed[tape[head], tape[head - 1]]
    state, write = rule & ((1 << bits) - 1), rule >> (bits + 1)
    if (rule >> bits) & 1:
        tape[head - 1], tape[head], tape[head + 1] = write, tape[head + 1], state
        return head + 1
    tape[head - 1], tape[head] = state, write
    return head - 1


# --- runs on an endless tape ------------------------------------------------------------------------------------------


def run(
    machine: TuringMachine, cells: Iterable[str] = (), head: int = 0, steps: int = 10_000, state: str | None = None
) -> RunResult:
    """What `machine.run` returns, for long runs."""
    given = np.array([machine.symbol_token(name) for name in cells], dtype=np.int64)
    now = machine.start_token if state is None else machine.state_token(state)
    final = _final(machine)
    left, right, done = min(head, 0), max(head, len(given) - 1), 0
    origin = 64 - left
    tape = np.full(origin + right + 65, machine.blank_token, dtype=np.int64)
    tape[origin : origin + len(given)] = given
    place = np.array([now, head + origin, left + origin, right + origin], dtype=np.int64)
    while True:
        done += _run_kernel(*_packed(machine), final, tape, place, check_count("steps", steps) - done)
        if final[place[0]] or done == steps:
            break
        room = len(tape)
        need_memory(f"a tape of {3 * room:,} cells, reached after {done:,} steps,", 24 * room, "ask for fewer steps")
        tape = np.pad(tape, room, constant_values=machine.blank_token)
        place[1:] += room
        origin += room
    name, (head, left, right) = machine.vocabulary[place[0]], (int(i) - origin for i in place[1:])
    after = tuple(machine.vocabulary[t] for t in tape[left + origin : right + origin + 1].tolist())
    return RunResult(done, bool(final[place[0]]), name, after, head, left, right, machine.blank)


@compiled
def _run_kernel(packed, bits, final, tape, place, steps):  # type: ignore[no-untyped-def]
    """Runs until final, out of steps, or at the edge of the memory; returns how many steps were made."""
    state, head, left, right = place[0], place[1], place[2], place[3]
    done = 0
    while done < steps and not final[state] and 0 < head < len(tape) - 1:
        rule = packed[state, tape[head]]
        state, tape[head] = rule & ((1 << bits) - 1), rule >> (bits + 1)
        head += 2 * ((rule >> bits) & 1) - 1
        left, right = min(left, head), max(right, head)
        done += 1
    place[0], place[1], place[2], place[3] = state, head, left, right
    return done


# --- many random machines ---------------------------------------------------------------------------------------------


def random_tables(count: int, symbols: int = 12, states: int = 16, seed: int = 0, first: int = 0) -> Tables:
    """Random machines number `first` to `first + count - 1`, uniform as `TuringMachine.random`.

    Entry e of machine i is a hash of (seed, i, e): a machine is the same however the numbers are cut into chunks.
    A choice among k is off uniform by less than k / 2**31.
    """
    check_size(symbols, states)
    base = len(MARKERS) + symbols + states
    shape = (check_count("count", count), base, base)
    tables = Tables(*(np.empty(shape, dtype=_smallest_dtype(base)) for _ in range(3)))
    _tables_kernel(*tables, symbols, states, _seed64(seed, 0), first)
    return tables


def random_tapes(
    count: int,
    symbols: int = 12,
    states: int = 16,
    length: int = 10,
    seed: int = 0,
    first: int = 0,
    dtype: npt.DTypeLike = np.int64,
) -> IntArray:
    """Tapes number `first` to `first + count - 1`: random symbols, head on a random cell, random state."""
    check_size(symbols, states)
    if length < 1:
        raise InvalidTape(f"length is {length}: a random tape needs at least one cell for its head")
    out = np.empty((check_count("count", count), length + 3), dtype=dtype)
    _tapes_kernel(out, symbols, states, _seed64(seed, 1), first)
    return out


def machine_from_tables(
    next_state: IntArray, next_symbol: IntArray, move: IntArray, symbols: int, states: int, name: str = ""
) -> TuringMachine:
    """One machine of a batch (arrays of shape (base, base)), as an object."""
    low = len(MARKERS) + symbols
    q, a = default_names(symbols, states)
    return TuringMachine(
        states=q,
        symbols=a,
        transitions={
            (q[i], a[j]): (
                a[next_symbol[low + i, 4 + j] - 4],
                "LR"[move[low + i, 4 + j]],
                q[next_state[low + i, 4 + j] - low],
            )
            for i in range(states)
            for j in range(symbols)
        },
        bounce={(q[i], MARKERS[end]): q[next_state[low + i, end] - low] for i in range(states) for end in (bos, eos)},
        name=name,
    )


def _smallest_dtype(base: int) -> npt.DTypeLike:
    return np.int8 if base <= 128 else np.int16


def _seed64(seed: int, stream: int) -> np.uint64:
    """Any integer seed; tapes and tables of one seed are drawn from different streams."""
    return np.uint64((2 * seed + stream) % 2**64)


_STEP = np.uint64(0x9E3779B97F4A7C15)  # 2**64 / golden ratio, odd: a counter times it visits every number


@compiled
def _mix(key, index):  # type: ignore[no-untyped-def]
    """splitmix64's finaliser on `key` advanced by `index`: 64 well-mixed bits."""
    z = key + (np.uint64(index) + np.uint64(1)) * _STEP
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


@compiled
def _high(bits, k):  # type: ignore[no-untyped-def]
    """A number below k from the upper 32 bits, without division."""
    return np.int64(((bits >> np.uint64(32)) * np.uint64(k)) >> np.uint64(32))


@compiled
def _low(bits, k):  # type: ignore[no-untyped-def]
    """A number below k from bits 1 to 31, which `_high` does not use."""
    return np.int64((((bits & np.uint64(0xFFFFFFFF)) >> np.uint64(1)) * np.uint64(k)) >> np.uint64(31))


@compiled
def _tables_kernel(next_state, next_symbol, move, symbols, states, seed, first):  # type: ignore[no-untyped-def]
    base = 4 + symbols + states
    low = 4 + symbols
    seed = _mix(seed, 0)
    for b in range(len(next_state)):
        key = _mix(seed, first + b)
        next_state[b], next_symbol[b], move[b] = 0, 0, 0
        for q in range(base):
            next_symbol[b, q, bos], next_symbol[b, q, eos], move[b, q, bos] = bos, eos, 1
        for i in range(states):
            for j in range(symbols):
                bits = _mix(key, i * (symbols + 1) + j)
                next_state[b, low + i, 4 + j] = low + _high(bits, states)
                next_symbol[b, low + i, 4 + j] = 4 + _low(bits, symbols)
                move[b, low + i, 4 + j] = bits & np.uint64(1)
            bits = _mix(key, i * (symbols + 1) + symbols)
            next_state[b, low + i, bos] = low + _high(bits, states)
            next_state[b, low + i, eos] = low + _low(bits, states)


@compiled
def _tapes_kernel(out, symbols, states, seed, first):  # type: ignore[no-untyped-def]
    count, width = out.shape
    length = width - 3
    seed = _mix(seed, 0)
    for b in range(count):
        key = _mix(seed, first + b)
        bits = _mix(key, length)
        head = 2 + _low(bits, length)
        cell = 0
        for i in range(1, width - 1):
            if i != head:
                out[b, i] = 4 + _high(_mix(key, cell), symbols)
                cell += 1
        out[b, 0], out[b, head], out[b, width - 1] = bos, 4 + symbols + _high(bits, states), eos
