"""The command line as a person meets it: what it prints, what it refuses, and how it ends."""

from __future__ import annotations

import json
import subprocess
import sys
import warnings
from pathlib import Path

import pytest
from bad_days.running import run


def command(*arguments: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    """In a process of its own, as a shell starts it."""
    return subprocess.run(
        [sys.executable, "-m", "experiments.cli", *arguments], capture_output=True, text=True, timeout=300, cwd=cwd
    )


def within(*arguments: str) -> subprocess.CompletedProcess[str]:
    """In this process, which has imported everything already; warnings go to standard error, as they do elsewhere."""
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("default")
        warnings.simplefilter("ignore", DeprecationWarning)
        ended = run(*arguments)
    said = [warnings.formatwarning(one.message, one.category, one.filename, one.lineno) for one in heard]
    return subprocess.CompletedProcess(list(arguments), ended.code, ended.out, "".join(said) + ended.err)


def ok(*arguments: str) -> str:
    done = within(*arguments)
    assert done.returncode == 0, done.stderr
    return done.stdout


def refused(*arguments: str) -> str:
    """Exit code 2, a sentence, no traceback, nothing on standard output."""
    done = within(*arguments)
    assert done.returncode == 2, (done.returncode, done.stdout, done.stderr)
    assert "Traceback" not in done.stderr and done.stdout == ""
    assert len(done.stderr.strip().splitlines()) == 1, done.stderr
    return done.stderr


def test_help_names_every_command_and_shows_examples() -> None:
    text = ok("--help")
    for name in ("verify", "exhaust", "prove", "theorem", "run", "compile", "inspect", "machines", "graph", "bench"):
        assert name in text
        assert "Example" in ok(name, "--help") or name == "bench"


@pytest.mark.parametrize(
    "arguments",
    [
        "verify bb2 --resume a.journal",
        "verify bb2 --symbols 12",  # though it is the default
        "exhaust bb2 --states 2",
        "run addition 4324+139 --steps 3",
        "run argmax 1 --packing tuple",
        "graph argmax --machine bb2",
        "graph addition --packing tuple",
        "figure machines --seed 1",
        "inspect --gallery pages --output page.html",
        "compare addition --finetune 0",
        "compare --from results.json --seeds 1",
        "train tm-tiny --dry-run --minutes 1",
    ],
)
def test_an_option_that_would_change_nothing_is_refused(arguments: str) -> None:
    *words, option, _ = arguments.split()
    named = "--dry-run" if "--dry-run" in words else option
    assert named in refused(*arguments.split())


def test_version() -> None:
    from rasp import __version__

    assert ok("--version").strip() == f"turing-programs {__version__}"


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["run", "bb4"], 0),
        (["run", "bb4", "--on", "rasp", "--json"], 0),
        (["run", "bb44"], 2),
        (["run", "bb2", "0[1"], 2),
    ],
)
def test_a_process_says_and_ends_as_the_command_does_within_this_one(arguments: list[str], code: int) -> None:
    """So that the other tests need not start one."""
    apart, here = command(*arguments), within(*arguments)
    assert apart.returncode == here.returncode == code
    assert (apart.stdout, apart.stderr) == (here.stdout, here.stderr)


def test_busy_beaver_4_halts_after_107_steps_with_13_ones() -> None:
    result = json.loads(ok("run", "bb4", "--on", "machine", "--json"))
    assert (result["steps"], result["halted"], result["correct"], result["non_blank"]) == (107, True, True, 13)
    assert "halted in Z after 107 steps with 13 non-blank cells" in ok("run", "bb4")


def test_rasp_departs_from_bb4_and_says_which_gram_repeats() -> None:
    text = ok("run", "bb4", "--on", "rasp")
    assert "holds the 2-gram `0 0` twice" in text and "departs from the machine" in text
    result = json.loads(ok("run", "bb4", "--on", "rasp", "--json"))
    assert result["correct"] is False and result["divergence"]["step"] == 1 and "2-gram" in result["explanation"]


def test_tags_carry_bb4_through_the_rasp_program() -> None:
    result = json.loads(ok("run", "bb4", "--on", "rasp", "--tags", "--json"))
    assert (result["steps"], result["halted"], result["correct"], result["non_blank"]) == (107, True, True, 13)


