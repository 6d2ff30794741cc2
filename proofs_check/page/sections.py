"""The claims of the page, each with the code that gathers its evidence."""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec

from proofs_check import sharpness
from proofs_check.hypotheses import first_wrong_step
from proofs_check.page.findings import LENGTHS, Findings, Section, bounds, interval, rates, sizes
from proofs_check.sampled.report import Report
from rasp.machines.machine import TuringMachine
from rasp.machines.simulable import make_simulable


def _violations(report: Report) -> str:
    s, t = report.sweep, report.tally
    return (
        f"{s.machines:,} random machines ({s.symbols} x {s.states}, {s.shortest} cell{'s' * (s.shortest > 1)}, "
        f"{s.steps} steps, n = {s.n}, {s.packing} packing): no repeat in {t.no_repeat:,}, correct {t.correct:,}, "
        f"violations {interval(t.violations, t.machines)}"
    )


def _and_proved(gathered: str, theorem: str) -> str:
    """How the evidence on the page was gathered, and the theorem that says it of every machine."""
    return f"{gathered}; in Coq: {theorem}"


def sharp_theorem(findings: Findings) -> Section:
    """The sharp theorem, sampled"""
    reports = [findings.sample(), findings.sample(n=2, length=30), findings.sample(packing="unbounded", steps=64)]
    iff = all(r.contingency["held"]["wrong"] == r.contingency["failed"]["correct"] == 0 for r in reports)
    return Section(
        "Up to base**n steps, the program is correct through step t if and only if none of the tapes 1 to t has a "
        "repeated (n+1)-gram; and where one has, it fails at exactly the token that the smaller of two answers is.",
        _and_proved("sampled", "the_sharp_theorem"),
        [_violations(r) for r in reports],
        iff and all(r.ok for r in reports),
        "survival",
    )


def any_horizon(findings: Findings) -> Section:
    """The exact criterion past the bound, sampled"""
    reports = [findings.sample(steps=64, length=length) for length in (1, 6, 12)]
    spoilt = [
        f"{r.sweep.shortest} cells: {r.tally.no_repeat - r.tally.no_repeat_correct:,} of {r.tally.no_repeat:,} "
        "runs without a repeat are wrong by step 64"
        for r in reports
    ]
    return Section(
        "For any number of steps, the first wrong token is the first whose (key, value) meets the same key with a "
        "larger value, on its own tape or an earlier one.",
        _and_proved("sampled", "the_first_wrong_token"),
        [*(_violations(r) for r in reports), *spoilt],
        all(r.ok for r in reports),
    )


def repeats_matter(findings: Findings) -> Section:
    """The smallest repeated gram"""
    found = {n: sharpness.smallest_repeat(n) for n in (1, 2)}
    why = [first_wrong_step(r.machine, r.tape, r.step, n, "unbounded") for n, r in found.items()]
    evidence = [f"n = {n}: {run}; {reason}" for (n, run), reason in zip(found.items(), why, strict=True)]
    cells = {n: len(run.tape) - 3 for n, run in found.items()}
    return Section(
        "A repeated (n+1)-gram is never harmless, and n+2 cells are enough for one.",
        _and_proved("searched", "the_sharp_theorem"),
        evidence,
        all(cells[n] == n + 2 for n in cells),
    )


def memory_matters(findings: Findings) -> Section:
    """In-memory, and what it is needed for"""
    strict = findings.sample(strict_in_memory=True)
    run = sharpness.smallest_escape()
    t = strict.tally
    return Section(
        "`In-memory` is not needed for the machine with end markers, which the program follows as it bounces; it is "
        "needed for the textbook machine on an endless tape.",
        "searched",
        [
            f"head never on an end marker: {t.in_memory:,} of {t.machines:,}; of the others "
            f"{t.correct - t.held_correct:,} are simulated correctly all the same",
            f"{run.machine.format_tape(run.tape)} moves off its {len(run.tape) - 3} cell(s): tape with ends and "
            f"endless tape part at step {run.step}",
        ],
        strict.ok and t.correct > t.held_correct,
    )


