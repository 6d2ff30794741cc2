"""A universal machine: the machine's rules stand in the prompt, and attention looks them up.

Tokens are the paper's (`sep bos eos empt`, then symbols, then states), then two directions, L and R. A prompt is

    q s q' s' D    one rule for every state q and every s of bos, eos and the symbols: in state q on s, write s',
                   go in direction D, change to state q'; rules in any order
    sep
    bos s .. q s .. eos    the tape, as for `next_tokens`: the state stands right of the symbol under the head
    sep

and what the program writes after it is the machine's trace, tape after tape, each closed by sep.

From the table's separator on, the program equals `next_tokens(.., machine, n, packing="unbounded")` on the text that
follows it, at every position, whatever the text is (of the machine's tokens without empt). Rules are read wherever a
direction stands; of two rules for the same state and symbol the larger tokens win, where there is none sep is written:
`check_universal_prompt` refuses both.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple, SupportsIndex

from rasp.core import aggr_max, kqv, named, select, tok_map
from rasp.errors import check_n
from rasp.library import cumsum, equals, mask, prefix_fill, shift_right, where
from rasp.machines.machine import TuringMachine
from rasp.machines.tape import MARKERS, bos, empt, eos, sep
from rasp.programs.copying import is_token, last, last_tokens
from rasp.programs.turing import move_head
from rasp.programs.vocabulary import InvalidProblem, Vocabulary

RULE = 5  # tokens of a rule


class Size(NamedTuple):
    """How many symbols and states the machines in the prompt may have; that numbers the tokens."""

    symbols: int
    states: int

    @property
    def symbol_tokens(self) -> range:
        return range(len(MARKERS), len(MARKERS) + self.symbols)

    @property
    def state_tokens(self) -> range:
        return range(self.symbol_tokens.stop, self.symbol_tokens.stop + self.states)

    @property
    def directions(self) -> tuple[int, int]:
        return self.state_tokens.stop, self.state_tokens.stop + 1  # L, R

    @property
    def vocabulary(self) -> Vocabulary:
        symbols, states = (f"a{i}" for i in range(self.symbols)), (f"q{i}" for i in range(self.states))
        return Vocabulary((*MARKERS, *symbols, *states, "L", "R"), joiner=" ")

    def is_state(self, z: Any) -> Any:
        return (z >= self.state_tokens.start) & (z < self.state_tokens.stop)


class Rule(NamedTuple):
    """What the head does, at the place of the state token: sequences."""

    is_head: Any
    next_state: Any
    next_symbol: Any
    move_R: Any


# --- the program ------------------------------------------------------------------------------------------------------


def next_tokens_universal(x: Any, symbols: int = 15, states: int = 5, n: int = 1) -> Any:
    """The prediction at every position of x, for machines of at most so many symbols and states."""
    size = Size(symbols, states)
    x = check_text(x, size, n)
    line = named(cumsum(is_token(x, sep)), "line")
    cells = named(mask(x, tok_map(line, lambda k: k > 0), empt), "cells")  # the table is no tape: it reads as filler
    rule = look_up(x, cells, size)
    tape = named(next_tape(cells, rule, 2), "next_tape")
    key_tape = named(prefix_fill(next_tape(cells, rule, 3), 2, empt), "key_tape")
    key_line = cumsum(is_token(key_tape, sep))
    keys, queries = (key_line, *tape_n_gram(key_tape, n)), (line, *tape_n_gram(cells, n))
    return named(kqv(keys, queries, tape, equals, reduction="max"), "next token")


def next_token_universal(x: Any, symbols: int = 15, states: int = 5, n: int = 1) -> int:
    """The token after x."""
    return last(next_tokens_universal(x, symbols, states, n))


def look_up(x: Any, cells: Any, size: Size) -> Rule:
    """The rule for the state that stands here and the symbol left of it. A rule is known at its last token."""
    left, right = size.directions
    is_rule = is_token(x, left, right)
    rule_state = named(mask(shift_right(x, 4), is_rule, sep), "rule for state")
    rule_symbol = named(shift_right(x, 3), "rule for symbol")
    under_head = shift_right(cells, 1)
    found = select((rule_state, rule_symbol), (cells, under_head), equals)
    return Rule(
        is_head=named(tok_map(cells, size.is_state), "is_head"),
        next_state=named(aggr_max(found, shift_right(x, 2)), "next_state"),
        next_symbol=named(aggr_max(found, shift_right(x, 1)), "next_symbol"),
        move_R=named(aggr_max(found, is_token(x, right)), "move_R"),
    )


def get_next(cells: Any, rule: Rule, place: int) -> tuple[Any, Any, Any]:
    """Is the cell `place` positions back the head, what stands there next if the head stays, does the head go right?"""
    here, right = (Rule(*(shift_right(s, p) for s in rule)) for p in (place, place - 1))
    x_next = where(here.is_head, here.next_state, shift_right(cells, place))
    x_next = where(right.is_head, right.next_symbol, x_next)
    return here.is_head, x_next, here.move_R & here.is_head


def next_tape(cells: Any, rule: Rule, shift: int) -> Any:
    """The machine's next tape, `shift` positions late."""
    return move_head(get_next(cells, rule, shift), get_next(cells, rule, shift - 1))


