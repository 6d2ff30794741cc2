"""`python -m fuzz`: programs, inputs and models from a seed, until the time is over; 1 if anything differed."""

from __future__ import annotations

import argparse
import os
import resource
import sys
import tempfile
from pathlib import Path

import torch

from .cases import Shares, make_case
from .session import EXAMPLES, Session

MEMORY = 16 << 30  # bytes: a way that wants more is told so, and the machine goes on


def main() -> int:
    parser = argparse.ArgumentParser(prog="fuzz", description=__doc__)
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--programs", type=int, default=10**9, help="stop after so many")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", type=int, help="run this program of the seed and no other")
    parser.add_argument("--state", type=Path, help="keep the figures in this file, and go on from it")
    parser.add_argument("--examples", type=int, default=EXAMPLES, help="of each kind of mismatch, so many are printed")
    for name, share in vars(Shares()).items():
        flag = f"--{name.replace('_', '-')}"
        meaning = (
            "0: few whole numbers, 1: any arithmetic, 2: any function" if name == "level" else "one program in so many"
        )
        parser.add_argument(flag, type=int, default=share, help=f"{meaning}; {share}")
    given = parser.parse_args()
    shares = Shares(**{name: getattr(given, name) for name in vars(Shares())})
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    torch.set_num_threads(1)  # models this small wait longer for a second thread than they compute
    session = Session(given.seed, given.state, shares, given.examples)
    if given.only is not None:
        session.next, given.programs, session.state = given.only, 1, None
        print(make_case(given.seed, given.only, shares).program.source)
    with tempfile.TemporaryDirectory(prefix="fuzz-") as folder:  # machine code of programs nobody will run again
        os.environ["TURING_PROGRAMS_CACHE"] = folder
        session.run(given.seconds, given.programs)
    print(session.line(), session.table(), sep="\n")
    return 1 if session.kinds else 0


if __name__ == "__main__":
    sys.exit(main())