def bound_matters(findings: Findings) -> Section:
    """The step bound, by alphabet and n"""
    rows = bounds(findings)
    steps = [r.earliest.step if r.earliest else None for r in rows]
    evidence = [
        f"base {r.base}, n = {r.n}: bound {r.bound:,}, first wrong step {step or 'not found'}"
        for r, step in zip(rows, steps, strict=True)
    ]
    largest = next(r for r in rows if r.base == 32 and r.n == 1)
    return Section(
        "With the paper's packing the bound of base**n steps is sharp: the first failure of a run without repeats is "
        "at step base**n + 1.",
        "searched",
        [*evidence, f"smallest at base 32: {largest.earliest}; {largest.witness}"],
        steps == [r.bound + 1 for r in rows],
        "bound",
    )


def ceiling_exists(findings: Findings) -> Section:
    """Nothing past base**(2n)"""
    rows = [sharpness.ceiling(1, 1, 1), sharpness.ceiling(1, 2, 2), sharpness.ceiling(1), sharpness.ceiling(2, 1, 1)]
    evidence = [
        f"base {r.base}, n = {r.n}: of {r.runs:,} runs {r.right_past_limit} are right past {r.limit:,} steps; "
        f"the longest is right for {r.longest:,}, on {r.longest_tape}"
        for r in rows
    ]
    return Section(
        "With the paper's packing no run at all is right past base**(2n) steps, and some are right until then.",
        _and_proved("sampled", "the_packing_ends"),
        evidence,
        all(r.right_past_limit == 0 and r.longest == r.limit for r in rows),
    )


def keys_fit(findings: Findings) -> Section:
    """int64"""
    rows = sharpness.key_limits()
    evidence = [f"n = {r.n}: {r}" for r in rows if r.n in (5, 6, 7, 12, 13)]
    good = [r.n for r in rows if r.twins is None and not r.overflows]
    machine, steps = TuringMachine.random(symbols=12, states=16, seed=0), findings.size(20, 2000)
    tape = tuple(machine.encode([machine.symbols[0]] * 40))
    wrong = {n: sharpness.first_error(machine, tape, steps, n, "tuple") for n in (5, 40)}
    said = ", ".join(f"n = {n} {'is right' if at is None else 'goes wrong'}" for n, at in wrong.items())
    evidence.append(f"packing tuple, 40 equal cells, {steps:,} steps: {said}")
    return Section(
        "At base 32 the paper's key fits an int64 for n up to 5. Past that this package refuses; numpy would not until "
        "n = 13. Compared as a tuple, the count and each token for itself, keys have no bound on n or on the steps.",
        "computed",
        evidence,
        good == [r.n for r in rows if r.fits] == [1, 2, 3, 4, 5] and wrong[5] is not None and wrong[40] is None,
    )


def how_often(findings: Findings) -> Section:
    """How often the hypothesis holds"""
    table = rates(findings)
    cells = ", ".join(map(str, LENGTHS))
    evidence = [f"n = {n}: {', '.join(f'{rate:.2f}' for rate in row)} at {cells} cells" for n, row in table.items()]
    columns = list(zip(*table.values(), strict=True))
    grows = all(list(column) == sorted(column) for column in columns)
    at_50 = columns[LENGTHS.index(50)]
    return Section(
        "Most random machines satisfy the hypothesis only if n grows with the tape: at n = 1, which is what the paper "
        "prints, almost none do on tapes of 50 cells.",
        "sampled",
        evidence,
        grows and at_50[0] < 0.01 and at_50[-1] > 0.9,
        "rates",
    )


def program_is_small(findings: Findings) -> Section:
    """O(n) lines"""
    rows = sizes(findings)
    evidence = [
        f"n = {r.n}: {r.nodes} nodes and attention depth {r.depth} as printed; rewritten for a transformer "
        f"{r.rewritten_nodes} and {r.rewritten_depth}"
        for r in rows
    ]
    linear = sharpness.is_linear([r.nodes for r in rows]) and sharpness.is_linear([r.depth for r in rows])
    return Section(
        "The program has O(n) operations; printed, its attention depth is n + 3, but a constant depth is enough.",
        "computed",
        evidence,
        linear and len({r.rewritten_depth for r in rows}) == 1,
        "size",
    )


