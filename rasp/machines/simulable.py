"""Every Turing machine, within a space bound, as one that the paper's program simulates without error.

The program needs tapes without repeated (n+1)-grams. So each cell gets a tag that is never overwritten: a symbol is a
pair (symbol, tag), and a rule that writes b over a writes (b, tag) over (a, tag). If the row of tags has no repeated
(n+1)-gram, no tape has one, whatever is written and wherever the head is: a gram with `bos`, `eos` or the state token
in it stands once, because these do; any other is made of neighbouring cells, and shows their tags. `certify` checks
this for every head position, with symbols and states left open.

K tags make a row of at most K**(n+1) + n cells (a de Bruijn sequence), so few are needed. Blank cells on both sides
give the machine the room it needs never to touch an end of the tape.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import cycle, islice
from typing import SupportsIndex

from rasp.errors import check_n
from rasp.machines.machine import TuringMachine
from rasp.machines.tape import Configuration, InvalidTape
from rasp.machines.validation import MAX_VOCABULARY, check_count

MAX_CELLS = 1_000_000
HORIZON = 10_000  # steps looked ahead to find out how much room a machine needs


@dataclass(frozen=True)
class NoRepeatCertificate:
    """Why no tape of this machine ever has a repeated (n+1)-gram: what was gone through, all of it without a twin."""

    head_positions: int
    grams: int
    rules: int

    def __str__(self) -> str:
        return (
            f"no two of the {self.grams:,} grams of the {self.head_positions:,} head positions can be equal on one "
            f"tape, and all {self.rules:,} rules keep the tag of the cell"
        )


@dataclass(frozen=True)
class Simulable:
    """A machine over tagged symbols, and the way there and back."""

    original: TuringMachine
    machine: TuringMachine
    n: int
    tags: tuple[int, ...]

    @property
    def cells(self) -> int:
        return len(self.tags)

    def encode(
        self, cells: Iterable[str] = (), head: int = 0, state: str | None = None, origin: int | None = None
    ) -> list[int]:
        """The tokens of a tape of the original, with blanks around it.

        `origin` is the tagged cell that the first given cell comes to stand on; by default the one that keeps the
        head off the ends for the longest time.
        """
        given = list(cells)
        if origin is None:
            origin = self._best_origin(given, head, state)
        after = self.cells - origin - len(given)
        if origin < 0 or after < 0:
            raise InvalidTape(
                f"{len(given)} cells from cell {origin} on do not fit a tape of {self.cells} cells: "
                "make the machine simulable with more cells"
            )
        padded = [self.original.blank] * origin + given + [self.original.blank] * after
        for name in given:
            self.original.symbol_token(name)
        tagged = [tagged_name(name, tag) for name, tag in zip(padded, self.tags, strict=True)]
        return self.machine.encode(tagged, origin + head, self.original.start if state is None else state)

    def decode(self, tokens: Iterable[SupportsIndex]) -> Configuration:
        """The tape of the original, all cells of it; the head counts from the first of them."""
        here = self.machine.decode(tokens)
        pairs = [plain_name(name) for name in here.cells]
        if tuple(tag for _, tag in pairs) != self.tags:
            raise InvalidTape("the tags of this tape are not those it was encoded with")
        return Configuration(tuple(name for name, _ in pairs), here.head, here.state)

    def certify(self) -> NoRepeatCertificate:
        """Go through all kinds of tapes and all rules; raises AssertionError at the first that breaks the argument."""
        grams = sum(_check_no_twins(self.tags, head, self.n + 1) for head in range(-1, self.cells + 1))
        for (state, read), (write, _, _) in self.machine.transitions.items():
            assert plain_name(read)[1] == plain_name(write)[1], f"{state} on {read} writes {write}: another tag"
        return NoRepeatCertificate(self.cells + 2, grams, len(self.machine.transitions))

    def _best_origin(self, cells: list[str], head: int, state: str | None) -> int:
        left, right = _extent(self.original, cells, head, state, self.cells)
        spare = self.cells - (right - left + 1)
        return -left if spare >= 0 else 0


def make_simulable(
    machine: TuringMachine,
    cells: int | None = None,
    n: int = 1,
    *,
    tape: Iterable[str] = (),
    head: int = 0,
    state: str | None = None,
    steps: int = HORIZON,
) -> Simulable:
    """The machine over tagged symbols, for tapes of `cells` cells and the program's hash parameter n.

    Without `cells`, the space that the machine uses on `tape` until it halts, or in the given number of steps.
    """
    check_n(n)
    if cells is None:
        ran = _run(machine, list(tape), head, state, check_count("steps", steps))
        cells = ran[1] - ran[0] + 1
    if cells < 1:
        raise InvalidTape(f"{cells} cells were asked for: a tape needs at least one")
    if cells > MAX_CELLS:
        raise InvalidTape(f"{cells} cells were asked for: at most {MAX_CELLS} are supported")
    kinds = kinds_for(cells, n)
    if kinds * len(machine.symbols) > MAX_VOCABULARY:
        raise InvalidTape(
            f"{cells} cells take {kinds} tags of each of the {len(machine.symbols)} symbols, and at most "
            f"{MAX_VOCABULARY} symbols are supported; use fewer cells or a larger n"
        )
    return Simulable(machine, _tagged(machine, kinds), n, tag_row(cells, n))


# --- tags -------------------------------------------------------------------------------------------------------------


def tag_row(cells: int, n: int) -> tuple[int, ...]:
    """Tags for so many cells in which no n+1 neighbours repeat, of as few kinds as there can be.

    K kinds have K**(n+1) grams, so a longer row than K**(n+1) + n must repeat one; a de Bruijn sequence has that many.
    """
    return tuple(islice(cycle(de_bruijn(kinds_for(cells, n), n + 1)), cells))


def kinds_for(cells: int, n: int) -> int:
    """The fewest kinds of tags that a row of so many cells needs."""
    kinds = 1
    while kinds ** (n + 1) + n < cells:
        kinds += 1
    return kinds


def de_bruijn(kinds: int, size: int) -> Iterator[int]:
    """The cyclic sequence in which every word of `size` letters stands once: all Lyndon words, in order, whose length
    divides `size` (Fredricksen, Kessler, Maiorana; the next word by Duval's algorithm)."""
    word = [-1]
    while word:
        word[-1] += 1
        if size % len(word) == 0:
            yield from word
        word = [word[i % len(word)] for i in range(size)]
        while word and word[-1] == kinds - 1:
            word.pop()


def tagged_name(symbol: str, tag: int) -> str:
    return f"{symbol}.{tag}"


def plain_name(tagged: str) -> tuple[str, int]:
    symbol, _, tag = tagged.rpartition(".")
    return symbol, int(tag)


def _tagged(machine: TuringMachine, kinds: int) -> TuringMachine:
    tags = range(kinds)
    return TuringMachine(
        states=machine.states,
        symbols=[tagged_name(a, tag) for a in machine.symbols for tag in tags],
        transitions={
            (q, tagged_name(a, tag)): (tagged_name(b, tag), move, to)
            for (q, a), (b, move, to) in machine.transitions.items()
            for tag in tags
        },
        start=machine.start,
        final=machine.final,
        blank=tagged_name(machine.blank, 0),
        bounce=dict(machine.bounce),
        name=f"{machine.name} with {kinds} tags".strip(),
    )


def _check_no_twins(tags: Sequence[int], head: int, size: int) -> int:
    """Whether any two grams of a tape with its head here could be equal: forget all symbols, and which state it is.

    Equal grams stay equal when forgetting, so if none are equal then, none are equal whatever stands on the tape.
    """
    tape: list[int | str] = ["bos", *tags, "eos"]
    tape.insert(head + 2, "state")
    grams = [tuple(tape[max(0, i - size + 1) : i + 1]) for i in range(len(tape))]
    assert len(set(grams)) == len(grams), f"with the head on cell {head} a gram of {size} tokens may stand twice"
    return len(grams)


# --- room -------------------------------------------------------------------------------------------------------------


def _run(machine: TuringMachine, cells: list[str], head: int, state: str | None, steps: int) -> tuple[int, int]:
    """The leftmost and rightmost cell of the input and of everywhere the head goes."""
    from rasp.machines.simulate import run

    ran = run(machine, cells, head, steps, state)
    return ran.left, ran.right


def _extent(machine: TuringMachine, cells: list[str], head: int, state: str | None, room: int) -> tuple[int, int]:
    """The cells used in as many steps as `room` cells allow (looking no further than the horizon)."""
    possible, impossible = 0, HORIZON + 1
    best = left, right = _run(machine, cells, head, state, HORIZON)
    if right - left < room:
        return best
    best = _run(machine, cells, head, state, 0)
    while impossible - possible > 1:
        steps = (possible + impossible) // 2
        left, right = _run(machine, cells, head, state, steps)
        if right - left < room:
            possible, best = steps, (left, right)
        else:
            impossible = steps
    return best
