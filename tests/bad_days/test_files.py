"""Files and folders that are missing, empty, endless, malformed, binary or hostile, for all that reads them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bad_days.running import run

ENDLESS = Path("/dev/zero")
LAUGHS = "a: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(  # a billion, if each name is written out
    f"{new}: &{new} [*{old}, *{old}, *{old}, *{old}, *{old}, *{old}, *{old}, *{old}, *{old}]\n"
    for old, new in zip("abcdefgh", "bcdefghi", strict=True)
)
CONTENTS: dict[str, bytes | None] = {
    "missing": None,
    "empty": b"",
    "malformed": b'{"symbols": ["0", "1"], "states": ["A"], "transitions": {"A": ',
    "wrong": b'{"symbols": 3, "states": null, "transitions": [], "machines": {}, "extra": []}',
    "list": b"[1, 2, 3]",
    "binary": bytes(range(256)) * 64,
    "deep": b"[" * 200_000,
    "deep object": b'{"a":' * 200_000,
    "many laughs": LAUGHS.encode(),
    "null byte": b"\0",
}


def contents(path: Path, what: str) -> None:
    """The file, or a link to one that never ends."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if what == "endless":
        path.symlink_to(ENDLESS)
    elif (data := CONTENTS[what]) is not None:
        path.write_bytes(data)


EVERY = [*CONTENTS, *(["endless"] if ENDLESS.exists() else [])]
every = pytest.mark.parametrize("what", EVERY)


@pytest.fixture(autouse=True)
def in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def refused(*arguments: str) -> str:
    ended = run(*arguments)
    assert ended.refused, (arguments, ended)
    assert not Path("out").exists() and not Path("out.html").exists()
    return ended.err


@every
@pytest.mark.parametrize("suffix", [".json", ".yaml"])
def test_machines(what: str, suffix: str) -> None:
    name = f"machine{suffix}"
    contents(Path(name), what)
    for arguments in (
        ["run", name],
        ["run", name, "--on", "universal"],
        ["verify", name],
        ["exhaust", name],
        ["compile", name, "-o", "out"],
        ["machines", name, "-o", "out.html"],
        ["graph", "next_token_turing", "--machine", name],
        ["train", "tm-tiny", "--machine", name, "-o", "out"],
        ["compare", "--machine", name, "-o", "out"],
        ["inspect", "compiled", name, "-o", "out.html"],
    ):
        assert name in refused(*arguments)


def test_a_list_is_json_and_not_yaml() -> None:
    Path("list.json").write_text("[1, 2]")
    Path("word.json").write_text("hello")
    assert "JSON" in refused("machines", "list.json") and "YAML" not in refused("machines", "list.json")
    assert "JSON" in refused("machines", "word.json")


@every
def test_programs_of_ones_own(what: str) -> None:
    """Code is run as it is, so what is no Python is what can be wrong with it."""
    if what in ("endless", "list", "empty", "wrong"):
        pytest.skip("never ends, or is Python")
    contents(Path("mine.py"), what)
    for arguments in (
        ["run", "mine.py:f", "1 2"],
        ["graph", "mine.py:f"],
        ["compile", "mine.py:f", "--tokens", "2", "-o", "out"],
        ["inspect", "mine.py:f", "1 2", "-o", "out.html"],
        ["train", "addition-cpu", "--task", "mine.py:Task", "-o", "out"],
    ):
        assert "mine.py" in refused(*arguments)


@pytest.mark.parametrize(
    "code",
    [
        "def f(x): return undefined",
        "def f(x): raise KeyboardInterrupt('not me')",
        "def f(x): return f(x)",
        "def f(x): return 'text'",
        "def f(x): return [[x]]",
        "def f(x):\n while True: x = x + 1",
        "raise SystemExit(7)",
        "import sys; sys.exit('bye')",
        "f = 3",
        "def f(): pass",
        "f = lambda *x: None",
    ],
)
def test_programs_that_misbehave(code: str) -> None:
    if "while" in code:
        pytest.skip("a program that never ends is ended by Ctrl-C")
    Path("mine.py").write_text(f"from rasp import *\n{code}\n")
    ended = run("graph", "mine.py:f")
    assert ended.refused or "KeyboardInterrupt" in code and ended.code == 130, ended


# --- folders ----------------------------------------------------------------------------------------------------------


@every
def test_models(what: str) -> None:
    contents(Path("model/config.json"), what)
    (Path("model") / "model.safetensors").write_bytes(b"x" * 100)
    for arguments in (
        ["run", "bb2", "--on", "model"],
        ["evaluate", "model", "-o", "out"],
        ["compare", "model", "-o", "out"],
        ["inspect", "model", "-o", "out.html"],
        ["inspect", "compiled", "bb2", "--against", "model", "-o", "out.html"],
        ["export", "hugging-face", "model", "-o", "out"],
        ["train", "tm-tiny", "--start", "model", "-o", "out"],
    ):
        assert "model" in refused(*arguments)


@every
def test_results(what: str) -> None:
    contents(Path("results.json"), what)
    for arguments in (["compare", "--from", "results.json"], ["compare", "--from", "results.json", "-o", "out"]):
        assert "results.json" in refused(*arguments)


@every
def test_journals(what: str) -> None:
    if what in ("endless", "missing", "empty", "null byte"):
        pytest.skip("a device, or where a journal begins")
    contents(Path("journal"), what)
    before = Path("journal").read_bytes()
    assert "journal" in refused("verify", "-m", "5", "--no-corners", "--resume", "journal")
    assert Path("journal").read_bytes() == before


@every
def test_states_of_training(what: str) -> None:
    contents(Path("run/state.safetensors"), what)
    ended = run("train", "tm-tiny", "--resume", "-o", "run")
    assert ended.refused and "run" in ended.err


@every
def test_models_of_the_zoo(what: str) -> None:
    """What is not whole is written again; what does not belong there is named."""
    contents(Path("zoo/cumsum-ones/manifest.json"), what)
    contents(Path("zoo/bb3/manifest.json"), what)
    ended = run("zoo", "zoo", "--only", "cumsum-ones", "--score", "random", "--json")
    assert ended.refused or ended.code == 0 and json.loads(ended.out)["models"], ended
