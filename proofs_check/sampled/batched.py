"""The hypotheses on many traces at once, compiled with numba. What each finds is defined by `hypotheses.py`.

A batch of traces is (B, T): row b is `tape_0 sep .. tape_steps sep`, all tapes `width` tokens long. An answer is a
position on the trace (the prediction made there is the first wrong one), a step, or -1 for none.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from rasp.machine_code import compiled
from rasp.machines.tape import eos

Traces = npt.NDArray[Any]
Positions = npt.NDArray[np.int64]
WIDE = 128  # tokens of a tape from which on grams are looked up: fewer are compared with each other in less time


def check_gram(n: int, base: int) -> None:
    """Refuse grams that do not fit the 63 bits in which they are compared here."""
    if n >= 63 or base ** (n + 1) > 2**63:
        raise OverflowError(
            f"n = {n} does not fit: the theorem's criterion compares {n + 1} of {base} token ids as one number of 63 "
            "bits; give a smaller n"
        )


def slots_for(tokens: int) -> int:
    """Of a memory for so many keys: a power of two, at most half of it taken."""
    return 1 << (2 * tokens).bit_length()


def _memory(tokens: int, columns: int) -> npt.NDArray[np.int64]:
    return np.zeros((slots_for(tokens), columns), dtype=np.int64)


def steps_of(positions: Positions, width: int) -> Positions:
    """The step to which the token predicted at each position belongs; -1 stays -1."""
    return np.where(positions < 0, -1, (positions + 1) // (width + 1))


def wrong_by_repeat(traces: Traces, width: int, n: int, base: int) -> Positions:
    """Where each run first goes wrong because a tape it writes repeats an (n+1)-gram."""
    out = np.empty(len(traces), dtype=np.int64)
    if width < WIDE:
        _wrong_by_repeat(traces, width, base, base**n, out)
    else:
        _wrong_by_repeat_wide(traces, width, base, base**n, _memory(width, 3), out)
    return out


def wrong_by_key(traces: Traces, width: int, n: int, base: int) -> Positions:
    """Where each run first goes wrong with the paper's packing, by the exact criterion: repeats and colliding keys."""
    out = np.empty(len(traces), dtype=np.int64)
    memory = _memory(traces.shape[1], 3)  # key, largest value, which trace wrote it
    _wrong_by_key(traces, width, base, base**n, memory, out)
    return out


def marker_steps(traces: Traces, width: int, first_state: int) -> Positions:
    """The first tape of each trace (tape 0 included) with the head on an end marker."""
    out = np.empty(len(traces), dtype=np.int64)
    _marker_steps(traces, width, first_state, out)
    return out


def repeats_literally(traces: Traces, width: int, size: int, base: int) -> tuple[Positions, Positions]:
    """The paper's wording: the first tape (0 included) that repeats a gram of `size` tokens; and whether the whole
    text up to the end does (1 or -1), its first repeat anywhere, across tapes."""
    per_tape, anywhere = np.empty((2, len(traces)), dtype=np.int64)
    of_tape, of_text = _memory(width if width >= WIDE else 0, 2), _memory(traces.shape[1], 2)
    _repeats_literally(traces, width, base ** (size - 1), base, size, of_tape, of_text, per_tape, anywhere)
    return per_tape, anywhere


@compiled
def _grams(tape, width, base, top, out):  # type: ignore[no-untyped-def]
    """The gram ending at each token, newest token first; before `bos` there is nothing but zeros."""
    gram = np.int64(0)
    for j in range(width):
        gram = gram // base + tape[j] * top
        out[j] = gram


@compiled
def _wrong_by_repeat(traces, width, base, top, out):  # type: ignore[no-untyped-def]
    now, before = np.zeros(width, np.int64), np.zeros(width, np.int64)
    for b in range(len(traces)):
        out[b] = -1
        for start in range(width + 1, traces.shape[1], width + 1):
            tape = traces[b, start : start + width + 1]
            _grams(tape, width, base, top, now)
            if _repeats(now, before, width, start == width + 1):
                out[b] = start + _first_outbid(now, tape, width)
                break
            now, before = before, now


@compiled
def _wrong_by_repeat_wide(traces, width, base, top, memory, out):  # type: ignore[no-untyped-def]
    grams, stamp = np.zeros(width, np.int64), 0
    for b in range(len(traces)):
        out[b] = -1
        for start in range(width + 1, traces.shape[1], width + 1):
            tape, stamp = traces[b, start : start + width + 1], stamp + 1
            _grams(tape, width, base, top, grams)
            at = _first_outbid_wide(grams, tape, width, memory, stamp)
            if at >= 0:
                out[b] = start + at
                break


