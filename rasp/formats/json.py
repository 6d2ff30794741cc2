"""Machines in this project's own JSON: everything about a machine, one line per state."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

from rasp.machines.machine import TuringMachine
from rasp.machines.validation import InvalidMachine, items_of, listed, show

FORMAT = "turing-programs machine"
_REQUIRED = ("symbols", "states", "transitions")
_OPTIONAL = ("format", "name", "blank", "start", "final", "bounce")


def from_json(text: str) -> TuringMachine:
    """The machine. Only symbols, states and transitions are required; the rest defaults as in the constructor."""
    data = _parse_json(text)
    unknown = [key for key in data if key not in (*_REQUIRED, *_OPTIONAL)]
    missing = [key for key in _REQUIRED if key not in data]
    if unknown or missing:
        raise InvalidMachine(
            f"the JSON has {show((unknown or ['no ' + missing[0]])[0])}: expected "
            f"{listed(_REQUIRED)}, and optionally {listed(_OPTIONAL)}"
        )
    if data.pop("format", FORMAT) != FORMAT:
        raise InvalidMachine(f"the JSON is not of format {FORMAT!r}: set it to that, or leave it out")
    for table in ("transitions", "bounce"):
        if table in data:
            data[table] = _flatten(table, data[table])
    for key in ("symbols", "states", "final"):
        if not isinstance(data.get(key, []), list):
            raise InvalidMachine(f"{key} is {show(data[key])}: expected a list of names")
    return TuringMachine(**data)


def to_json(machine: TuringMachine) -> str:
    """Everything about the machine, one line per state."""
    bounced = {key: target for key, target in machine.bounce.items() if target != key[0]}
    fields: dict[str, Any] = {
        "format": FORMAT,
        "name": machine.name,
        "symbols": machine.symbols,
        "blank": machine.blank,
        "states": machine.states,
        "start": machine.start,
        "final": [q for q in machine.states if q in machine.final],
    }
    lines = [f"  {_dumps(key)}: {_dumps(value)}" for key, value in fields.items()]
    tables = {"transitions": machine.transitions} | ({"bounce": bounced} if bounced else {})
    for key, table in tables.items():
        rows: dict[str, dict[str, Any]] = {}
        for (state, token), value in table.items():
            rows.setdefault(state, {})[token] = value
        states = ",\n".join(f"    {_dumps(state)}: {_dumps(row)}" for state, row in rows.items())
        lines.append(f'  "{key}": {{\n{states}\n  }}')
    return "{\n" + ",\n".join(lines) + "\n}\n"


def _dumps(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _parse_json(text: str) -> dict[str, Any]:
    try:
        data = json.loads(text, object_pairs_hook=_no_duplicates)
    except InvalidMachine:
        raise
    except (ValueError, RecursionError) as error:
        raise InvalidMachine(f"not JSON: {error!s:.200}") from None
    if not isinstance(data, dict):
        raise InvalidMachine(f"the JSON is {show(data)}: expected an object with {listed(_REQUIRED)}")
    return data


def _no_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    data = dict(pairs)
    if len(data) < len(pairs):
        twice = Counter(key for key, _ in pairs).most_common(1)[0][0]
        raise InvalidMachine(f"the JSON gives {show(twice)} twice in one object: give it once")
    return data


def _flatten(what: str, table: Any) -> dict[tuple[str, str], Any]:
    """`{state: {symbol: value}}` as `{(state, symbol): value}`."""
    return {
        (state, symbol): value
        for state, row in items_of(what, table)
        for symbol, value in items_of(f"{what} of state {show(state)}", row)
    }