def tape_n_gram(x: Any, n: int) -> list[Any]:
    """The last n+1 tokens of the tape, newest first; what lies before a separator reads sep."""
    return last_tokens(x, is_token(x, sep), n, sep)


# --- prompts ----------------------------------------------------------------------------------------------------------


def universal_prompt(
    machine: TuringMachine, tape: Iterable[SupportsIndex], symbols: int | None = None, states: int | None = None
) -> list[int]:
    """The machine's table, sep, the tape, sep.

    `symbols` and `states` are those of the program that will read it, when it can take larger machines than this one.
    """
    size = Size(symbols or len(machine.symbols), states or len(machine.states))
    check_room(machine, size)
    prompt: list[int] = []
    for q in machine.state_tokens:
        for s in (bos, eos, *machine.symbol_tokens):
            then, write, move = (table(q, s) for table in (machine.next_state, machine.next_symbol, machine.move))
            prompt += [*universal_tokens(machine, [q, s, then, write], size), size.directions[move]]
    return [*prompt, sep, *universal_tokens(machine, machine.check_tape(tape), size), sep]


def universal_tokens(machine: TuringMachine, tokens: Iterable[Any], size: Size) -> list[int]:
    """The machine's tokens as the universal program numbers them: states come after as many symbols as it knows."""
    shift = size.symbols - len(machine.symbols)
    return [int(t) + shift if machine.is_state(t) else int(t) for t in tokens]


def machine_tokens(machine: TuringMachine, tokens: Iterable[Any], size: Size) -> list[int]:
    """The universal program's tokens as this machine numbers them."""
    shift = size.symbols - len(machine.symbols)
    return [int(t) - shift if size.is_state(t) else int(t) for t in tokens]


def check_room(machine: TuringMachine, size: Size) -> None:
    if len(machine.symbols) > size.symbols or len(machine.states) > size.states:
        raise InvalidProblem(
            f"the machine has {len(machine.symbols)} symbols and {len(machine.states)} states: a universal program for "
            f"{size.symbols} symbols and {size.states} states has no tokens for them; take a larger one"
        )


def check_universal_prompt(x: Any, symbols: int = 15, states: int = 5) -> None:
    """Refuse what is not a table with each rule once and a tape of the symbols and states it has rules for."""
    size = Size(symbols, states)
    tokens = check_text(x, size, 1).tolist()
    if sep not in tokens:
        raise InvalidProblem("the prompt has no separator: give the rules, sep, the tape, sep")
    end = tokens.index(sep)
    rules = check_table(tokens[:end], size)
    tape = tokens[end + 1 :]
    known = {q for q, _ in rules} | {s for _, s in rules}
    names = size.vocabulary.names
    strange = [names[t] for t in tape if t not in known and t != sep]
    if strange:
        raise InvalidProblem(f"the tape holds {strange[0]}, for which the table has no rules")
    if not tape or tape[0] != bos:
        raise InvalidProblem("the table's separator is followed by no tape: give `bos .. eos` with one state, and sep")


def check_table(tokens: list[int], size: Size) -> dict[tuple[int, int], tuple[int, int, int]]:
    """The rules of a table by state and symbol: one for every state and every bos, eos and symbol that occurs in it."""
    names, rules = size.vocabulary.names, {}
    if len(tokens) % RULE or not tokens:
        raise InvalidProblem(f"the table has {len(tokens)} tokens: a rule has {RULE}, `state symbol state symbol L|R`")
    cells = {bos, eos, *size.symbol_tokens}
    expected: tuple[Any, ...] = (size.state_tokens, cells, size.state_tokens, cells, size.directions)
    for start in range(0, len(tokens), RULE):
        rule = tokens[start : start + RULE]
        spelled = " ".join(names[t] for t in rule)
        if any(token not in allowed for token, allowed in zip(rule, expected, strict=True)):
            raise InvalidProblem(f"`{spelled}` at position {start} is no rule: expected state symbol state symbol L|R")
        if (rule[0], rule[1]) in rules:
            raise InvalidProblem(f"state {names[rule[0]]} has two rules for {names[rule[1]]}: give each rule once")
        rules[rule[0], rule[1]] = (rule[2], rule[3], rule[4])
    states = {q for q, _ in rules} | {then for then, _, _ in rules.values()}
    symbols = {bos, eos} | {s for _, s in rules} | {write for _, write, _ in rules.values()}
    missing = [(q, s) for q in sorted(states) for s in sorted(symbols) if (q, s) not in rules]
    if missing:
        q, s = missing[0]
        raise InvalidProblem(
            f"state {names[q]} has no rule for {names[s]} ({len(missing)} missing in all): every state needs one for "
            "every symbol, bos and eos"
        )
    return rules


def check_text(x: Any, size: Size, n: int) -> Any:
    for what, value in zip(("symbol", "state"), size, strict=True):
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise InvalidProblem(f"{value!r} {what}s were asked for: a machine has at least one {what}")
    check_n(n, InvalidProblem)
    return x if hasattr(x, "__rasp__") else size.vocabulary.check(x)
