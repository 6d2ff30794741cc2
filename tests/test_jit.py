"""Machine code gives what the program gives, at every length and for every machine, and never reads outside."""

from __future__ import annotations

import operator
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from agreement import assert_agree, refusal, uncompiled

from rasp import TuringMachine, kqv, named, run, sel_width, select, shift_right, simplify, tok_map, trace
from rasp.engines.hashtable import clear, get_mean, get_total, new_table, put_count, put_max, put_mean, put_min
from rasp.engines.jit import Kernel, cache_folder, jit
from rasp.engines.turing import predict, tables_of, turing_graph, turing_kernel
from rasp.machine_code import MAGIC, CheckedFiles, compiled
from rasp.scalar import Table

SIZE = {"symbols": 3, "states": 2}


def occurrences(x: Any) -> Any:
    """A program with one memory of each kind: mean, max, min and count."""
    mean = kqv(x, shift_right(x, 1), 10 * x + 3, operator.eq)
    best = kqv(x, x, shift_right(x, 2), operator.eq, reduction="max")
    least = kqv(x, x, shift_right(x, 20), operator.eq, reduction="min", default=-9)
    return mean + 7 * best + 31 * least + 1001 * sel_width(select(x, x, operator.eq))


@pytest.fixture(scope="module")
def kernel() -> Kernel:
    return jit(trace(occurrences))


def machines(count: int) -> list[TuringMachine]:
    return [TuringMachine.random(**SIZE, seed=seed) for seed in range(count)]


def batch(count: int, steps: int, cells: int = 4) -> tuple[np.ndarray, list[np.ndarray], list[TuringMachine]]:
    """Traces of different machines, and their tables stacked."""
    rng = np.random.default_rng(steps)
    chosen = machines(count)
    rows = [m.trace(m.encode([m.symbols[i] for i in rng.integers(3, size=cells)]), steps) for m in chosen]
    stacked = [np.stack(parts) for parts in zip(*(tables_of(m) for m in chosen), strict=True)]
    return np.stack(rows), stacked, chosen


# --- memory -----------------------------------------------------------------------------------------------------------


def test_calls_of_different_lengths_do_not_see_each_other(kernel: Kernel) -> None:
    rng = np.random.default_rng(0)
    for length in (5, 0, 1, 400, 3, 400, 399, 17, 16, 2000, 8):
        x = rng.integers(-3, 4, size=length)
        assert kernel.predict(x).tolist() == run(occurrences, x, engine="eager").tolist()


def test_interleaved_kernels() -> None:
    first, second = jit(trace(occurrences)), jit(trace(lambda x: occurrences(x) + 1))
    for length in (30, 4, 30):
        x = np.arange(length) % 5
        assert (second.predict(x) - first.predict(x) == 1).all()


def test_threads_have_memories_of_their_own(kernel: Kernel) -> None:
    xs = [np.arange(3000) * k % (k + 3) for k in range(1, 9)]
    alone = [kernel.predict(x).tolist() for x in xs]
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(lambda x: kernel.predict(x).tolist(), xs * 3)) == alone * 3


