"""The lemmas as SMT-LIB 2 files, so that a proof need not be taken from z3 alone.

One file for each formula, and `manifest.json` with what each lemma claims and what a solver must answer. `confirm` has
cvc5 read a file and answer.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from proofs_check.symbolic.checking import LOGIC, Lemma, Query
from proofs_check.symbolic.lemmas import LEMMAS, lemma
from proofs_check.symbolic.program import PRINTED, Program
from rasp.files import write_whole
from rasp.progress import StageProgress


@dataclass(frozen=True)
class Certificate:
    lemma: str
    query: str
    file: str
    expect: str


def smtlib(claim: str, query: Query) -> str:
    """The query as a script: any SMT-LIB 2 solver must answer what its status says."""
    body = query.solver().to_smt2()
    body = body.replace("(check-sat)\n", "").partition("(set-info :status unknown)\n")
    text = body[2] or body[0]
    quiet = re.sub(r'["\n]', " ", f"{claim}: {query.name}")
    return (
        f'(set-logic {LOGIC})\n(set-info :smt-lib-version 2.6)\n(set-info :source "{quiet}")\n'
        f"(set-info :status {query.expect})\n{text}(check-sat)\n(exit)\n"
    )


def write_certificates(
    folder: str | Path,
    lemmas: Iterable[str] | None = None,
    program: Program = PRINTED,
    progress: StageProgress | None = None,
) -> list[Certificate]:
    """Write the files of these lemmas (all by default) into a folder, made if need be."""
    target = Path(folder)
    if target.exists() and not target.is_dir():
        raise ValueError(f"{target} is a file: certificates need a folder to be written into")
    target.mkdir(parents=True, exist_ok=True)
    chosen = LEMMAS if lemmas is None else tuple(lemma(name) for name in lemmas)
    written: list[Certificate] = []
    for done, one in enumerate(chosen):
        if progress:
            progress(one.name, done, len(chosen))
        written.extend(_write(target, one, program))
    manifest = {"logic": LOGIC, "program": program.name, "lemmas": [_entry(one, written) for one in chosen]}
    write_whole(target / "manifest.json", json.dumps(manifest, indent=1) + "\n")
    return written


def _write(target: Path, one: Lemma, program: Program) -> list[Certificate]:
    written = []
    for i, query in enumerate(one.build(program)):
        name = f"{one.name}-{i:03d}.smt2"
        write_whole(target / name, smtlib(one.claim, query))
        written.append(Certificate(one.name, query.name, name, query.expect))
    return written


def _entry(one: Lemma, written: list[Certificate]) -> dict[str, Any]:
    files = [{"file": c.file, "case": c.query, "expect": c.expect} for c in written if c.lemma == one.name]
    return {"name": one.name, "claim": one.claim, "scope": one.scope, "files": files}


@dataclass(frozen=True)
class Confirmation:
    """How many of a lemma's formulas cvc5 answers as z3 does, of how many; `against` names one it answers otherwise."""

    agreed: int
    asked: int
    against: str = ""


def confirm_lemma(one: Lemma, program: Program = PRINTED, timeout: float = 60.0) -> Confirmation | None:
    """Put a lemma's formulas to cvc5; None where it is not installed. One that takes too long is not agreed on."""
    if find_spec("cvc5") is None:
        return None
    agreed = asked = 0
    for query in one.build(program):
        asked += 1
        answer = confirm(smtlib(one.claim, query), timeout)
        agreed += answer == query.expect
        if {answer, query.expect} == {"sat", "unsat"}:
            return Confirmation(agreed, asked, f"cvc5 answers {answer}: {query.name}")
    return Confirmation(agreed, asked)


def confirm(text: str, timeout: float = 60.0) -> str:
    """What cvc5 answers to a script: sat, unsat or unknown, whatever the script says it should."""
    import cvc5

    manager = cvc5.TermManager()
    solver = cvc5.Solver(manager)
    solver.setOption("tlimit-per", str(int(timeout * 1000)))
    parser = cvc5.InputParser(solver)
    parser.setStringInput(cvc5.InputLanguage.SMT_LIB_2_6, text, "certificate")
    symbols, answer = parser.getSymbolManager(), ""
    while not (command := parser.nextCommand()).isNull():
        answer = command.invoke(solver, symbols).strip() or answer
    other = re.search(r"Expected result \w+ but got (\w+)", answer)
    return other.group(1) if other else answer
