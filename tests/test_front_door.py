"""Every command that README and docs print is run as printed, and what they say comes out of it comes out of it.

A page's commands are run in their order in one folder, which holds the files that the page shows. What takes hours is
made short by further options, and what needs a GPU or a cluster is refused where there is none: both are listed here.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from test_docs import PAGES, ROOT, blocks, commands_in

NO_BROWSER = "true"  # opens nothing
MODULES = {"turing-programs": "experiments.cli", "torchrun": "torch.distributed.run"}
COMPARED = "--examples 2 -n 1 --backends lean --finetune 0"

SHORTER = {  # minutes to days as printed
    "turing-programs agree --tokens 2000000 --seed 0": "--tokens 20000",
    "turing-programs verify -m 10000000000 --resume journal": "-m 100000",
    "turing-programs zoo models/": "--only induct --only bb3",
    "turing-programs zoo models/ --score patching": "--only induct --only bb3",
    "turing-programs zoo models/ --score random": "--only induct --only bb3",
    "turing-programs zoo models/ --score my.py:my_method --json": "--only induct",
    "turing-programs train tm-cpu --machine my.json": "--steps 4",
    "turing-programs train addition-cpu --task my.py:Reversal --lengths 2-10 -o runs/reversal": "--steps 4",
    "turing-programs evaluate runs/reversal": "--examples 4",
    "turing-programs compare runs/reversal": "--examples 2",
    "turing-programs train tm20-cpu --machine-seed 3": "--steps 4",
    "turing-programs train tm50-cpu --machine-seed 3": "--steps 4",
    "turing-programs train turing-paper-cpu": "--steps 4",
    "turing-programs train tm-cpu --machine-seed 3 --minutes 10": "--minutes 0.05",
    "turing-programs train addition-cpu --encoding rope --no-scratchpad": "--steps 4",
    "turing-programs train tm-cpu --start tm-0 --seed 9 -o runs/further": "--steps 4",
    "turing-programs evaluate --shipped --rollout 10": "--examples 2",
    "turing-programs evaluate --shipped --rollout 10 --markdown": "--examples 2",
    "turing-programs evaluate runs/a runs/b -o figures/": "--examples 4",
    "turing-programs compare --shipped -o report/ --open": COMPARED + " --lengths 20",
    "turing-programs compare runs/mine --lengths 20,40,60": COMPARED,
    "turing-programs compare addition -o report/": "--examples 2 -n 1",
    "torchrun --nproc_per_node 2 -m experiments.cli train tm-cpu -o runs/two": "--steps 4",
}

FORMAL = "turing-programs prove --formal"
SHOWN = {
    "turing-programs doctor": r"self-test",
    "turing-programs exhaust": r"2 symbols x 2 states: 65,536,[\s\S]*8,388,608 runs[\s\S]*0 violations",
    "turing-programs verify -m 1000000": r"0 violations",
    "turing-programs verify": r"16,817[\s\S]*83,183[\s\S]*0 violations",
    "turing-programs prove": r"proved",
    FORMAL: r"every lemma is proved[\s\S]*every theorem is proved in Coq [\d.]+, from no axioms",
    "turing-programs run bb4": r"halted in Z after 107 steps with 13 non-blank cells",
    "turing-programs run bb4 --on rasp": r"departs from the machine[\s\S]*2-gram|2-gram[\s\S]*departs from the machine",
    "turing-programs run bb4 --on universal": r"107 steps",
    "turing-programs run addition 4324+139 --on compiled": r"e\+\^\(0,4463\)\|\n4463\.\n[\s\S]*answer 4463",
    "turing-programs run my.json '10[1]10' --on rasp": r"departs from the machine",
    "turing-programs run my.py:majority '1 0 1 1 0 0 0'": r"1 0 1 1 1 0 0",
    "turing-programs machines": r"bb4",
    "turing-programs zoo --list": r"induct",
    "turing-programs verify my.json --length 4:12": r"0 violations",
    "turing-programs train paper-addition --dry-run": r"151",
    "turing-programs compare --from experiments/report/tasks/addition.json --markdown": r"program n = 6",
}

INTERRUPTED = {"turing-programs reproduce tm-0"}  # with Ctrl-C, once it has begun
REFUSED = {  # where there is no such thing, by its name
    "turing-programs train paper-addition --device cuda": "cuda",
    "turing-programs verify -m 10000000000 --resume journal --dask tcp://head:8786": "tcp://head:8786",
}
TEMPLATES = {"turing-programs bench", "turing-programs train PRESET --dry-run"}  # a word stands for several
QUICK = ["turing-programs run bb4", "turing-programs zoo --list", "turing-programs train paper-addition --dry-run"]


def printed(page: Path) -> list[str]:
    """A page's commands in their order, each once."""
    text = page.read_text(encoding="utf-8")
    launched = re.findall(r"^(torchrun .*?)(?: +#.*)?$", text, re.MULTILINE)
    in_order = sorted(dict.fromkeys([*commands_in(text), *launched]), key=text.index)
    return [command for command in in_order if command not in TEMPLATES and "--help" not in command]


