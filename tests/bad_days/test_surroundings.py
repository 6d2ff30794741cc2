"""Commands in processes of their own, in surroundings that are not as usual: no room, no home, nobody who listens."""

from __future__ import annotations

import resource
import subprocess
from pathlib import Path

import pytest

import experiments
from bad_days.running import started

ROOM = 150  # bytes of a file, then the disk is full
RESULTS = Path(experiments.__file__).parent / "report" / "results.json"
WRITERS = {
    "compile": ["compile", "bb2", "--backend", "lean", "--steps", "2", "-o", "out"],
    "train": ["train", "tm-tiny", "--steps", "1", "-o", "out"],
    "compare": ["compare", "--from", str(RESULTS), "-o", "out"],
    "inspect": ["inspect", "compiled", "bb2", "-o", "out"],
    "machines": ["machines", "bb2", "-o", "out"],
    "graph": ["graph", "addition", "-o", "out.dot"],
}
pytestmark = pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full here")


def ended(*arguments: str, into: str = "", room: int | None = None, home: str | None = "") -> tuple[int, str, str]:
    """Exit code and what was said; `into`: where to, instead of to us; `home`: the folder, None for none at all."""
    command, environment = started(*arguments)
    environment = {name: value for name, value in environment.items() if home == "" or name not in HOMES}
    if room is not None:  # the files of `make coverage` are no part of what is tried
        environment = {name: value for name, value in environment.items() if not name.startswith("COV")}
    if home:
        environment["HOME"] = home

    def limit() -> None:
        if room is not None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (room, room))

    with open(into or "said", "w") as out:
        done = subprocess.run(
            command, env=environment, stdout=out, stderr=subprocess.PIPE, text=True, timeout=500, preexec_fn=limit
        )
    return done.returncode, "" if into else Path("said").read_text(), done.stderr


HOMES = ("HOME", "XDG_CACHE_HOME", "NUMBA_CACHE_DIR", "TURING_PROGRAMS_CACHE", "MPLCONFIGDIR")


@pytest.fixture(autouse=True)
def in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def is_a_refusal(code: int, said: str) -> bool:
    return code == 2 and said.count("\n") == 1 and said.startswith("error: ") and "Traceback" not in said


@pytest.mark.parametrize("name", WRITERS)
def test_a_disk_that_is_full(name: str) -> None:
    """The sentence is the last line; nothing that was cut short looks like a result."""
    code, _, said = ended(*WRITERS[name], room=ROOM)
    assert is_a_refusal(code, said.splitlines(keepends=True)[-1]) and "Traceback" not in said, said
    cut = [path for path in Path().rglob("*") if path.is_file() and path.stat().st_size >= ROOM]
    assert cut == [], cut


def test_a_journal_on_a_full_disk_goes_on_where_it_ended() -> None:
    verify = ["verify", "-m", "60000", "--no-corners", "--resume", "journal"]
    code, _, said = ended(*verify, room=600)
    last = said.splitlines(keepends=True)[-1]  # before it, perhaps, that machine code has no room either
    assert is_a_refusal(code, last) and "journal cannot be written" in last and "Traceback" not in said, said
    assert 300 < Path("journal").stat().st_size <= 600
    code, told, said = ended(*verify)
    assert code == 0 and "0 violations" in told, said


@pytest.mark.parametrize("name", ["compile", "inspect", "machines", "graph"])
def test_a_disk_that_takes_nothing(name: str) -> None:
    *command, _ = WRITERS[name]
    code, _, said = ended(*command, "/proc/no-such-folder/out")
    assert is_a_refusal(code, said) and "/proc" in said, said


@pytest.mark.parametrize("command", ["machines", "run bb4", "table", "programs"])
def test_what_is_printed_has_no_room(command: str) -> None:
    code, _, said = ended(*command.split(), into="/dev/full")
    assert is_a_refusal(code, said) and "No space left on device" in said, said


@pytest.mark.parametrize("command", ["machines", "run bb4", "table", "graph addition"])
def test_nobody_reads_on(command: str) -> None:
    """As before `| head`: silent, and not a success."""
    arguments, environment = started(*command.split())
    running = subprocess.Popen(arguments, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert running.stdout is not None and running.stderr is not None
    running.stdout.close()
    assert running.wait(timeout=500) == 1 and running.stderr.read() == b""


@pytest.mark.parametrize("home", [None, "/proc/no-such-folder"])
def test_no_home(home: str | None) -> None:
    code, said, complaint = ended("verify", "-m", "200", "--no-corners", home=home)
    assert code == 0 and "0 violations" in said, complaint
