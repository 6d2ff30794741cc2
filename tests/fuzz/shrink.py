"""Make a mismatch small: as long as the same two ways still differ, anything that can go, goes."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from .compare import Figures, Mismatch, compare_model, engine_mismatch
from .programs import Program, Tree, variable

SECONDS = 30.0  # of processor time at most, for one mismatch
SIMPLEST = {
    "literal": ("0", "1"),
    "small": ("2",),
    "distance": ("0", "1"),
    "reduction": ('"max"',),
    "predicate": ("equals", "lambda k, q: True"),
    "unary": ("abs",),
    "binary": ("max",),
    "number": ("0", "1"),
}


TUPLES = {  # forms with a tuple less, and the parts that stay
    "kqv(({0}, {1}), ({2}, {3}), {4}, equals, {5}, reduction={6})": (
        "kqv({0}, {1}, {2}, equals, {3}, reduction={4})",
        ((0, 2, 4, 5, 6), (1, 3, 4, 5, 6)),
    ),
    "kqv(({0}, {1}, {2}), ({0}, {3}, {2}), {4}, equals)": ("kqv({0}, {1}, {2}, equals)", ((1, 3, 4), (0, 0, 4))),
    "select(({0}, {1}), ({2}, {3}), equals)": ("select({0}, {1}, equals)", ((0, 2), (1, 3))),
    "select(({0}, {1}, {2}), ({1}, {2}, {0}), equals)": ("select({0}, {1}, equals)", ((0, 1), (1, 2), (2, 0))),
}


def again(mismatch: Mismatch, any_kind: bool = False) -> Mismatch | None:
    """What the program and inputs of a mismatch (perhaps made smaller) still show, if it is of the same kind."""
    if mismatch.model:
        found = compare_model(mismatch.program, mismatch.model, mismatch.inputs, Figures(), check=False)
    else:
        found = engine_mismatch(mismatch.program, mismatch.inputs, mismatch.way)
    return found if found and (any_kind or found.kind == mismatch.kind) else None


def shrink(mismatch: Mismatch, seconds: float = SECONDS) -> Mismatch:
    """The smallest mismatch of the same kind that was found in the time given.

    Machine code takes a second to make: what its generated code shows when run as Python is shrunk first.
    """
    if mismatch.way == "jit":
        as_python = again(replace(mismatch, way="jit as Python"), any_kind=True)
        smaller = replace(_shrunk(as_python, seconds), way="jit") if as_python else mismatch
        mismatch = again(smaller, any_kind=True) or mismatch
    return _shrunk(mismatch, seconds)


def _shrunk(mismatch: Mismatch, seconds: float) -> Mismatch:
    end = time.process_time() + seconds
    best = mismatch
    improved = True
    while improved and time.process_time() < end:
        improved = False
        for candidate in candidates(best):
            if time.process_time() > end:
                break
            found = _tried(candidate)
            if found and weight(found) < weight(best):
                best, improved = found, True
                break
    return best


def _tried(candidate: Mismatch) -> Mismatch | None:
    try:
        return again(candidate)
    except Exception:  # not a program at all, such as a name without its function
        return None


def weight(mismatch: Mismatch) -> tuple[int, int, int]:
    values = [int(v) for x in mismatch.inputs for v in x]
    model = len(mismatch.model.vocabulary) + len(mismatch.model.options) if mismatch.model else 0
    return (
        mismatch.program.size + len(values) + 2 * model,
        len(mismatch.program.body),
        sum(min(abs(v), 99) for v in values),
    )


def candidates(mismatch: Mismatch) -> Iterator[Mismatch]:
    """Smaller ones, those that would help most first."""
    for program in smaller_programs(mismatch.program):
        yield replace(mismatch, program=program)
    for inputs in smaller_inputs(mismatch.inputs):
        yield replace(mismatch, inputs=inputs)
    if mismatch.model:
        for i, _ in enumerate(mismatch.model.options):
            options = mismatch.model.options[:i] + mismatch.model.options[i + 1 :]
            yield replace(mismatch, model=replace(mismatch.model, options=options))
        for i, _ in enumerate(mismatch.model.vocabulary):
            tokens = mismatch.model.vocabulary[:i] + mismatch.model.vocabulary[i + 1 :]
            if tokens and all(set(x.tolist()) <= set(tokens) for x in mismatch.inputs):
                yield replace(mismatch, model=replace(mismatch.model, vocabulary=tokens))


def smaller_inputs(inputs: tuple[Any, ...]) -> Iterator[tuple[Any, ...]]:
    """Without a stretch, without one token, with a simpler token (the same place in every sequence)."""
    length = len(inputs[0])
    stretch = length // 2
    while stretch:
        for start in range(0, length - stretch + 1, stretch):
            yield tuple(np.delete(x, slice(start, start + stretch)) for x in inputs)
        stretch //= 2
    for k, x in enumerate(inputs):
        for i, value in enumerate(x):
            for simpler in sorted({0, 1, int(value) // 2}, key=abs):
                if abs(simpler) < abs(int(value)):
                    yield (
                        *inputs[:k],
                        np.concatenate([x[:i], [simpler], x[i + 1 :]]).astype(x.dtype),
                        *inputs[k + 1 :],
                    )


def smaller_programs(program: Program) -> Iterator[Program]:
    """A line fewer, then a phrase replaced by one of its parts or by the simplest of its sort."""
    needed = program.needed
    for i in needed[:-1]:
        yield Program(program.inputs, program.lines[: i + 1])
    for i in needed[:-1]:
        name = f"v{i}"
        for instead in (*_variables(program.lines[i]), *map(variable, program.inputs), program.lines[i]):
            yield Program(program.inputs, tuple(_replaced(line, name, instead) for line in program.lines))
    for i in reversed(needed):
        for smaller in smaller_trees(program.lines[i], program.inputs):
            yield Program(program.inputs, (*program.lines[:i], smaller, *program.lines[i + 1 :]))


def _variables(tree: Tree) -> list[Tree]:
    return [variable(name) for name in sorted({t.form for t in tree.walk() if t.sort == "sequence" and not t.parts})]


def _replaced(tree: Tree, name: str, instead: Tree) -> Tree:
    if tree == variable(name):
        return instead
    return replace(tree, parts=tuple(_replaced(part, name, instead) for part in tree.parts)) if tree.parts else tree


def smaller_trees(tree: Tree, inputs: tuple[str, ...]) -> Iterator[Tree]:
    for simpler in (*SIMPLEST.get(tree.sort, ()), *(inputs if tree.sort == "sequence" else ())):
        if tree.form != simpler:
            yield Tree(tree.sort, simpler)
    if tree.sort in ("unary", "binary", "predicate") and tree.form.startswith("def"):
        arguments = tree.form[tree.form.index("(") + 1 : tree.form.index(")")]
        for part in tree.parts:
            if part.sort == "number":
                yield Tree(tree.sort, f"lambda {arguments}: {{0}}", (part,))
    form, choices = TUPLES.get(tree.form, ("", ()))
    for kept in choices:
        yield Tree(tree.sort, form, tuple(tree.parts[i] for i in kept))
    for part in tree.walk():
        if part is not tree and part.sort == tree.sort:
            yield part
    for i, part in enumerate(tree.parts):
        for smaller in smaller_trees(part, inputs):
            yield replace(tree, parts=(*tree.parts[:i], smaller, *tree.parts[i + 1 :]))
