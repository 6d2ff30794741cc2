"""Addresses into the live page: what stands after # holds the machine and the tape."""

from __future__ import annotations

import json
from urllib.parse import urlencode

from rasp.formats.json import to_json
from rasp.gallery import gallery
from rasp.gallery import machine as gallery_machine
from rasp.machines.machine import TuringMachine

PAGE = "playground.html"


def machine_link(
    machine: TuringMachine,
    tape: str = "",
    steps: int | None = None,
    *,
    tags: bool = True,
    room: bool = True,
    page: str = PAGE,
) -> str:
    """A link to `page` with this machine's table and a tape, as `parse_tape` reads it, filled in."""
    known = machine.name in gallery() and gallery_machine(machine.name) == machine
    text = machine.name if known else json.dumps(json.loads(to_json(machine)), separators=(",", ":"))
    values = {"task": "machine", "machine": text, "tape": tape, "room": int(room), "tags": int(tags)}
    return f"{page}#{urlencode(values if steps is None else {**values, 'steps': steps})}"
