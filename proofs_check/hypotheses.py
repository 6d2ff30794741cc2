"""The theorem's hypotheses as code. Each returns a witness a person can check, or None.

Two n: the program's `n` hashes n+1 tokens, so what must not repeat is an (n+1)-gram. A tape is `bos .. eos` without
separators; tape t of a trace is the one after t steps.

`first_wrong_step` is exact for any horizon. The program keeps, for tape t and each place j on it, a key made of t and
of the gram that ends at j, with the token after it as value (the separator before a tape is a gram of its own); asked
for a key it answers the largest value any tape up to t has stored there. So tape t is written correctly unless one of
its own pairs (k, v) meets a pair (k, v') of a tape t' <= t with v' > v. `tests/test_hypotheses.py` compares this with
the program, token by token, on runs that keep and that break the hypotheses.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import SupportsIndex

from rasp.errors import check_n
from rasp.machines.machine import InvalidTape, TuringMachine
from rasp.machines.tape import as_tokens, bos, eos, sep
from rasp.programs.turing import check_packing, step_bound

Gram = tuple[int, ...]


@dataclass(frozen=True)
class Repeat:
    """An (n+1)-gram that stands twice on one tape; `first` and `second` are where it begins."""

    step: int
    first: int
    second: int
    gram: Gram

    def __str__(self) -> str:
        return self.told(str)

    def told(self, name: Callable[[int], str]) -> str:
        """In words, with the tokens as the machine names them."""
        return (
            f"tape {self.step} holds the {len(self.gram)}-gram {' '.join(map(name, self.gram))} twice, "
            f"at positions {self.first} and {self.second}"
        )


@dataclass(frozen=True)
class OnMarker:
    """A tape whose head stands on an end marker: the machine has left its memory."""

    step: int
    position: int
    marker: str

    def __str__(self) -> str:
        return f"tape {self.step} has its head on {self.marker} (position {self.position})"


@dataclass(frozen=True)
class BeyondBound:
    """More steps than the paper's packing has room for."""

    steps: int
    bound: int

    def __str__(self) -> str:
        return f"{self.steps} steps are more than the bound {self.bound}: from then on counts run into the hash"


@dataclass(frozen=True)
class StoredPair:
    """One stored pair: on tape `step`, after the gram that ends at `position` (-1: the separator), stands `value`."""

    step: int
    position: int
    gram: Gram
    value: int

    def __str__(self) -> str:
        return self.told(str)

    def told(self, name: Callable[[int], str]) -> str:
        gram = " ".join(map(name, self.gram)) or "sep"
        return f"tape {self.step}: {gram} (ending at {self.position}) -> {name(self.value)}"


@dataclass(frozen=True)
class WrongStep:
    """The first token the program gets wrong: it asks for `asked`, and `answered` has the same key and a larger value.

    `index` is where on the trace `tape_0 sep tape_1 sep ..` the wrong prediction is made (of the token after it).
    """

    step: int
    index: int
    key: int
    asked: StoredPair
    answered: StoredPair

    @property
    def expected(self) -> int:
        return self.asked.value

    @property
    def predicted(self) -> int:
        return self.answered.value

    def __str__(self) -> str:
        return self.told(str)

    def told(self, name: Callable[[int], str]) -> str:
        """In words, with the tokens as the machine names them."""
        return (
            f"step {self.step} goes wrong at token {self.asked.position + 1} of its tape: {name(self.predicted)} "
            f"instead of {name(self.expected)}, because key {self.key} is stored twice: [{self.asked.told(name)}] and "
            f"[{self.answered.told(name)}]"
        )


# --- the hypotheses ---------------------------------------------------------------------------------------------------


