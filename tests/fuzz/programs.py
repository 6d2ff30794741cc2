"""Random RASP-L programs as data. What a program prints is what is run: its source, which one can paste."""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import Any

import numpy as np

from rasp.operators import Operators

from .grammar import GRAMMAR, PRELUDE, TAME, Rule

MOST_POWER = 64  # of a literal
SCOPES = {"unary": ("a",), "binary": ("a", "b"), "predicate": ("k", "q")}
IMPORTS = "import operator\n\nfrom rasp import *\nfrom rasp import run, simplify, trace\n"


@dataclass(frozen=True)
class Tree:
    """A phrase: its sort, its form, and the phrases that stand for `{0}`, `{1}`, .. in it."""

    sort: str
    form: str
    parts: tuple[Tree, ...] = ()

    def walk(self) -> Iterator[Tree]:
        yield self
        for part in self.parts:
            yield from part.walk()

    @property
    def size(self) -> int:
        return 1 + sum(part.size for part in self.parts)


def variable(name: str) -> Tree:
    return Tree("sequence", name)


@dataclass(frozen=True)
class Program:
    """Lines `v0 = ..`, `v1 = ..`, each a phrase over the inputs and earlier lines; the last one is the result."""

    inputs: tuple[str, ...]
    lines: tuple[Tree, ...]

    @cached_property
    def needed(self) -> list[int]:
        """The lines the last one depends on."""
        found, waiting = set(), [len(self.lines) - 1]
        while waiting:
            i = waiting.pop()
            if i not in found:
                found.add(i)
                named = (t.form for t in self.lines[i].walk() if t.sort == "sequence" and not t.parts)
                waiting += [int(name[1:]) for name in named if name.startswith("v")]
        return sorted(found)

    @cached_property
    def body(self) -> str:
        """`def program(x): ..`, with the functions it hands to primitives before the lines that do."""
        written = _Writer()
        for i in self.needed:
            written.lines.append(f"v{i} = {written.spell(self.lines[i])}")
        written.lines[-1] = re.sub(r"^v\d+ = ", "return ", written.lines[-1])
        inside = "\n".join(written.lines).replace("\n", "\n    ")
        return f"def program({', '.join(self.inputs)}):\n    {inside}\n"

    @cached_property
    def overwhelms_python(self) -> bool:
        """Whether it raises literals to a power that no memory holds: Python would not come back to say so."""
        for node in ast.walk(ast.parse(self.body)):
            if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow):
                literal = not any(isinstance(part, ast.Name) for part in ast.walk(node))
                sizes = [part.value for part in ast.walk(node.right) if isinstance(part, ast.Constant)]
                if literal and any(isinstance(size, int | float) and size > MOST_POWER for size in sizes):
                    return True
        return False

    @cached_property
    def source(self) -> str:
        """Everything needed to run it."""
        used = [line for name, line in PRELUDE.items() if re.search(rf"\b{name}\b", self.body)]
        imports = IMPORTS + ("from rasp.scalar import Table\n" if re.search(r"\bTABLE\b", self.body) else "")
        return imports + "\n" + "".join(f"{line}\n" for line in used) + "\n" * bool(used) + self.body

    @cached_property
    def run(self) -> Callable[..., Any]:
        return self._defined()["program"]  # type: ignore[no-any-return]

    def filled(self, filler: int) -> Callable[..., Any]:
        """The program with functions that give `filler` where they fail or return what is no number."""
        namespace = self._defined()
        for name in ("tok_map", "seq_map", "select", "kqv"):
            namespace[name] = _with_total_functions(namespace[name], filler)
        return namespace["program"]  # type: ignore[no-any-return]

    def _defined(self) -> dict[str, Any]:
        namespace: dict[str, Any] = {}
        exec(compile(self.source, "<program>", "exec"), namespace)
        return namespace

    @property
    def size(self) -> int:
        return sum(self.lines[i].size for i in self.needed)


@dataclass
class _Writer:
    """Spells phrases; functions too long for a lambda become definitions in front of the line that uses them."""

    lines: list[str] = field(default_factory=list)
    functions: int = 0

    def spell(self, tree: Tree) -> str:
        text = tree.form.format(*(self.spell(part) for part in tree.parts)) if tree.parts else tree.form
        if not text.startswith("def F"):
            return text
        self.functions += 1
        self.lines.append(text.replace("def F", f"def f{self.functions}", 1).replace("{{", "{").replace("}}", "}"))
        return f"f{self.functions}"


@dataclass
class Grower:
    """Draws phrases from the grammar. `level` is how wild they may be."""

    rng: np.random.Generator
    level: int = TAME
    sequences: list[str] = field(default_factory=list)

    def grow(self, sort: str, depth: int, scope: tuple[str, ...] = ()) -> Tree:
        if sort == "sequence" and self.rng.random() < (0.8 if depth > 0 else 1.1):
            return variable(self._recent())
        if sort == "number" and self.rng.random() < (0.25 if depth > 0 else 0.75):
            return Tree(sort, str(self.rng.choice(scope)))
        rule = self._choose(sort, depth)
        inner = SCOPES.get(sort, scope)
        deeper = 3 if sort in SCOPES else depth - 1
        return Tree(sort, rule.form, tuple(self.grow(part, deeper, inner) for part in rule.parts))

    def _choose(self, sort: str, depth: int) -> Rule:
        """A form of this sort; without another phrase of its sort in it when there is no depth left."""
        rules, shares = _rules_of(sort, self.level, depth <= 0 and sort not in SCOPES)
        return rules[int(np.searchsorted(shares, self.rng.random()))]

    def _recent(self) -> str:
        """A sequence made before, the latest most often."""
        back = int(self.rng.geometric(0.45)) - 1
        return self.sequences[-1 - back % len(self.sequences)]

    def program(self, inputs: tuple[str, ...], lines: int) -> Program:
        self.sequences = list(inputs)
        made = []
        for i in range(lines):
            rule = self._choose("sequence", 2)
            made.append(Tree("sequence", rule.form, tuple(self.grow(part, 1) for part in rule.parts)))
            self.sequences.append(f"v{i}")
        return Program(inputs, tuple(made))


@cache
def _rules_of(sort: str, level: int, leaves: bool) -> tuple[list[Rule], np.ndarray]:
    """The forms of a sort, and their shares added up."""
    rules = [r for r in GRAMMAR[sort] if r.level <= level and not (leaves and sort in r.parts)]
    weights = np.cumsum([rule.weight for rule in rules])
    return rules, weights / weights[-1]


def _with_total_functions(primitive: Callable[..., Any], filler: int) -> Callable[..., Any]:
    def called(*given: Any, **options: Any) -> Any:
        total = (_total(x, filler) if callable(x) and x is not operator.eq else x for x in given)
        return primitive(*total, **options)  # equality cannot fail, and tuples are compared by nothing else

    return called


def _total(function: Callable[..., Any], filler: int) -> Callable[..., Any]:
    def called(*numbers: Any) -> Any:
        try:
            result = function(*numbers)
        except Exception:
            return filler
        if isinstance(result, int):
            return result if -(2**63) <= result < 2**63 else filler
        return result if isinstance(result, float | np.generic | Operators) else filler

    return called
