"""Discharge the lemmas, and see that each is refuted on the wrong programs that concern it."""

from __future__ import annotations

import platform
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from proofs_check.symbolic.certificates import confirm_lemma
from proofs_check.symbolic.checking import Lemma, check
from proofs_check.symbolic.lemmas import LEMMAS, lemma
from proofs_check.symbolic.mutants import mutants_of
from proofs_check.symbolic.program import PRINTED, Program
from rasp.progress import StageProgress


@dataclass(frozen=True)
class Caught:
    """A wrong program, and whether the lemma was refuted on it."""

    mutant: str
    result: str
    witness: str = ""


@dataclass(frozen=True)
class LemmaResult:
    """One lemma: `result` is proved, refuted or unknown; `queries` is how many formulas were put to the solver, and
    `confirmed` how many of them cvc5 answered alike (None if it was not asked: whole runs would take it too long).
    """

    name: str
    claim: str
    scope: str
    kind: str
    result: str
    seconds: float
    queries: int
    witness: str = ""
    confirmed: int | None = None
    mutants: tuple[Caught, ...] = ()

    @property
    def mutants_caught(self) -> int:
        return sum(m.result == "refuted" for m in self.mutants)


@dataclass(frozen=True)
class ProofReport:
    program: str
    lemmas: tuple[LemmaResult, ...]
    versions: dict[str, str]

    @property
    def all_proved(self) -> bool:
        """Every lemma holds, and no wrong program passed for right."""
        return all(row.result == "proved" and row.mutants_caught == len(row.mutants) for row in self.lemmas)

    def to_json(self) -> dict[str, Any]:
        rows = [{**asdict(row), "mutants_caught": row.mutants_caught} for row in self.lemmas]
        return {"program": self.program, "lemmas": rows, "all_proved": self.all_proved, "versions": self.versions}


def prove(
    lemmas: Iterable[str] | None = None,
    with_mutants: bool = True,
    progress: StageProgress | None = None,
    program: Program = PRINTED,
    timeout: float = 600.0,
    confirm: bool = True,
) -> ProofReport:
    """Prove these lemmas (all by default) of a program; `confirm`: local ones with cvc5 too, where it is installed.

    `progress` is told what comes next, how many checks are done and how many there are. `timeout` is the seconds that a
    single formula may take before its lemma is called unknown.
    """
    chosen = LEMMAS if lemmas is None else tuple(lemma(name) for name in lemmas)
    total = sum(1 + (len(mutants_of(one.name)) if with_mutants else 0) for one in chosen)
    done, rows = 0, []
    for one in chosen:
        told = _Told(one.name, done, total, progress)
        rows.append(_row(one, program, with_mutants, timeout, confirm, told))
        done = told.done
    return ProofReport(program.name, tuple(rows), _versions())


class _Told:
    """Counts the checks and passes the count on."""

    def __init__(self, name: str, done: int, total: int, progress: StageProgress | None) -> None:
        self.name, self.done, self.total, self.progress = name, done, total, progress

    def __call__(self, what: str) -> None:
        if self.progress:
            self.progress(f"{self.name}: {what}", self.done, self.total)
        self.done += 1


def _row(one: Lemma, program: Program, with_mutants: bool, timeout: float, confirm: bool, told: _Told) -> LemmaResult:
    told(program.name)
    outcome = check(one, program, timeout)
    result, witness = outcome.result, str(outcome.witness or "")
    second = confirm_lemma(one, program) if confirm and result == "proved" and one.kind != "bounded" else None
    if second and second.against:
        result, witness = "unknown", second.against
    caught = []
    for mutant in mutants_of(one.name) if with_mutants else ():
        told(mutant.name)
        against = check(one, mutant, timeout)
        caught.append(Caught(mutant.name, against.result, str(against.witness or "")))
    return LemmaResult(
        one.name,
        one.claim,
        one.scope,
        one.kind,
        result,
        round(outcome.seconds, 3),
        outcome.queries,
        witness,
        second.agreed if second else None,
        tuple(caught),
    )


def _versions() -> dict[str, str]:
    found = {"python": platform.python_version()}
    for package in ("z3-solver", "cvc5", "turing-programs"):
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found
