"""A file that remembers finished chunks, so that a run that was stopped goes on where it was.

One JSON object per line, each with a checksum and the fingerprint of the run it belongs to: a line that was damaged or
half written loses only itself, and the results of another run are never mixed in. The first line holds the run's
parameters, to say in which way another run differs; nothing else depends on it.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO

Line = dict[str, Any]


class JournalError(ValueError):
    """A resume file that cannot be used."""


class Journal:
    """Open for one run: `finished` are the results read back, `add` appends one and forces it to disk."""

    def __init__(self, path: str | os.PathLike[str], parameters: Line) -> None:
        self.path = Path(path)
        self.parameters = parameters
        self.fingerprint = _digest(parameters)
        self.finished: dict[int, Any] = {}
        self.damaged = 0
        self._file = self._open()
        try:
            self._read()
        except BaseException:
            self._file.close()
            raise

    def add(self, chunk: int, result: Any) -> None:
        self._write({"run": self.fingerprint, "chunk": chunk, "result": result})
        self.finished[chunk] = result

    def __enter__(self) -> Journal:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        with contextlib.suppress(OSError):  # of what could not be written, which was told
            self._file.close()

    def _open(self) -> BinaryIO:
        try:
            file = open(self.path, "a+b")  # noqa: SIM115  (closed by __exit__)
        except OSError as error:
            raise JournalError(f"the resume file {self.path} cannot be opened: {error.strerror}") from None
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            file.close()
            raise JournalError(f"the resume file {self.path} is in use by another run: wait, or name another") from None
        return file

    def _read(self) -> None:
        self._file.seek(0)
        text = self._file.read()
        lines = [line for line in text.split(b"\n") if line.strip()]
        valid = [entry for entry in map(_parse, lines) if entry is not None]
        if lines and not valid:
            raise JournalError(
                f"{self.path} is no journal of a verify run: none of its {len(lines)} lines can be read; "
                "name another file, or delete it to start anew"
            )
        self._refuse_others(valid)
        self.damaged = len(lines) - len(valid)
        self.finished = {entry["chunk"]: entry["result"] for entry in valid if "chunk" in entry}
        if text and not text.endswith(b"\n"):
            self._file.write(b"\n")  # the last run was killed in the middle of a line
        if not any("parameters" in entry for entry in valid):
            self._write({"run": self.fingerprint, "parameters": self.parameters})

    def _refuse_others(self, entries: list[Line]) -> None:
        other = next((entry for entry in entries if entry.get("run") != self.fingerprint), None)
        if other is None:
            return
        theirs: Line = next((e["parameters"] for e in entries if "parameters" in e and e["run"] == other["run"]), {})
        differ = [
            f"{name} {theirs[name]} there, {self.parameters.get(name)} here"
            for name in theirs
            if theirs[name] != self.parameters.get(name)
        ]
        raise JournalError(
            f"{self.path} belongs to another run ({'; '.join(differ) or 'other parameters'}): "
            "give the same options, or another resume file"
        )

    def _write(self, entry: Line) -> None:
        line = json.dumps({**entry, "sum": _digest(entry)}, separators=(",", ":")).encode() + b"\n"
        try:
            self._file.write(line)
            self._file.flush()
            os.fsync(self._file.fileno())
        except OSError as error:
            raise JournalError(
                f"the resume file {self.path} cannot be written: {error.strerror}; what it holds is kept: make room, "
                "and the same command goes on from there"
            ) from None


def _parse(line: bytes) -> Line | None:
    """The entry, if it is whole and its checksum is right."""
    try:
        entry = json.loads(line)
        total = entry.pop("sum")
    except (ValueError, KeyError, AttributeError, TypeError, RecursionError):
        return None
    known = isinstance(entry.get("run"), str) and ("parameters" in entry or isinstance(entry.get("chunk"), int))
    return entry if known and total == _digest(entry) else None


def _digest(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True, separators=(",", ":")).encode()).hexdigest()[:16]
