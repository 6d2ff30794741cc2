"""What the processor can do, as the system tells it."""

from __future__ import annotations

from pathlib import Path

CPU_INFO = Path("/proc/cpuinfo")


def cpu_flags() -> frozenset[str]:
    """What the first core can do, as the system tells it; nothing where it does not."""
    lines = CPU_INFO.read_text().splitlines() if CPU_INFO.is_file() else []
    named = (line.partition(":") for line in lines)
    return frozenset(next((flags for name, _, flags in named if name.strip() in ("flags", "Features")), "").split())
