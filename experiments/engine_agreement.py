"""Both engines on the same texts: whether looking compiled weights up says what torch says, at every token.

Every machine of the gallery and random ones; tapes with and without repeated grams, and tokens by chance; n = 1 to 4;
counts compared as a whole (one digit) and by two digits. Some texts run past what a model can count: both must refuse.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from compile import Transformer, compile_machine
from compile.sparse import NotSparse
from compile.transformer.engines import looked_up_by
from compile.validate import answers
from experiments.machines import read_machine
from rasp import TuringMachine
from rasp.gallery import gallery

RANDOM_SIZES = ((2, 2), (3, 2), (5, 4), (12, 16))
LARGEST_N = 4
ONE_DIGIT, TWO_DIGITS = 24, 60  # steps that a model counts: up to 32 counts are compared as a whole
LONGEST_TEXT, LONGEST_SOUP, MOST_CELLS = 600, 200, 40
SOUP = 0.25  # share of texts that are tokens by chance


@dataclass(frozen=True)
class CompiledMachine:
    """A compiled machine, to be tried on so many tokens."""

    name: str
    backend: str
    n: int
    steps: int

    @property
    def digits(self) -> int:
        return 2 if self.backend == "lean" or self.steps > ONE_DIGIT else 1

    def machine(self) -> TuringMachine:
        return read_machine(self.name)


@dataclass(frozen=True)
class EngineDisagreement:
    """`at` is the first position at which the engines differ after `tokens`."""

    subject: CompiledMachine
    tokens: list[int]
    at: int
    torch: int | None
    sparse: int | None
    reason: str = ""


@dataclass
class EngineAgreement:
    """What was compared. `repeating` counts the texts with a tape that repeats an (n+1)-gram."""

    seed: int
    tokens: int = 0
    texts: int = 0
    repeating: int = 0
    soup: int = 0
    refused: int = 0  # tokens at which both say that a count ran over
    models: int = 0
    left_out: float = 0.0
    disagreements: list[EngineDisagreement] = field(default_factory=list)

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def subjects(seed: int) -> list[CompiledMachine]:
    """Every gallery machine twice, random machines of all sizes at every n, in all layouts of counts."""
    layouts = [("lean", TWO_DIGITS), ("hard_alibi", ONE_DIGIT), ("hard_alibi", TWO_DIGITS)]
    found = []
    for i, name in enumerate(gallery()):
        found += [CompiledMachine(name, *_with_n(layouts[(i + k) % 3], 1 + (i + 2 * k) % LARGEST_N)) for k in range(2)]
    for i, (symbols, states) in enumerate(RANDOM_SIZES):
        for n in range(1, LARGEST_N + 1):
            layout = layouts[0] if symbols * states > 100 else layouts[(i + n) % 3]
            found.append(CompiledMachine(f"random:{symbols}x{states}:{seed + n}", *_with_n(layout, n)))
    return found


def _with_n(layout: tuple[str, int], n: int) -> tuple[str, int, int]:
    return layout[0], n, layout[1]


def check_agreement(tokens: int, seed: int = 0, progress: Callable[[int, int], None] | None = None) -> EngineAgreement:
    """Compare the engines on at least so many tokens, spread over all subjects; ends with the first that fails."""
    found, asked = EngineAgreement(seed), subjects(seed)
    for index, subject in enumerate(asked):
        rng = np.random.default_rng((seed, index))
        machine = subject.machine()
        model = compile_machine(machine, subject.backend, subject.n, subject.steps, check=False)
        share = -(-tokens // len(asked))
        texts = list(_texts(subject, machine, share, rng, found))
        compare(subject, model, texts, found)
        found.models += 1
        if progress:
            progress(min(found.tokens, tokens), tokens)
        if found.disagreements:
            break
    return found


def compare(subject: CompiledMachine, model: Transformer, texts: list[np.ndarray], found: EngineAgreement) -> None:
    """Both engines' answers to these texts, refusals included."""
    engine = looked_up_by(model)
    if isinstance(engine, NotSparse):
        found.disagreements.append(EngineDisagreement(subject, [], 0, None, None, str(engine)))
        return
    refusal = int(model.config.outputs[-1]) if model.config.refusal and model.config.outputs else None
    for text, by_torch in answers(model, texts):
        memory = engine.memory()
        try:
            by_sparse = engine.weights.outputs[memory.feed(text)]
        except NotSparse as reason:
            found.disagreements.append(
                EngineDisagreement(subject, text.tolist(), memory.position, None, None, str(reason))
            )
            return
        wrong = np.flatnonzero(by_torch != by_sparse)
        if len(wrong):
            at = int(wrong[0])
            found.disagreements.append(
                EngineDisagreement(subject, text[: at + 1].tolist(), at, int(by_torch[at]), int(by_sparse[at]))
            )
            return
        found.tokens += len(text)
        found.texts += 1
        found.refused += int((by_torch == refusal).sum())
        found.left_out = max(found.left_out, memory.left_out)


def _texts(
    subject: CompiledMachine, machine: TuringMachine, tokens: int, rng: np.random.Generator, found: EngineAgreement
) -> Iterator[np.ndarray]:
    written = 0
    while written < tokens:
        if subject.backend != "lean" and rng.random() < SOUP:  # lean reads tapes only
            text = rng.integers(machine.base, size=int(rng.integers(1, LONGEST_SOUP)))
            found.soup += 1
        else:
            text = _run(subject, machine, rng)
            found.repeating += _repeats(text, subject.n)
        written += len(text)
        yield text


def _run(subject: CompiledMachine, machine: TuringMachine, rng: np.random.Generator) -> np.ndarray:
    """From a random tape, sometimes of few symbols (so that grams repeat), sometimes past what the model counts."""
    cells = int(rng.integers(1, MOST_CELLS))
    few = rng.permutation(len(machine.symbols))[: int(rng.integers(1, len(machine.symbols) + 1))]
    names = [machine.symbols[c] for c in rng.choice(few, size=cells)]
    states = [state for state in machine.states if state not in machine.final]
    tape = machine.encode(names, int(rng.integers(cells)), str(rng.choice(states)))
    return machine.trace(tape, min(subject.steps + 3, LONGEST_TEXT // (cells + 4)))[:LONGEST_TEXT]


def _repeats(text: np.ndarray, n: int) -> bool:
    """Whether a tape after the first holds an (n+1)-gram twice."""
    for tape in np.split(text, np.flatnonzero(text == 0))[1:]:
        grams = [tuple(tape[i : i + n + 1]) for i in range(1, len(tape) - n)]
        if len(set(grams)) < len(grams):
            return True
    return False
