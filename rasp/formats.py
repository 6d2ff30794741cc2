"""Reading and writing machines: own JSON, bbchallenge text, turingmachine.io YAML, automata-lib's DTM.

Whatever is wrong with a file, `InvalidMachine` says so in a sentence.
"""

from __future__ import annotations

import difflib
import json
import os
from collections import Counter
from pathlib import Path
from typing import Any

from rasp.format_bbchallenge import from_bbchallenge, looks_like_bbchallenge, to_bbchallenge
from rasp.format_dtm import from_dtm, to_dtm
from rasp.format_yaml import from_yaml, to_yaml, yaml_input
from rasp.machine import TuringMachine
from rasp.validation import InvalidMachine, items_of, listed, show

__all__ = ["default_tape", "from_bbchallenge", "from_dtm", "from_json", "from_yaml", "load_machine", "save_machine",
           "to_bbchallenge", "to_dtm", "to_json", "to_yaml"]  # fmt: skip

MAX_BYTES = 8_000_000
SUFFIXES = (".json", ".yaml", ".yml", ".txt")


def load_machine(source: str | os.PathLike[str]) -> TuringMachine:
    """A gallery machine by name, bbchallenge text, JSON or YAML text, or a file with any of these."""
    from rasp.gallery import gallery, machine

    if isinstance(source, str) and source in gallery():
        return machine(source)
    if isinstance(source, str) and _is_text(source):
        return _from_text(source)
    path = Path(source)
    try:
        loaded = _from_text(_read(path) if str(source).strip() else "")
    except InvalidMachine as error:
        raise InvalidMachine(f"{path}: {error}") from None
    return loaded if loaded.name else loaded.replace(name=path.stem if path.stem.isprintable() else "")


def default_tape(source: str | os.PathLike[str]) -> str:
    """The tape that comes with a machine, for `parse_tape`: the gallery's, or a YAML document's input; else empty."""
    from rasp.gallery import entry, gallery

    if isinstance(source, str) and source in gallery():
        return entry(source).tape
    text = source if isinstance(source, str) and _is_text(source) else _read(Path(source))
    if looks_like_bbchallenge(text) or text.lstrip().startswith("{"):
        return ""
    return "".join("\\" + c if c in "[]\\" else c for c in yaml_input(text))


def save_machine(machine: TuringMachine, path: str | os.PathLike[str]) -> None:
    """Write in the format of the suffix: .json (everything), .yaml or .yml (turingmachine.io), .txt (bbchallenge)."""
    path = Path(path)
    if path.suffix not in SUFFIXES:
        raise InvalidMachine(f"cannot tell a format from {str(path)!r}: use one of {listed(SUFFIXES)}")
    writers = {".json": to_json, ".txt": to_bbchallenge}
    data = (writers.get(path.suffix, to_yaml)(machine).rstrip("\n") + "\n").encode()
    if len(data) > MAX_BYTES:
        raise InvalidMachine(f"{path} would have {len(data)} bytes, and files over {MAX_BYTES} are not read back")
    try:
        path.write_bytes(data)
    except OSError as error:
        raise InvalidMachine(f"cannot write {path}: {error.strerror}") from None


def _is_text(source: str) -> bool:
    return looks_like_bbchallenge(source) or "\n" in source or source.lstrip().startswith("{")


def _read(path: Path) -> str:
    try:
        data = path.read_bytes() if path.stat().st_size <= MAX_BYTES else None
    except FileNotFoundError:
        raise InvalidMachine(_not_found(path)) from None
    except (OSError, ValueError) as error:  # ValueError: a null byte in the name
        raise InvalidMachine(f"cannot be read ({getattr(error, 'strerror', None) or error})") from None
    if data is None:
        raise InvalidMachine(f"is larger than {MAX_BYTES} bytes, which no machine of a supported size needs")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InvalidMachine(f"byte {error.start} is not UTF-8 text: save the machine as text") from None


def _not_found(path: Path) -> str:
    from rasp.gallery import gallery

    close = difflib.get_close_matches(str(path), gallery(), n=1)
    hint = f"did you mean {close[0]!r}?" if close else f"the gallery has {listed(gallery(), limit=30)}"
    return f"no such file, gallery machine or bbchallenge text; {hint}"


def _from_text(text: str) -> TuringMachine:
    """By content rather than by suffix: the three formats cannot be mistaken for one another."""
    if not text.strip():
        raise InvalidMachine("there is no machine here: give a gallery name, bbchallenge text, or a file with one")
    if looks_like_bbchallenge(text):
        return from_bbchallenge(text)
    return from_json(text) if text.lstrip().startswith("{") else from_yaml(text)


# --- own JSON ---------------------------------------------------------------------------------------------------------

FORMAT = "turing-programs machine"
_REQUIRED = ("symbols", "states", "transitions")
_OPTIONAL = ("format", "name", "blank", "start", "final", "bounce")


def from_json(text: str) -> TuringMachine:
    """The machine. Only symbols, states and transitions are required; the rest defaults as in the constructor."""
    data = _parse_json(text)
    unknown = [key for key in data if key not in (*_REQUIRED, *_OPTIONAL)]
    missing = [key for key in _REQUIRED if key not in data]
    if unknown or missing:
        raise InvalidMachine(f"the JSON has {show((unknown or ['no ' + missing[0]])[0])}: expected "
                             f"{listed(_REQUIRED)}, and optionally {listed(_OPTIONAL)}")  # fmt: skip
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
        "format": FORMAT, "name": machine.name, "symbols": machine.symbols, "blank": machine.blank,
        "states": machine.states, "start": machine.start, "final": [q for q in machine.states if q in machine.final],
    }  # fmt: skip
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
