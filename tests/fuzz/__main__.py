"""`python -m fuzz`: programs, texts, models and files from a seed, until the time is over; 1 if anything differed."""

from __future__ import annotations

import argparse
import math
import os
import resource
import sys
import tempfile
from pathlib import Path

import torch

from .cases import Shares, make_case
from .pieces import PIECE, number_file, run_in_pieces
from .session import EXAMPLES, Session

MEMORY = 16 << 30  # bytes: a way that wants more is told so, and the machine goes on
SECONDS = 600  # when neither time nor programs are given


def main() -> int:
    given = parsed()
    shares = Shares(**{name: getattr(given, name) for name in vars(Shares())})
    with tempfile.TemporaryDirectory(prefix="fuzz-") as folder:  # machine code of programs nobody will run again
        if not given.piece:  # pieces share it
            os.environ["TURING_PROGRAMS_CACHE"] = folder
        long = given.programs > PIECE and given.only is None
        state = given.state or (Path(folder) / "figures.json" if long else None)
        session = Session(given.seed, state, shares, given.examples)
        if long:
            session = run_in_pieces(session, given.seconds, given.programs, given.tokens, as_options(shares))
        else:
            run_here(session, given)
    if not given.piece:
        print(session.line(), session.table(), sep="\n")
    return 1 if session.kinds else 0


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="fuzz", description=__doc__)
    parser.add_argument("--seconds", type=float, help=f"stop after so long; {SECONDS} if nothing else is given")
    parser.add_argument("--programs", type=int, help="stop after so many")
    parser.add_argument("--tokens", type=int, help="stop when so many were compared, of all programs and texts")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", type=int, help="run this program of the seed and no other")
    parser.add_argument("--state", type=Path, help="keep the figures in this file, and go on from it")
    parser.add_argument("--examples", type=int, default=EXAMPLES, help="of each kind of mismatch, so many are printed")
    parser.add_argument("--piece", action="store_true", help=argparse.SUPPRESS)  # one of the processes of a long run
    for name, share in vars(Shares()).items():
        meaning = (
            "0: few whole numbers, 1: any arithmetic, 2: any function" if name == "level" else "one number in so many"
        )
        parser.add_argument(flag(name), type=int, default=share, help=f"{meaning}; {share}")
    given = parser.parse_args()
    if given.seconds is None:
        given.seconds = SECONDS if given.programs is None and given.tokens is None else math.inf
    given.programs = 10**9 if given.programs is None else given.programs
    given.tokens = math.inf if given.tokens is None else given.tokens
    return given


def flag(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def as_options(shares: Shares) -> list[str]:
    return [word for name, share in vars(shares).items() for word in (flag(name), str(share))]


def run_here(session: Session, given: argparse.Namespace) -> None:
    """In this process."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    torch.set_num_threads(1)  # models this small wait longer for a second thread than they compute
    if given.only is not None:
        session.next, given.programs, session.state = given.only, 1, None
        print(make_case(given.seed, given.only, session.shares).program.source)
    if given.piece:
        session.at = number_file(session.state)
    session.run(given.seconds, given.programs, given.tokens)


if __name__ == "__main__":
    sys.exit(main())
