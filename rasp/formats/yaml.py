"""Machines in the YAML of turingmachine.io.

The document is read as a tree of text, never as Python values: `0`, `on` and `~` may be symbols, and lists may be
keys. turingmachine.io halts where a transition is undefined; here that leads to the final state `stuck`.
"""

from __future__ import annotations

import re
from types import NoneType
from typing import Any

from rasp.machines.machine import TuringMachine
from rasp.machines.partial import complete, explicit_rules, refuse_unwritable
from rasp.machines.validation import InvalidMachine, listed, show

MAX_CHARACTERS = 500_000  # PyYAML takes some ten seconds for these
MAX_NODES = 1_000_000  # counted with aliases followed, so that a few lines cannot unfold into a billion entries

Action = tuple[str | None, str, str | None]  # (write or keep, direction, next state or stay)


def from_yaml(text: str, name: str = "") -> TuringMachine:
    """The machine of a turingmachine.io document, or of the file the site saves it in."""
    document = _specification(text)
    blank, start = _symbol(document.get("blank"), "blank"), _text(document, "start state")
    synonyms = {
        key: _action(value, {}, f"synonym {key!r}") for key, value in _mapping(document, "synonyms", {}).items()
    }
    table = {state: _row(state, row, synonyms) for state, row in _mapping(document, "table").items()}
    symbols = dict.fromkeys([blank])
    rules: dict[tuple[str, str], tuple[str, str, str]] = {}
    for state, row in table.items():
        for symbol, (write, direction, target) in row.items():
            rules[state, symbol] = symbol if write is None else write, direction, state if target is None else target
            symbols |= dict.fromkeys([symbol, rules[state, symbol][0]])
    symbols |= dict.fromkeys(_input(document))
    return complete(
        states=list(table),
        symbols=list(symbols),
        transitions=rules,
        start=start,
        blank=blank,
        final=[state for state, row in table.items() if not row],
        name=name or _name(document),
    )


def yaml_input(text: str) -> str:
    """The `input` of a document: the symbols on its tape."""
    return _input(_specification(text))


def to_yaml(machine: TuringMachine, input: str = "") -> str:
    """The document, without the transitions into `stuck` that reading it back would add."""
    refuse_unwritable(machine, "turingmachine.io YAML")
    table = explicit_rules(machine)
    _mention_every_symbol(machine, table)
    lines = [f"name: {_quoted(machine.name)}"] if machine.name else []
    lines += [f"input: {_quoted(input)}", f"blank: {_quoted(machine.blank)}", f"start state: {_plain(machine.start)}"]
    lines += ["table:"]
    for state in machine.states:
        lines.append(f"  {_plain(state)}:")
        grouped: dict[str, list[str]] = {}
        for symbol, rule in table.get(state, {}).items():
            grouped.setdefault(_written(state, symbol, rule), []).append(_quoted(symbol))
        for action, symbols in grouped.items():
            lines.append(f"    {symbols[0] if len(symbols) == 1 else '[' + ', '.join(symbols) + ']'}: {action}")
    text = "\n".join(lines) + "\n"
    if len(text) > MAX_CHARACTERS:
        raise InvalidMachine(f"{machine!r} takes {len(text)} characters of YAML, over {MAX_CHARACTERS}: save as .json")
    return text


# --- reading ----------------------------------------------------------------------------------------------------------


def _specification(text: str) -> dict[str, Any]:
    """The machine's document, taken out of the file that the site saves it in."""
    document = _document(text)
    if "source code" not in document:
        return document
    return {"name": document.get("name")} | _document(_text(document, "source code"))


def _document(text: str) -> dict[str, Any]:
    """The document as dicts, tuples, text and None (an empty value)."""
    import yaml

    if len(text) > MAX_CHARACTERS:
        raise InvalidMachine(f"YAML of {len(text)} characters is over {MAX_CHARACTERS}: use .json for large machines")
    try:
        node = yaml.compose(text, Loader=yaml.SafeLoader)  # builds no objects, whatever the tags say
        document = _tree(node, [MAX_NODES]) if node is not None else None
    except yaml.YAMLError as error:
        raise InvalidMachine(f"not YAML: {' '.join(str(error).split()):.200}") from None
    except (RecursionError, ValueError) as error:
        if isinstance(error, InvalidMachine):
            raise
        raise InvalidMachine(f"not YAML that can be read: {type(error).__name__} ({error!s:.80})") from None
    if not isinstance(document, dict):
        raise InvalidMachine(f"a YAML machine is a mapping with blank, start state and table, got {show(document)}")
    return document


