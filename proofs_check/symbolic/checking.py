"""A lemma is a claim about a program as formulas that must have no solution; here is how they are put to z3."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from time import perf_counter

import z3

from proofs_check.symbolic.program import PRINTED, Program
from proofs_check.symbolic.terms import Value, known, number
from proofs_check.symbolic.unknown import UnknownMachine

LOGIC = "QF_UFBV"
Watched = Mapping[str, Sequence[Value] | Value]


@dataclass(frozen=True)
class Query:
    """Formulas that together must have no solution (or, where a claim says that something happens, must have one).

    `watch` names what a reader wants to see of a solution.
    """

    name: str
    formulas: tuple[z3.BoolRef, ...]
    expect: str = "unsat"
    watch: Watched = field(default_factory=dict)

    def solver(self) -> z3.Solver:
        solver = z3.SolverFor(LOGIC)
        solver.add(*self.formulas)
        return solver


def ask(machine: UnknownMachine, name: str, *formulas: z3.BoolRef, watch: Watched, expect: str = "unsat") -> Query:
    """A query about an unknown machine: what makes it a machine belongs to it."""
    return Query(name, (*formulas, *machine.facts(*formulas)), expect, watch)


@dataclass(frozen=True)
class Witness:
    """A solution that refutes a lemma, as numbers."""

    query: str
    values: Mapping[str, list[int]]

    def __str__(self) -> str:
        shown = "; ".join(f"{name} = {' '.join(map(str, numbers))}" for name, numbers in self.values.items())
        return f"{self.query}: {shown}" if shown else self.query


@dataclass(frozen=True)
class Lemma:
    name: str
    claim: str
    scope: str
    build: Callable[[Program], Iterator[Query]]
    kind: str = "any length"  # or "bounded": whole runs on tapes of given length


@dataclass(frozen=True)
class Outcome:
    """`result` is proved, refuted (then with a witness) or unknown (the solver gave up, or was asked nothing)."""

    lemma: Lemma
    result: str
    seconds: float
    queries: int
    witness: Witness | None = None


def check(lemma: Lemma, program: Program = PRINTED, timeout: float = 600.0) -> Outcome:
    """Build and solve a lemma's queries until one goes against it."""
    started = perf_counter()
    result, witness, asked = "proved", None, 0
    for query in lemma.build(program):
        asked += 1
        solver = query.solver()
        solver.set("timeout", int(timeout * 1000))
        answer = str(solver.check())
        if answer != query.expect:
            result = "unknown" if answer == "unknown" else "refuted"
            witness = read_witness(query, solver.model()) if answer == "sat" else Witness(query.name, {})
            break
    if not asked:
        result, witness = "unknown", Witness("no formula was built", {})
    return Outcome(lemma, result, perf_counter() - started, asked, witness)


def read_witness(query: Query, model: z3.ModelRef) -> Witness:
    def read(value: Value) -> int:
        return int(value) if known(value) else model.eval(number(value), model_completion=True).as_signed_long()

    lists = {name: v if isinstance(v, list | tuple) else [v] for name, v in query.watch.items()}
    return Witness(query.name, {name: [read(v) for v in values] for name, values in lists.items()})