def test_a_key_collision_is_explained() -> None:
    """On a one-cell tape no 2-gram ever repeats; past base**n steps keys of different tapes collide."""
    from proofs_check import first_wrong_step
    from rasp import TuringMachine

    machines = ((seed, TuringMachine.random(symbols=2, states=2, seed=seed)) for seed in range(100))
    seed = next(seed for seed, m in machines if first_wrong_step(m, m.encode(["a1"]), 80))
    result = json.loads(ok("run", f"random:2x2:{seed}", "a1", "--on", "rasp", "-t", "80", "--json"))
    assert not result["correct"] and result["divergence"]["step"] > 8 and "Two keys collide" in result["explanation"]


@pytest.mark.parametrize("engine", ["reference", "eager", "graph", "stream", "jit"])
def test_every_engine_runs_the_program(engine: str) -> None:
    result = json.loads(ok("run", "increment", "--on", "rasp", "--tags", "--engine", engine, "--json"))
    assert result["correct"] and result["tape"].replace("[done:", "").replace("]", "").strip("_") == "1100"


def test_run_reads_files_and_text(tmp_path: Path) -> None:
    path = tmp_path / "bb2.json"
    ok("machines", "1RB1LB_1LA1RZ", "-o", str(path))
    assert json.loads(ok("run", str(path), "--json"))["steps"] == 6
    assert json.loads(ok("run", "1RB1LB_1LA1RZ", "--json"))["steps"] == 6


def test_a_name_that_is_nearly_a_tasks_is_told_so() -> None:
    assert "do you mean the task 'addition'?" in refused("run", "adition", "4324+139")
    assert "task" not in refused("run", "bb")


def test_machines_lists_and_draws(tmp_path: Path) -> None:
    assert "bb4" in ok("machines") and "palindrome" in json.loads(ok("machines", "--json"))
    assert "reads 0" in ok("machines", "bb3")
    ok("machines", "bb3", "-o", str(tmp_path / "bb3.svg"))
    assert (tmp_path / "bb3.svg").read_text().count("<path") > 3


def test_graph_counts_and_draws(tmp_path: Path) -> None:
    report = json.loads(ok("graph", "next_token_turing", "-o", str(tmp_path / "g.svg"), "--json"))
    assert report["counts"]["kqv"] == 1 and report["traced_nodes"] > report["nodes"]
    assert (tmp_path / "g.svg").stat().st_size > 1000
    program = tmp_path / "mine.py"
    program.write_text("from rasp import *\ndef majority(x):\n    return where(cumsum(x == 1) > 2, x, -indices(x))\n")
    assert json.loads(ok("graph", f"{program}:majority", "--json"))["nodes"] > 3
    assert json.loads(ok("graph", "induct", "--json"))["counts"]["kqv"] == 2


def test_verify_reports_the_contingency(tmp_path: Path) -> None:
    report = tmp_path / "report.json"
    result = json.loads(ok("verify", "-m", "300", "--json", "-o", str(report)))
    assert {"machines", "steps", "hypothesis_held", "correct", "violations", "machines_per_minute"} <= result.keys()
    assert result["machines"] == 300 and result["violations"] == 0 and 0 < result["hypothesis_held"] < 300
    assert json.loads(report.read_text())["correct"] == result["correct"]
    assert "0 violations" in ok("verify", "-m", "50")


def test_verify_of_a_wrong_program_ends_with_1() -> None:
    """The program is found by name in this folder, and run by the jit engine like the right one."""
    done = command("verify", "-m", "300", "--program", "wrong_programs:smallest_match", cwd=Path(__file__).parent)
    assert done.returncode == 1 and "VIOLATIONS" in done.stdout


def test_bb4_runs_to_its_halt_inside_a_transformer() -> None:
    result = json.loads(ok("run", "bb4", "--on", "compiled", "--json"))
    assert (result["steps"], result["halted"], result["correct"], result["non_blank"]) == (107, True, True, 13)


def test_a_saved_model_runs_its_machine_and_no_other(tmp_path: Path) -> None:
    model = str(tmp_path / "bb2")
    report = json.loads(ok("compile", "bb2", "--backend", "lean", "--tags", "5", "--steps", "8", "-o", model, "--json"))
    keys = {"backend", "layers", "heads", "d_model", "parameters", "nonzero", "seconds"}
    assert "match next 2-gram" in ok("compile", "bb2", "--backend", "lean", "--steps", "4")
    assert "written[i-1]" in ok("compile", "random:2x2:0", "--steps", "2")  # brackets are not markup
    assert keys <= report.keys() and report["layers"] == 2 and all(row["label"] for row in report["summary"])
    result = json.loads(ok("run", "bb2", "--on", model, "--json"))
    assert (result["steps"], result["halted"], result["correct"]) == (6, True, True)
    assert "another machine" in refused("run", "bb3", "--on", model)


