"""What is installed, what is missing and how to get it, what this computer can do, and a self-test of some seconds.

The self-test takes the shortest road through each package, and compares two answers that must be equal.
"""

from __future__ import annotations

import os
import re
import shutil
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, requires, version
from importlib.util import find_spec
from typing import Any

from experiments.processor import cpu_flags

PACKAGE = "turing-programs"
TOOLS = {"coqc": ("the formal proof", "coq"), "chromium": ("tests of pages", "chromium")}  # Debian's packages


@dataclass(frozen=True)
class Finding:
    """One line of the report; a missing thing has a remedy."""

    name: str
    found: str
    remedy: str = ""


@dataclass(frozen=True)
class SelfTest:
    name: str
    passed: bool | None  # None: left out
    told: str
    seconds: float = 0.0


@dataclass(frozen=True)
class Examination:
    packages: list[Finding]
    tools: list[Finding]
    computer: list[Finding]
    tests: list[SelfTest]

    @property
    def healthy(self) -> bool:
        return all(test.passed is not False for test in self.tests)

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "healthy": self.healthy}


def examine(progress: Callable[[int, int], None] = lambda *_: None) -> Examination:
    tests = []
    for done, (name, test) in enumerate(SELF_TESTS.items()):
        progress(done, len(SELF_TESTS))
        tests.append(run_test(name, test))
    return Examination(list(packages()), list(tools()), list(computer()), tests)


# --- what there is


def packages() -> Iterator[Finding]:
    """Everything the project can use, by extra; the extra that brings what is missing is its remedy."""
    for requirement in requires(PACKAGE) or ():
        name, extra = re.split(r"[\s;\[<>=!~]", requirement)[0], requirement.partition("extra == ")[2].strip("\"' ")
        if extra in ("all", "dev") or name == PACKAGE:
            continue
        try:
            yield Finding(name, version(name))
        except PackageNotFoundError:
            yield Finding(name, "missing", f"pip install '{PACKAGE}[{extra}]'")


def tools() -> Iterator[Finding]:
    for name, (use, package) in TOOLS.items():
        where = shutil.which(name)
        yield Finding(name, where or "missing", "" if where else f"for {use}: apt-get install {package}")


def computer() -> Iterator[Finding]:
    flags = cpu_flags()
    yield Finding("cores", str(len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()))
    wide = [name for name in ("avx2", "avx512f", "avx512_bf16", "amx_bf16") if name in flags]
    yield Finding("instructions", ", ".join(wide) or "none that matter here")
    if find_spec("torch") is not None:
        import torch

        from experiments.devices import has_bf16

        gpus = [torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count())]
        yield Finding("GPU", ", ".join(gpus) or "none: everything runs on the CPU")
        device = "cuda" if gpus else "cpu"
        yield Finding("training in bf16", "by instructions" if has_bf16(device) else "only imitated: float32 is chosen")


# --- whether it works


def run_test(name: str, test: Callable[[], str]) -> SelfTest:
    started = time.perf_counter()
    try:
        told, passed = test(), True
    except ImportError as error:
        return SelfTest(name, None, f"left out: {error.name} is missing")
    except Exception as error:  # whatever it is, the report goes on
        told, passed = f"{type(error).__name__}: {error}", False
    return SelfTest(name, passed, told, time.perf_counter() - started)


def engines_agree() -> str:
    from rasp import TuringMachine, next_tokens, run

    machine = TuringMachine.random(symbols=4, states=3, seed=0)
    text = machine.trace(machine.encode(machine.symbols, head=1), 3)
    engines = ("reference", "eager", "graph", "stream")
    need_equal({name: run(lambda x: next_tokens(x, machine), text, engine=name).tolist() for name in engines})
    return f"4 engines say the same {len(text)} tokens"


def theorem_holds() -> str:
    from proofs_check import verify

    report = verify(200, symbols=4, states=3, length=5, steps=6, engine="stream", workers=1)
    if not report.ok:
        raise AssertionError(f"the theorem fails on a run: {report.counterexample}")
    return "200 random machines, 0 violations"


def lemma_is_proved() -> str:
    from proofs_check.symbolic.checking import check
    from proofs_check.symbolic.lemmas import lemma

    outcome = check(lemma("where"))
    if outcome.result != "proved":
        raise AssertionError(f"the lemma 'where' is {outcome.result}")
    return "z3 proves a lemma"


def compiled_is_exact() -> str:
    from compile import compile_machine
    from rasp import TuringMachine, generate

    machine = TuringMachine.random(symbols=3, states=2, seed=0)
    prompt = [*machine.encode(machine.symbols, head=1), 0]
    model = compile_machine(machine, backend="hard_alibi", n=2, steps=4)
    need_equal(
        {
            "program": list(generate(prompt, machine, 18, n=2, engine="stream")),
            **{engine: list(map(int, model.generate(prompt, 18, engine=engine))) for engine in ("torch", "sparse")},
        }
    )
    return f"a compiled transformer of {len(model.blocks)} layers writes what the program writes"


def learned_is_loaded() -> str:
    from experiments.evaluation.checkpoints import load_checkpoint
    from experiments.evaluation.evaluate import accuracy
    from experiments.evaluation.shipped import FOLDER

    found = load_checkpoint(FOLDER / "tm-0")
    share = accuracy(found.model, found.task, 20, 16, context=found.context).accuracy
    if share < 0.75:
        raise AssertionError(f"the shipped model tm-0 is right on {share:.0%} of 16 tapes, and it was on 99%")
    return f"a learned transformer is right on {share:.0%} of 16 tapes"


def need_equal(answers: dict[str, list[int]]) -> None:
    first, *others = answers
    for other in others:
        if answers[other] != answers[first]:
            raise AssertionError(f"{other} says {answers[other]}, {first} {answers[first]}")


SELF_TESTS: dict[str, Callable[[], str]] = {
    "rasp": engines_agree,
    "proofs_check": theorem_holds,
    "z3": lemma_is_proved,
    "compile": compiled_is_exact,
    "experiments": learned_is_loaded,
}
