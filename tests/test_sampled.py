"""`verify`: no violations, the same result however it is computed, nothing lost when interrupted, mistakes caught."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import wrong_programs

from proofs_check import verify
from proofs_check.sampled.intervals import clopper_pearson
from proofs_check.sampled.journal import Journal, JournalError
from proofs_check.sampled.pool import LocalPool, PoolError
from proofs_check.sampled.report import Report, Sweep
from proofs_check.sampled.sweep import run_chunk
from rasp.machines.simulate import random_tables, random_tapes

SMALL: dict[str, Any] = {"machines": 3000, "length": (3, 8), "chunk": 512, "seed": 5}


@pytest.fixture(scope="module")
def small() -> Report:
    return verify(**SMALL)


# --- the theorem ------------------------------------------------------------------------------------------------------


def test_no_violation_among_many_machines() -> None:
    report = verify(100_000)
    assert report.ok and report.counterexample is None
    assert report.contingency["held"]["wrong"] == report.contingency["failed"]["correct"] == 0
    assert 0.1 < report.tally.held / 100_000 < 0.25
    promised = {"machines", "steps", "hypothesis_held", "correct", "violations", "machines_per_minute"}
    assert promised <= set(report.to_json())
    assert "0 violations" in report.render()


@pytest.mark.parametrize(
    "options",
    [
        {"steps": 100},
        {"steps": 60, "packing": "unbounded"},
        {"n": 2, "length": 20},
        {"symbols": 2, "states": 2, "length": (1, 6), "steps": 40},
        {"n": 2, "symbols": 1, "states": 2, "length": 4, "steps": 120},
    ],
)
def test_no_violation_beyond_the_bound_or_with_other_parameters(options: dict[str, Any]) -> None:
    report = verify(4000, **options)
    assert report.ok and 0 < report.tally.correct < 4000
    assert (report.tally.held == 0) == (not report.sweep.within_bound)


def test_in_memory_strictly_only_the_implication_is_left() -> None:
    strict, free = verify(**SMALL, strict_in_memory=True), verify(**SMALL)
    assert strict.ok and strict.tally.correct == free.tally.correct
    assert strict.contingency["held"]["wrong"] == 0 < strict.contingency["failed"]["correct"]
    assert strict.tally.held == strict.tally.held_correct < free.tally.held


def test_the_papers_words_hold_for_fewer_runs() -> None:
    t = verify(4000, n=2).tally
    assert t.literal_text == 0 < t.literal == t.literal_correct < t.held < t.machines


# --- mistakes are caught ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("program", ["smallest_match", "colliding_hash", "longer_memory"])
def test_a_wrong_program_is_caught_and_the_counterexample_is_small(program: str) -> None:
    report = verify(600, program=f"wrong_programs:{program}")
    assert not report.ok and report.counterexample is not None
    shown = report.counterexample
    assert shown.theorem != shown.program
    assert shown.run.size <= shown.original.size and shown.run.steps < 32 and len(shown.run.tape) < 13
    text = report.render()
    assert "VIOLATIONS" in text and "rules used" in text and "the theorem says" in text and "step 0" in text
    json.dumps(report.to_json())


MUTANT: dict[str, Any] = {"machines": 40, "engine": "eager", "steps": 8, "length": 7}


@pytest.mark.parametrize(
    "name",
    [
        "the head never moves",
        "the gram is one token short",
        "the mean of the matches is taken",
    ],
)
def test_mutants_of_the_proofs_are_caught_by_sampling_too(name: str) -> None:
    assert not verify(**MUTANT, program=f"mutant:{name}").ok


@pytest.mark.slow
def test_every_mutant_is_caught_but_those_that_change_nothing_here() -> None:
    from proofs_check.symbolic.mutants import MUTANTS

    missed = {name for name in MUTANTS if verify(**MUTANT, program=f"mutant:{name}").ok}
    # conditions of the program's `where` are 0 or 1, for which these two are right
    assert missed == {"where takes negative conditions for false", "where looks at the last bit only"}


def test_a_wrong_program_is_judged_alike_by_every_engine() -> None:
    jit, eager = (verify(66, program=wrong_programs.colliding_hash, engine=e) for e in ("jit", "eager"))
    assert jit.result() == eager.result() and jit.tally.violations > 10


@pytest.mark.parametrize("program", ["nowhere:f", "wrong_programs:none", "wrong_programs", "json:decoder", "mutant:x"])
def test_an_unknown_program_is_refused(program: str) -> None:
    with pytest.raises(ValueError, match="program"):
        verify(10, program=program)


# --- the same however it is computed ----------------------------------------------------------------------------------


@pytest.mark.parametrize("engine", ["eager", "stream", "graph", "reference"])
def test_engines_agree(engine: str) -> None:
    count = {"reference": 4, "graph": 8}.get(engine, 30)
    options: dict[str, Any] = {"machines": count, "steps": 5, "length": 4}
    assert verify(engine=engine, **options).result() == verify(**options).result()


def test_chunks_do_not_matter(small: Report, monkeypatch: pytest.MonkeyPatch) -> None:
    assert verify(**{**SMALL, "chunk": 300}).result() == small.result()
    monkeypatch.setattr("proofs_check.sampled.sweep.MOST_TOKENS", 10_000)
    assert verify(**{**SMALL, "length": range(3, 9)}).result() == small.result()


def test_workers_do_not_matter_and_one_may_be_killed(small: Report) -> None:
    with LocalPool(2) as pool:
        killed: list[int] = []

        def kill_one(done: int, total: int) -> None:
            if done and not killed:
                killed.append(next(iter(pool._executor._processes)))
                os.kill(killed[0], signal.SIGKILL)

        assert verify(**SMALL, pool=pool, progress=kill_one).result() == small.result()
        assert killed


def test_workers_that_always_die_are_reported() -> None:
    with LocalPool(2) as pool, pytest.raises(PoolError, match="died"):
        list(pool.map(os._exit, range(1, 3)))


def test_a_script_needs_no_guard_to_use_workers() -> None:
    script = "from proofs_check import verify; print(verify(3000, length=(3, 8), chunk=512, seed=5, workers=2).tally)"
    run = subprocess.run([sys.executable, "-"], input=script, capture_output=True, text=True, timeout=500, env=HERE)
    assert "machines=3000" in run.stdout, run.stderr


def test_progress_is_told(small: Report) -> None:
    told: list[tuple[int, int]] = []
    verify(**SMALL, progress=lambda done, total: told.append((done, total)))
    assert told[0] == (0, 3000) and told[-1] == (3000, 3000) and len(told) == 7


def test_examples_are_the_machines_that_were_run() -> None:
    sweep = Sweep(2000, shortest=3, longest=8, seed=5)
    machine, tape = sweep.example(700)
    assert tape == random_tapes(1000, length=len(tape) - 3, seed=5)[700].tolist()
    assert (machine.next_state.values == random_tables(1000, seed=5).next_state[700]).all()


def test_lengths_are_spread_over_the_whole_range_from_the_start() -> None:
    sweep = Sweep(300, shortest=5, longest=50)
    lengths = [sweep.length(i) for i in range(300)]
    assert min(lengths) <= 7 and max(lengths) >= 48 and 25 < sum(lengths) / 300 < 30
    many = [Sweep(10**6, shortest=3, longest=8).length(i) for i in range(0, 10**6, 8)]
    assert all(abs(many.count(length) - len(many) / 6) < 10 for length in range(3, 9))
    assert {Sweep(10, shortest=7, longest=7).length(i) for i in range(1000)} == {7}


# --- resuming ---------------------------------------------------------------------------------------------------------


def test_a_finished_journal_computes_nothing_again(small: Report, tmp_path: Path) -> None:
    path = str(tmp_path / "j.jsonl")
    first, again = verify(**SMALL, resume=path), verify(**SMALL, resume=path)
    assert first.result() == again.result() == small.result()
    assert (first.computed, again.computed) == (3000, 0)
    longer = verify(**{**SMALL, "machines": 4000}, resume=path)
    assert longer.computed == 4000 - 5 * 512 and longer.result() == verify(**{**SMALL, "machines": 4000}).result()


def test_a_damaged_line_loses_only_itself(small: Report, tmp_path: Path) -> None:
    path = tmp_path / "j.jsonl"
    verify(**SMALL, resume=str(path))
    lines = path.read_bytes().splitlines(keepends=True)
    assert len(lines) == 7
    lines[2] = lines[2].replace(b'"correct":', b'"correct":1')  # readable, but not what was written
    lines[4] = b"\x00\xff garbage\n"
    lines[6] = lines[6][:40]  # killed while writing
    path.write_bytes(b"".join(lines))
    report = verify(**SMALL, resume=str(path))
    assert report.result() == small.result() and report.damaged_lines == 3
    assert report.computed == 2 * 512 + 3000 % 512
    assert verify(**SMALL, resume=str(path)).computed == 0


def test_the_first_line_may_be_damaged_too(small: Report, tmp_path: Path) -> None:
    path = tmp_path / "j.jsonl"
    verify(**SMALL, resume=str(path))
    path.write_bytes(b"{" + path.read_bytes())
    assert verify(**SMALL, resume=str(path)).computed == 0


@pytest.mark.parametrize(
    "other",
    [
        {"seed": 6},
        {"steps": 33},
        {"n": 2},
        {"packing": "unbounded"},
        {"length": 5},
        {"strict_in_memory": True},
        {"program": "wrong_programs:colliding_hash"},
    ],
)
def test_the_journal_of_another_run_is_refused(other: dict[str, Any], tmp_path: Path) -> None:
    path = str(tmp_path / "j.jsonl")
    verify(**{**SMALL, "machines": 10}, resume=path)
    with pytest.raises(JournalError, match="belongs to another run.*there.*here"):
        verify(**{**SMALL, **other}, resume=path)


def test_a_file_that_is_no_journal_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("milk\neggs\n")
    with pytest.raises(JournalError, match="none of its 2 lines"):
        verify(**SMALL, resume=str(path))
    assert path.read_text() == "milk\neggs\n"
    with pytest.raises(JournalError, match="cannot be opened"):
        verify(**SMALL, resume=str(tmp_path))


def test_two_runs_cannot_write_one_journal(tmp_path: Path) -> None:
    with Journal(tmp_path / "j", {"a": 1}), pytest.raises(JournalError, match="in use"):
        Journal(tmp_path / "j", {"a": 1})


HERE = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])}
SCRIPT = """
import signal, sys
from proofs_check import verify
if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a background job of a shell inherits it ignored
    verify(3000, length=(3, 8), chunk=512, seed=5, resume=sys.argv[1], workers=int(sys.argv[2]),
           progress=lambda done, total: print(done, flush=True) or (done > 1000 and __import__("time").sleep(30)))
