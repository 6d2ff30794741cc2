"""Programs that are written, not drawn: the paper's tasks, the universal machine, Turing machines; and long texts.

A text is the true solution of a problem (then the contract says where the program is first wrong), several of them, one
with tokens changed, or tokens by chance.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from proofs_check.hypotheses import first_wrong_step
from proofs_check.tasks import predicted_first_wrong
from rasp import TuringMachine, load_machine
from rasp.engines.jit import Kernel
from rasp.engines.stream import Stream
from rasp.engines.turing import predict
from rasp.programs.problems import Problem, Product, Regression, Sum, prompt_tokens, text_tokens
from rasp.programs.universal import Size, universal_prompt, universal_tokens
from rasp.programs.vocabulary import ADDITION, MULTIPLICATION, NUMBERS, SGD

from .ways import Array, Runner, Subject

KINDS = ("addition", "multiplication", "sgd", "universal", "turing")
UNIVERSAL_SIZES = ((2, 2), (4, 3), (15, 5))
MACHINE_SIZES = ((2, 2), (3, 2), (5, 4), (12, 16))
PACKINGS = ("paper", "unbounded", "tuple")
REFERENCE_TOKENS, EAGER_TOKENS, LONGEST = 60, 1500, 24_000
SPREAD = np.log([8, REFERENCE_TOKENS, EAGER_TOKENS, LONGEST])  # of lengths, for each share of the ways


@dataclass(frozen=True)
class Written:
    """A program as one spells it: `expression` is its value on x, whose tokens are 0 .. vocabulary - 1."""

    kind: str
    imports: str
    expression: str
    vocabulary: int
    n: int
    digits: int = 0  # of the factor, for multiplication
    size: tuple[int, int] = (0, 0)  # symbols and states, of a machine or of a universal program
    machine: str = ""  # by a name that `load_machine` knows
    packing: str = "unbounded"

    @property
    def source(self) -> str:
        imports = f"import numpy as np\n\nfrom rasp import load_machine, run\n{self.imports}\n"
        return f"{imports}\n\ndef program(x):\n    return {self.expression}\n"

    @cached_property
    def run(self) -> Callable[..., Any]:
        namespace: dict[str, Any] = {}
        exec(self.source, namespace)
        return namespace["program"]  # type: ignore[no-any-return]

    def runner(self, way: str) -> Runner:
        """The program in this way; what is made for it is kept for the next text."""
        if self.machine:  # engines share what they make for all machines of a size
            machine = load_machine(self.machine)
            return lambda x: predict(x, machine, self.n, self.packing, engine=way)
        return _runners(self, way)

    def spelled(self, way: str) -> str:
        if self.machine:
            return f'predict(x, load_machine("{self.machine}"), {self.n}, "{self.packing}", engine="{way}")'
        return f'run(program, x, engine="{way}")'


@lru_cache(maxsize=256)
def _runners(written: Written, way: str) -> Runner:
    subject = _subject(written)
    if way == "jit":
        return Kernel(subject.fewest_nodes).predict
    if way == "graph":
        return subject.fewest_nodes.run
    if way == "stream":
        return _whole(Stream(subject.fewest_nodes))
    from rasp import run

    return lambda x: run(written.run, x, engine=way)


def _whole(stream: Stream) -> Runner:
    def run_afresh(x: Array) -> Array:
        stream.reset()
        return stream.run(x)

    return run_afresh


@lru_cache(maxsize=64)
def _subject(written: Written) -> Subject:
    return Subject(written.run)


# --- which program ----------------------------------------------------------------------------------------------------


def draw_written(rng: np.random.Generator) -> Written:
    kind = str(rng.choice(KINDS))
    if kind == "universal":
        return universal(UNIVERSAL_SIZES[rng.integers(3)], n=int(rng.integers(1, 3)))
    if kind == "turing":
        seed, size = int(rng.integers(10**6)), MACHINE_SIZES[rng.integers(4)]
        return turing(f"random:{size[0]}x{size[1]}:{seed}", int(rng.integers(1, 4)), str(rng.choice(PACKINGS)))
    return task(kind, n=int(rng.integers(1, 6 if kind == "addition" else 4)), digits=int(rng.integers(1, 4)))


def task(kind: str, n: int, digits: int = 3) -> Written:
    name = f"next_tokens_{kind}"
    imports = f"from rasp.programs import {name}"
    if kind == "multiplication":
        return Written(kind, imports, f"{name}(x, {digits}, {n})", len(MULTIPLICATION), n, digits)
    return Written(kind, imports, f"{name}(x, {n})", len(ADDITION if kind == "addition" else SGD), n)


def universal(size: tuple[int, int], n: int) -> Written:
    call = f"next_tokens_universal(x, {size[0]}, {size[1]}, {n})"
    imports = "from rasp.programs import next_tokens_universal"
    return Written("universal", imports, call, len(Size(*size).vocabulary), n, size=size)


def turing(machine: str, n: int, packing: str = "unbounded") -> Written:
    known = load_machine(machine)
    imports = "from rasp.engines.turing import predict\nfrom rasp.programs.turing import next_tokens"
    call = f'next_tokens(x, load_machine("{machine}"), {n}, "{packing}")'
    size = (len(known.symbols), len(known.states))
    return Written("turing", imports, call, known.base, n, size=size, machine=machine, packing=packing)


# --- on which text ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Text:
    """Tokens; of the true solution of a problem also where it begins and where the program is first wrong in it."""

    tokens: Array
    start: int | None = None  # how many tokens were given
    first_wrong: int | None = None  # position of the first wrong token; None if every one is right


def draw_text(rng: np.random.Generator, written: Written, longest: int = LONGEST, lines: int | None = None) -> Text:
    """Of a few tokens, of hundreds, of thousands, in equal shares; of a few more than so many lines at most."""
    share = int(rng.integers(3))
    tokens = min(longest, int(np.exp(rng.uniform(SPREAD[share], SPREAD[share + 1]))))
    style = rng.choice(["true", "several", "changed", "chance"], p=[0.45, 0.25, 0.2, 0.1])
    if lines is not None and style == "several":
        style = "true"
    if style == "chance":
        return Text(rng.integers(0, written.vocabulary, tokens))
    whole = solution(rng, written, tokens, lines)
    if style == "true":
        return whole
    pieces = [whole.tokens]
    while style == "several" and sum(map(len, pieces)) < tokens:
        pieces.append(solution(rng, written, int(rng.integers(8, tokens + 9))).tokens)
    text = np.concatenate(pieces)[:tokens]
    changed = rng.random(len(text)) < (2 / len(text) if style == "changed" else 0)
    return Text(np.where(changed, rng.integers(0, written.vocabulary, len(text)), text))


def solution(rng: np.random.Generator, written: Written, tokens: int, lines: int | None = None) -> Text:
    """A random problem's whole text, of about so many tokens."""
    if written.size[0]:
        return run_text(rng, written, tokens, lines)
    length = int((tokens / 1.7) ** 0.5)  # texts grow with the square of it
    problem = draw_problem(rng, written, max(1, length if lines is None else min(length, lines)))
    start = len(prompt_tokens(problem))
    return Text(text_tokens(problem), start, predicted_first_wrong(problem, written.n))


