"""The report of a sampled verification, for a reader."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from proofs_check.intervals import clopper_pearson

if TYPE_CHECKING:
    from proofs_check.sampled import Report


def render(report: Report) -> str:
    return "\n".join([*_head(report), "", *_table(report), "", *_wordings(report), "", *_verdict(report)])


def _head(report: Report) -> Iterator[str]:
    s = report.sweep
    cells = f"{s.shortest}" if s.shortest == s.longest else f"{s.shortest} to {s.longest}"
    yield (f"{s.machines:,} random machines of {s.symbols} symbols x {s.states} states, tapes of {cells} cells, "
           f"{s.steps} steps, n = {s.n}, {s.packing} packing, seed {s.seed}")  # fmt: skip
    yield (f"{report.computed:,} run now in {report.seconds:.1f} s by {report.workers} worker(s): "
           f"{report.machines_per_minute:,.0f} machines per minute")  # fmt: skip
    if report.damaged_lines:
        yield f"{report.damaged_lines} damaged line(s) of the resume file were left out and computed again"


def _table(report: Report) -> Iterator[str]:
    rows = report.contingency
    yield f"{'':34}{'correct':>14}{'wrong':>14}"
    for name, label in (("held", "the hypotheses hold"), ("failed", "they do not")):
        yield f"{label:34}{rows[name]['correct']:>14,}{rows[name]['wrong']:>14,}"
    s, t = report.sweep, report.tally
    memory = ", and the head never on an end marker" if s.strict_in_memory else ""
    bound = f"at most {s.bound:,} steps" if s.bound else "any number of steps"
    yield f"hypotheses: no tape written repeats a {s.n + 1}-gram{memory}; {bound}"
    if not s.within_bound:
        yield (f"{s.steps} steps are beyond the bound, so the hypotheses hold for no run; of {t.no_repeat:,} runs "
               f"without a repeat {t.no_repeat_correct:,} are correct: those in which no two keys collide")  # fmt: skip


def _wordings(report: Report) -> Iterator[str]:
    s, t = report.sweep, report.tally
    yield f"hypotheses hold   {_share(t.held, t.machines)}"
    yield f"program correct   {_share(t.correct, t.machines)}"
    yield (
        f"the paper's words, taken literally (no tape, the input included, repeats a {s.n}-gram; in memory), hold for "
        f"{t.literal:,} runs, {t.literal_correct:,} of them correct; read over the whole text: {t.literal_text:,}"
    )


def _verdict(report: Report) -> Iterator[str]:
    t = report.tally
    _, high = clopper_pearson(t.violations, t.machines)
    if report.ok:
        yield (f"0 violations: every run is first wrong at exactly the token the sharp theorem names, or right to the "
               f"end (true of all but at most {high:.2g} of such machines, 95% confidence)")  # fmt: skip
        return
    yield f"{t.violations:,} VIOLATIONS of the sharp theorem; the first, shrunk:"
    yield report.counterexample.render() if report.counterexample else (
        f"machine {t.first_violation}, but not when run with numpy: two engines differ on it"
    )


def _share(count: int, total: int) -> str:
    low, high = clopper_pearson(count, total)
    return f"{count:,} of {total:,} = {count / total:.4f}  (95%: {low:.4f} to {high:.4f})"
