"""The paper's program: predict the next token of a Turing machine's trace (its appendix D.4 to D.7).

Written once on RASP-L, for any machine and any n. Note the two n: the program's `n` hashes n+1 tokens, so the
theorem's "no repeated n-grams" reads "no repeated (n+1)-grams" here.

`machine` is anything with `base`, `is_state`, `next_state`, `next_symbol` and `move`: a `TuringMachine`, or the
uninterpreted machine of `proofs_check`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol

import numpy as np

from rasp.core import full, kqv, named, seq_map, tok_map
from rasp.errors import OF_N, check_most_n, check_whole
from rasp.library import cumsum, equals, prefix_fill, shift_right, where, where3
from rasp.machines.machine import InvalidTape, TuringMachine, empt, sep

PACKINGS = ("paper", "unbounded", "tuple")
BITS = 63
LARGEST = 2**BITS - 1  # the largest int64


class Machine(Protocol):
    """What the program needs to know of a machine; all functions work on token ids."""

    @property
    def base(self) -> int: ...
    def is_state(self, token: Any, /) -> Any: ...
    @property
    def next_state(self) -> Any: ...
    @property
    def next_symbol(self) -> Any: ...
    @property
    def move(self) -> Any: ...


# --- the next tape ----------------------------------------------------------------------------------------------------


def get_next(x: Any, x_left: Any, x_right: Any, machine: Machine) -> tuple[Any, Any, Any]:
    """Is this the head, what stands here next if the head stays, and does the head go right?"""
    is_head = tok_map(x, machine.is_state)
    is_head_right = tok_map(x_right, machine.is_state)
    x_next = where(is_head, seq_map(x, x_left, machine.next_state), x)
    x_next = where(is_head_right, seq_map(x_right, x, machine.next_symbol), x_next)
    move_R = seq_map(x, x_left, machine.move) & is_head
    return is_head, x_next, move_R


def select_move_token(from_left: Any, from_right: Any) -> Any:
    """0, 1 or 2: this cell takes the token of its left neighbour, its own, or that of its right neighbour."""
    out = where(from_left, full(from_left, 0), full(from_left, 1))
    return where(from_right, full(from_left, 2), out)


def move_head(cur_state: tuple[Any, Any, Any], right_state: tuple[Any, Any, Any]) -> Any:
    """Exchange the head with the neighbour it moves to."""
    is_head, cur_next, move_R = cur_state
    right_is_head, right_next, right_move_R = right_state
    left_is_head, left_next, left_move_R = (shift_right(s, 1) for s in cur_state)
    from_left = (left_is_head & left_move_R) | (is_head & ~move_R)
    from_right = (right_is_head & ~right_move_R) | (is_head & move_R)
    named(from_left, "from_left")
    named(from_right, "from_right")
    return where3(select_move_token(from_left, from_right), left_next, cur_next, right_next)


def next_tape(x: Any, shift: int, machine: Machine) -> Any:
    """The machine's next tape, `shift` positions late (at least 2: a cell must have seen its right neighbours)."""
    if shift < 2:
        raise ValueError(f"shift {shift} is too small: next_tape needs two tokens to the right, so shift >= 2")
    x_ = shift_right(x, shift)
    x_left = shift_right(x, shift + 1)
    x_right = shift_right(x, shift - 1)
    x_right_right = shift_right(x, shift - 2)
    cur_state = _labelled(get_next(x_, x_left, x_right, machine), shift)
    right_state = _labelled(get_next(x_right, x_, x_right_right, machine), shift - 1)
    return move_head(cur_state, right_state)


def _labelled(state: tuple[Any, Any, Any], place: int) -> tuple[Any, Any, Any]:
    """Names for drawings and compiled heads: what is known of the cell `place` positions back."""
    is_head, x_next, move_R = state
    named(is_head, f"is_head[i-{place}]")
    named(x_next, f"written[i-{place}]")
    named(move_R, f"move_R[i-{place}]")
    return state


# --- n-gram keys ------------------------------------------------------------------------------------------------------


def hash_n_gram(x: Any, n: int, base: int = 32) -> Any:
    """The last n+1 tokens as the digits of one number, newest first; what lies before a separator reads 0."""
    out = x
    for to_add in before(x, n):
        out = seq_map(out, to_add, lambda a, b: b + base * a)
    return out


def n_gram(x: Any, n: int) -> list[Any]:
    """The last n+1 tokens, newest first; what lies before a separator reads 0."""
    return [x, *before(x, n)]


def before(x: Any, n: int) -> Iterator[Any]:
    """The n tokens before each, nearest first; what lies before a separator reads 0."""
    check_most_n(n)
    before_last_sep = tok_map(x, lambda z: z == sep)
    shifted = shift_right(x, 1)
    for i in range(n):
        before_last_sep = tok_map(shifted, lambda z: z == sep) | before_last_sep
        yield named(seq_map(shifted, before_last_sep, lambda a, b: a * (1 - b)), f"token {i + 1} back")
        shifted = shift_right(shifted, 1)