def draw_problem(rng: np.random.Generator, written: Written, length: int) -> Problem:
    """Sometimes of few digits, so that grams repeat."""
    if written.kind == "sgd":
        few = rng.integers(0, NUMBERS, int(rng.choice([2, 6, NUMBERS])))
        rows = rng.choice(few, (max(1, length // 2), 3)).tolist()
        return Regression(tuple((x1, x2, y) for x1, x2, y in rows))
    few = rng.integers(0, 10, int(rng.choice([1, 2, 4, 10, 10])))
    left, right = ("".join(map(str, rng.choice(few, int(rng.integers(1, length + 1))))) for _ in range(2))
    if written.kind == "addition":
        return Sum(left, right)
    return Product(left, "".join(map(str, rng.integers(0, 10, written.digits))))


def run_text(rng: np.random.Generator, written: Written, tokens: int, lines: int | None = None) -> Text:
    """A machine's run from a random tape; for the universal program with the machine's table before it."""
    machine = (
        load_machine(written.machine)
        if written.machine
        else TuringMachine.random(*written.size, seed=int(rng.integers(10**6)))
    )
    cells = int(rng.integers(1, min(48, max(2, tokens // 4))))
    tape = random_tape(rng, machine, cells)
    steps = max(1, min(tokens // (cells + 4), tokens if lines is None else lines + 3))
    text = np.asarray(machine.trace(tape, steps), dtype=np.int64)
    wrong = first_wrong_step(
        machine, tape, steps, written.n, "unbounded" if written.packing == "tuple" else written.packing
    )
    start, first_wrong = len(tape) + 1, None if wrong is None else wrong.index + 1
    if written.machine:
        return Text(text, start, first_wrong)
    table = universal_prompt(machine, tape)[: -len(tape) - 1]
    text = np.array([*table, *universal_tokens(machine, text, Size(*written.size))], dtype=np.int64)
    return Text(text, start + len(table), None if first_wrong is None else first_wrong + len(table))


def random_tape(rng: np.random.Generator, machine: TuringMachine, cells: int) -> list[int]:
    few = rng.integers(0, len(machine.symbols), int(rng.integers(1, len(machine.symbols) + 1)))
    names = [machine.symbols[c] for c in rng.choice(few, cells)]
    return machine.encode(names, int(rng.integers(-1, cells + 1)), str(rng.choice(machine.states)))
