"""A library that is not installed is named, with the command that installs it; by every command that needs it."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from rasp.extras import EXTRAS, how_to_get, missing

ROOT = Path(__file__).parent.parent
DISTRIBUTIONS = {  # where what is installed has another name than what is imported
    "z3": "z3-solver",
    "distributed": "dask",
    "tracr": "tracr-pypi",
    "haiku": "dm-haiku",
    "automata": "automata-lib",
}
NOT_FOR_USERS = {"all", "dev", "docs", "notebooks"}  # nothing in the packages imports what these bring

WITHOUT = """
import sys
sys.modules[sys.argv[1]] = None
sys.argv = ["turing-programs", *sys.argv[2:]]
from experiments.cli import main
main()
"""
COMMANDS = {
    "matplotlib": "graph addition -o graph.png",
    "z3": "prove",
    "dask": "verify --dask tcp://127.0.0.1:1",
    "distributed": "verify --dask tcp://127.0.0.1:1",
    "torch": "compile bb2 -o model",
    "huggingface_hub": "compile bb2 -o model",
    "tracr": "compile bb2 --backend tracr -o model",
    "jax": "compile bb2 --backend tracr -o model",
    "haiku": "compile bb2 --backend tracr -o model",
    "accelerate": "train tm-tiny --steps 1 -o run",
    "transformers": "bench train",
    "onnx": "export onnx bb2 -o bb2.onnx",
    "onnxscript": "export onnx bb2 -o bb2.onnx",
}
CALLS = {
    "automata": "from rasp.gallery import machine; from rasp.formats.dtm import to_dtm; to_dtm(machine('bb2'))",
    "transformer_lens": "from compile.doors import to_transformer_lens",
    "torch": "from compile import compile_machine",
}
LEFT_OUT = {  # works without it
    "cvc5": "certificates are not confirmed, and the report says so",
    "tensorboard": "a run has its curves in training.json",
    "onnxruntime": "only tests run the file that is written",
}


def installed_by(extra: str) -> set[str]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    return {re.split(r"[\[<>=]", requirement)[0] for requirement in project["optional-dependencies"][extra]}


def test_every_optional_library_has_its_extra() -> None:
    for library, extra in EXTRAS.items():
        assert DISTRIBUTIONS.get(library, library) in installed_by(extra), library
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = set(project["optional-dependencies"]) - NOT_FOR_USERS
    always = {re.split(r"[\[<>=]", requirement)[0] for requirement in project["dependencies"]}
    asked = set().union(*map(installed_by, extras)) - {"turing-programs"} - always
    assert asked == {DISTRIBUTIONS.get(library, library) for library in EXTRAS}
    assert set(EXTRAS) == {*COMMANDS, *CALLS, *LEFT_OUT}


@pytest.mark.parametrize("library", COMMANDS)
def test_a_command_names_what_is_missing(library: str, tmp_path: Path) -> None:
    command = [sys.executable, "-c", WITHOUT, library, *COMMANDS[library].split()]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, timeout=500)
    assert done.returncode == 2, done.stderr
    assert f"'turing-programs[{expected_extra(library, done.stderr)}]'" in done.stderr
    assert library in done.stderr and len(done.stderr.splitlines()) == 1, done.stderr
    assert not list(tmp_path.iterdir()), "a refused command leaves nothing behind"


def expected_extra(library: str, said: str) -> str:
    """`transformers` is brought by two extras; the command knows which one it needs."""
    return "doors" if "ONNX" in said else EXTRAS[library]


@pytest.mark.parametrize("library", CALLS)
def test_a_call_names_what_is_missing(library: str) -> None:
    code = f"import sys; sys.modules['{library}'] = None; {CALLS[library]}"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=500)
    last = done.stderr.strip().splitlines()[-1]
    assert f"pip install 'turing-programs[{EXTRAS[library]}]'" in last, done.stderr


NEEDS_NOTHING = """
import sys
sys.modules.update(dict.fromkeys(sys.argv.pop(1).split(",")))
from experiments.cli import main
main()
"""


@pytest.mark.parametrize(
    ("command", "says"),
    [
        ("run bb4", "107"),
        ("run bb4 --on rasp", "departs from the machine"),
        ("run addition 4324+139 --on program", "4463"),
        ("graph addition -o addition.dot", "wrote addition.dot"),
        ("machines", "bb5"),
        ("programs", "sgd"),
        ("table", "multiplication by 1 digit"),
        ("verify -m 20", "0 violations"),
        ("exhaust bb2 -l 2", "0 violations"),
        ("doctor", "left out: torch is missing"),
    ],
)
def test_what_needs_no_extra_works_without_any(command: str, says: str, tmp_path: Path) -> None:
    given = [sys.executable, "-c", NEEDS_NOTHING, ",".join(EXTRAS), *command.split()]
    done = subprocess.run(given, capture_output=True, text=True, cwd=tmp_path, timeout=500)
    assert done.returncode == 0 and says in done.stdout, done.stdout[-500:] + done.stderr


def test_what_is_not_ours_is_named_by_itself() -> None:
    assert how_to_get("pandas.core") == "pip install pandas"
    said = missing("this", ModuleNotFoundError("No module named 'z3.z3'", name="z3.z3"))
    assert (
        str(said) == "this needs z3.z3; install it with: pip install 'turing-programs[proofs]'" and said.name == "z3.z3"
    )
    again = missing("this command", said)
    assert str(again) == "this command needs z3.z3; install it with: pip install 'turing-programs[proofs]'"
    nameless = ModuleNotFoundError("odd")
    assert missing("this", nameless) is nameless
