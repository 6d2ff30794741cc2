"""Outcomes of one program in all ways, and whether they agree.

A way must give the definition's values or refuse by name, in a sentence. Where the definition is an error, every way
must refuse. A compiled model may refuse an input from the position on where it exceeds what it was compiled for.
"""

from __future__ import annotations

import signal
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from compile.errors import CapacityError, CompileError
from compile.sparse import NotSparse
from rasp.arithmetic import array_kind
from rasp.errors import ProgramError

from .programs import Program
from .ways import ENGINES, MACHINE_CODE, REFERENCE, Array, Model, Runner, Subject

REFUSALS = (ProgramError, CompileError, CapacityError, NotSparse)
PATIENCE = 60  # seconds of processor time one way may take


@dataclass(frozen=True)
class Outcome:
    """What a way gave: values, or `error` (what kind, where it was raised) with its sentence."""

    values: tuple[int, ...] = ()
    error: str = ""
    sentence: str = ""
    refused: bool = False  # by name, as a way may

    def __str__(self) -> str:
        return f"{self.error}: {self.sentence}" if self.error else str(list(self.values))


class TooSlow(Exception):
    """A way that did not finish."""


@contextmanager
def patience(seconds: float = PATIENCE) -> Iterator[None]:
    def give_up(*_: Any) -> None:
        raise TooSlow(f"not finished after {seconds:g} seconds")

    before = signal.signal(signal.SIGPROF, give_up)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def outcome(function: Callable[..., Any], *args: Any) -> Outcome:
    """The values `function` gives, or how it failed."""
    try:
        with patience():
            found = function(*args)
    except Exception as error:
        return _failure(error)
    if not isinstance(found, np.ndarray) or found.dtype != np.int64 or found.ndim != 1:
        kind = f"{found.dtype} of shape {found.shape}" if isinstance(found, np.ndarray) else type(found).__name__
        return Outcome(error="not int64", sentence=f"the result is {kind}")
    return Outcome(tuple(found.tolist()))


def _failure(error: Exception) -> Outcome:
    place = [f for f in traceback.extract_tb(error.__traceback__) if "/fuzz/" not in f.filename][-1:]
    where = f" in {place[0].name}" if place else ""
    return Outcome((), f"{type(error).__name__}{where}", str(error), isinstance(error, REFUSALS))


@dataclass(frozen=True)
class Mismatch:
    """Two ways that differ on an input."""

    program: Program
    inputs: tuple[Any, ...]
    way: str
    expected: Outcome
    found: Outcome
    model: Model | None = None

    @property
    def kind(self) -> str:
        """What stays while it is shrunk: an answer that is wrong stays an answer, an error that error."""
        found = self.found.error.split(" in ")[0] or "values"
        return f"{self.way}: {found} for {'an error' if self.expected.error else 'values'}"

    def script(self) -> str:
        """A program one can paste: it prints the definition's answer and the other one."""
        given = ", ".join(_spelled(x) for x in self.inputs)
        kinds = [array_kind(x) for x in self.inputs]
        traced = f"program, {len(kinds)}, {kinds}" if "bool" in kinds else f"program, {len(kinds)}" * (len(kinds) > 1)
        ways = {**ENGINES, **MACHINE_CODE}
        other = self.model.spelled if self.model else ways[self.way].spelled
        prints = [t.format(given=given, traced=traced or "program") for t in (ENGINES[REFERENCE].spelled, other)]
        imports = "from compile import compile_program\n" * (self.model is not None)
        imports += "from rasp.engines.stream import Stream\n" * ("Stream(" in other)
        return (
            f"{imports}{self.program.source}\n\n"
            f"print({prints[0]})  # {self.expected}\nprint({prints[1]})  # {self.found}\n"
        )


def _spelled(x: Array) -> str:
    return f"np.array({x.tolist()})" if x.dtype == np.bool_ else str(x.tolist())


# --- comparing --------------------------------------------------------------------------------------------------------


@dataclass
class Figures:
    """What was tried, and how often each way refused and why: a fuzzer that refuses everything is seen."""

    tried: Counter[str] = field(default_factory=Counter)  # by way: inputs run
    answered: Counter[str] = field(default_factory=Counter)  # by way: inputs with values
    refusals: Counter[str] = field(default_factory=Counter)  # by way and kind
    counts: Counter[str] = field(default_factory=Counter)  # programs, models, mismatches
    tokens: Counter[str] = field(
        default_factory=Counter
    )  # compared, by kind of program; each once, in however many ways

    def note(self, way: str, found: Outcome) -> None:
        self.tried[way] += 1
        if found.error:
            self.refusals[f"{way}: {found.error}"] += 1
        else:
            self.answered[way] += 1

    def add(self, other: Figures) -> None:
        for name, counter in vars(self).items():
            counter.update(getattr(other, name))


def agree(expected: Outcome, found: Outcome) -> bool:
    """Whether a way may give this where the definition gives that."""
    if expected.error:
        return bool(found.error)
    return found.refused or (not found.error and found.values == expected.values)


def differ(program: Program, arrays: Sequence[Array], expected: Outcome, found: Outcome) -> bool:
    """Whether what a way gave is wrong. Where the definition fails, a way that does not need what fails may answer."""
    if agree(expected, found):
        return False
    return not expected.error or bool(found.error) or found != _without_failures(program, arrays)