"""


@pytest.mark.parametrize(("stop", "workers"), [(signal.SIGKILL, 2), (signal.SIGINT, 1)])
def test_a_stopped_run_goes_on_where_it_was(stop: int, workers: int, small: Report, tmp_path: Path) -> None:
    script, journal = tmp_path / "run.py", tmp_path / "j.jsonl"
    script.write_text(SCRIPT)
    process = subprocess.Popen(
        [sys.executable, str(script), str(journal), str(workers)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=HERE,
    )
    assert process.stdout is not None
    for line in process.stdout:
        if int(line) > 1000:
            break
    finished = len(journal.read_text().splitlines()) - 1
    process.send_signal(stop)
    process.communicate(timeout=500)
    assert process.returncode != 0 and finished >= 2
    report = verify(**SMALL, resume=str(journal))
    assert report.result() == small.result()
    assert report.computed <= 3000 - finished * 440  # the last chunk is smaller than the others


def test_workers_do_not_outlive_a_killed_parent(tmp_path: Path) -> None:
    script = tmp_path / "run.py"
    script.write_text("""
import os, signal, time
from proofs_check.sampled.pool import LocalPool
if __name__ == "__main__":
    with LocalPool(2) as pool:
        list(pool.map(abs, range(4)))
        print(*pool._executor._processes, flush=True)
        os.kill(os.getpid(), signal.SIGKILL)
