"""What README, docs and `--help` print as commands and code is what the program takes."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from experiments.cli import app

ROOT = Path(__file__).parent.parent
PAGES = sorted([ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").glob("*.md")])


def commands_in(text: str) -> list[str]:
    """Every `turing-programs ...`: a line of its own, or within back quotes or the examples of a command's help."""
    quoted = re.findall(r"`(turing-programs [^`]*)`", text)
    examples = re.findall(r"(?:Examples?:|·) +(turing-programs .*?)(?=  ·|$)", text)
    lines = [line.partition(" #")[0].strip() for line in text.splitlines() if line.startswith("turing-programs ")]
    return [*quoted, *examples, *lines]


def parse(command: str) -> None:
    """As the command line does, without doing it. Raises what it would say."""
    current: Any = get_command(app)
    name, *words = shlex.split(command)
    context = current.make_context(name, words[:1] if words[0].startswith("-") else words, resilient_parsing=False)
    while getattr(current, "commands", None) and words and not words[0].startswith("-"):
        name, current, words = current.resolve_command(context, words)
        if words or not getattr(current, "commands", None):
            context = current.make_context(name, words, parent=context)


def epilogs(command: Any) -> list[str]:
    own = [command.epilog] if command.epilog else []
    return own + [line for one in getattr(command, "commands", {}).values() for line in epilogs(one)]


PRINTED = sorted(
    {command for page in PAGES for command in commands_in(page.read_text(encoding="utf-8"))}
    | {command for epilog in epilogs(get_command(app)) for command in commands_in(epilog)}
)


@pytest.mark.parametrize("command", [command for command in PRINTED if "--help" not in command])
def test_a_printed_command_is_understood(command: str) -> None:
    parse(command)


def test_there_are_commands_to_look_at() -> None:
    assert len(PRINTED) > 60


@pytest.mark.parametrize(
    "wrong",
    [
        "turing-programs runn bb4",
        "turing-programs run",
        "turing-programs verify --bogus",
        "turing-programs bench nothing",
    ],
)
def test_a_wrong_command_is_noticed(wrong: str) -> None:
    with pytest.raises(Exception, match=r"No such (command|option)|Missing parameter"):
        parse(wrong)


# --- code -------------------------------------------------------------------------------------------------------------


def blocks(page: str, language: str) -> list[str]:
    return re.findall(
        rf"^```{language}\n(.*?)^```", (ROOT / page).read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE
    )


def test_the_code_of_the_readme_says_what_it_prints() -> None:
    (code,) = blocks("README.md", "python")
    known: dict[str, Any] = {}
    exec(code, known)
    counts = re.search(r"counts\(\) +# (\{.*\})", code)
    assert counts and known["simplify"](known["trace"](known["majority"])).counts() == eval(counts.group(1))
    model = known["compile_program"](known["majority"], vocabulary=range(2), counts=32, positions=32)
    assert list(model.predict(known["x"])) == list(known["majority"](known["x"]))


def test_the_model_of_the_results_page_can_be_compared() -> None:
    (code,) = blocks("docs/results.md", "python")
    known: dict[str, Any] = {}
    exec(code, known)
    right = {row["simulator"]: row["accuracy"] for row in known["found"].accuracy() if row["measure"] == "tape"}
    assert right["copycat"] == 0 < right["program"]


@pytest.mark.slow
@pytest.mark.parametrize("page", ["docs/circuits.md", "docs/compiler.md"])
def test_the_code_of_a_page_runs_from_its_top_to_its_end(
    page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TURING_PROGRAMS_ZOO", str(tmp_path / "zoo"))  # built here, not taken from the home
    known: dict[str, Any] = {}
    for code in blocks(page, "python"):
        exec(code, known)
    if page == "docs/compiler.md":
        patched = known["patch"](known["model"], known["tokens"], known["other"], "next_symbol", 53)
        assert len(patched.changed) and patched.as_predicted
        assert len(known["text"]) == len(known["prompt"]) + 100_000
    else:
        assert known["logits"].shape[:2] == known["prompt"].shape and Path("bb3.onnx").exists()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    assert dead_links(page.read_text(encoding="utf-8"), page) == []


def test_dead_links_are_noticed() -> None:
    text = "[good](docs/results.md#at-the-papers-size) [](#read-on) [no](none.md) [no](docs/results.md#no) [no](#no)"
    assert dead_links(text, ROOT / "README.md") == ["none.md", "docs/results.md#no", "#no"]


def dead_links(text: str, page: Path) -> list[str]:
    """Links within the repository to what is not there: a file, or a heading of a page."""
    found = []
    for link, file, heading in re.findall(r"\]\((([^)#:\s]*)#?([^)\s:]*))\)", text):
        target = page.parent / file if file else page
        if not target.exists() or (heading and heading not in headings(target)):
            found.append(link)
    return found


def headings(page: Path) -> set[str]:
    """As GitHub writes them in links."""
    titles = re.findall(r"^#+ (.*)", page.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


# --- walks ------------------------------------------------------------------------------------------------------------


def walked(text: str) -> list[tuple[str, str]]:
    """(file, name) for every line of a walk; a line without a file goes on in the one above that is indented less."""
    found, files = [], {}
    for line in text.splitlines():
        step = re.match(r"( *)(?:(\S+\.py) +)?((?:\w+, )*\w+)(?=  |$)", line)
        if step:
            indent = len(step[1]) if step[2] else min(files, default=0)
            if step[2]:
                files = {at: file for at, file in files.items() if at < indent} | {indent: step[2]}
            found += [(files[indent], name) for name in step[3].split(", ")]
    return found


WALKED = [step for block in blocks("docs/architecture.md", "")[1:] for step in walked(block)]


def test_the_walks_of_the_architecture_can_be_followed() -> None:
    assert len(WALKED) > 30
    defined = {(file, name): rf"^ *(?:def|class) {name}\b" for file, name in WALKED}
    assert [step for step, line in defined.items() if not re.search(line, (ROOT / step[0]).read_text(), re.M)] == []


def test_a_walk_that_names_what_is_not_there_is_noticed() -> None:
    steps = walked(
        "rasp/core.py       kqv        text\n                   nothing    more\n  rasp/draw.py     Drawing, draw\n"
    )
    assert steps == [
        ("rasp/core.py", "kqv"),
        ("rasp/core.py", "nothing"),
        ("rasp/draw.py", "Drawing"),
        ("rasp/draw.py", "draw"),
    ]
