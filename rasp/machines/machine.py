"""Turing machines with named states and symbols, over the paper's tokens.

Tokens are numbered sep, bos, eos, empt, symbols, states. `step` and `trace` follow the paper's listing: a tape between
two end markers off which the head bounces. `run` is the textbook machine, on a tape without ends.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, MutableSequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, NoReturn, SupportsIndex

import numpy as np
import numpy.typing as npt

from rasp.machines import tape as tapes
from rasp.machines.tape import MARKERS, Configuration, InvalidTape, bos, empt, eos, sep
from rasp.machines.validation import (
    MAX_VOCABULARY,
    InvalidMachine,
    check_count,
    check_name,
    check_names,
    check_size,
    items_of,
    iterate,
    listed,
    one_of,
    parts_of,
    show,
)
from rasp.memory import need_memory
from rasp.scalar import Table

__all__ = ["Configuration", "InvalidMachine", "InvalidTape", "RunResult", "TuringMachine", "bos", "empt", "eos", "sep"]

Transitions = Mapping[tuple[str, str], tuple[str, str, str]]
Bounce = Mapping[tuple[str, str], str]
LEFT, RIGHT = 0, 1


@dataclass(frozen=True)
class RunResult:
    """Where a run on an endless tape ended. Cell 0 is the first cell given.

    `cells` are the cells `left .. right`, which cover the input and everywhere the head has been.
    """

    steps: int
    halted: bool
    state: str
    cells: tuple[str, ...]
    head: int
    left: int
    right: int
    blank: str

    @property
    def written(self) -> tuple[str, ...]:
        """The cells without the blanks on either side."""
        used = [i for i, name in enumerate(self.cells) if name != self.blank]
        return self.cells[used[0] : used[-1] + 1] if used else ()

    @property
    def score(self) -> int:
        """How many cells are not blank: the busy beaver's count of ones."""
        return len(self.cells) - self.cells.count(self.blank)


