"""Machines by name, from text and from files, whatever the format; and machines written to files.

Whatever is wrong with a file, `InvalidMachine` says so in a sentence.
"""

from __future__ import annotations

import difflib
import os
import re
from pathlib import Path

from rasp.files import FileTooLarge, read_whole, write_whole
from rasp.formats.bbchallenge import from_bbchallenge, looks_like_bbchallenge, to_bbchallenge
from rasp.formats.json import from_json, to_json
from rasp.formats.yaml import from_yaml, to_yaml, yaml_input
from rasp.gallery import entry, gallery, machine
from rasp.machines.machine import TuringMachine
from rasp.machines.validation import InvalidMachine, listed

MAX_BYTES = 8_000_000
SUFFIXES = (".json", ".yaml", ".yml", ".txt")


def load_machine(source: str | os.PathLike[str]) -> TuringMachine:
    """A gallery machine by name, random:SYMBOLSxSTATES:SEED, bbchallenge, JSON or YAML text, or a file with one."""
    if isinstance(source, str) and (source == "random" or source.startswith("random:")):
        return _random(source)
    if isinstance(source, str) and source in gallery():
        return machine(source)
    if isinstance(source, str) and _is_text(source):
        return _from_text(source)
    path = Path(source)
    try:
        loaded = _from_text(_read(path) if str(source).strip() else "", path.suffix)
    except InvalidMachine as error:
        name = str(path) if str(source).strip() else repr(source)
        raise InvalidMachine(f"{name}: {error}") from None
    return loaded if loaded.name else loaded.replace(name=path.stem if path.stem.isprintable() else "")


def _random(source: str) -> TuringMachine:
    """Parts that are left out are 12x16 and 0."""
    size = re.fullmatch(r"random(?::(\d{1,9})x(\d{1,9}))?(?::(\d{1,18}))?", source)
    if not size:
        raise InvalidMachine(f"{source!r} is not random:SYMBOLSxSTATES:SEED, for example random:12x16:0")
    symbols, states, seed = (int(g) if g else d for g, d in zip(size.groups(), (12, 16, 0), strict=True))
    return TuringMachine.random(symbols=symbols, states=states, seed=seed)


def default_tape(source: str | os.PathLike[str]) -> str:
    """The tape that comes with a machine, for `parse_tape`: the gallery's, or a YAML document's input; else empty."""
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
        write_whole(path, data)
    except OSError as error:
        raise InvalidMachine(f"cannot write {path}: {error.strerror}") from None


def _is_text(source: str) -> bool:
    return looks_like_bbchallenge(source) or "\n" in source or source.lstrip().startswith("{")


def _read(path: Path) -> str:
    try:
        data = read_whole(path, MAX_BYTES)
    except FileNotFoundError:
        raise InvalidMachine(_not_found(path)) from None
    except FileTooLarge:
        raise InvalidMachine(f"is larger than {MAX_BYTES} bytes, which no machine of a supported size needs") from None
    except (OSError, ValueError) as error:  # ValueError: a null byte in the name
        raise InvalidMachine(f"cannot be read ({getattr(error, 'strerror', None) or error})") from None
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InvalidMachine(f"byte {error.start} is not UTF-8 text: save the machine as text") from None


def _not_found(path: Path) -> str:
    close = difflib.get_close_matches(str(path), gallery(), n=1)
    hint = f"did you mean {close[0]!r}?" if close else f"the gallery has {listed(gallery(), limit=30)}"
    return f"no such file, gallery machine or bbchallenge text; {hint}"


def _from_text(text: str, suffix: str = "") -> TuringMachine:
    """By content: the three formats cannot be mistaken for one another. What is none of them is taken at its name."""
    if not text.strip():
        raise InvalidMachine("there is no machine here: give a gallery name, bbchallenge text, or a file with one")
    if looks_like_bbchallenge(text):
        return from_bbchallenge(text)
    if suffix == ".py":
        raise InvalidMachine("is Python, not a machine; where a program may stand, name it as FILE.py:FUNCTION")
    return from_json(text) if text.lstrip()[0] in "{[" or suffix == ".json" else from_yaml(text)