def run_printed(command: str, folder: Path) -> str:
    """What is wrong with it; nothing if all is well."""
    program, *words = [*shlex.split(command), *shlex.split(SHORTER.get(command, ""))]
    paths = os.pathsep.join([str(folder), *filter(None, [os.environ.get("PYTHONPATH")])])
    environment = {**os.environ, "BROWSER": NO_BROWSER, "PYTHONPATH": paths, "COLUMNS": "200"}
    arguments = [sys.executable, "-m", MODULES[program], *words]
    if command in INTERRUPTED:
        return interrupted(arguments, folder, environment)
    done = subprocess.run(arguments, capture_output=True, text=True, timeout=1800, cwd=folder, env=environment)
    if lacking := REFUSED.get(command):
        return "" if done.returncode == 2 and lacking in done.stderr.lower() else f"{command}: {done.stderr[-500:]}"
    if done.returncode:
        return f"{command}: exit code {done.returncode}: {done.stderr[-500:]}"
    shown = SHOWN.get(command, "")
    return "" if re.search(shown, done.stdout + done.stderr) else f"{command}: no {shown!r} in {done.stdout[-800:]}"


def interrupted(arguments: list[str], folder: Path, environment: dict[str, str]) -> str:
    """A training is stopped after its first step, and says how it goes on."""
    process = subprocess.Popen(arguments, stderr=subprocess.PIPE, text=True, cwd=folder, env=environment)
    assert process.stderr is not None
    said = next((line for line in process.stderr if line.startswith("step 1/")), "")
    process.send_signal(signal.SIGINT)
    rest = process.communicate(timeout=300)[1]
    return "" if said and process.returncode == 130 and "--resume" in rest else f"{arguments}: {rest[-500:]}"


def make_folder(page: Path, folder: Path) -> Path:
    """With the files that the page shows, those that it goes on from, and those of the checkout that it names."""
    for kind, name in (("json", "my.json"), ("yaml", "my.yaml")):
        for block in blocks(str(page.relative_to(ROOT)), kind):
            (folder / name).write_text(block)
    programs = [b for b in blocks(str(page.relative_to(ROOT)), "python") if b.startswith("# my.py\n")]
    method = "def my_method(model, inputs):\n    return {e: 1.0 for e in model.edges}\n"
    (folder / "my.py").write_text("\n\n".join([*programs, method]))
    if page.name == "results.md":
        for name in ("a", "b", "mine"):
            shutil.copytree(ROOT / "experiments/checkpoints/tm-0", folder / "runs" / name)
        shutil.copytree(ROOT / "experiments/report", folder / "experiments/report")
    return folder


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_what_a_page_prints_works_as_printed(page: Path, tmp_path: Path) -> None:
    folder, commands = make_folder(page, tmp_path), printed(page)
    if FORMAL in commands and shutil.which("coqc") is None:
        pytest.skip(f"Coq is not installed: `{FORMAL}` cannot run as printed")
    wrong = [run_printed(command, folder) for command in commands]
    assert [sentence for sentence in wrong if sentence] == []


@pytest.mark.parametrize("command", QUICK)
def test_quick_ones(command: str, tmp_path: Path) -> None:
    assert run_printed(command, tmp_path) == ""


def test_the_tables_name_commands_that_are_printed() -> None:
    everywhere = {command for page in PAGES for command in printed(page)}
    assert {*SHORTER, *SHOWN, *INTERRUPTED, *REFUSED, *QUICK} - everywhere == set()


def test_a_command_that_does_not_give_what_is_shown_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(SHOWN, "turing-programs zoo --list", "no such model")
    assert "no 'no such model' in" in run_printed("turing-programs zoo --list", tmp_path)
    assert "exit code 2" in run_printed("turing-programs run nothing", tmp_path)