""")
    out = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, timeout=500, env=HERE).stdout
    workers = [int(pid) for pid in out.split()]
    assert len(workers) == 2
    for _ in range(100):
        if not any(_alive(pid) for pid in workers):
            return
        time.sleep(0.1)
    raise AssertionError("a worker is still running")


def _alive(pid: int) -> bool:
    try:
        return "State:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return False


# --- Dask -------------------------------------------------------------------------------------------------------------


def test_an_unreachable_dask_scheduler_is_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("proofs_check.sampled.pool.DaskPool.__init__.__defaults__", (1.0,))
    for address in ("tcp://127.0.0.1:9", "no such address"):
        with pytest.raises(PoolError, match="no Dask scheduler"):
            verify(10, dask=address)


def start_cluster(workers: int, tries: int = 3) -> Any:
    """distributed gives the thread of its event loop ten seconds to start, then asserts; a busy machine needs more."""
    distributed = pytest.importorskip("distributed")
    try:
        return distributed.LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address=None)
    except AssertionError:
        if tries == 1:
            raise
        return start_cluster(workers, tries - 1)


def test_dask_gives_the_same_and_a_worker_may_be_killed(small: Report) -> None:
    """Three processes, of which one dies with work in hand and more to come; the local pool says the same."""
    with start_cluster(3) as cluster:
        killed: list[int] = []

        def kill_one(done: int, total: int) -> None:
            if 0 < done < total and not killed:
                killed.append(next(iter(cluster.workers.values())).pid)
                os.kill(killed[0], signal.SIGKILL)

        report = verify(**SMALL, dask=cluster.scheduler_address, progress=kill_one)
        assert killed and report.workers == 3
    local = verify(**SMALL, workers=2)
    assert report.result() == local.result() == small.result()


ALLOCATE = """
import resource, sys
import numpy as np
from proofs_check.sampled.pool import keep_freed_memory

