"""A zoo's entry as a model, the inputs that its circuit is found on, and the answers that the program gives."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from compile import Transformer, compile_machine, compile_program, compile_task, compile_universal
from compile.errors import REFUSED, CompileError
from compile.front.domains import Capacity, infer_domains
from compile.front.factor import factor
from compile.front.program import FiniteProgram
from compile.front.trace import rewrite, trace
from compile.hurting import hurting_inputs
from compile.machine import sample_traces
from compile.tasks import sample_run
from compile.validate import answers, need_equal, need_right
from experiments.zoo.catalogue import ZooEntry
from experiments.zoo.programs import TEXTS, completed
from rasp import TuringMachine, bos, eos, next_tokens, sep
from rasp.formats.json import from_json
from rasp.programs.problems import text_tokens
from rasp.programs.tasks import TaskProgram, task_program
from rasp.programs.universal import Size, next_tokens_universal

Inputs = list[np.ndarray]
LONGEST = 64  # tokens of an input, where the program does not ask for more
MOST_HURTING = 24
RANDOM = 48  # further inputs of a program
BRIM = 24  # inputs that fill a count to its capacity, or just not, or run over


@dataclass(frozen=True)
class CompiledEntry:
    """A model with the program it was compiled from and examples of what it is for."""

    model: Transformer
    program: Callable[[Any], Any]
    vocabulary: Sequence[int]
    capacity: Capacity
    examples: Callable[[int], Inputs]  # of a seed
    anything: bool = True  # it is right on every text, not only on such as the examples
    longest: int = LONGEST

    def inputs(self, seed: int) -> Inputs:
        """Examples, and where the model is right on anything, inputs made to hurt it; the same for the same seed."""
        examples = [np.asarray(x)[: self.longest] for x in self.examples(seed)]
        if not self.anything:
            return examples
        hurting = hurting_inputs(self.finite, seed, self.longest)
        rng = np.random.default_rng(seed)
        some = sorted(rng.choice(len(hurting), min(len(hurting), MOST_HURTING), replace=False))
        brim = [_brim(rng, self.vocabulary, self.capacity)[: self.longest] for _ in range(BRIM)]
        return [*examples, *(hurting[k] for k in some), *brim]

    @property
    def finite(self) -> FiniteProgram:
        graph = rewrite(trace(self.program))
        return factor(graph, infer_domains(graph, tuple(self.vocabulary), self.capacity))

    def check(self, inputs: Sequence[np.ndarray]) -> None:
        """Raise `CompileError` where the model does not say what the program says (or refuses without need)."""
        finite = self.finite if self.anything else None
        for tokens, found in answers(self.model, inputs):
            if finite is not None:
                need_right(tokens, found, finite, lambda _: "not looked for")
                continue
            expected = np.asarray(self.program(tokens))
            over = (found == REFUSED) & (np.cumsum(tokens == sep) > self.capacity.counts)
            need_equal(tokens, np.where(over, expected, found), expected)


def compile_entry(entry: ZooEntry) -> CompiledEntry:
    kinds = {"program": _program, "machine": _machine, "task": _task, "universal": _universal}
    return kinds[entry.recipe["kind"]](entry)


def _program(entry: ZooEntry) -> CompiledEntry:
    recipe, program = entry.recipe, entry.program
    assert program is not None, "entries of programs have one"
    options = {name: recipe[name] for name in ("counts", "positions") if name in recipe}
    vocabulary = tuple(range(recipe["tokens"]))
    extra = {"zoo": entry.name, "backend": recipe["backend"]}
    model = compile_program(program, vocabulary, recipe["backend"], extra=extra, check=False, **options)
    longest = recipe["positions"] if recipe["backend"] == "tracr" else LONGEST
    capacity = Capacity(recipe["counts"], recipe.get("positions"))

    def examples(seed: int) -> Inputs:
        rng = np.random.default_rng(seed + 1)
        texts = [TEXTS[program](rng) for _ in range(RANDOM // 4)] if program in TEXTS else []
        return [*texts, *(_random(rng, recipe["tokens"]) for _ in range(RANDOM))]

    return CompiledEntry(model, program, vocabulary, capacity, examples, longest=longest)


def _random(rng: np.random.Generator, tokens: int) -> np.ndarray:
    """Over all tokens, or over two or three so that much repeats."""
    few = rng.choice(tokens, size=min(tokens, int(rng.choice([2, 3, tokens]))), replace=False)
    return rng.choice(few, size=int(rng.integers(8, 25)))


def _brim(rng: np.random.Generator, vocabulary: Sequence[int], capacity: Capacity) -> np.ndarray:
    """One token, or two by turns, about as often as can be counted, behind a few others and with some between."""
    often = rng.choice(vocabulary, size=min(len(vocabulary), int(rng.integers(1, 3))), replace=False)
    text = np.tile(often, capacity.counts + int(rng.integers(-1, 4)))
    before, between = (int(rng.choice([0, 0, 1, 2])) for _ in range(2))
    places = np.sort(rng.integers(len(text) + 1, size=between))
    mixed = np.insert(text, places, rng.choice(vocabulary, size=between))
    return np.concatenate([rng.choice(vocabulary, size=before), mixed])


def _machine(entry: ZooEntry) -> CompiledEntry:
    recipe = entry.recipe
    assert entry.machine is not None, "entries of machines have one"
    machine, n, steps, backend = from_json(entry.machine), recipe["n"], recipe["steps"], recipe["backend"]
    options = {name: recipe[name] for name in ("positions",) if name in recipe}
    model = compile_machine(machine, backend, n, steps, check=False, **options)
    anything = backend != "lean"

    def program(x: Any) -> Any:
        return next_tokens(x, machine, n, "unbounded")

    def examples(seed: int) -> Inputs:
        rng = np.random.default_rng(seed)
        more = _nonsense(program, range(machine.base), rng) if anything else []
        return [*_traces(machine, steps, seed), *_still(machine, steps, rng), *more]

    return CompiledEntry(
        model,
        program,
        range(machine.base),
        Capacity(steps + 2, recipe.get("positions")),
        examples,
        anything=anything,
        longest=recipe.get("positions", LONGEST),
    )


def _still(machine: TuringMachine, steps: int, rng: np.random.Generator) -> Inputs:
    """One tape again and again, past the capacity: no run, so that it also goes on where a machine halts soon."""
    texts = []
    for size in (1, 1, 2):
        tape = [bos, *rng.choice(machine.symbol_tokens, size=size), eos, sep]
        tape.insert(2, rng.choice(machine.state_tokens))
        texts.append(np.array(tape * (steps + 4))[:LONGEST])
    return texts


def _nonsense(program: Callable[[Any], Any], vocabulary: Sequence[int], rng: np.random.Generator) -> Inputs:
    """Tokens that are no tape, and how the program goes on with them."""
    prompts = [[*rng.choice(vocabulary, size=size).tolist(), sep] for size in (3, 4, 4, 5, 5, 6)]
    return [completed(program, prompt, end=-1, most=4 * len(prompt)) for prompt in prompts]


def _traces(machine: TuringMachine, steps: int, seed: int) -> Inputs:
    """Of random tapes, long enough for repeated grams, and run past the capacity where they are short.

    Every state stands once at every end of a tape of every symbol: the moves that a random run does not come by.
    """
    found = [trace for k in range(3) for trace in sample_traces(machine, steps, 3 * seed + k, LONGEST)]
    rng = np.random.default_rng(seed)
    for state in machine.states:
        for head in (0, 1, 2):
            cells = [machine.symbols[c] for c in rng.integers(len(machine.symbols), size=3)]
            found.append(machine.trace(machine.encode(cells, head, state), 2))
    return found


def _task(entry: ZooEntry) -> CompiledEntry:
    recipe = entry.recipe
    task = task_program(recipe["task"])
    model = compile_task(recipe["task"], recipe["n"], recipe["lines"], check=False)
    return CompiledEntry(
        model,
        lambda x: task.program(x, recipe["n"]),
        range(len(task.vocabulary)),
        Capacity(recipe["lines"]),
        lambda seed: _problems(task, recipe["lines"], seed),
        longest=96,
    )


def _problems(task: TaskProgram, lines: int, seed: int) -> Inputs:
    """Whole problems, and texts that no problem leads to but that show what the model reads."""
    rng = np.random.default_rng(seed)
    sign = "+" if "+" in task.example else "*"
    texts = [task.example]
    for size in (1, 2, 2, 3, 3, 4, 4, 5):
        left, right = ("".join(map(str, rng.integers(1, 10, size=k))) for k in (size, size if sign == "+" else 1))
        texts.append(left + sign + right)
    problems = [text_tokens(task.read(text)) for text in texts]
    late = [text for problem in problems[1:6] for text in _late(problem, task.vocabulary.token("|"), lines)]
    carries = [_with_large_carries(problem, task, rng) for problem in problems if sign == "*" for _ in range(2)]
    return [*problems, *late, *carries]


def _late(problem: np.ndarray, line_end: int, lines: int) -> Inputs:
    """With so many empty lines before the first or after it that each of its own is once the last to be counted."""
    ends = np.flatnonzero(problem == line_end)
    empty = [max(0, lines + beyond - len(ends)) for beyond in range(5)]
    return [np.insert(problem, place, [line_end] * count) for place in (0, ends[0]) for count in empty]


def _with_large_carries(problem: np.ndarray, task: TaskProgram, rng: np.random.Generator) -> np.ndarray:
    """A product with carries as large as its factor or larger, which no multiplication has."""
    star, tilde = (np.flatnonzero(problem == task.vocabulary.token(mark)) for mark in "*~")
    changed = problem.copy()
    changed[tilde + 1] = rng.integers(problem[star[0] + 1], 10, size=len(tilde))
    return changed


def _universal(entry: ZooEntry) -> CompiledEntry:
    recipe = entry.recipe
    symbols, states, steps = recipe["symbols"], recipe["states"], recipe["steps"]
    model = compile_universal(symbols, states, 1, steps, check=False)

    def examples(seed: int) -> Inputs:
        machines = [TuringMachine.random(symbols=symbols, states=states, seed=10 * seed + k) for k in range(8)]
        return [sample_run(machine, steps) for machine in machines]

    return CompiledEntry(
        model,
        lambda x: next_tokens_universal(x, symbols, states, 1),
        range(len(Size(symbols, states).vocabulary)),
        Capacity(steps + 2),
        examples,
        longest=112,
    )


__all__ = ["CompileError", "CompiledEntry", "compile_entry"]
