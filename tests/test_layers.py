"""The folder is the architecture: imports point downwards, and what is heavy is loaded only where it is used."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Collection, Iterable
from pathlib import Path

import networkx as nx
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


# --- cycles -----------------------------------------------------------------------------------------------------------


def modules(root: Path, packages: Iterable[str]) -> dict[str, Path]:
    """Every module by its name; a package is its `__init__`."""
    found = {}
    for path in (path for package in packages for path in (root / package).rglob("*.py")):
        parts = path.relative_to(root).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def imported_modules(path: Path, known: Collection[str]) -> set[str]:
    """What a module imports anywhere in it: inside functions and for type checkers too."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            inner = {alias.name: f"{node.module}.{alias.name}" for alias in node.names}
            found |= {inner[name] if inner[name] in known else node.module for name in inner}
    return found & set(known)


def import_cycles(root: Path, packages: Iterable[str]) -> list[set[str]]:
    known = modules(root, packages)
    graph = nx.DiGraph((name, other) for name, path in known.items() for other in imported_modules(path, known))
    graph.remove_edges_from([(name, name) for name in known])
    return [component for component in nx.strongly_connected_components(graph) if len(component) > 1]


def test_no_import_cycle() -> None:
    assert import_cycles(ROOT, MAY_KNOW) == []


def test_a_cycle_is_noticed_wherever_the_import_stands(tmp_path: Path) -> None:
    (tmp_path / "house").mkdir()
    (tmp_path / "house" / "__init__.py").write_text("")
    (tmp_path / "house" / "a.py").write_text("from house import b\nfrom house.c import x\n")
    (tmp_path / "house" / "b.py").write_text("def f():\n    from house.a import y\n")
    (tmp_path / "house" / "c.py").write_text("x = 1\n")
    assert import_cycles(tmp_path, ["house"]) == [{"house.a", "house.b"}]
    (tmp_path / "house" / "b.py").write_text("if TYPE_CHECKING:\n    import house.a\n")
    assert import_cycles(tmp_path, ["house"]) == [{"house.a", "house.b"}]
    (tmp_path / "house" / "b.py").write_text("")
    assert import_cycles(tmp_path, ["house"]) == []


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
