"""Habits of the code that a reader relies on: types on every signature, one meaning per name, functions on a screen."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGES = ("rasp", "proofs_check", "compile", "experiments")
SCREEN = 60  # lines of a function, its options and docstring among them

Function = ast.FunctionDef | ast.AsyncFunctionDef


def files(folders: Iterable[Path]) -> Iterator[tuple[str, ast.Module]]:
    for folder in folders:
        for path in sorted(folder.rglob("*.py")):
            yield str(path.relative_to(folder.parent)), ast.parse(path.read_text(encoding="utf-8"))


OURS = list(files(ROOT / package for package in PACKAGES))


def functions(tree: ast.AST) -> Iterator[Function]:
    return (node for node in ast.walk(tree) if isinstance(node, Function))


def untyped(tree: ast.AST) -> list[str]:
    """Public functions with a parameter or a result that has no type."""
    found = []
    for one in (one for one in functions(tree) if not one.name.startswith("_")):
        given = one.args
        every = [*given.posonlyargs, *given.args, *given.kwonlyargs, given.vararg, given.kwarg]
        named = [a for a in every if a is not None and a.arg not in ("self", "cls")]
        if one.returns is None or any(argument.annotation is None for argument in named):
            found.append(one.name)
    return found


def too_long(tree: ast.AST, most: int = SCREEN) -> list[str]:
    return [one.name for one in functions(tree) if (one.end_lineno or 0) - one.lineno + 1 > most]


def doubled(trees: Iterable[tuple[str, ast.Module]]) -> dict[str, list[str]]:
    """Classes of one name in several files."""
    where = defaultdict(list)
    for name, tree in trees:
        for node in tree.body:
            if isinstance(node, ast.ClassDef):
                where[node.name].append(name)
    return {name: found for name, found in where.items() if len(found) > 1}


@pytest.mark.parametrize(("name", "tree"), OURS, ids=[name for name, _ in OURS])
def test_functions_have_types_and_fit_on_a_screen(name: str, tree: ast.Module) -> None:
    assert untyped(tree) == []
    assert too_long(tree) == []


def test_one_meaning_per_name() -> None:
    assert doubled(OURS) == {}


def test_what_is_wrong_is_noticed() -> None:
    wrong = ast.parse(
        "def f(x, y: int) -> int:\n    return x\n\n\ndef g(x: int):\n    pass\n\n\ndef h() -> None: ...\n"
    )
    assert untyped(wrong) == ["f", "g"]
    assert too_long(wrong, most=1) == ["f", "g"]
    one, other = ast.parse("class Run: ...\n\n\nclass Walk: ...\n"), ast.parse("class Run: ...\n")
    assert doubled([("a.py", one), ("b.py", other)]) == {"Run": ["a.py", "b.py"]}