def test_a_damaged_model_is_shown_to_be_wrong(tmp_path: Path) -> None:
    """Exit code 1 when the transformer departs from the machine."""
    import torch

    from compile import Transformer

    ok("compile", "bb2", "--backend", "lean", "--tags", "5", "--steps", "8", "-o", str(tmp_path / "right"))
    model = Transformer.from_pretrained(tmp_path / "right")
    with torch.no_grad():
        for weights in model.blocks[1].attn.parameters():
            weights.zero_()  # the match head
    model.save_pretrained(tmp_path / "wrong")
    done = command("run", "bb2", "--on", str(tmp_path / "wrong"))
    assert done.returncode == 1 and "departs from the machine" in done.stdout


def test_prove_reports_each_lemma(tmp_path: Path) -> None:
    report = json.loads(ok("prove", "where", "keys", "--no-mutants", "--certificate", str(tmp_path), "--json"))
    assert report["all_proved"] and [row["result"] for row in report["lemmas"]] == ["proved", "proved"]
    assert all({"claim", "scope", "result", "seconds"} <= row.keys() for row in report["lemmas"])
    assert list(tmp_path.glob("*.smt2"))
    assert "every lemma is proved" in ok("prove", "where")


def test_exhaust_leaves_nothing_out() -> None:
    report = json.loads(ok("exhaust", "--symbols", "1", "--states", "1", "--length", "3", "--json"))
    assert report["holds"] and report["machines"] == 2 and report["violations"] == 0 and report["runs"] > 20
    arguments = ["exhaust", "--symbols", "2", "--states", "1", "--program", "wrong_programs:smallest_match"]
    done = command(*arguments, cwd=Path(__file__).parent)
    assert done.returncode == 1 and "violations" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "culprit"),
    [
        (["run", "bb44"], "bb4"),
        (["run", "no/such/file.json"], "no/such/file.json"),
        (["run", "1RB1LB_1LA"], "state B"),
        (["run", "bb2", "012"], "2"),
        (["run", "bb2", "0[1"], "0[1"),
        (["run", "random:0x2:1"], "0"),
        (["run", "random:2y2"], "random:2y2"),
        (["run", "bb2", "--on", "nowhere"], "nowhere"),
        (["run", "bb2", "--on", "rasp", "--n", "0"], "0"),
        (["run", "random:12x16:0", "--on", "rasp", "--n", "6"], "largest n that fits is 5"),
        (["run", "bb2", "--on", "rasp", "--packing", "tight"], "tight"),
        (["run", "bb2", "--on", "rasp", "--engine", "steam"], "steam"),
        (["run", "bb2", "--steps", "-1"], "-1"),
        (["machines", "-o", "x.svg"], "-o"),
        (["machines", "bb2", "-o", "x.docx"], "x.docx"),
        (["graph", "nonsense"], "nonsense"),
        (["graph", "missing.py:f"], "missing.py"),
        (["graph", "induct", "-o", "x.docx"], "x.docx"),
        (["verify", "--n", "0"], "0"),
        (["verify", "--n", "6"], "largest n that fits is 5"),
        (["verify", "--length", "0"], "0"),
        (["verify", "--length", "long"], "long"),
        (["verify", "--machines", "0"], "0"),
        (["verify", "--steps", "0"], "0"),
        (["verify", "--workers", "0"], "0"),
        (["verify", "--dask", "127.0.0.1:1"], "127.0.0.1:1"),
        (["prove", "nonsense"], "nonsense"),
        (["exhaust", "--length", "-1"], "-1"),
        (["exhaust", "--symbols", "5", "--states", "5"], "5"),
        (["compile", "bb2", "--backend", "abacus"], "abacus"),
        (["compile", "bb2", "--steps", "0"], "0"),
        (["compile", "bb2", "--max-seq-len", "9"], "--max-seq-len"),
        (["nonsense"], "nonsense"),
    ],
)
def test_bad_input_is_refused_in_a_sentence(arguments: list[str], culprit: str) -> None:
    assert culprit in refused(*arguments)


def test_a_corrupt_resume_file_is_refused(tmp_path: Path) -> None:
    journal = tmp_path / "journal"
    journal.write_text("this is no journal\n")
    assert "journal" in refused("verify", "-m", "100", "--resume", str(journal))
