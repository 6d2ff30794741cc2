"""A long run in processes of bounded size, one after the other.

JAX keeps the machine code of every operation on every shape it has met, and numba that of every program: some 15 MB
for each of tracr's models, which only the end of the process gives back. A process that dies (a signal, no memory left)
is a mismatch of the program it was at, and the run goes on after it.
"""

from __future__ import annotations

import math
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from .session import Session

PIECE = 4000  # programs of one process: some 2 GB


def run_in_pieces(
    session: Session,
    seconds: float,
    programs: int,
    tokens: float = math.inf,
    options: Sequence[str] = (),
    size: int = PIECE,
) -> Session:
    """The session after `programs` more, run by processes that go on from its file; `options` are theirs."""
    assert session.state is not None, "pieces hand their figures on in a file"
    start, last = time.monotonic(), session.next + programs
    while session.next < last and session.tokens < tokens and (left := seconds - (time.monotonic() - start)) > 0:
        part = min(size, last - session.next)
        given = ["--seed", session.seed, "--state", session.state, "--programs", part, "--examples", session.examples]
        limits = {"--seconds": left, "--tokens": tokens}
        given += [word for flag, limit in limits.items() if limit < math.inf for word in (flag, limit)]
        command = [sys.executable, "-m", "fuzz", *map(str, given), "--piece", *options]
        ended = subprocess.run(command).returncode
        session = Session(session.seed, session.state, session.shares, session.examples)
        if ended not in (0, 1):
            note_death(session, ended)
    return session


def note_death(session: Session, ended: int) -> None:
    """Counts the program that a process died of, and steps over it."""
    died = int(number_file(session.state).read_text())
    session.kinds[f"the process ended with {ended}"] += 1
    session.figures.counts["mismatches"] += 1
    print(f"\n--- program {died}: the process ended with {ended}; --only {died} runs it by itself", flush=True)
    session.next = died + 1
    session.keep()


def number_file(state: Path | None) -> Path:
    """Where a process writes the number of the program it is at."""
    assert state is not None
    return state.with_suffix(".number")