def _wordings(report: Report) -> str:
    n, t = report.sweep.n, report.tally
    return (
        f"n = {n}: no repeated n-gram on any tape, and in memory: {t.literal:,} of {t.machines:,} runs, "
        f"{t.literal_correct:,} of them correct; no repeated (n+1)-gram on tapes 1 and on: {t.no_repeat:,}; no n-gram "
        f"twice in the whole text: {t.literal_text:,}"
    )


def literal_wording(findings: Findings) -> Section:
    """The paper's own words"""
    reports = [findings.sample(n=n, length=10) for n in (1, 2, 3)]
    evidence = [_wordings(r) for r in reports]
    true = all(r.tally.literal == r.tally.literal_correct for r in reports)
    return Section(
        "Read literally (n-grams, input included, in memory) the paper's statement is true of the printed code, but "
        "covers far fewer runs than the code gets right; read over the whole text, it covers none.",
        "sampled",
        evidence,
        true and all(r.tally.literal < r.tally.no_repeat and r.tally.literal_text == 0 for r in reports),
    )


def every_machine(findings: Findings) -> Section:
    """Tags"""
    from rasp.gallery import entry, machine

    names = ("bb3", "bb4", "increment", "palindrome")
    evidence, right = [], []
    for name in names:
        simulable = make_simulable(machine(name), tape=entry(name).tape)
        tape = simulable.encode(entry(name).tape)
        steps = entry(name).steps or 0
        right.append(sharpness.first_error(simulable.machine, tuple(tape), steps, 1, "unbounded") is None)
        evidence.append(
            f"{name}: {steps} steps to its halt on {simulable.cells} cells with {len(set(simulable.tags))} tags, "
            f"{'every' if right[-1] else 'NOT every'} token right; {simulable.certify()}"
        )
    return Section(
        "Every machine, within a space bound, becomes one that satisfies the hypotheses: a tag per cell, never "
        "overwritten, and blanks around the input. With the count above the hash there is no step bound either.",
        _and_proved("exhausted over head positions, symbols left open", "every_machine_simulated"),
        evidence,
        all(right),
    )


def exhausted(findings: Findings) -> Section:
    """Every small machine"""
    from proofs_check.exhaustive import every_machine

    reports = [every_machine(2, 1, length=5), every_machine(1, 2, length=5, n=2)]
    if not findings.quick:
        reports.append(every_machine(2, 2, length=4))
    evidence = [
        f"all {r.machines:,} machines of {r.size.symbols} symbols x {r.size.states} states on all {r.tapes:,} "
        f"tapes of up to {r.length} cells, {r.steps} steps, n = {r.size.n}: {r.runs:,} runs, {r.correct:,} "
        f"correct, {r.violations} violations"
        for r in reports
    ]
    return Section(
        "The sharp theorem holds for small machines and tapes without exception.",
        "exhausted",
        evidence,
        all(r.holds for r in reports),
    )


def proved(findings: Findings) -> Section:
    """Proofs for all machines"""
    from proofs_check.symbolic.checking import check
    from proofs_check.symbolic.lemmas import LEMMAS

    chosen = [one for one in LEMMAS if not (findings.quick and one.kind == "bounded")]
    outcomes = [check(one) for one in chosen]
    return Section(
        "One step of the program is one step of the machine, for every machine, alphabet, length and head position; "
        "and keys are equal only for equal grams of one tape, or of tapes base**n apart.",
        "proved with z3",
        [f"{o.lemma.claim} ({o.lemma.scope}): {o.result}, {o.queries} queries" for o in outcomes],
        all(o.result == "proved" for o in outcomes),
    )


def sections() -> list[Callable[[Findings], Section]]:
    """All claims; those to be proved only where z3 is installed."""
    checked: list[Callable[[Findings], Section]] = [
        sharp_theorem,
        any_horizon,
        repeats_matter,
        memory_matters,
        bound_matters,
        ceiling_exists,
        keys_fit,
        how_often,
        program_is_small,
        literal_wording,
        every_machine,
        exhausted,
    ]
    return [*checked, proved] if find_spec("z3") else checked
