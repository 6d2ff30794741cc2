"""Tables with holes, as other formats have them: what is undefined leads to the final state `stuck`.

A stuck machine keeps the symbol and steps right, since every transition of a `TuringMachine` moves.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rasp.machines.machine import Transitions, TuringMachine
from rasp.machines.validation import InvalidMachine

STUCK = "stuck"


def complete(
    *,
    states: Sequence[str],
    symbols: Sequence[str],
    transitions: Transitions,
    start: str,
    final: Iterable[str],
    blank: str,
    name: str = "",
) -> TuringMachine:
    """The machine with every undefined transition leading to a final state `stuck` (added if there is a hole)."""
    final = set(final)
    stuck = STUCK
    while stuck in states and stuck not in final:
        stuck += "_"
    rules = dict(transitions)
    for state in states:
        if state not in final:
            for symbol in symbols:
                rules.setdefault((state, symbol), (symbol, "R", stuck))
    if len(rules) > len(transitions):
        final.add(stuck)
        states = states if stuck in states else [*states, stuck]
    return TuringMachine(
        states=states, symbols=symbols, transitions=rules, start=start, final=final, blank=blank, name=name
    )


def explicit_rules(machine: TuringMachine) -> dict[str, dict[str, tuple[str, str, str]]]:
    """The rules `complete` would not add back, by state. A state of which nothing would be left keeps all its rules."""
    table: dict[str, dict[str, tuple[str, str, str]]] = {}
    for state in machine.states:
        if state not in machine.final:
            rules = {symbol: machine.transitions[state, symbol] for symbol in machine.symbols}
            kept = {a: rule for a, rule in rules.items() if STUCK not in machine.final or rule != (a, "R", STUCK)}
            table[state] = kept or rules
    return table


def refuse_unwritable(machine: TuringMachine, form: str, single_characters: bool = True) -> None:
    """Formats for endless tapes have no end markers to bounce off, and most have one character per symbol."""
    bounced = [key for key, target in machine.bounce.items() if target != key[0]]
    if bounced:
        raise InvalidMachine(
            f"{form} has no end markers, but state {bounced[0][0]!r} changes on {bounced[0][1]}: "
            "save as .json, or drop this with machine.replace(bounce=None)"
        )
    long = [name for name in machine.symbols if len(name) != 1]
    if single_characters and long:
        raise InvalidMachine(f"{form} has symbols of one character, but this machine has {long[0]!r}: save as .json")
    if machine.start in machine.final:
        raise InvalidMachine(f"{form} needs a start state with transitions, but {machine.start!r} is final")
