"""The folder is the architecture: imports point downwards, and what is heavy is loaded only where it is used."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
MAY_KNOW = {
    "rasp": {"rasp"},
    "proofs_check": {"rasp", "proofs_check"},
    "compile": {"rasp", "compile"},
    "experiments": {"rasp", "proofs_check", "compile", "experiments"},
}
HEAVY = ("torch", "jax", "haiku", "tracr", "z3", "cvc5", "numba", "networkx", "matplotlib", "scipy", "dask", "yaml")


def imported_packages(path: Path) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            found.add(node.module.split(".")[0])
    return found


def upward_imports(package: str, folder: Path) -> list[str]:
    own = set(MAY_KNOW) | {"tests"}
    return [
        f"{path.name} imports {name}"
        for path in sorted(folder.rglob("*.py"))
        for name in sorted(imported_packages(path) & own - MAY_KNOW[package])
    ]


@pytest.mark.parametrize("package", MAY_KNOW)
def test_imports_point_downwards(package: str) -> None:
    assert (ROOT / package / "__init__.py").exists()
    assert upward_imports(package, ROOT / package) == []


def test_an_upward_import_is_noticed(tmp_path: Path) -> None:
    (tmp_path / "wrong.py").write_text("def f():\n    from experiments.playback import play\n    return play\n")
    assert upward_imports("rasp", tmp_path) == ["wrong.py imports experiments"]


@pytest.mark.parametrize("module", ["rasp", "compile", "proofs_check", "experiments", "experiments.cli"])
def test_importing_a_package_loads_nothing_heavy(module: str) -> None:
    code = f"import sys, {module}; print([m for m in {HEAVY} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert done.stdout.strip() == "[]"


def test_star_import_gives_the_language_and_shadows_no_builtin() -> None:
    import builtins

    import rasp

    assert not {name for name in rasp.__all__ if hasattr(builtins, name)}
    assert all(hasattr(rasp, name) for name in rasp.__all__)
