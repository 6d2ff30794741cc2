"""Every lemma is proved, and refuted on at least three wrong programs."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from threading import Event

import numpy as np
import pytest

from proofs_check.sampled.corners import SHOWS_IN
from proofs_check.symbolic.checking import Lemma, Query, check
from proofs_check.symbolic.lemmas import LEMMAS, lemma
from proofs_check.symbolic.mutants import CONCERNS, MUTANTS, mutants_of
from proofs_check.symbolic.program import PRINTED, Program
from proofs_check.symbolic.proving import prove
from proofs_check.symbolic.runs import run_query
from rasp import TuringMachine
from rasp.programs import turing

PAIRS = [(one.name, mutant.name) for one in LEMMAS for mutant in mutants_of(one.name)]


# The same claims as those that stay, for larger n, more steps or another packing.
LONG = {"one-step-n2", "one-step-n3", "one-step-tuple-n7", "two-steps-n2", "two-steps-unbounded-n1", "three-steps-n1"}


@pytest.mark.parametrize(
    "name", [pytest.param(one.name, marks=pytest.mark.slow if one.name in LONG else ()) for one in LEMMAS]
)
def test_proved(name: str) -> None:
    outcome = check(lemma(name))
    assert (outcome.result, outcome.witness) == ("proved", None)


@pytest.mark.parametrize("name, mutant", PAIRS)
def test_refuted_on_a_wrong_program(name: str, mutant: str) -> None:
    outcome = check(lemma(name), MUTANTS[mutant])
    assert outcome.result == "refuted" and outcome.witness is not None


def test_every_lemma_has_three_wrong_programs_and_every_one_concerns_a_lemma_or_a_corner() -> None:
    assert all(len(CONCERNS[one.name]) >= 3 for one in LEMMAS)
    assert set(CONCERNS) == {one.name for one in LEMMAS}
    unused = set(MUTANTS) - {name for names in CONCERNS.values() for name in names} - set(SHOWS_IN)
    assert unused == {"the mean of the matches is taken"}


def test_the_mean_of_the_matches_is_wrong_on_the_same_runs() -> None:
    """Of two twins the largest token serves one and the mean none: right or wrong runs stay what they were."""
    short = Lemma("", "", "", lambda program: iter([run_query(program, 1, 3, 2, (right,)) for right in (True, False)]))
    assert check(short, MUTANTS["the mean of the matches is taken"]).result == "proved"


def test_a_program_with_other_parts_leaves_the_module_alone() -> None:
    before = dict(vars(turing))
    with pytest.raises(ZeroDivisionError):
        Program("breaks", {"where": lambda *_: 1 // 0}).call("select_move_token", *np.eye(2, dtype=int))
    for mutant in MUTANTS.values():
        next(lemma("one-step-n1").build(mutant))
    assert dict(vars(turing)) == before
    with pytest.raises(ValueError, match="has no wear to exchange"):
        Program("misspelt", {"wear": None})


def test_right_and_wrong_programs_run_side_by_side() -> None:
    """A part waits until the printed program has run in another thread: neither sees the other's parts."""
    machine = TuringMachine.random(symbols=2, states=2, seed=0)
    x = np.asarray(machine.trace([1, 4, 6, 2], 3))[:-1]
    alone = PRINTED.call("next_tokens", x, machine)
    inside, done = Event(), Event()

    def patient(from_left: object, from_right: object) -> object:
        inside.set()
        assert done.wait(500)
        return MUTANTS["the head never moves"].parts["select_move_token"](from_left, from_right)

    with ThreadPoolExecutor(1) as pool:
        wrong = pool.submit(Program("patient", {"select_move_token": patient}).call, "next_tokens", x, machine)
        assert inside.wait(500)
        beside = PRINTED.call("next_tokens", x, machine)
        done.set()
        assert np.array_equal(beside, alone) and not np.array_equal(wrong.result(), alone)


def test_a_witness_reads() -> None:
    witness = check(lemma("one-step-n1"), MUTANTS["the head moves the wrong way"]).witness
    assert witness is not None
    assert str(witness).startswith("L=0 head=1 R: trace = 1 ") and "program = " in str(witness)


def test_a_solver_that_gives_up_proves_nothing() -> None:
    outcome = check(lemma("keys"), timeout=0.001)
    assert outcome.result == "unknown"


def test_a_lemma_that_asks_nothing_proves_nothing() -> None:
    outcome = check(Lemma("empty", "", "", lambda _: iter(())))
    assert (outcome.result, str(outcome.witness)) == ("unknown", "no formula was built")


def test_a_claim_that_something_happens_needs_a_solution() -> None:
    import z3

    never = Lemma("never", "", "", lambda _: iter([Query("no number", (z3.BoolVal(False),), expect="sat")]))
    assert check(never).result == "refuted"


def test_report() -> None:
    told: list[tuple[str, int, int]] = []
    report = prove(["where", "delay"], progress=lambda what, done, total: told.append((what, done, total)))
    assert report.all_proved and [row.name for row in report.lemmas] == ["where", "delay"]
    assert [row.mutants_caught for row in report.lemmas] == [4, 4]
    assert [done for _, done, _ in told] == list(range(10)) and {total for *_, total in told} == {10}
    found = json.loads(json.dumps(report.to_json()))
    assert found["all_proved"] is True and "z3-solver" in found["versions"]
    assert {"claim", "scope", "result", "seconds"} <= set(found["lemmas"][0])


def test_report_on_a_wrong_program() -> None:
    report = prove(["step"], with_mutants=False, program=MUTANTS["the head never moves"])
    assert not report.all_proved and report.lemmas[0].result == "refuted" and "true = " in report.lemmas[0].witness
    assert report.program == "the head never moves" != PRINTED.name


def test_unknown_lemma() -> None:
    with pytest.raises(ValueError, match="no lemma 'nought': choose from where, locality"):
        prove(["nought"])
