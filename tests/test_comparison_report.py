"""The report of `turing-programs compare`: what the page says, that damage shows in it, and how the command ends."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import time
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
import torch
from bad_days.running import run
from comparison_results import made_up

from compile.transformer import Transformer
from experiments.cli import main
from experiments.comparison import report, study
from experiments.comparison.findings import findings, headline
from experiments.comparison.summary import as_markdown, families, learned_of, shares, summary_table
from experiments.evaluation.shipped import FOLDER
from rasp import TuringMachine
from rasp.files import becoming
from rasp.formats.json import to_json

SECTIONS = [
    "summary",
    "accuracy",
    "rollouts",
    "difficulty",
    "anatomy",
    "mechanism",
    "cost",
    "from-compiled",
    "inspector",
    "method",
]
QUICK = (
    "--lengths",
    "8,12",
    "--examples",
    "18",
    "--steps",
    "2",
    "--n",
    "1,2",
    "--backends",
    "lean",
    "--workers",
    "1",
    "--finetune",
    "0",
)


def command(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "experiments.cli", "compare", *arguments], capture_output=True, text=True, timeout=500
    )


class Reader(HTMLParser):
    """The sections of a page as plain text, every address it names, and whether its tags are closed in order."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.texts: dict[str, str] = {}
        self.addresses: list[str] = []
        self.open: list[str] = []
        self.section = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        known = dict(attrs)
        if tag == "section":
            self.section = known["id"] or ""
        self.addresses += [known[name] or "" for name in ("href", "src", "xlink:href") if name in known]
        if tag not in ("meta", "br", "link"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts[self.section] = self.texts.get(self.section, "") + data


# --- the page ---------------------------------------------------------------------------------------------------------


def test_the_page_has_every_section_and_needs_no_network() -> None:
    page = report.render(made_up(3))
    read = Reader(page)
    assert list(read.texts)[1:] == SECTIONS and not read.open
    assert all(re.match(r"#|pages/|results\.json$", address) for address in read.addresses)
    assert "<script" not in page and "url(http" not in page and "@import" not in page
    assert len(page.encode()) < 5_000_000


def test_the_page_of_ten_machines_is_small() -> None:
    assert len(report.render(made_up(10)).encode()) < 2_000_000


def test_every_number_of_the_table_is_in_the_results() -> None:
    results = made_up(3)
    learned = learned_of(results)
    assert learned is not None
    rows = [
        row
        for m in results["machines"]
        for row in m["accuracy"]
        if row["simulator"].startswith("learned") and row["measure"] == "tape" and row["times"] == 2.0
    ]
    accuracies = [row["accuracy"] for row in rows]
    share = shares(results, learned)[2.0]
    assert share.mean == pytest.approx(sum(accuracies) / 3)
    assert (share.low, share.high, share.machines) == (min(accuracies), max(accuracies), 3)
    text = as_markdown(results)
    assert f"{share.mean:.3f}".removeprefix("0") in text and "10 steps at 2x" in text
    assert text.count("\n|") == len(families(results)) + 1
    assert "1,234,567 tokens" in text


def test_programs_stand_for_their_compilations() -> None:
    table = summary_table(made_up(2))
    assert [family.label for family, _ in table.rows] == [
        "true machine",
        "program n = 1",
        "program n = 2",
        "program n = 3",
        "program n = 4",
        "learned",
    ]
    assert "program n = 2 = hard_alibi, lean" in as_markdown(made_up(2))


def test_headline_and_findings_follow_the_results() -> None:
    good, damaged = made_up(2), made_up(2, learned=0.0)
    assert "99" in headline(good) or "98" in headline(good) or "97" in headline(good)
    assert headline(damaged).startswith("Learned models write 0% of next tapes right at their training length")
    assert any("match head in 2 of 2" in text for text in findings(good))
    assert any("did not find the compiled" in text for text in findings(damaged))


def test_one_machine_without_a_learned_model() -> None:
    results = made_up(1)
    machine = results["machines"][0]
    machine["simulators"] = [sim for sim in machine["simulators"] if sim["kind"] != "learned"]
    known = {sim["name"] for sim in machine["simulators"]}
    for section in ("accuracy", "difficulty", "anatomy", "cost"):
        machine[section] = [row for row in machine[section] if row["simulator"] in known]
    machine["mechanism"], machine["inspector"], results["from_compiled"] = None, [], None
    read = Reader(report.render(results))
    assert [name for name in SECTIONS if name not in read.texts] == ["mechanism", "from-compiled", "inspector"]
    assert "exactly where the theorem says" in headline(results) and "40 cells" in read.texts["summary"]


def test_names_are_only_ever_text() -> None:
    results = made_up(1)
    bad = "</style><script>alert(1)</script><img src=x>"
    rules = {("q", bad): (bad, "R", "q")}
    machine = results["machines"][0]
    machine |= {"name": bad, "machine": to_json(TuringMachine(states=["q"], symbols=[bad], transitions=rules))}
    machine["mechanism"]["heads"][0]["label"] = bad
    machine["inspector"][0]["title"] = bad
    for row in machine["anatomy"]:
        row["examples"] = [
            {
                "tape": [1, 4, 5, 2],
                "expected": [1, 4, 5, 2, 0],
                "written": [1, 5, 4, 2, 0],
                "at": 1,
                "place": "copy",
                "kind": bad,
            }
        ]
    results["command"] = bad
    page = report.render(results)
    assert "<script" not in page and "<img" not in page and page.count("&lt;script&gt;alert(1)") >= 6


def test_what_is_not_quite_one_is_not_shown_as_one() -> None:
    from experiments.comparison.summary import digits, percent

    assert [digits(share) for share in (1.0, 0.9999, 0.5, 0.0)] == ["1.000", ".999", ".500", ".000"]
    assert [percent(share) for share in (1.0, 0.9999, 0.0001, 0.0)] == ["100%", "99.9%", "0.1%", "0%"]


# --- files ------------------------------------------------------------------------------------------------------------


def test_files_are_whole_or_not_there(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt), becoming(tmp_path / "page.html") as partial:
        partial.write_text("half a pa")
        raise KeyboardInterrupt
    assert list(tmp_path.iterdir()) == []


def test_results_come_back_as_they_were(tmp_path: Path) -> None:
    results = made_up(1)
    kept = report.write_results(results, tmp_path)
    again = json.loads((tmp_path / "results.json").read_text())
    assert again == kept
    assert again["machines"][0]["simulators"] == results["machines"][0]["simulators"]
    assert as_markdown(again) == as_markdown(results)
    assert [p.name for p in report.write_report(again, tmp_path)] == ["report.html", "accuracy.png"]
    assert not list(tmp_path.rglob("*.partial"))


# --- the command ------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def damaged(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A shipped model that has lost what all layers but the first look for."""
    model = Transformer.from_pretrained(FOLDER / "tm-0")
    with torch.no_grad():
        for block in model.blocks[1:]:
            block.attn.qkv.weight.zero_()
    folder = tmp_path_factory.mktemp("models") / "damaged"
    model.save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def compared(damaged: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A small report on a shipped model and its damaged copy, and what was printed."""
    folder = tmp_path_factory.mktemp("compared") / "new" / "report"
    done = command("tm-0", str(damaged), *QUICK, "-o", str(folder))
    assert done.returncode == 0, done.stderr
    return folder, done.stdout


@pytest.fixture(scope="module")
def machines(compared: tuple[Path, str]) -> list[dict[str, Any]]:
    return json.loads((compared[0] / "results.json").read_text())["machines"]


def rows(machine: dict[str, Any], section: str, **wanted: Any) -> list[dict[str, Any]]:
    name = f"learned {machine['name']}"
    return [
        row
        for row in machine[section]
        if row["simulator"] == name and all(row[key] == value for key, value in wanted.items())
    ]


def test_the_command_writes_page_numbers_figure_and_inspector(compared: tuple[Path, str]) -> None:
    folder, printed = compared
    results = json.loads((folder / "results.json").read_text())
    assert {"python", "torch", "numpy"} <= set(results["versions"]) and results["seed"] == 0
    assert results["command"].startswith("turing-programs compare tm-0")
    assert all(check["mismatches"] == 0 for check in results["checks"].values())
    assert results["checks"]["compiled_equals_program"]["tokens"] > 1000
    assert (folder / "figures" / "accuracy.png").stat().st_size > 10_000
    page = Reader((folder / "report.html").read_text())
    links = [address for address in page.addresses if address.startswith("pages/")]
    assert links and all((folder / link).is_file() for link in links)
    assert "learned tm-0" in (folder / links[0]).read_text() and not list(folder.rglob("*.partial"))
    assert "learned" in printed and "program n = 2 = lean" in printed and "report.html" in printed


def test_damage_shows_in_accuracy_and_rollouts(machines: list[dict[str, Any]]) -> None:
    for measure, step in (("token", 1), ("tape", 1), ("rollout", 2)):
        good, bad = (rows(m, "accuracy", measure=measure, step=step)[-1]["accuracy"] for m in machines)
        assert bad < good - 0.2 and (measure == "token" or bad == 0)


def test_damage_shows_by_difficulty(machines: list[dict[str, Any]]) -> None:
    good, bad = (rows(m, "difficulty", gram=2, group="unique") for m in machines)
    assert good and all(row["accuracy"] > 0.8 for row in good) and all(row["accuracy"] == 0 for row in bad)


def test_damage_shows_in_the_anatomy(machines: list[dict[str, Any]]) -> None:
    (good,), (bad,) = (rows(m, "anatomy") for m in machines)
    assert bad["wrong"] == bad["tapes"] > good["wrong"] and bad["examples"]


def test_damage_shows_in_the_mechanism(machines: list[dict[str, Any]]) -> None:
    good, bad = (m["mechanism"] for m in machines)
    assert good["induction"]["verdict"] == "found" and bad["induction"]["verdict"] == "not found"
    assert good["unablated"] > 0.8 and bad["unablated"] == 0


def test_damage_shows_in_the_cost(machines: list[dict[str, Any]]) -> None:
    (good,), (bad,) = (rows(m, "cost") for m in machines)
    assert bad["nonzero"] < good["nonzero"] and bad["parameters"] == good["parameters"]


def test_damage_shows_on_the_page(compared: tuple[Path, str], machines: list[dict[str, Any]]) -> None:
    """Each section of the page tells of it: the damaged model's line, its errors, its heads, its weights, its page."""
    read = Reader((compared[0] / "report.html").read_text())
    alone = Reader(report.render({**json.loads((compared[0] / "results.json").read_text()), "machines": machines[:1]}))
    for name in ("summary", "accuracy", "rollouts", "difficulty", "anatomy", "mechanism", "cost", "inspector"):
        assert read.texts[name] != alone.texts[name], name
    assert "not found" in read.texts["mechanism"] and "not found" not in alone.texts["mechanism"]
    assert "the learned model is wrong" in read.texts["inspector"] and "damaged" in read.texts["anatomy"]
    assert "in 1 of 2 models" in read.texts[""]


def test_the_table_comes_from_the_results_by_a_command(compared: tuple[Path, str]) -> None:
    folder, _ = compared
    done = run("compare", "--from", str(folder / "results.json"), "--markdown")
    assert done.code == 0 and done.out.startswith("|  | ")
    assert done.out.strip() == as_markdown(json.loads((folder / "results.json").read_text())).strip()


def test_the_page_can_be_drawn_again(compared: tuple[Path, str], tmp_path: Path) -> None:
    done = run("compare", "--from", str(compared[0] / "results.json"), "-o", str(tmp_path / "again"), "--json")
    assert done.code == 0 and len(json.loads(done.out)["machines"]) == 2
    again = (tmp_path / "again" / "report.html").read_text()
    assert again == (compared[0] / "report.html").read_text()


def test_bad_input_is_refused_in_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    report.write_results(made_up(1), tmp_path)
    (tmp_path / "file").write_text("x")
    (tmp_path / "other.json").write_text("{}")
    (tmp_path / "deep.json").write_text("[" * 100_000)
    for arguments, said in (
        ((), "nothing to compare"),
        (("no/such/run",), "no folder"),
        (("tm-0", "--lengths", "a"), "not a list"),
        (("tm-0", "--n", "7"), "n = 1 to 4"),
        (("tm-0", "--backends", "onnx"), "backends are"),
        (("tm-0", "-o", "file"), "cannot write"),
        (("--from", "file"), "is not JSON"),
        (("--from", "other.json"), "not written by `compare`"),
        (("--from", "deep.json"), "is not JSON"),
        (("--from", "."), "Is a directory"),
        (("--from", "missing.json"), "missing.json"),
        (("tm-0", "--from", "results.json"), "--from measures nothing"),
        (("--from", "results.json", "--open"), "-o says where"),
        (("--machine", "random:x"), "random:SYMBOLSxSTATES:SEED"),
    ):
        monkeypatch.setattr(sys, "argv", ["turing-programs", "compare", *arguments])
        with pytest.raises(SystemExit) as ended:
            main()
        printed = capsys.readouterr()
        assert ended.value.code == 2 and said in printed.err, (arguments, printed.err)
        assert printed.out == "" and len(printed.err.strip().splitlines()) == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == ["deep.json", "file", "other.json", "results.json"]


HEEDING = """
import signal
from experiments.cli import main
signal.signal(signal.SIGINT, signal.default_int_handler)  # a background job of a shell inherits it ignored
main()
"""


@pytest.mark.parametrize(("stop", "workers"), [(signal.SIGINT, 1), (signal.SIGINT, 2), (signal.SIGKILL, 1)])
def test_a_stop_leaves_nothing_half_written(stop: signal.Signals, workers: int, damaged: Path, tmp_path: Path) -> None:
    folder = tmp_path / "report"
    arguments = ["compare", "tm-0", str(damaged), "-o", str(folder), "--examples", "2000", "--workers", str(workers)]
    running = subprocess.Popen(
        [sys.executable, "-c", HEEDING, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    while not folder.exists():  # it is made when the work begins
        assert running.poll() is None, running.communicate()
        time.sleep(0.2)
    time.sleep(2)
    running.send_signal(stop)
    _, said = running.communicate(timeout=500)
    assert running.returncode == (130 if stop == signal.SIGINT else -stop) and "Traceback" not in said
    assert [path for path in folder.rglob("*") if path.is_file()] == []


# --- the study --------------------------------------------------------------------------------------------------------


def test_a_machine_by_itself_and_who_is_told(tmp_path: Path) -> None:
    from experiments.comparison.subjects import Settings, Subject

    told: list[str] = []
    machine = TuringMachine.random(symbols=3, states=2, seed=1)
    settings = Settings(lengths=(3, 6), examples=12, steps=2, ns=(1,), backends=("lean",))
    twice = [Subject("one", machine), Subject("one", machine)]
    results = study.study(twice, settings, folder=tmp_path, tell=told.append)
    assert [m["name"] for m in results["machines"]] == ["one", "one (2)"]
    assert told[0] == "one: machine, program n=1" and "one (2): lean n=1" in told
    first = results["machines"][0]
    assert {row["measure"] for row in first["accuracy"]} == {"token", "tape", "rollout"} and first["mechanism"] is None
    assert all((tmp_path / page["file"]).is_file() for page in first["inspector"]) and first["inspector"]
    assert Reader(report.render(results)).texts["summary"]


def test_tapes_come_from_all_seeds_in_turns() -> None:
    from experiments.comparison.measure import fresh_tapes

    machine = TuringMachine.random(symbols=3, states=2, seed=1)
    tapes = study.over_seeds((4, 7), fresh_tapes, 5, machine, 6)
    first, second = (fresh_tapes(machine, 6, 3, seed) for seed in (4, 7))
    assert tapes.tolist() == [row.tolist() for row in (first[0], second[0], first[1], second[1], first[2])]


def test_a_broken_promise_ends_the_study() -> None:
    """A program that is not what the theorem is about is noticed, and nothing is reported."""
    from experiments.comparison.checks import Disagreement
    from experiments.comparison.simulators import ProgramSimulator
    from experiments.comparison.subjects import Settings, Subject

    class Wrong(ProgramSimulator):
        def predict(self, tokens: Any) -> Any:
            return super().predict(tokens) * 0

        def generate(self, prompts: Any, count: int) -> Any:
            said = super().generate(prompts, count)
            said[:, -1] = 1
            return said

    machine = TuringMachine.random(symbols=3, states=2, seed=1)
    run = study.MachineStudy(Subject("one", machine), Settings(lengths=(4,), examples=4, steps=1), True, lambda _: None)
    with pytest.raises(Disagreement):
        run.add("program", {"wrong": Wrong(machine, 1)})


def test_the_readme_shows_the_committed_results() -> None:
    root = Path(__file__).parent.parent
    results = json.loads((root / "experiments/report/results.json").read_text())
    assert as_markdown(results) in (root / "docs" / "results.md").read_text()
    assert results["versions"]["torch"] and results["checks"]["criterion"]["mismatches"] == 0