def first_repeat(tokens: Iterable[SupportsIndex], n: int = 1, start: int | None = None) -> Repeat | None:
    """The first tape with a repeated (n+1)-gram, of one tape or of a trace.

    `start` is the first tape looked at: by default tape 0 if it is the only one, else tape 1, because the program
    only ever looks things up on tapes it writes, and the input may repeat what it likes.
    """
    check_n(n)
    tapes = split_tapes(tokens)
    for step in range((len(tapes) > 1) if start is None else start, len(tapes)):
        found = repeat_on(tapes[step], n + 1)
        if found:
            return Repeat(step, *found, gram=tuple(tapes[step][found[0] : found[0] + n + 1]))
    return None


def repeat_on(tape: Sequence[int], size: int) -> tuple[int, int] | None:
    """Where the first gram of `size` tokens begins that has stood on this tape before: (earlier, here)."""
    seen: dict[Gram, int] = {}
    for i in range(len(tape) - size + 1):
        gram = tuple(tape[i : i + size])
        if gram in seen:
            return seen[gram], i
        seen[gram] = i
    return None


def first_on_marker(tokens: Iterable[SupportsIndex], machine: TuringMachine) -> OnMarker | None:
    """The first tape on which the head stands on `bos` or `eos`."""
    for step, tape in enumerate(split_tapes(tokens)):
        head = next((i for i, token in enumerate(tape) if machine.is_state(token)), 0)
        if head == 0:
            raise InvalidTape(
                f"tape {step} has no state of this machine behind a symbol; give what machine.trace writes"
            )
        if tape[head - 1] in (bos, eos):
            return OnMarker(step, head - 1, "bos" if tape[head - 1] == bos else "eos")
    return None


def beyond_bound(machine: TuringMachine, steps: int, n: int = 1, packing: str = "paper") -> BeyondBound | None:
    """Whether `steps` exceeds base**n, up to which keys of different tapes differ; no such bound if `unbounded`."""
    check_packing(n, machine.base, packing)
    bound = step_bound(machine, n)
    return BeyondBound(steps, bound) if packing == "paper" and steps > bound else None


# --- exactly when the program is wrong --------------------------------------------------------------------------------


def first_wrong_step(
    machine: TuringMachine, tape: Iterable[SupportsIndex], steps: int, n: int = 1, packing: str = "paper"
) -> WrongStep | None:
    """The first step of the run that the program gets wrong, and why; None if it writes all of them correctly."""
    trace = machine.trace(tape, steps)
    check_packing(n, machine.base, packing, len(trace))
    tapes = split_tapes(trace)
    width = len(tapes[0]) + 1
    stored: dict[int, StoredPair] = {}
    for step in range(1, len(tapes)):
        pairs = [(key_of(place, machine.base, n, packing), place) for place in places(tapes[step], step, n)]
        for key, place in pairs:
            if key not in stored or place.value > stored[key].value:
                stored[key] = place
        for key, place in pairs:
            if stored[key].value > place.value:
                return WrongStep(step, step * width + place.position, key, place, stored[key])
    return None


def places(tape: Sequence[int], step: int, n: int) -> Iterator[StoredPair]:
    """What the program stores for one tape: its separator, then each of its tokens, each with the token after it."""
    followed = [*tape, sep]
    yield StoredPair(step, -1, (), followed[0])
    for j in range(len(tape)):
        yield StoredPair(step, j, tuple(tape[max(0, j - n) : j + 1]), followed[j + 1])


def key_of(place: StoredPair, base: int, n: int, packing: str) -> int:
    """`hash_n_gram_iter` of the program, on whole numbers of any size."""
    gram = 0
    for token in place.gram:  # oldest first: the newest ends as the leading digit
        gram = gram // base + token * base**n
    return place.step + base**n * gram if packing == "paper" else gram + base ** (n + 1) * place.step


# --- tokens -----------------------------------------------------------------------------------------------------------


def split_tapes(tokens: Iterable[SupportsIndex]) -> list[list[int]]:
    """The tapes between the separators; leading and trailing separators are optional."""
    tapes: list[list[int]] = [[]]
    for token in as_tokens(tokens):
        if token != sep:
            tapes[-1].append(token)
        elif tapes[-1]:
            tapes.append([])
    return tapes if tapes[-1] else tapes[:-1]
