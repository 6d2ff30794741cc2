"""Programs with one mistake each, to see that checkers notice. They take the arguments of `next_tokens`."""

from __future__ import annotations

from typing import Any

from rasp.core import kqv
from rasp.library import equals, prefix_fill
from rasp.machines.tape import empt
from rasp.programs.turing import hash_n_gram_iter, next_tape


def smallest_match(x: Any, machine: Any, n: int = 1, packing: str = "paper") -> Any:
    """Takes the smallest of several matches: wrong no more often, but at other tokens."""
    return _program(x, machine, n, packing, machine.base, "min")


def colliding_hash(x: Any, machine: Any, n: int = 1, packing: str = "paper") -> Any:
    """Hashes in half the base: different grams share a key."""
    return _program(x, machine, n, packing, machine.base // 2, "max")


def longer_memory(x: Any, machine: Any, n: int = 1, packing: str = "paper") -> Any:
    """Hashes one token more: right where the theorem says wrong."""
    return _program(x, machine, n + 1, packing, machine.base, "max")


def _program(x: Any, machine: Any, n: int, packing: str, base: int, reduction: str) -> Any:
    key_tape = prefix_fill(next_tape(x, 3, machine), 2, empt)
    k, q = (hash_n_gram_iter(s, n, base, packing) for s in (key_tape, x))
    return kqv(k, q, next_tape(x, 2, machine), equals, reduction=reduction)
