"""`turing-programs doctor`: is everything here, and does it work?"""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from experiments.cli.common import JsonOption, print_json, progress_bar, screen, versions

if TYPE_CHECKING:
    from experiments.doctor import Finding

PASSED = {True: "works", False: "FAILS", None: "-"}


def register(app: typer.Typer) -> None:
    app.command(epilog="Examples:  turing-programs doctor  ·  turing-programs doctor --json")(doctor)


def doctor(json: JsonOption = False) -> None:
    """What is installed, what is missing, what this computer can do, and a self-test of ten seconds."""
    from experiments.doctor import examine

    with progress_bar("self-test") as progress:
        found = examine(progress)
    if json:
        print_json({**found.to_json(), "versions": versions()})
    else:
        for title, findings in (("packages", found.packages), ("tools", found.tools), ("computer", found.computer)):
            print_findings(title, findings)
        screen().print("self-test")
        for test in found.tests:
            screen().print(f"  {test.name:<20} {PASSED[test.passed]:<8} {test.told} ({test.seconds:.1f} s)")
    if not found.healthy:
        raise typer.Exit(1)


def print_findings(title: str, findings: list[Finding]) -> None:
    screen().print(title)
    for finding in findings:
        screen().print(f"  {finding.name:<20} {finding.found}" + (f"   {finding.remedy}" if finding.remedy else ""))