class TuringMachine:
    """An immutable, validated machine. Equal machines have equal tables and names of states and symbols.

    `transitions[state, symbol] = (write, "L" or "R", next_state)`, for every symbol and every state that is not final.
    `bounce[state, "bos" or "eos"]` is the state after hitting an end of the tape (default: the state is kept).
    `next_state`, `next_symbol` and `move` (0 left, 1 right) are these on tokens, called with (state, token).
    """

    __slots__ = (
        "_arrays",
        "_key",
        "_symbol_token",
        "_state_token",
        "base",
        "blank",
        "blank_token",
        "bounce",
        "final",
        "final_tokens",
        "move",
        "name",
        "next_state",
        "next_symbol",
        "start",
        "start_token",
        "state_tokens",
        "states",
        "symbol_tokens",
        "symbols",
        "transitions",
        "vocabulary",
    )

    states: tuple[str, ...]
    symbols: tuple[str, ...]
    transitions: Transitions
    start: str
    final: frozenset[str]
    blank: str
    bounce: Bounce
    name: str
    vocabulary: tuple[str, ...]
    base: int
    symbol_tokens: range
    state_tokens: range
    start_token: int
    blank_token: int
    final_tokens: frozenset[int]
    next_state: Table
    next_symbol: Table
    move: Table
    _arrays: tuple[npt.NDArray[np.int64], ...]
    _symbol_token: dict[str, int]
    _state_token: dict[str, int]
    _key: tuple[Any, ...]

    def __init__(
        self,
        *,
        states: Iterable[str],
        symbols: Iterable[str],
        transitions: Transitions,
        start: str | None = None,
        final: Iterable[str] = (),
        blank: str | None = None,
        bounce: Bounce | None = None,
        name: str = "",
    ) -> None:
        def put(attribute: str, value: object) -> None:
            object.__setattr__(self, attribute, value)

        put("states", check_names("state", states))
        put("symbols", check_names("symbol", symbols, reserved=MARKERS))
        put("start", one_of("start state", self.states[0] if start is None else start, self.states))
        put("blank", one_of("blank", self.symbols[0] if blank is None else blank, self.symbols))
        put("final", frozenset(one_of("final state", f, self.states) for f in iterate("final states", final)))
        put("name", check_name(name))
        self._number_tokens(put)
        put("transitions", MappingProxyType(self._checked_transitions(transitions)))
        put("bounce", MappingProxyType(self._checked_bounce({} if bounce is None else bounce)))
        put("_arrays", self._tables())
        for table_name, values in zip(("next_state", "next_symbol", "move"), self._arrays, strict=True):
            values.setflags(write=False)
            put(table_name, Table(table_name, values))
        put(
            "_key",
            (
                self.states,
                self.symbols,
                self.start,
                self.final,
                self.blank,
                frozenset(self.transitions.items()),
                frozenset(self.bounce.items()),
            ),
        )

    def _number_tokens(self, put: Any) -> None:
        first_state = len(MARKERS) + len(self.symbols)
        put("vocabulary", (*MARKERS, *self.symbols, *self.states))
        put("base", len(self.vocabulary))
        if self.base > MAX_VOCABULARY:
            raise InvalidMachine(
                f"{len(self.symbols)} symbols and {len(self.states)} states make {self.base} tokens: "
                f"at most {MAX_VOCABULARY} are supported, because tables are quadratic"
            )
        put("symbol_tokens", range(len(MARKERS), first_state))
        put("state_tokens", range(first_state, self.base))
        put("_symbol_token", dict(zip(self.symbols, self.symbol_tokens, strict=True)))
        put("_state_token", dict(zip(self.states, self.state_tokens, strict=True)))
        put("start_token", self._state_token[self.start])
        put("blank_token", self._symbol_token[self.blank])
        put("final_tokens", frozenset(self._state_token[f] for f in self.final))

    def _checked_transitions(self, given: Transitions) -> dict[tuple[str, str], tuple[str, str, str]]:
        rules: dict[tuple[str, str], tuple[str, str, str]] = {}
        for key, rule in items_of("transitions", given):
            state, symbol = parts_of("the key of a transition", key, 2, "(state, symbol)")
            self._check_source(state, key)
            one_of("the symbol", symbol, self._symbol_token, key)
            write, direction, target = parts_of("the result", rule, 3, '(write, "L" or "R", next state)', key)
            one_of("the symbol written", write, self._symbol_token, key)
            one_of("the direction", direction, ("L", "R"), key)
            rules[state, symbol] = write, direction, one_of("the next state", target, self._state_token, key)
        missing = [(q, a) for q in self.states if q not in self.final for a in self.symbols if (q, a) not in rules]
        if missing:
            raise InvalidMachine(
                f"state {missing[0][0]!r} has no transition on {missing[0][1]!r} ({len(missing)} "
                "missing in all): give one for every symbol, or make the state final"
            )
        return rules

    def _checked_bounce(self, given: Bounce) -> dict[tuple[str, str], str]:
        bounce = {(q, end): q for q in self.states if q not in self.final for end in ("bos", "eos")}
        for key, target in items_of("bounce", given):
            state, end = parts_of("the key of a bounce", key, 2, '(state, "bos" or "eos")')
            self._check_source(state, key)
            one_of("the end marker", end, ("bos", "eos"), key)
            bounce[state, end] = one_of("the next state", target, self._state_token, key)
        return bounce

    def _check_source(self, state: Any, key: Any) -> None:
        one_of("the state", state, self._state_token, key)
        if state in self.final:
            raise InvalidMachine(
                f"final state {state!r} has a transition on {show(key[1])}: remove it, or make the state not final"
            )

    def _tables(self) -> tuple[npt.NDArray[np.int64], ...]:
        """The paper's three functions as arrays indexed [state, token]; 0 where they do not apply."""
        state, symbol, move = np.zeros((3, self.base, self.base), dtype=np.int64)
        symbol[:, bos], symbol[:, eos], move[:, bos] = bos, eos, RIGHT
        for (q, a), (write, direction, target) in self.transitions.items():
            at = self._state_token[q], self._symbol_token[a]
            state[at], symbol[at], move[at] = self._state_token[target], self._symbol_token[write], direction == "R"
        for (q, end), target in self.bounce.items():
            state[self._state_token[q], MARKERS.index(end)] = self._state_token[target]
        for f in self.final_tokens:  # stays what it is, so that a tape run past its end keeps its form
            state[f, [bos, eos, *self.symbol_tokens]] = f
            symbol[f, self.symbol_tokens] = self.symbol_tokens
        return state, symbol, move

    @classmethod
    def random(cls, symbols: int = 12, states: int = 16, seed: int = 0) -> TuringMachine:
        """Every transition and every bounce uniformly at random, as in the paper; no final state."""
        check_size(symbols, states)
        rng = np.random.default_rng(seed)
        target, write, right = (rng.integers(high, size=(states, symbols)).tolist() for high in (states, symbols, 2))
        bounced = rng.integers(states, size=(states, 2)).tolist()
        q, a = default_names(symbols, states)
        return cls(
            states=q,
            symbols=a,
            transitions={
                (q[i], a[j]): (a[write[i][j]], "LR"[right[i][j]], q[target[i][j]])
                for i in range(states)
                for j in range(symbols)
            },
            bounce={(q[i], end): q[bounced[i][e]] for i in range(states) for e, end in enumerate(("bos", "eos"))},
            name=f"random {symbols}x{states} seed {seed}",
        )

    # --- tokens and names ---------------------------------------------------------------------------------------------

    def is_state(self, z: Any) -> Any:
        """Whether `z` (a number, an array or a symbolic number) is a state token."""
        return (z >= self.state_tokens.start) & (z < self.state_tokens.stop)

    def is_symbol(self, z: Any) -> Any:
        """Whether `z` (a number, an array or a symbolic number) is a symbol token."""
        return (z >= self.symbol_tokens.start) & (z < self.symbol_tokens.stop)

    def symbol_token(self, name: str) -> int:
        token = self._symbol_token.get(name) if isinstance(name, str) else None
        if token is None:
            raise InvalidTape(f"unknown symbol {show(name)}: this machine's symbols are {listed(self.symbols)}")
        return token

    def state_token(self, name: str) -> int:
        token = self._state_token.get(name) if isinstance(name, str) else None
        if token is None:
            raise InvalidTape(f"unknown state {show(name)}: this machine's states are {listed(self.states)}")
        return token

    def encode(self, cells: Iterable[str], head: int = 0, state: str | None = None) -> list[int]:
        """The tokens of a tape given by symbol names; head -1 is on bos, `len(cells)` on eos."""
        return tapes.encode(self, cells, head, state)

    def decode(self, tokens: Iterable[SupportsIndex]) -> Configuration:
        """The names of a tape given by tokens."""
        return tapes.decode(self, tokens)

    def check_tape(self, tokens: Iterable[SupportsIndex]) -> list[int]:
        """The tokens as a list; `InvalidTape` names the culprit if they are not one well-formed tape."""
        tape = tapes.as_tokens(tokens)
        tapes.find_head(self, tape)
        return tape

    def parse_tape(self, text: str) -> list[int]:
        """The tokens of a typed tape such as `10110`, `10[1]10`, `10[q1:1]10` or `a1 a2 [q0:a3]`."""
        return tapes.parse_tape(self, text)

    def format_tape(self, tokens: Iterable[SupportsIndex]) -> str:
        """The text that `parse_tape` reads back as these tokens."""
        return tapes.format_tape(self, tokens)

    # --- running ------------------------------------------------------------------------------------------------------

    def step(self, tape: Iterable[SupportsIndex]) -> list[int]:
        """The next tape. Final states stay in place as their table says; `trace` is what stops at them."""
        after = tapes.as_tokens(tape)
        self._advance(after, tapes.find_head(self, after))
        return after

    def trace(self, tape: Iterable[SupportsIndex], steps: int) -> npt.NDArray[np.int64]:
        """`tape_0 sep tape_1 sep .. tape_steps sep`; ends early with the first tape in a final state."""
        start = tapes.as_tokens(tape)
        head = tapes.find_head(self, start)
        size = 8 * (check_count("steps", steps) + 1) * (len(start) + 1)
        need_memory(f"a text of {steps} steps", size, "ask for fewer")
        rows = np.empty((steps + 1, len(start) + 1), dtype=np.int64)
        rows[0] = [*start, sep]
        for t in range(steps):
            if int(rows[t, head]) in self.final_tokens:
                return rows[: t + 1].ravel()
            rows[t + 1] = rows[t]
            head = self._advance(rows[t + 1], head)
        return rows.ravel()

    def _advance(self, tape: MutableSequence[int] | npt.NDArray[np.int64], head: int) -> int:
        """Rewrites the three tokens around the head in place; returns where the state token went."""
        under, state = int(tape[head - 1]), int(tape[head])
        then, write, move = (table.item(state, under) for table in self._arrays)
        tape[head - 1] = write
        to = head + 1 if move == RIGHT else head - 1
        tape[head], tape[to] = tape[to], then
        return to

    def run(self, cells: Iterable[str] = (), head: int = 0, steps: int = 10_000, state: str | None = None) -> RunResult:
        """Run on a tape blank on both sides without end, until a final state or `steps` steps.

        `rasp.machines.simulate.run` is the same, a hundred times faster.
        """
        tape = dict(enumerate(cells))
        for name in tape.values():
            self.symbol_token(name)
        now = self.start if state is None else self.vocabulary[self.state_token(state)]
        left, right, done = min(head, 0), max(head, len(tape) - 1), 0
        check_count("steps", steps)
        while done < steps and now not in self.final:
            tape[head], direction, now = self.transitions[now, tape.get(head, self.blank)]
            head += 1 if direction == "R" else -1
            left, right, done = min(left, head), max(right, head), done + 1
        after = tuple(tape.get(i, self.blank) for i in range(left, right + 1))
        return RunResult(done, now in self.final, now, after, head, left, right, self.blank)

    def with_room(self, tape: Iterable[SupportsIndex], steps: int, ran: RunResult | None = None) -> list[int]:
        """The tape with the fewest blanks added on either side for `steps` steps without touching an end.

        `ran` is what `run` says of these steps, if that is known already.
        """
        given = self.decode(tape)
        ran = ran or self.run(given.cells, given.head, steps, given.state)
        before, after = -ran.left, ran.right + 1 - len(given.cells)
        cells = [self.blank] * before + list(given.cells) + [self.blank] * after
        return self.encode(cells, given.head + before, given.state)

    # --- value semantics ----------------------------------------------------------------------------------------------

    def replace(self, **changes: Any) -> TuringMachine:
        """A machine that differs in these constructor arguments."""
        return TuringMachine(**{**self._arguments(), **changes})

    def _arguments(self) -> dict[str, Any]:
        return {
            "states": self.states,
            "symbols": self.symbols,
            "transitions": dict(self.transitions),
            "start": self.start,
            "final": self.final,
            "blank": self.blank,
            "bounce": dict(self.bounce),
            "name": self.name,
        }

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TuringMachine) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)

    def __setattr__(self, attribute: str, value: object) -> NoReturn:
        raise AttributeError(f"a TuringMachine is immutable: use replace({attribute}=...) for a changed copy")

    def __delattr__(self, attribute: str) -> NoReturn:
        raise AttributeError("a TuringMachine is immutable")

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (self._arguments(),)

    def __repr__(self) -> str:
        return f"TuringMachine({self.name!r}, {len(self.symbols)} symbols, {len(self.states)} states)"


def default_names(symbols: int, states: int) -> tuple[list[str], list[str]]:
    """State names `q0 q1 ..` and symbol names `a1 a2 ..`."""
    return [f"q{i}" for i in range(states)], [f"a{i + 1}" for i in range(symbols)]


def _rebuild(arguments: dict[str, Any]) -> TuringMachine:
    return TuringMachine(**arguments)