@compiled
def _first_outbid_wide(grams, tape, width, memory, stamp):  # type: ignore[no-untyped-def]
    """As `_first_outbid`, or -1: of every gram the largest token after it is remembered."""
    for j in range(width):
        at = _slot(memory, grams[j], stamp)
        if memory[at, 2] != stamp or memory[at, 1] < tape[j + 1]:
            memory[at, 0], memory[at, 1], memory[at, 2] = grams[j], tape[j + 1], stamp
    for j in range(width):
        if memory[_slot(memory, grams[j], stamp), 1] > tape[j + 1]:
            return j
    return -1


@compiled
def _repeats(now, before, width, everywhere):  # type: ignore[no-untyped-def]
    """Whether a gram stands twice, knowing that none did before: only grams that have changed can be new twins."""
    for j in range(width):
        if everywhere or now[j] != before[j]:
            for i in range(width):
                if now[i] == now[j] and i != j:
                    return True
    return False


@compiled
def _first_outbid(grams, tape, width):  # type: ignore[no-untyped-def]
    """The first token whose gram has a twin followed by a larger token; there is one, as twins part before `eos`."""
    for j in range(width):
        for i in range(width):
            if grams[i] == grams[j] and tape[i + 1] > tape[j + 1]:
                return j
    return -1


@compiled
def _slot(memory, key, stamp):  # type: ignore[no-untyped-def]
    """Where `key` is, or goes: open addressing; what another trace wrote counts as free."""
    mask = len(memory) - 1
    hashed = np.uint64(key) * np.uint64(0x9E3779B97F4A7C15)
    at = np.int64((hashed ^ (hashed >> np.uint64(32))) & np.uint64(mask))
    while memory[at, -1] == stamp and memory[at, 0] != key:
        at = (at + 1) & mask
    return at


@compiled
def _wrong_by_key(traces, width, base, top, memory, out):  # type: ignore[no-untyped-def]
    slots = np.zeros(width + 1, np.int64)
    grams = np.zeros(width + 1, np.int64)  # grams[0] = 0 is the separator's
    for b in range(len(traces)):
        out[b] = -1
        for start in range(width + 1, traces.shape[1], width + 1):
            step = start // (width + 1)
            tape = traces[b, start : start + width + 1]
            _grams(tape, width, base, top, grams[1:])
            for j in range(width + 1):
                key = step + top * grams[j]
                at = slots[j] = _slot(memory, key, b + 1)
                if memory[at, 2] != b + 1 or memory[at, 1] < tape[j]:
                    memory[at, 0], memory[at, 1], memory[at, 2] = key, tape[j], b + 1
            for j in range(width + 1):
                if memory[slots[j], 1] > tape[j]:
                    out[b] = start + j - 1
                    break
            if out[b] >= 0:
                break


@compiled
def _marker_steps(traces, width, first_state, out):  # type: ignore[no-untyped-def]
    for b in range(len(traces)):
        out[b] = -1
        for start in range(0, traces.shape[1], width + 1):
            if traces[b, start + 1] >= first_state or traces[b, start + width - 1] != eos:
                out[b] = start // (width + 1)
                break


@compiled
def _has_twins(grams, first, width, memory, stamp):  # type: ignore[no-untyped-def]
    """Whether a gram stands twice from `first` on; looked up if there is a memory for that."""
    for j in range(first, width):
        if len(memory) > 2:
            at = _slot(memory, grams[j], stamp)
            if memory[at, 1] == stamp:
                return True
            memory[at, 0], memory[at, 1] = grams[j], stamp
        else:
            for i in range(first, j):
                if grams[i] == grams[j]:
                    return True
    return False


@compiled
def _repeats_literally(traces, width, top, base, size, of_tape, memory, per_tape, anywhere):  # type: ignore[no-untyped-def]
    grams, stamp = np.zeros(width, np.int64), 0
    for b in range(len(traces)):
        per_tape[b] = anywhere[b] = -1
        for start in range(0, traces.shape[1], width + 1):
            _grams(traces[b, start:], width, base, top, grams)
            stamp += 1
            if per_tape[b] < 0 and _has_twins(grams, size - 1, width, of_tape, stamp):
                per_tape[b] = start // (width + 1)
            for j in range(size - 1, width if anywhere[b] < 0 else 0):
                at = _slot(memory, grams[j], b + 1)
                if memory[at, 1] == b + 1:
                    anywhere[b] = 1
                    break
                memory[at, 0], memory[at, 1] = grams[j], b + 1
            if per_tape[b] >= 0 and anywhere[b] >= 0:
                break