def hash_n_gram_iter(x: Any, n: int, base: int = 32, packing: str = "paper") -> Any:
    """The n-gram together with how many separators came before: which tape it is on.

    `paper` adds base**n * hash to the count, as printed: counts from base**n on run into the hash. `unbounded` puts
    the count above the hash, where nothing is in its way. `tuple` packs nothing: the count and each token are compared
    for themselves, and neither n nor the number of steps has a bound.
    """
    sep_count = cumsum(named(tok_map(x, lambda z: z == sep), "separator"))
    if packing == "tuple":
        return (sep_count, *n_gram(x, n))
    gram = hash_n_gram(x, n, base)
    if packing == "paper":
        return seq_map(sep_count, gram, lambda a, b: a + base**n * b)
    return seq_map(sep_count, gram, lambda a, b: b + base ** (n + 1) * a)


def check_packing(n: int, base: int, packing: str, length: int = 0) -> None:
    """Refuse keys that would not fit an int64 (numpy would wrap them without a word)."""
    if packing not in PACKINGS:
        raise ValueError(f"packing {packing!r} is not one of {', '.join(PACKINGS)}")
    check_whole("n", n, OF_N)
    if not key_fits(n, base, packing, length):
        largest = max((m for m in range(1, min(n, BITS)) if key_fits(m, base, packing, length)), default=0)
        fit = f"the largest n that fits is {largest}" if largest else "no n fits: shorten the input or the alphabet"
        raise OverflowError(
            f"n = {n} does not fit: with {base} token ids{f' and {length} tokens' * (length > 0)} the {packing} key "
            f"needs more than {BITS} bits; {fit}"
        )
    check_most_n(n)


def key_fits(n: int, base: int, packing: str, length: int = 0) -> bool:
    """Whether the largest possible key, after `length` tokens, is an int64."""
    if packing == "tuple":
        return True
    if n >= BITS and base > 1:
        return False
    gram = base ** (n + 1) - 1
    return (length + base**n * gram if packing == "paper" else gram + base ** (n + 1) * length) <= LARGEST


# --- the program ------------------------------------------------------------------------------------------------------


def next_tokens(x: Any, machine: Machine, n: int = 1, packing: str = "paper") -> Any:
    """The prediction at every position of x: what stands, on the next tape, after the n+1 tokens just written."""
    x = _checked(x, machine, n, packing)
    tape = named(next_tape(x, 2, machine), "next_tape")
    key_tape = named(prefix_fill(next_tape(x, 3, machine), 2, empt), "key_tape")
    k = _named_key(hash_n_gram_iter(key_tape, n, machine.base, packing), "key")
    q = _named_key(hash_n_gram_iter(x, n, machine.base, packing), "query")
    return named(kqv(k, q, tape, equals, reduction="max"), "next token")


def _named_key(key: Any, label: str) -> Any:
    if not isinstance(key, tuple):
        return named(key, label)
    named(key[0], f"{label} count")
    return key


def next_token_turing(x: Any, machine: Machine, n: int = 1, packing: str = "paper") -> int:
    """The token after x."""
    if len(x) == 0:
        raise InvalidTape("there is no token to predict from: x is empty; give at least the prompt `bos .. eos`")
    return int(next_tokens(x, machine, n, packing)[-1])


def _checked(x: Any, machine: Machine, n: int, packing: str) -> Any:
    if hasattr(x, "tracer"):
        check_packing(n, machine.base, packing)
        return x
    if not hasattr(x, "__rasp__"):
        x = check_tokens(x, machine.base)
    check_packing(n, machine.base, packing, len(x))
    return x


def check_tokens(x: Any, base: int) -> np.ndarray:
    """x as an int64 array of token ids, or an error that names the first that is none."""
    try:
        array = np.asarray(x)
    except ValueError:  # rows of different lengths
        raise InvalidTape("tokens must be a flat sequence of whole numbers, not a nested one") from None
    if array.ndim != 1 or (array.size and not np.issubdtype(array.dtype, np.integer)):
        raise InvalidTape(f"tokens must be a flat sequence of whole numbers, not {array.dtype} of shape {array.shape}")
    array = array.astype(np.int64)
    wrong = np.flatnonzero((array < 0) | (array >= base))
    if len(wrong):
        raise InvalidTape(f"token {array[wrong[0]]} at position {wrong[0]} is none of this machine's 0..{base - 1}")
    return array


def step_bound(machine: Machine, n: int) -> int:
    """How many steps the paper's packing is good for: later counts run into the hash."""
    return machine.base**n


__all__ = ["TuringMachine", "next_tape", "hash_n_gram", "hash_n_gram_iter", "next_tokens", "next_token_turing"]