def _tree(node: Any, budget: list[int]) -> Any:
    budget[0] -= 1
    if budget[0] < 0:
        raise InvalidMachine(f"the YAML unfolds to more than {MAX_NODES} entries: write it without aliases")
    if node.id == "scalar":
        return None if node.tag == "tag:yaml.org,2002:null" else node.value
    if node.id == "sequence":
        return tuple(_tree(item, budget) for item in node.value)
    mapping: dict[Any, Any] = {}
    for key_node, value_node in node.value:
        key = key_node.value if key_node.id == "scalar" else _tree(key_node, budget)
        line = key_node.start_mark.line + 1
        if isinstance(key, dict) or not all(isinstance(part, str | NoneType) for part in key):
            raise InvalidMachine(f"line {line}: {show(key)} is no key: expected a name or a list of names")
        if key in mapping:
            raise InvalidMachine(f"line {line}: {show(key)} is given twice: give it once")
        mapping[key] = _tree(value_node, budget)
    return mapping


def _text(document: dict[str, Any], key: str) -> str:
    value = document.get(key)
    if not isinstance(value, str):
        raise InvalidMachine(f"{key!r} is {show(value)}: expected text, as in `{key}: ...`")
    return value


def _name(document: dict[str, Any]) -> str:
    name = document.get("name")
    return name if isinstance(name, str) else ""


def _input(document: dict[str, Any]) -> str:
    return "" if document.get("input") is None else _text(document, "input")


def _mapping(document: dict[str, Any], key: str, default: dict[str, Any] | None = None) -> dict[str, Any]:
    value = document.get(key)
    value = default if value is None else value
    if not isinstance(value, dict) or not all(isinstance(k, str) for k in value):
        raise InvalidMachine(f"{key!r} is {show(value)}: expected a mapping from names")
    return value


def _row(state: str, row: Any, synonyms: dict[str, Action]) -> dict[str, Action]:
    """One state of the table: symbol -> action; nothing for a halting state."""
    if row is None:
        return {}
    if not isinstance(row, dict):
        raise InvalidMachine(f"state {state!r} has {show(row)}: expected symbols with their instructions, or nothing")
    actions: dict[str, Action] = {}
    for key, value in row.items():
        action = _action(value, synonyms, f"state {state!r} on {show(key)}")
        for symbol in _key_symbols(key, state):
            if symbol in actions:
                raise InvalidMachine(f"state {state!r} has two instructions for {symbol!r}: give one")
            actions[symbol] = action
    return actions


def _key_symbols(key: Any, state: str) -> list[str]:
    """`a`, `[a, b]`, or the `a,b` that turingmachine.io takes for the same."""
    if isinstance(key, str) and len(key) > 1:
        key = tuple(key.split(","))
    return [_symbol(symbol, f"a symbol of state {state!r}") for symbol in (key if isinstance(key, tuple) else [key])]


def _symbol(value: Any, what: str) -> str:
    if not isinstance(value, str) or len(value) != 1:
        raise InvalidMachine(f"{what} is {show(value)}: expected one character, quoted if YAML reads it otherwise")
    return value


def _action(value: Any, synonyms: dict[str, Action], where: str) -> Action:
    if isinstance(value, str):
        if value in synonyms and value not in ("L", "R", "N"):
            return synonyms[value]
        value = {value: None}
    if not isinstance(value, dict) or not set(value) <= {"L", "R", "N", "write"} or len(value.keys() - {"write"}) != 1:
        raise InvalidMachine(
            f"{where}: {show(value)} is no instruction: expected L, R, "
            "{R: state}, {write: symbol, L: state} "
            f"or a synonym ({listed(synonyms)})"
        )
    direction = next(iter(value.keys() - {"write"}))
    if direction == "N":
        raise InvalidMachine(f"{where}: direction N (stay) is not supported: split it into a move there and back")
    target = value[direction]
    if target is not None and not isinstance(target, str):
        raise InvalidMachine(f"{where}: the next state is {show(target)}: expected a name")
    return _symbol(value["write"], f"{where}: what to write") if "write" in value else None, direction, target


# --- writing ----------------------------------------------------------------------------------------------------------


def _mention_every_symbol(machine: TuringMachine, table: dict[str, dict[str, tuple[str, str, str]]]) -> None:
    """The format has no list of symbols: one on which every state is stuck must be written somewhere."""
    mentioned = {a for row in table.values() for symbol, rule in row.items() for a in (symbol, rule[0])}
    for symbol in machine.symbols:
        if symbol not in mentioned:
            table[machine.start][symbol] = machine.transitions[machine.start, symbol]


def _written(state: str, symbol: str, rule: tuple[str, str, str]) -> str:
    write, direction, target = rule
    if write == symbol and target == state:
        return direction
    move = direction if target == state else f"{direction}: {_plain(target)}"
    return f"{{{move}}}" if write == symbol else f"{{write: {_quoted(write)}, {move}}}"


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _plain(name: str) -> str:
    """Unquoted where no YAML version reads it as anything but text."""
    words = {"y", "n", "yes", "no", "on", "off", "true", "false", "null", "nan", "inf"}
    return name if re.fullmatch(r"[A-Za-z][A-Za-z0-9_]*", name) and name.lower() not in words else _quoted(name)
