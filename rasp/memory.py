"""Whether there is memory for what is asked: worked out before any of it is taken, and refused in a sentence."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

UNKNOWN = 1 << 36  # bytes taken to be free where nobody says
MEMORY_INFO = Path("/proc/meminfo")
GROUPS = Path("/sys/fs/cgroup")  # containers may have less than the machine
LIMITS = (
    ("memory.max", "memory.current", "memory.stat"),
    ("memory/memory.limit_in_bytes", "memory/memory.usage_in_bytes", "memory/memory.stat"),
)


class NotEnoughMemory(ValueError):
    """More was asked for than there is memory."""


def free_bytes() -> int:
    """How much memory a process can still take here."""
    return min(_limits(), default=UNKNOWN)


def need_memory(what: str, size: int, instead: str) -> None:
    """Refuse `what` if its `size` in bytes is more than is free; `instead` says what to do."""
    free = free_bytes()
    if size > free:
        raise NotEnoughMemory(f"{what} would take {in_words(size)} of memory, and {in_words(free)} are free; {instead}")


def in_words(size: int) -> str:
    """3.2 GiB; of more than anybody has, only about how much."""
    for unit, bits in (("TiB", 40), ("GiB", 30), ("MiB", 20)):
        if size >= 1 << bits:
            many = size >> bits
            return f"{size / (1 << bits):,.1f} {unit}" if many < 10**6 else f"over 10^{len(str(many)) - 1} {unit}"
    return f"{size / 1024:,.1f} KiB"


def _limits() -> Iterator[int]:
    """What the machine has left, what a container may still take, and what this process may."""
    try:
        lines = dict(line.split(":", 1) for line in MEMORY_INFO.read_text().splitlines())
        yield int(lines["MemAvailable"].split()[0]) * 1024
    except (OSError, KeyError, ValueError):
        if "SC_PHYS_PAGES" in getattr(os, "sysconf_names", {}):
            yield os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    for limit, used, parts in LIMITS:
        try:
            taken = int((GROUPS / used).read_text()) - _files_in_memory(GROUPS / parts)
            yield max(0, int((GROUPS / limit).read_text()) - taken)
        except (OSError, ValueError):  # no such file, or "max"
            continue
    yield from _limit_of_process()


def _files_in_memory(path: Path) -> int:
    """Copies of files, which count as used and are given back when they must."""
    lines = dict(line.split(None, 1) for line in path.read_text().splitlines())
    return sum(int(lines.get(name, 0)) for name in ("inactive_file", "active_file"))


def _limit_of_process() -> Iterator[int]:
    try:
        import resource

        most = resource.getrlimit(resource.RLIMIT_AS)[0]
        pages = int(Path("/proc/self/statm").read_text().split()[0])
    except (ImportError, OSError, ValueError):
        return
    if most != resource.RLIM_INFINITY:
        yield max(0, most - pages * os.sysconf("SC_PAGE_SIZE"))
