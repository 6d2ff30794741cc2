"""automata-lib's deterministic Turing machines, `automata.tm.dtm.DTM`.

A DTM has one kind of final state (accepting) and rejects where a transition is undefined; here undefined transitions
lead to the final state `stuck`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rasp.extras import missing
from rasp.machines.machine import TuringMachine
from rasp.machines.partial import STUCK, complete, explicit_rules, refuse_unwritable
from rasp.machines.validation import InvalidMachine

if TYPE_CHECKING:
    from automata.tm.dtm import DTM


def from_dtm(dtm: DTM, name: str = "") -> TuringMachine:
    """The machine: start state first, blank first, all others in alphabetical order (a DTM keeps none)."""
    DTM = _automata_lib()
    if not isinstance(dtm, DTM):
        raise InvalidMachine(f"expected an automata-lib DTM, got {type(dtm).__name__}")
    try:
        dtm.validate()  # it may have been built with validation off
    except Exception as error:  # a broken one can raise anything
        raise InvalidMachine(f"automata-lib refuses this DTM: {type(error).__name__} ({error!s:.100})") from None
    start, blank = str(dtm.initial_state), str(dtm.blank_symbol)
    rules: dict[tuple[str, str], tuple[str, str, str]] = {}
    for state, paths in dtm.transitions.items():
        for symbol, (target, write, direction) in paths.items():
            if direction == "N":
                raise InvalidMachine(
                    f"state {str(state)!r} on {symbol!r} stays in place: direction N is not "
                    "supported, split it into a move there and back"
                )
            rules[str(state), str(symbol)] = str(write), direction, str(target)
    return complete(
        states=sorted(map(str, dtm.states), key=lambda q: (q != start, q)),
        symbols=sorted(map(str, dtm.tape_symbols), key=lambda a: (a != blank, a)),
        transitions=rules,
        start=start,
        blank=blank,
        final=map(str, dtm.final_states),
        name=name,
    )


def to_dtm(machine: TuringMachine) -> DTM:
    """The DTM, without the transitions into `stuck` that reading it back would add."""
    DTM = _automata_lib()
    refuse_unwritable(machine, "automata-lib's DTM")
    table = explicit_rules(machine)
    named = {target for row in table.values() for _, _, target in row.values()}
    omitted = sum(map(len, table.values())) < len(machine.transitions)
    left_out = {STUCK} if omitted and STUCK not in named else set()
    paths: dict[str, dict[str, tuple[str, str, Any]]] = {
        state: {symbol: (target, write, direction) for symbol, (write, direction, target) in row.items()}
        for state, row in table.items()
    }
    return DTM(
        states=set(machine.states) - left_out,
        input_symbols=set(machine.symbols) - {machine.blank},
        tape_symbols=set(machine.symbols),
        transitions=paths,
        initial_state=machine.start,
        blank_symbol=machine.blank,
        final_states=machine.final - left_out,
    )


def _automata_lib() -> Any:
    """Its class of machines."""
    try:
        from automata.tm.dtm import DTM
    except ModuleNotFoundError as error:
        raise missing("a machine of automata-lib's", error) from error
    return DTM
