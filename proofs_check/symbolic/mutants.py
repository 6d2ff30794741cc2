"""Wrong programs: what a proof must notice.

Each is the paper's program with one part exchanged, and says what is wrong. A lemma run on a wrong program that
concerns it must be refuted; one that is not would prove nothing. `CONCERNS` says which lemmas
must notice each; `proofs_check.sampled.corners` says which need runs of an unusual shape. Some changes are harmless:
dropping `& is_head` from move_R leaves the program as it is; taking the mean or the minimum of several matches instead
of the maximum errs at other tokens, but on exactly the same runs.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from proofs_check.symbolic.program import Program
from rasp import library
from rasp.core import aggr, full, indices, kqv, select, seq_map, tok_map
from rasp.machines.machine import empt
from rasp.programs import turing

_get_next, _next_tape = turing.get_next, turing.next_tape
_n_gram, _hash_n_gram, _prefix_fill, _select_move_token = (
    turing.n_gram,
    turing.hash_n_gram,
    turing.prefix_fill,
    turing.select_move_token,
)
_shift_right = library.shift_right


# --- parts of the next tape -------------------------------------------------------------------------------------------


def _turned(x: Any, x_left: Any, x_right: Any, machine: Any) -> Any:
    is_head, x_next, move_R = _get_next(x, x_left, x_right, machine)
    return is_head, x_next, is_head & ~move_R


def _frozen_state(x: Any, x_left: Any, x_right: Any, machine: Any) -> Any:
    is_head, x_next, move_R = _get_next(x, x_left, x_right, machine)
    return is_head, library.where(is_head, x, x_next), move_R


def _unwritten(x: Any, x_left: Any, x_right: Any, machine: Any) -> Any:
    is_head, x_next, move_R = _get_next(x, x_left, x_right, machine)
    return is_head, library.where(tok_map(x_right, machine.is_state), x, x_next), move_R


def _everywhere_head(x: Any, x_left: Any, x_right: Any, machine: Any) -> Any:
    _, x_next, move_R = _get_next(x, x_left, x_right, machine)
    return full(x, 1), x_next, move_R


def _erasing(x: Any, x_left: Any, x_right: Any, machine: Any) -> Any:
    is_head, x_next, move_R = _get_next(x, x_left, x_right, machine)
    return is_head, library.where(tok_map(x_right, machine.is_state), full(x, 0), x_next), move_R


def _far_left(x: Any, x_left: Any, x_right: Any, machine: Any) -> Any:
    return _get_next(x, _shift_right(x_left, 1), x_right, machine)


def _stuck(from_left: Any, from_right: Any) -> Any:
    return full(from_left, 1)


def _crossed(from_left: Any, from_right: Any) -> Any:
    return _select_move_token(from_right, from_left)


def _lost_right(from_left: Any, from_right: Any) -> Any:
    return _select_move_token(from_left, full(from_right, 0))


def _one_late(x: Any, shift: int, machine: Any) -> Any:
    return _next_tape(x, shift + 1, machine)


def _third_not_late(x: Any, shift: int, machine: Any) -> Any:
    return _next_tape(x, 2, machine)


def _third_swapped(x: Any, shift: int, machine: Any) -> Any:
    return _next_tape(x, 5 - shift, machine)


def _marked(x: Any, shift: int, machine: Any) -> Any:
    return tok_map(_next_tape(x, shift, machine), lambda z: z + 1)


def _adding_far(x: Any, shift: int, machine: Any) -> Any:
    return _next_tape(x, shift, machine) + _shift_right(x, shift + 3)


def _peeking(x: Any, shift: int, machine: Any) -> Any:
    return library.where(_shift_right(full(x, 1), 3), _next_tape(x, shift, machine), full(x, empt))


def _filled(x: Any, n: int, default: int = 0) -> Any:
    return _shift_right(x, n, default=empt)


def _far_shift(x: Any, n: int, default: int = 0) -> Any:
    return _shift_right(x, n + 1 if n == 3 else n, default)


# --- the library's where ----------------------------------------------------------------------------------------------


def _where_exchanged(condition: Any, x: Any, y: Any) -> Any:
    return library.where(condition, y, x)


def _where_positive(condition: Any, x: Any, y: Any) -> Any:
    return library.where(tok_map(condition, lambda c: c > 0), x, y)


def _where_unmasked(condition: Any, x: Any, y: Any) -> Any:
    return seq_map(library.where(condition, x, full(x, 0)), y, lambda a, b: a if b == 0 else b)


def _where_odd(condition: Any, x: Any, y: Any) -> Any:
    return library.where(tok_map(condition, lambda c: c & 1), x, y)


# --- keys and the look-up ---------------------------------------------------------------------------------------------


def _added_up(x: Any, n: int, base: int = 32) -> Any:
    return _hash_n_gram(x, n, 1)


def _narrow(x: Any, n: int, base: int = 32) -> Any:
    return _hash_n_gram(x, n, base // 2)


def _short(x: Any, n: int, base: int = 32) -> Any:
    return _hash_n_gram(x, n - 1, base)


def _short_tuple(x: Any, n: int) -> Any:
    return _n_gram(x, n - 1)


def _unmasked_tuple(x: Any, n: int) -> Any:
    return [_shift_right(x, i) for i in range(n + 1)]


def _long(x: Any, n: int, base: int = 32) -> Any:
    return _hash_n_gram(x, n + 1, base)


def _base_32(x: Any, n: int, base: int = 32) -> Any:
    return _hash_n_gram(x, n, 32)


def _at_most_six(x: Any, n: int, base: int = 32) -> Any:
    return _hash_n_gram(x, min(n, 5), base)


def _reversed_digits(x: Any, n: int, base: int = 32) -> Any:
    """The oldest token first."""
    out, masked = x, tok_map(x, lambda z: z == 0)
    for i in range(1, n + 1):
        shifted = _shift_right(x, i)
        masked = tok_map(shifted, lambda z: z == 0) | masked
        power = base**i
        out = seq_map(out, seq_map(shifted, masked, lambda a, b: a * (1 - b)), lambda a, b, p=power: a + p * b)
    return out


def _unmasked(x: Any, n: int, base: int = 32) -> Any:
    """A separator hides itself and not what lies before it."""
    out = x
    for i in range(1, n + 1):
        out = seq_map(out, _shift_right(x, i), lambda a, b: b + base * a)
    return out


def _packed_wide(x: Any, n: int, base: int = 32, packing: str = "paper") -> Any:
    """The count has one digit more room than the paper gives it."""
    count = library.cumsum(tok_map(x, lambda z: z == 0))
    return seq_map(count, _hash_n_gram(x, n, base), lambda a, b: a + base ** (n + 1) * b)


def _late_gram(x: Any, n: int, base: int = 32) -> Any:
    return _hash_n_gram(_shift_right(x, 1), n, base)


def _uncounted(x: Any) -> Any:
    return full(x, 0)


def _counted_by_two(x: Any) -> Any:
    return tok_map(library.cumsum(x), lambda c: c // 2)


def _reduced(reduction: str) -> Any:
    def attend(k: Any, q: Any, v: Any, pred: Any, **_: Any) -> Any:
        return kqv(k, q, v, pred, reduction=reduction)

    return attend


def _default_empt(k: Any, q: Any, v: Any, pred: Any, **_: Any) -> Any:
    return kqv(k, q, v, pred, default=empt, reduction="max")


def _short_sighted(k: Any, q: Any, v: Any, pred: Any, **_: Any) -> Any:
    """Only the last 28 tokens are looked at."""
    near = select(indices(k), indices(k) - 28, lambda j, i: j > i)
    return aggr(select(k, q, pred) & near, v, reduction="max")


def _with_default(k: Any, q: Any, v: Any, pred: Any, **_: Any) -> Any:
    return kqv(k, q, v, lambda a, b: a == b + 1, default=empt, reduction="max")


def _unfilled(x: Any, n: int, value: int) -> Any:
    return x


def _overfilled(x: Any, n: int, value: int) -> Any:
    return _prefix_fill(x, n + 1, value)


# --- the list ---------------------------------------------------------------------------------------------------------


def _mutant(name: str, **parts: Any) -> Program:
    return Program(name, parts)


_ALL = (
    _mutant("the head moves the wrong way", get_next=_turned),
    _mutant("the state never changes", get_next=_frozen_state),
    _mutant("the symbol is not written", get_next=_unwritten),
    _mutant("the test for the head is dropped", get_next=_everywhere_head),
    _mutant("the head writes 0", get_next=_erasing),
    _mutant("the symbol under the head is read one cell too far left", get_next=_far_left),
    _mutant("the head never moves", select_move_token=_stuck),
    _mutant("tokens are taken from the other neighbour", select_move_token=_crossed),
    _mutant("nothing is taken from the right neighbour", select_move_token=_lost_right),
    _mutant("the next tape comes one position late", next_tape=_one_late),
    _mutant("the key's tape is not delayed", next_tape=_third_not_late),
    _mutant("the two delays are exchanged", next_tape=_third_swapped),
    _mutant("every token of the next tape is one more", next_tape=_marked),
    _mutant("the next tape adds a far token", next_tape=_adding_far),
    _mutant("the first three positions of the next tape are empt", next_tape=_peeking),
    _mutant("shifts fill with empt", shift_right=_filled),
    _mutant("a shift by three is by four", shift_right=_far_shift),
    _mutant("where's branches are exchanged", where=_where_exchanged),
    _mutant("where takes negative conditions for false", where=_where_positive),
    _mutant("where does not mask its second branch", where=_where_unmasked),
    _mutant("where looks at the last bit only", where=_where_odd),
    _mutant("the tokens of a gram are added up", hash_n_gram=_added_up),
    _mutant("the hash has too small a base", hash_n_gram=_narrow),
    _mutant("the gram is one token short", hash_n_gram=_short, n_gram=_short_tuple),
    _mutant("the gram is one token too long", hash_n_gram=_long),
    _mutant("the gram lacks the newest token", hash_n_gram=_late_gram),
    _mutant("the hash is in base 32 whatever the alphabet", hash_n_gram=_base_32),
    _mutant("at most six tokens are hashed", hash_n_gram=_at_most_six),
    _mutant("the digits of the hash are reversed", hash_n_gram=_reversed_digits),
    _mutant("a separator does not hide what lies before it", hash_n_gram=_unmasked),
    _mutant("what lies before a separator is seen by tuples", n_gram=_unmasked_tuple),
    _mutant("the hash is packed with base**(n+1)", hash_n_gram_iter=_packed_wide),
    _mutant("a missing key gives empt", kqv=_default_empt),
    _mutant("only 28 tokens back are seen", kqv=_short_sighted),
    _mutant("separators are not counted", cumsum=_uncounted),
    _mutant("every other separator is counted", cumsum=_counted_by_two),
    _mutant("the mean of the matches is taken", kqv=_reduced("mean")),
    _mutant("the key is looked up one too high", kqv=_with_default),
    _mutant("the start of the key tape is not filled", prefix_fill=_unfilled),
    _mutant("one position too many is filled", prefix_fill=_overfilled),
)
MUTANTS: Mapping[str, Program] = {mutant.name: mutant for mutant in _ALL}

_STEP = (
    "the head moves the wrong way",
    "the test for the head is dropped",
    "the head never moves",
    "tokens are taken from the other neighbour",
    "nothing is taken from the right neighbour",
    "the next tape comes one position late",
    "every token of the next tape is one more",
)
_KEYS = (
    "the tokens of a gram are added up",
    "the hash has too small a base",
    "the gram is one token short",
    "the gram lacks the newest token",
    "separators are not counted",
    "every other separator is counted",
)
_RUN = (
    "the head moves the wrong way",
    "the state never changes",
    "the symbol is not written",
    "the tokens of a gram are added up",
    "the gram is one token short",
    "separators are not counted",
    "the start of the key tape is not filled",
    "one position too many is filled",
    "the key's tape is not delayed",
    "the key is looked up one too high",
)
_RUN_SHORT = tuple(name for name in _RUN if name != "separators are not counted")
_HASHED = ("the tokens of a gram are added up", "the key is looked up one too high")  # speak of a packed key
_TUPLE = (
    *(name for name in _RUN if name not in _HASHED),
    "what lies before a separator is seen by tuples",
)
CONCERNS: Mapping[str, tuple[str, ...]] = {
    "where": (
        "where's branches are exchanged",
        "where takes negative conditions for false",
        "where does not mask its second branch",
        "where looks at the last bit only",
    ),
    "locality": (
        "the next tape adds a far token",
        "the symbol under the head is read one cell too far left",
        "the next tape comes one position late",
        "a shift by three is by four",
    ),
    "padding": (
        "shifts fill with empt",
        "the first three positions of the next tape are empt",
        "the next tape adds a far token",
    ),
    "delay": (
        "the key's tape is not delayed",
        "the two delays are exchanged",
        "shifts fill with empt",
        "a shift by three is by four",
    ),
    "step": (*_STEP, "the state never changes", "the symbol is not written"),
    "shape": _STEP,
    "separator": (
        "the head writes 0",
        "the next tape comes one position late",
        "every token of the next tape is one more",
        "the test for the head is dropped",
    ),
    "keys": _KEYS,
    "keys-unbounded": _KEYS,
    "one-step-n1": (*_RUN, "a missing key gives empt"),
    "one-step-n2": _RUN_SHORT,  # not counting separators needs a longer tape
    "one-step-n3": (*_RUN_SHORT, "the gram is one token too long"),
    "two-steps-n1": _RUN,
    "two-steps-n2": _RUN_SHORT,
    "three-steps-n1": _RUN,
    "two-steps-unbounded-n1": _RUN,
    "two-steps-tuple-n1": _TUPLE,
    "one-step-tuple-n7": tuple(name for name in _TUPLE if name != "separators are not counted"),
}


def mutants_of(lemma: str) -> list[Program]:
    """The wrong programs that this lemma must be refuted on."""
    return [MUTANTS[name] for name in CONCERNS[lemma]]
