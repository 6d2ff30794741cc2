"""A sampled verification: which machines and tapes are run, what is counted, and the report a person reads."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, fields
from typing import Any

from proofs_check.sampled.batched import check_gram, slots_for
from proofs_check.sampled.intervals import clopper_pearson
from proofs_check.shrink import Counterexample
from rasp.machines.machine import TuringMachine
from rasp.machines.simulate import machine_from_tables, random_tables, random_tapes
from rasp.machines.tape import MARKERS, InvalidTape
from rasp.machines.validation import check_size
from rasp.programs.turing import check_packing

STRETCH = 256  # machines run at once; their traces fit the cache
MIXED_STRETCH = 8  # the same where lengths vary: consecutive machines that get tapes of one length
LONGEST_RUN = 50_000_000  # tokens of one run
CHUNK = 16384  # machines between two entries of the journal


@dataclass(frozen=True)
class Sweep:
    """Which machines and tapes, how long, and which program. `shortest` to `longest` are numbers of cells."""

    machines: int
    symbols: int = 12
    states: int = 16
    shortest: int = 10
    longest: int = 10
    steps: int = 32
    n: int = 1
    packing: str = "paper"
    seed: int = 0
    strict_in_memory: bool = False
    program: str = ""
    chunk: int = CHUNK

    @property
    def base(self) -> int:
        return len(MARKERS) + self.symbols + self.states

    @property
    def bound(self) -> int | None:
        """Up to how many steps the theorem's hypotheses reach; None: any number."""
        return self.base**self.n if self.packing == "paper" else None

    @property
    def within_bound(self) -> bool:
        return self.bound is None or self.steps <= self.bound

    @property
    def longest_run(self) -> int:
        """Tokens."""
        return (self.longest + 4) * (self.steps + 1)

    @property
    def bytes_of_a_run(self) -> int:
        """What a process holds at least: the text, and memories of the program, of grams and, if needed, of keys."""
        columns = 2 + 2 + (0 if self.within_bound else 3)
        return 8 * (self.longest_run + columns * slots_for(self.longest_run))

    @property
    def chunks(self) -> int:
        return -(-self.machines // self.chunk)

    def length(self, machine: int) -> int:
        """How many cells the tape of this machine has: stretch after stretch, spread evenly over the range.

        Multiples of the golden ratio, cut to fractions, cover an interval evenly however many of them are taken.
        """
        fraction = machine // self.stretch * 0x9E3779B97F4A7C15 % 2**64
        return self.shortest + (fraction * (self.longest - self.shortest + 1) >> 64)

    @property
    def stretch(self) -> int:
        return STRETCH if self.shortest == self.longest else MIXED_STRETCH

    def example(self, machine: int) -> tuple[TuringMachine, list[int]]:
        """Machine and tape of this number."""
        state, symbol, move = (t[0] for t in random_tables(1, self.symbols, self.states, self.seed, machine))
        tape = random_tapes(1, self.symbols, self.states, self.length(machine), self.seed, machine)[0]
        name = f"number {machine} of seed {self.seed}"
        return machine_from_tables(state, symbol, move, self.symbols, self.states, name), tape.tolist()

    def check(self) -> None:
        check_size(self.symbols, self.states)
        if self.machines < 1:
            raise ValueError(f"{self.machines} machines were asked for: at least one is needed")
        if self.steps < 1:
            raise ValueError(f"{self.steps} steps were asked for: at least one is needed")
        if not 1 <= self.shortest <= self.longest:
            raise InvalidTape(f"length {self.shortest} to {self.longest}: expected 1 <= shortest <= longest")
        tokens = self.longest_run
        if tokens > LONGEST_RUN:
            raise InvalidTape(
                f"{self.longest} cells for {self.steps} steps are {tokens:,} tokens a run: at most "
                f"{LONGEST_RUN:,} are run; give shorter tapes or fewer steps"
            )
        if self.machines > 10**12:
            raise ValueError(f"{self.machines} machines would take years: expected at most 10**12")
        check_packing(self.n, self.base, self.packing, tokens)
        check_gram(self.n, self.base)


@dataclass
class Tally:
    """What was counted. Adding the tallies of the chunks gives the tally of the run.

    `held`: all hypotheses of the sharp theorem; `no_repeat`: no tape written repeats an (n+1)-gram; `literal`: the
    paper's words with its n as the program's n: no tape, the input included, repeats an n-gram, and the head never
    leaves the memory; `literal_text`: read over the whole text instead of tape by tape.
    """

    machines: int = 0
    correct: int = 0
    held: int = 0
    held_correct: int = 0
    no_repeat: int = 0
    no_repeat_correct: int = 0
    in_memory: int = 0
    literal: int = 0
    literal_correct: int = 0
    literal_text: int = 0
    violations: int = 0
    first_violation: int = -1
    wrong_at: dict[str, int] = field(default_factory=dict)  # step -> runs that first go wrong there

    def add(self, other: Tally) -> None:
        seen = [i for i in (self.first_violation, other.first_violation) if i >= 0]
        for name in (f.name for f in fields(self) if f.type == "int"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.first_violation = min(seen, default=-1)
        steps = sorted({*self.wrong_at, *other.wrong_at}, key=int)
        self.wrong_at = {step: self.wrong_at.get(step, 0) + other.wrong_at.get(step, 0) for step in steps}


@dataclass(frozen=True)
class Report:
    """The outcome of a run; `computed` of its machines were run now, the others came from the resume file."""

    sweep: Sweep
    tally: Tally
    computed: int
    seconds: float
    workers: int
    counterexample: Counterexample | None
    damaged_lines: int = 0

    @property
    def ok(self) -> bool:
        return self.tally.violations == 0

    @property
    def machines_per_minute(self) -> float:
        return self.computed / self.seconds * 60 if self.seconds else 0.0

    @property
    def contingency(self) -> dict[str, dict[str, int]]:
        t = self.tally
        failed, failed_correct = t.machines - t.held, t.correct - t.held_correct
        return {
            "held": {"correct": t.held_correct, "wrong": t.held - t.held_correct},
            "failed": {"correct": failed_correct, "wrong": failed - failed_correct},
        }

    def result(self) -> dict[str, Any]:
        """What depends on the sweep alone, not on how it was computed."""
        t = self.tally
        parameters = {name: value for name, value in asdict(self.sweep).items() if name != "chunk"}
        return {
            **parameters,
            "bound": self.sweep.bound,
            **asdict(t),
            "hypothesis_held": t.held,
            "contingency": self.contingency,
            "violation_rate": clopper_pearson(t.violations, t.machines),
            "held_rate": clopper_pearson(t.held, t.machines),
            "correct_rate": clopper_pearson(t.correct, t.machines),
        }

    def to_json(self) -> dict[str, Any]:
        shown = None if self.counterexample is None else self.counterexample.render()
        return {
            **self.result(),
            "computed": self.computed,
            "seconds": self.seconds,
            "workers": self.workers,
            "machines_per_minute": self.machines_per_minute,
            "damaged_lines": self.damaged_lines,
            "counterexample": shown,
        }

    def render(self) -> str:
        return render(self)


# --- for a reader -----------------------------------------------------------------------------------------------------


def render(report: Report) -> str:
    return "\n".join([*_head(report), "", *_table(report), "", *_wordings(report), "", *_verdict(report)])


def _head(report: Report) -> Iterator[str]:
    s = report.sweep
    cells = f"{s.shortest}" if s.shortest == s.longest else f"{s.shortest} to {s.longest}"
    yield (
        f"{s.machines:,} random machines of {s.symbols} symbols x {s.states} states, tapes of {cells} cells, "
        f"{s.steps} steps, n = {s.n}, {s.packing} packing, seed {s.seed}"
    )
    yield (
        f"{report.computed:,} run now in {report.seconds:.1f} s by {report.workers} worker(s): "
        f"{report.machines_per_minute:,.0f} machines per minute"
    )
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
        yield (
            f"{s.steps} steps are beyond the bound, so the hypotheses hold for no run; of {t.no_repeat:,} runs "
            f"without a repeat {t.no_repeat_correct:,} are correct: those in which no two keys collide"
        )


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
        yield (
            f"0 violations: every run is first wrong at exactly the token the sharp theorem names, or right to the "
            f"end (true of all but at most {high:.2g} of such machines with their tapes; one-sided, 95% confidence)"
        )
        return
    yield f"{t.violations:,} VIOLATIONS of the sharp theorem; the first, shrunk:"
    yield (
        report.counterexample.render()
        if report.counterexample
        else (f"machine {t.first_violation}, but not when run with numpy: two engines differ on it")
    )


def _share(count: int, total: int) -> str:
    low, high = clopper_pearson(count, total)
    return f"{count:,} of {total:,} = {count / total:.4f}  (95%: {low:.4f} to {high:.4f})"
