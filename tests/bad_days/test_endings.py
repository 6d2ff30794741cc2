"""However the work of a command ends, by Ctrl-C, a full or read-only disk or no memory: one sentence, and its code."""

from __future__ import annotations

import errno
import importlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bad_days.running import commands, run
from bad_days.test_commands import COMMANDS

# Where the work of each command is done: `module:function`, called after its options were read.
WORK = {
    "run": "experiments.playback:play_request",
    "verify": "experiments.verifications:run_verification",
    "exhaust": "proofs_check.exhaustive:every_machine",
    "prove": "experiments.verifications:run_proofs",
    "theorem": "proofs_check:theorem_page",
    "compile": "experiments.compilations:run_compilation",
    "agree": "experiments.engine_agreement:check_agreement",
    "exact": "experiments.evaluation.compiled:evaluate_compiled",
    "train": "experiments.training.requests:train_in_folder",
    "reproduce": "experiments.training.requests:train_in_folder",
    "evaluate": "experiments.evaluation:run_evaluation",
    "figure": "experiments.evaluation:run_figure",
    "compare": "experiments.comparison.requests:run_comparison",
    "inspect": "experiments.inspections:inspect_request",
    "playground": "compile.playground:playground_models",
    "programs": "experiments.program_list:listed_programs",
    "machines": "experiments.machines:read_machine",
    "graph": "experiments.programs:make_graph",
    "doctor": "experiments.doctor:examine",
    "table": "experiments.evaluation.table:paper_table",
    "zoo": "experiments.zoo.building:build_zoo",
    "bench interpreters": "experiments.benchmarks.interpreters:bench_interpreters",
    "bench verify": "experiments.benchmarks.verify:bench_verify",
    "bench compile": "experiments.benchmarks.compiling:bench_compile",
    "bench decode": "experiments.benchmarks.decoding:bench_decode",
    "bench train": "experiments.benchmarks.training:bench_train",
    "export onnx": "compile.doors:save_onnx",
    "export hugging-face": "compile.doors:save_for_hugging_face",
}
ENDINGS: list[tuple[BaseException, str]] = [
    (OSError(errno.ENOSPC, "No space left on device", "out"), "No space left on device"),
    (OSError(errno.EROFS, "Read-only file system", "out"), "Read-only file system"),
    (MemoryError(), "not enough memory"),
    (RuntimeError("DefaultCPUAllocator: can't allocate memory"), "not enough memory"),
    (RecursionError("maximum recursion depth exceeded"), "nested too deeply"),
]


def test_every_command_has_a_row() -> None:
    assert set(WORK) == {name for name, _ in commands()}


@pytest.fixture
def ending(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Callable[[BaseException], Any]:
    """Let the work of a command end so."""
    module, _, function = WORK[request.getfixturevalue("name")].partition(":")
    owner = importlib.import_module(module)
    assert callable(getattr(owner, function))

    def end(error: BaseException) -> None:
        def work(*_: Any, **__: Any) -> Any:
            raise error

        monkeypatch.setattr(owner, function, work)

    return end


@pytest.mark.parametrize("name", WORK)
def test_whatever_ends_it(
    name: str, ending: Callable[[BaseException], Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    arguments = [*name.split(), *COMMANDS[name]]
    for error, said in ENDINGS:
        ending(error)
        ended = run(*arguments)
        assert ended.refused and said in ended.err, (error, ended)
    ending(KeyboardInterrupt())
    ended = run(*arguments)
    assert ended.code == 130 and ended.err.strip().splitlines()[-1] == "interrupted" and not ended.out, ended
    assert list(tmp_path.iterdir()) == []