def test_keys_that_collide() -> None:
    """Keys chosen to fall on one place of the table: odd multiples that the hash multiplies back to one high word."""
    inverse = pow(0x9E3779B97F4A7C15, -1, 2**64)
    keys = np.array([(inverse * ((77 << 33) + j)) % 2**64 for j in range(40)], dtype=np.uint64).astype(np.int64)
    keys = np.concatenate([keys, -keys, [0, -1, 1, 2**63 - 1, -(2**63)]])
    table = new_table(len(keys), 3)
    clear(table)
    for again in range(3):
        for key in keys:
            put_mean(table, key, key // 3 + again)
    for key in keys:
        mean = 3 * (int(key) // 3) + 3
        assert get_mean(table, key, -5) == (mean // 3 if mean >= 0 else -(-mean // 3)) or abs(int(key)) > 2**61
    assert get_mean(table, 12345, -5) == -5


def test_every_reduction_of_the_hash_table() -> None:
    rng = np.random.default_rng(3)
    keys, values = rng.integers(-50, 50, size=(2, 300))
    tables = {put: new_table(300, 2) for put in (put_max, put_min)}
    counts = new_table(300, 2)
    for table in (*tables.values(), counts):
        clear(table)
    for key, value in zip(keys, values, strict=True):
        put_count(counts, key)
        for put, table in tables.items():
            put(table, key, value)
    for key in range(-60, 60):
        mine = values[keys == key]
        assert get_total(counts, key, 0) == len(mine)
        assert get_total(tables[put_max], key, -99) == max(mine, default=-99)
        assert get_total(tables[put_min], key, -99) == min(mine, default=-99)


def test_negative_and_large_keys(kernel: Kernel) -> None:
    x = np.array([-1, 2**40, -1, -(2**40), 2**40, 0, -1])
    assert kernel.predict(x).tolist() == run(occurrences, x, engine="reference").tolist()


# --- batches ----------------------------------------------------------------------------------------------------------


def test_batches_are_their_rows_in_any_order_of_calls() -> None:
    kernel = turing_kernel(3, 2)
    for count, steps in ((6, 5), (9, 2), (6, 5), (6, 5), (1, 30)):
        rows, tables, chosen = batch(count, steps)
        found = kernel.predict_batch(rows, tables)
        for row, values, machine in zip(rows, found, chosen, strict=True):
            assert values.tolist() == predict(row, machine, engine="eager").tolist()
        wrong = found[:, :-1] != rows[:, 1:]
        start = rows.shape[1] // (steps + 1)
        wrong[:, :start] = False
        expected = np.where(wrong.any(axis=1), wrong.argmax(axis=1), -1)
        assert kernel.first_errors(rows, tables, start).tolist() == expected.tolist()


def test_small_types_give_the_same() -> None:
    rows, tables, _ = batch(4, 6)
    kernel = turing_kernel(3, 2)
    small = kernel.predict_batch(rows.astype(np.int8), [t.astype(np.int8) for t in tables])
    assert small.tolist() == kernel.predict_batch(rows, tables).tolist()


def test_bad_batches_are_refused() -> None:
    rows, tables, _ = batch(3, 2)
    kernel = uncompiled(turing_graph(3, 2))
    cases = [
        (rows + 9, tables, "is outside 0..8"),
        (rows - 1, tables, "is outside 0..8"),
        (rows[0], tables, "a batch is rows of whole numbers"),
        (rows / 2, tables, "a batch is rows of whole numbers"),
        (rows, [t[:2] for t in tables], "must be of shape (3, 9, 9), not (2, 9, 9)"),
        (rows, [t[:, :5] for t in tables], "must be of shape (3, 9, 9)"),
        (rows, tables[:1], "3 table(s), 1 given"),
        (rows, [t[0] for t in tables], "must be of shape (3, 9, 9)"),
    ]
    for given, stacked, message in cases:
        assert message in refusal(lambda g=given, s=stacked: kernel.predict_batch(g, s))
        assert message in refusal(lambda g=given, s=stacked: kernel.first_errors(g, s, 0))
    assert kernel.predict_batch(rows[:0], [t[:0] for t in tables]).shape == (0, rows.shape[1])


def test_empty_sequences(kernel: Kernel) -> None:
    assert kernel.predict([]).tolist() == [] and kernel.predict([]).dtype == np.int64


def test_wrong_sequences_are_refused() -> None:
    two = uncompiled(simplify(trace(lambda x, y: x + y, 2)))
    assert refusal(lambda: two.predict([1])) == "the program takes 2 sequence(s), 1 given"
    assert "differ in shape" in refusal(lambda: two.predict([1, 2, 3], [1]))


# --- generation -------------------------------------------------------------------------------------------------------


def test_generation_stops_where_the_program_leaves_its_tables() -> None:
    table = Table("successor", np.array([1, 2, 3, 4]))
    kernel = jit(trace(lambda x: tok_map(x, table)))
    assert kernel.generate([0], 3).tolist() == [0, 1, 2, 3]
    assert refusal(lambda: kernel.generate([0], 10)) == (
        "the program's value 4 at position 3 is outside 0..3, the range of its tables"
    )
    assert "prompt is empty" in refusal(lambda: kernel.generate([], 3))
    assert kernel.generate([2], 0).tolist() == [2]


# --- refusals ---------------------------------------------------------------------------------------------------------


def test_refusals_name_the_operation_and_the_function() -> None:
    def digits(a: Any) -> int:
        return len(str(a))

    message = refusal(lambda: run(lambda x: tok_map(x, digits), [1], engine="jit"))
    assert (
        "the function digits (" in message
        and "cannot be recorded" in message
        and "engine='eager' or 'stream'" in message
    )
    message = refusal(lambda: run(lambda x: sel_width(select(named(x + 2, "age"), x, operator.le)), [1], engine="jit"))
    assert message.startswith("sel_width(age <= x) compares keys by more than equality")
    message = refusal(lambda: run(lambda x: kqv(x, x, x, operator.ne), [1], engine="jit"))
    assert message.startswith("kqv(x != x, v=x, mean) compares keys")


def test_unsimplified_graphs_are_refused() -> None:
    assert "simplify the graph" in refusal(lambda: Kernel(trace(lambda x: shift_right(x, 1))))


def test_machine_code_of_odd_functions() -> None:
    """What numba types differently from Python: truth values, fractions, branches of both, divisions, long delays."""
    table = Table("odd", np.array([2, 0, 1], dtype=np.int8))

    def program(x: Any) -> Any:
        parts = [
            tok_map(x, lambda a: a / 2 if a > 1 else a),
            tok_map(x, lambda a: a > 1),
            ~(x == 2),
            (x > 0) + (x > 1),
            tok_map(x, lambda a: 7 // a),
            tok_map(x, lambda a: -7 % a),
            tok_map(x, lambda a: a // -2),
            shift_right(x == 1, 1),
            shift_right(x, 20, default=-1),
            tok_map(x, lambda a: table(a % 3) + 1),
            tok_map(x, lambda a: table(a - 5)),
            tok_map(x, lambda a: a**2),
            tok_map(x, lambda a: abs(a) - (not a)),
            tok_map(x, lambda a: (a > 1 and a < 3) or not a),
            kqv(x == 1, x > 0, x, operator.eq, reduction="max"),
            kqv(x, x, x - 2, lambda k, q: k > 1),
            kqv(x, x, x - 2, lambda k, q: q > 1, default=-3, reduction="min"),
            sel_width(select(x, x, lambda k, q: q)),
            tok_map(x, lambda a: a * 1.5),
            x >> 1,
            x ^ 5,
            tok_map(x, lambda a: a < float("inf")),
            tok_map(x, lambda a: (-1) ** abs(a)),
        ]
        total = x * 0
        for i, part in enumerate(parts):
            total = total * 0 + part * (i + 1) + total
        return total

    x = np.array([0, 1, 2, -1, -3, 1, 0, 2, 2, 1] * 3)
    assert_agree(program, x, compiled=True)


# --- the cache folder -------------------------------------------------------------------------------------------------


def test_kernels_are_kept_in_the_cache_folder(fresh_cache: Path) -> None:
    kernel = jit(trace(lambda x: x * 3 + 1))
    assert kernel.predict([1, 2]).tolist() == [4, 7]
    written = list(fresh_cache.glob("rasp_jit_*.py"))
    assert [path.read_text() for path in written] == [kernel.source] and not list(fresh_cache.glob("*.tmp"))


def test_a_damaged_file_is_written_again(fresh_cache: Path) -> None:
    from rasp.engines.jit import load_module

    kernel = jit(trace(lambda x: x * 3 + 1))
    (written,) = fresh_cache.glob("rasp_jit_*.py")
    written.write_text("raise SystemExit")
    load_module.cache_clear()
    assert jit(trace(lambda x: x * 3 + 1)).predict([1]).tolist() == [4] and written.read_text() == kernel.source


def test_an_unwritable_cache_folder_is_replaced(fresh_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    blocked = fresh_cache.parent / "a file"
    blocked.write_text("")
    monkeypatch.setenv("TURING_PROGRAMS_CACHE", str(blocked / "kernels"))
    cache_folder.cache_clear()
    assert jit(trace(lambda x: x * 3 + 2)).predict([1]).tolist() == [5]
    assert cache_folder().is_dir() and cache_folder() != blocked / "kernels"


def test_without_a_home(fresh_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("TURING_PROGRAMS_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)

    def homeless(self: Path) -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "expanduser", homeless)
    cache_folder.cache_clear()
    assert cache_folder().is_dir()


CODE = "from rasp.engines.jit import jit; from rasp import trace; print(jit(trace(lambda x: x * 7 - 2)).predict([3]))"


def run_apart(cache: Path, code: str = CODE) -> subprocess.CompletedProcess[str]:
    """A program in a process of its own: what is kept between runs is read from the disk."""
    environment = {**os.environ, "TURING_PROGRAMS_CACHE": str(cache)}
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, timeout=300)


def kept_code(cache: Path) -> list[Path]:
    return [path for path in cache.rglob("*.code") if path.name.startswith("rasp_jit")]


def test_damaged_machine_code_is_never_unpickled(fresh_cache: Path) -> None:
    """Damaged anywhere, or replaced by a pickle that does something: removed, named, compiled again."""
    assert run_apart(fresh_cache).stdout.strip() == "[19]"
    (kept,) = [path for path in kept_code(fresh_cache) if ".predict" in path.name]
    whole = kept.read_bytes()
    assert run_apart(fresh_cache).stderr == "" and kept.read_bytes() == whole, "whole files are used in silence"
    evil = b"cos\nsystem\n(S'touch " + str(fresh_cache / "pwned").encode() + b"'\ntR."
    flipped = bytearray(whole)
    flipped[len(whole) // 2] ^= 1
    for damaged in (evil, bytes(flipped), whole[: len(whole) // 2], b""):
        kept.write_bytes(damaged)
        done = run_apart(fresh_cache)
        assert done.stdout.strip() == "[19]" and "Traceback" not in done.stderr
        assert str(kept.parent) in done.stderr and "damaged" in done.stderr
        assert kept.read_bytes()[: len(MAGIC)] == MAGIC and not (fresh_cache / "pwned").exists()
    assert run_apart(fresh_cache).stderr == "", "written again"


def test_machine_code_belongs_to_the_functions_and_numbers_it_uses() -> None:
    """They may come from other files, which say nothing when this one is the same."""

    def made(factor: float, helper: Any) -> bytes:
        scope: dict[str, Any] = {"FACTOR": factor, "helper": helper}
        code = compile("def twice(x):\n    return helper(x) * FACTOR\n", __file__, "exec")
        exec(code, scope)
        return compiled(scope["twice"])._cache._cache_file.stamp

    one, other = compiled(_add_one), compiled(_add_two)
    other._cache._cache_file.stamp = b"of another source"
    stamps = [made(2.0, one), made(2.0, one), made(3.0, one), made(2.0, other)]
    assert stamps[0] == stamps[1] and len(set(stamps)) == 3


def _add_one(x: int) -> int:
    return x + 1


def _add_two(x: int) -> int:
    return x + 2


def test_machine_code_of_another_source_is_compiled_again(tmp_path: Path) -> None:
    files, later = (CheckedFiles(tmp_path, "f", stamp) for stamp in ("monday", "tuesday"))
    files.save("key", [1, 2])
    assert files.load("key") == [1, 2] and files.load("other") is None and later.load("key") is None
    later.save("key", [3])
    assert later.load("key") == [3] and len(list(tmp_path.iterdir())) == 1
    later.flush()
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_does_not_stop_a_run(fresh_cache: Path) -> None:
    full = (
        "import builtins, errno, io, os, pathlib, tempfile\n"
        "def full(*args, **kwargs): raise OSError(errno.ENOSPC, 'No space left on device')\n"
        "import rasp.machine_code, rasp.engines.jit as j\n"
        "rasp.machine_code.tempfile.mkstemp = full\n"
    )
    done = run_apart(fresh_cache, full + CODE)
    assert done.stdout.strip() == "[19]" and "cannot be kept in" in done.stderr and "Traceback" not in done.stderr
    done = run_apart(fresh_cache, full + "j._write = full\n" + CODE.replace("7", "9"))
    assert done.stdout.strip() == "[25]" and "Traceback" not in done.stderr, "not even the source can be written"
    assert kept_code(fresh_cache) == [] and not list(fresh_cache.rglob("*.tmp"))


def test_processes_may_compile_the_same_kernel_at_once(fresh_cache: Path) -> None:
    code = (
        "from rasp.engines.jit import jit; from rasp import trace; print(jit(trace(lambda x: x * 5 - 2)).predict([3]))"
    )
    started = [subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) for _ in range(3)]
    assert [process.communicate(timeout=300)[0].strip() for process in started] == ["[13]"] * 3
    assert len(list(fresh_cache.glob("rasp_jit_*.py"))) == 1
