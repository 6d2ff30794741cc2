"""`make packaging`: builds, installs, and uses what was installed; ends with 1 if anything does not work."""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

from .building import ROOT, build, lacking, names_in, tracked
from .environment import Environment
from .lowest import lowest_constraints
from .uses import BASE, USES


def main() -> int:
    parser = argparse.ArgumentParser(prog="installed", description=__doc__)
    parser.add_argument("--extras", nargs="*", default=list(USES), help=f"of {' '.join(USES)}")
    parser.add_argument("--python", default=sys.executable, help="whose environments are made")
    parser.add_argument("--lowest", action="store_true", help="the oldest versions that pyproject.toml allows")
    parser.add_argument("--folder", type=Path, help="where environments are made, for a while")
    given = parser.parse_args()
    if unknown := set(given.extras) - set(USES):
        parser.error(f"{sorted(unknown)[0]!r} is no extra: choose from {', '.join(USES)}")
    with tempfile.TemporaryDirectory(prefix="installed-", dir=given.folder) as name:
        folder = Path(name)
        wheel, sdist = build(folder / "built")
        faults = lacking(names_in(wheel), tracked()) + lacking(names_in(sdist), tracked())
        say("wheel and sdist", f"lack {faults[0]}" if faults else f"hold {len(tracked())} files")
        constraints = ROOT / "constraints.txt"
        for extra in given.extras:
            if given.lowest:
                constraints = folder / f"lowest-{extra}.txt"
                constraints.write_text(lowest_constraints(extra, given.python))
            failed = try_extra(folder / extra, wheel, extra, constraints, given.python)
            faults += [failed] if failed else []
    return 1 if faults else 0


def try_extra(folder: Path, wheel: Path, extra: str, constraints: Path, python: str) -> str:
    """What went wrong with this extra, in an environment of its own."""
    start = time.monotonic()
    failed = ""
    with Environment(folder, python) as environment:
        try:
            environment.install(f"{wheel}[{extra}]" if extra != BASE else str(wheel), constraints=constraints)
            for use in USES[extra]:
                command = [*use.command.split(), *([use.script] if use.script else [])]
                if use.says not in (said := environment.run(command)):
                    raise RuntimeError(f"{use.command} does not say {use.says!r}: {said[-500:]}")
        except RuntimeError as error:
            failed = str(error)
    say(extra, f"{failed or f'{len(USES[extra])} uses work'} ({time.monotonic() - start:.0f} s)")
    return failed


def say(what: str, told: str) -> None:
    print(f"{what:16} {told}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