def faults():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(40):
        np.ones(1 << 18)
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

given_back = faults()
keep_freed_memory()
print(given_back, faults())
"""


@pytest.mark.skipif(sys.platform != "linux", reason="glibc's allocator")
def test_a_dask_worker_uses_freed_memory_again() -> None:
    """Dask starts workers with this variable, and every page of every array was a fault."""
    environment = {**HERE, "MALLOC_TRIM_THRESHOLD_": "65536"}
    command = [sys.executable, "-c", ALLOCATE]
    out = subprocess.run(command, capture_output=True, text=True, timeout=500, env=environment, check=True).stdout
    given_back, kept = map(int, out.split())
    assert given_back > 10_000 and kept < given_back / 5


# --- options ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n": 0}, "n must be"),
        ({"n": 9}, "does not fit"),
        ({"length": 0}, "length 0"),
        ({"length": (0, 3)}, "length 0 to 3"),
        ({"machines": 0}, "at least one"),
        ({"steps": 0}, "at least one"),
        ({"workers": 0}, "workers"),
        ({"symbols": 0}, "at least"),
        ({"packing": "tight"}, "packing"),
        ({"engine": "steam"}, "engine"),
    ],
)
def test_bad_options_are_refused_in_a_sentence(options: dict[str, Any], message: str) -> None:
    with pytest.raises((ValueError, OverflowError), match=message):
        verify(**{"machines": 10, **options})


def test_a_chunk_is_plain_data() -> None:
    result = run_chunk(Sweep(100), "jit", None, 0)
    assert json.loads(json.dumps(result)) == result


@pytest.mark.parametrize(
    ("hits", "trials", "low", "high"),
    [
        (0, 100, 0.0, 0.0295),
        (5, 10, 0.1871, 0.8129),
        (100, 100, 0.9705, 1.0),
        (0, 0, 0.0, 1.0),
    ],
)
def test_clopper_pearson(hits: int, trials: int, low: float, high: float) -> None:
    assert clopper_pearson(hits, trials) == pytest.approx((low, high), abs=1e-4)
