"""Compiled models of written programs: looked up, through torch, and both again after being saved and loaded.

Each must say what the program says at every token, or refuse because it cannot count so far; all of them refuse at the
same tokens.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import compile as compiler
from compile import Transformer
from compile.errors import REFUSED, CapacityError
from compile.sparse import SparseEngine
from compile.transformer.engines import looked_up_by
from compile.validate import answers
from rasp import load_machine
from rasp.machines.tape import sep
from rasp.programs.vocabulary import ADDITION, MULTIPLICATION

from .compare import Figures, patience
from .saved import Unequal, round_trip
from .ways import Array
from .written import Text, Written, draw_text, task, turing, universal

TEXTS, TORCH_TOKENS, WRITTEN_TOKENS, LONGEST = 6, 500, 400, 6000
SIZES = ((2, 2), (3, 2), (5, 4))
Answers = Callable[[Array], Array]


@dataclass(frozen=True)
class Compiled:
    """A model as one compiles it: `call` gives it, and it counts `lines` of `separator`."""

    program: Written
    call: str
    lines: int
    separator: int = sep
    tapes_only: bool = False  # what it says of anything else is not promised

    @property
    def source(self) -> str:
        imports = "import numpy as np\n\nfrom compile import compile_machine, compile_task, compile_universal"
        return f"{imports}\nfrom rasp import load_machine\n\nmodel = {self.call}\n"

    def model(self) -> Transformer:
        return eval(self.call, {**vars(compiler), "load_machine": load_machine, **_COMPILERS})  # type: ignore[no-any-return]


_COMPILERS: dict[str, Any] = {
    name: getattr(compiler, name) for name in ("compile_machine", "compile_task", "compile_universal")
}


@dataclass(frozen=True)
class DecodedMismatch:
    """A token at which a model says something else than its program."""

    compiled: Compiled
    tokens: Array  # up to that one
    way: str
    expected: int
    found: int

    @property
    def kind(self) -> str:
        what = "refuses early" if self.found == REFUSED else "values"
        return f"{self.compiled.program.kind} compiled, {self.way}: {what}"

    def script(self) -> str:
        said = f"# {self.found}; the program says {self.expected}"
        return f"{self.compiled.source}x = np.array({self.tokens.tolist()})\nprint(model.predict(x)[-1])  {said}\n"


def draw_compiled(rng: np.random.Generator) -> Compiled:
    kind = str(rng.choice(["machine", "machine", "lean", "lean", "addition", "multiplication", "universal"]))
    precision = ', dtype="float64"' if rng.random() < 0.2 else ""
    if kind in ("machine", "lean"):
        return compiled_machine(rng, "lean" if kind == "lean" else "hard_alibi", precision)
    if kind == "universal":
        steps = int(rng.choice([6, 14]))
        call = f"compile_universal(2, 2, n=1, steps={steps}, check=False{precision})"
        return Compiled(universal((2, 2), 1), call, steps)
    n, lines = int(rng.integers(1, 3)), int(rng.choice([6, 12]))
    name = kind if kind == "addition" else "multiplication1"
    bar = (ADDITION if kind == "addition" else MULTIPLICATION).token("|")
    return Compiled(
        task(kind, n, 1), f'compile_task("{name}", n={n}, lines={lines}, check=False{precision})', lines, bar
    )


def compiled_machine(rng: np.random.Generator, backend: str, precision: str) -> Compiled:
    symbols, states = SIZES[rng.integers(len(SIZES))]
    name, n = f"random:{symbols}x{states}:{rng.integers(10**6)}", int(rng.integers(1, 4))
    steps = int(rng.choice([20, 60, 150]))
    call = f'compile_machine(load_machine("{name}"), "{backend}", n={n}, steps={steps}, check=False{precision})'
    return Compiled(turing(name, n), call, steps, tapes_only=backend == "lean")


def draw_texts(rng: np.random.Generator, compiled: Compiled) -> list[Text]:
    """Half of them short enough for torch; some go on past what the model counts."""
    found: list[Text] = []
    while len(found) < TEXTS:
        text = draw_text(rng, compiled.program, TORCH_TOKENS if len(found) % 2 else LONGEST, compiled.lines)
        if text.start is not None or not compiled.tapes_only:
            found.append(text)
    return found


# --- comparing --------------------------------------------------------------------------------------------------------


def compare_compiled(compiled: Compiled, texts: list[Text], figures: Figures) -> list[DecodedMismatch | Unequal]:
    """The first text and token at which each way goes wrong, and whatever does not come back from its file."""
    with patience(), tempfile.TemporaryDirectory(prefix="fuzz-model-") as folder:
        model = compiled.model()
        loaded, unequal = round_trip(model, Path(folder), compiled.source)
        again = SparseEngine.load(folder)
    figures.counts[f"{compiled.program.kind} compiled: models"] += 1
    ways: dict[str, Answers] = {
        "sparse": looked_up(model),
        "sparse, loaded": again.answers,
        "torch": through_torch(model),
        "torch, loaded": through_torch(loaded),
    }
    found: list[DecodedMismatch | Unequal] = list(unequal)
    for way, say in ways.items():
        mismatches = (
            text_through(compiled, way, say, text, figures)
            for text in texts
            if not way.startswith("torch") or len(text.tokens) <= TORCH_TOKENS
        )
        found += [one for one in mismatches if one][:1]
    written = (written_by(compiled, model, text, figures) for text in texts)
    return found + [one for one in written if one][:1]


def looked_up(model: Transformer) -> Answers:
    engine = looked_up_by(model)
    if not isinstance(engine, SparseEngine):
        raise engine
    return engine.answers


def through_torch(model: Transformer) -> Answers:
    return lambda tokens: next(found for _, found in answers(model, [tokens]))


def text_through(compiled: Compiled, way: str, say: Answers, text: Text, figures: Figures) -> DecodedMismatch | None:
    """Whether one way of running the model says what the program says, and refuses only what it may."""
    with patience():
        found = say(text.tokens)
    expected = compiled.program.runner("jit")(text.tokens)
    label = f"{compiled.program.kind} compiled, {way}"
    figures.tried[label] += 1
    figures.answered[label] += 1
    figures.tokens[f"{compiled.program.kind} compiled"] += len(text.tokens) if way == "sparse" else 0
    refused = found == REFUSED
    figures.counts[f"{compiled.program.kind} compiled: refused tokens"] += int(refused.sum()) if way == "sparse" else 0
    wrong = np.flatnonzero((found != expected) & ~(refused & may_refuse(compiled, text)))
    if not len(wrong):
        return None
    at = int(wrong[0])
    return DecodedMismatch(compiled, text.tokens[: at + 1], way, int(expected[at]), int(found[at]))


def may_refuse(compiled: Compiled, text: Text) -> Array:
    """Where so many lines were begun that the model cannot count them; by chance anywhere, if it is no solution."""
    if text.start is None:
        return np.ones(len(text.tokens), dtype=bool)
    return np.cumsum(text.tokens == compiled.separator) > compiled.lines


def written_by(compiled: Compiled, model: Transformer, text: Text, figures: Figures) -> DecodedMismatch | None:
    """What the model writes by itself after a prompt: each token is what the program says of those before it."""
    if text.start is None or (text.tokens == compiled.separator).sum() > compiled.lines:
        return None
    count = min(WRITTEN_TOKENS, len(text.tokens) - text.start)
    prompt = text.tokens[: text.start].tolist()
    try:
        with patience():
            found = np.asarray(model.generate(prompt, count, engine="sparse"))
    except CapacityError as error:  # where the program errs, it may write more lines than the solution has
        assert error.written is not None
        found, count = error.written[0], len(error.written[0]) - len(prompt)
        if (found == compiled.separator).sum() <= compiled.lines:
            right = int(compiled.program.runner("jit")(found)[-1])
            return DecodedMismatch(compiled, found, "sparse, writing", right, REFUSED)
    expected = compiled.program.runner("jit")(found)
    figures.tokens[f"{compiled.program.kind} compiled"] += count
    wrong = np.flatnonzero(expected[text.start - 1 : -1] != found[text.start :]) + text.start
    if not len(wrong):
        return None
    at = int(wrong[0])
    return DecodedMismatch(compiled, found[:at], "sparse, writing", int(expected[at - 1]), int(found[at]))


def decoded_case(seed: int, number: int) -> tuple[Compiled, list[Text]]:
    rng = np.random.default_rng([seed, number, 2])
    compiled = draw_compiled(rng)
    return compiled, draw_texts(rng, compiled)