def _without_failures(program: Program, arrays: Sequence[Array]) -> Outcome | None:
    """The definition's answer if it is the same whichever number stands where a function fails."""
    ways = (ENGINES[REFERENCE].make(Subject(program.filled(filler), len(arrays))) for filler in (0, 1, -7))
    answers = {outcome(way, *arrays) for way in ways}
    return answers.pop() if len(answers) == 1 else None


def definition(program: Program, arrays: Sequence[Array]) -> Outcome:
    return outcome(ENGINES[REFERENCE].make(Subject(program.run, len(arrays))), *arrays)


def prepared(make: Callable[[Subject], Runner], subject: Subject) -> Runner | Outcome:
    """What runs the program, or how making it failed."""
    try:
        with patience():
            return make(subject)
    except Exception as error:
        return _failure(error)


def compare_engines(
    program: Program, inputs: Sequence[Sequence[Array]], machine_code: bool, figures: Figures
) -> list[Mismatch]:
    """The first input on which each way differs from the definition."""
    subject = Subject(program.run, len(program.inputs), tuple(map(array_kind, inputs[0])))
    expected = [definition(program, arrays) for arrays in inputs]
    for one in expected:
        figures.note(REFERENCE, one)
        figures.tokens["programs by chance"] += len(one.values)
    found: list[Mismatch] = []
    for name, way in {**ENGINES, **(MACHINE_CODE if machine_code else {})}.items():
        if name == REFERENCE:
            continue
        runner = prepared(way.make, subject)
        for arrays, right in zip(inputs, expected, strict=True):
            given = runner if isinstance(runner, Outcome) else outcome(runner, *arrays)
            figures.note(name, given)
            if differ(program, arrays, right, given):
                mismatch = Mismatch(program, tuple(arrays), name, right, given)
                found += [mismatch] if name != "jit as Python" else confirmed(mismatch, figures)
                break
    return found


def confirmed(mismatch: Mismatch, figures: Figures) -> list[Mismatch]:
    """The mismatch of machine code, if it differs too: run as Python, generated code may fail by being Python."""
    again = engine_mismatch(mismatch.program, mismatch.inputs, "jit")
    figures.counts["jit as Python differs, machine code does not"] += again is None
    return [again] if again else []


def engine_mismatch(program: Program, arrays: Sequence[Array], way: str) -> Mismatch | None:
    """The mismatch of one way on one input, if there is one."""
    subject = Subject(program.run, len(program.inputs), tuple(map(array_kind, arrays)))
    expected = definition(program, arrays)
    runner = prepared({**ENGINES, **MACHINE_CODE}[way].make, subject)
    found = runner if isinstance(runner, Outcome) else outcome(runner, *arrays)
    wrong = differ(program, arrays, expected, found)
    return Mismatch(program, tuple(arrays), way, expected, found) if wrong else None


def compare_model(
    program: Program, model: Model, inputs: Sequence[Array], figures: Figures, check: bool = True
) -> Mismatch | None:
    """The first input on which the compiled model differs from the definition.

    It is compiled without its own validation, which would hide what is wrong; what validation then refuses is no
    mismatch (a user gets that refusal), but is counted by itself.
    """
    try:
        with patience():
            compiled = model.compiled(program.run)
    except Exception as error:
        refusal = _failure(error)
        figures.note(model.way, refusal)
        figures.counts[f"{model.way}: programs refused"] += 1
        expected = definition(program, [inputs[-1]])
        wrong = not refusal.refused and not agree(expected, refusal)
        return Mismatch(program, (inputs[-1],), model.way, expected, refusal, model) if wrong else None
    figures.counts[f"{model.way}: models"] += 1
    for tokens in inputs:
        mismatch = _model_on(program, model, compiled, tokens, figures)
        if mismatch:
            return None if check and _validation_refuses(program, model, figures) else mismatch
    return None


def _model_on(program: Program, model: Model, compiled: Any, tokens: Array, figures: Figures) -> Mismatch | None:
    found = outcome(compiled.predict, tokens, model.engine)
    figures.note(model.way, found)
    if found.refused:
        tokens = tokens[: _longest_answered(compiled, tokens, model.engine)]
        found = outcome(compiled.predict, tokens, model.engine)
    expected = definition(program, [tokens])
    figures.tokens["programs by chance, compiled"] += len(expected.values)
    wrong = differ(program, [tokens], expected, found)
    return Mismatch(program, (tokens,), model.way, expected, found, model) if wrong else None


def _longest_answered(compiled: Any, tokens: Array, engine: str) -> int:
    """How many tokens a model accepts of an input it refuses: a prefix of what is accepted is accepted."""
    low, high = 0, len(tokens) - 1
    while low < high:
        middle = (low + high + 1) // 2
        if outcome(compiled.predict, tokens[:middle], engine).refused:
            high = middle - 1
        else:
            low = middle
    return low


def _validation_refuses(program: Program, model: Model, figures: Figures) -> bool:
    try:
        model.compiled(program.run, check=True)
    except CompileError:
        figures.counts[f"{model.way}: models refused by their own validation"] += 1
        return True
    return False
