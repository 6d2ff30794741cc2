"""Have Coq check the proof: the `.v` files beside this one, the program as traced now, and random texts.

Everything is compiled in a temporary folder. What each theorem rests on is read from Coq's answer to
`Print Assumptions`; the comment before it says where the theorem is proved, what it claims, and of what.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from proofs_check.formal import universal
from proofs_check.formal.generate import Functions, NotInModel, first_difference, printed, traced_file, traced_functions
from proofs_check.formal.texts import texts_file
from rasp.files import write_whole
from rasp.progress import StageProgress

HERE = Path(__file__).parent
CLOSED = "Closed under the global context"
MISSING = "coqc is not installed: the formal proof needs it (Debian and Ubuntu: apt-get install coq)"
TEXTS = 2000
AT_ONCE = 2  # coqc takes one core and half a gigabyte
_CLAIM = re.compile(r"\(\*\* \[(\S+)\.v\] ([^|]*?) \| (.*?) \*\)\s*Print Assumptions ([\w.]+)\.", re.DOTALL)
_STATED = re.compile(r"^\s*(?:Lemma|Theorem|Corollary|Example|Definition|Fixpoint|Let|Record)\s+(\w+)", re.MULTILINE)


class CoqMissing(OSError):
    """There is no coqc to be found."""


@dataclass(frozen=True)
class Claim:
    """One theorem. `assumptions` is "closed" if it rests on Coq alone; `result` is proved, failed or not reached."""

    claim: str
    scope: str
    theorem: str
    file: str
    assumptions: str
    result: str
    seconds: float

    @property
    def kind(self) -> str:
        """What it is proved for: everything its scope names, what was traced, random texts, or one example."""
        by_file = {"Traced": "traced graphs", "Texts": "sampled", "Guards": "an example"}
        found = (kind for start, kind in by_file.items() if self.file.startswith(start) or f"{start}." in self.theorem)
        return next(found, "all")


@dataclass(frozen=True)
class FormalReport:
    """What Coq said of each claim; `errors` names each file that does not check, and why."""

    claims: tuple[Claim, ...]
    errors: tuple[str, ...]
    seconds: float
    coq: str

    @property
    def all_proved(self) -> bool:
        return not self.errors and bool(self.claims) and all(c.result == "proved" for c in self.claims)

    def to_json(self) -> list[dict[str, Any]]:
        return [{**asdict(claim), "kind": claim.kind} for claim in self.claims]


@dataclass(frozen=True)
class Compiled:
    """What coqc made of one file: what it `said`, or the `lemma` at which it stopped, and why."""

    ok: bool
    seconds: float
    said: str = ""
    lemma: str = ""
    error: str = ""


def find_coqc() -> str | None:
    return shutil.which("coqc")


def coq_version() -> str:
    told = subprocess.run([need_coqc(), "--version"], capture_output=True, text=True, check=False).stdout
    found = re.search(r"version (\S+)", told)
    return found.group(1) if found else "unknown"


def need_coqc() -> str:
    found = find_coqc()
    if found is None:
        raise CoqMissing(MISSING)
    return found


# --- files ------------------------------------------------------------------------------------------------------------


def proof_files(source: Path = HERE) -> dict[str, str]:
    """The proof as it stands in a folder: name of each file, without `.v`, and its text."""
    return {path.stem: path.read_text() for path in sorted(source.glob("*.v"))}


def generated_files(of: Functions = printed, texts: int = TEXTS) -> dict[str, Callable[[], str]]:
    """What is written from Python as it is now: the programs as traced, and random texts with predictions."""
    return {
        "Traced": lambda: traced_file(of),
        "Texts": lambda: texts_file(texts),
        "TracedUniversal": universal.traced_file,
        "TextsUniversal": universal.texts_file,
    }


def write_proof(folder: Path, texts: int = TEXTS) -> list[Path]:
    """Write every `.v` file into a folder, and the order in which to compile them: a certificate for any Coq."""
    folder.mkdir(parents=True, exist_ok=True)
    files = proof_files() | {name: made() for name, made in generated_files(texts=texts).items()}
    ordered = in_order(files)
    for name in ordered:
        write_whole(folder / f"{name}.v", files[name])
    write_whole(folder / "order.txt", "".join(f"{name}.v\n" for name in ordered))
    return [folder / f"{name}.v" for name in ordered]


def needs(text: str, files: Iterable[str]) -> list[str]:
    """Which of these files a text requires."""
    required = re.findall(r"^\s*Require(?:\s+Import|\s+Export)?\s+([^.]*)\.", text, re.MULTILINE)
    words = {word for line in required for word in line.split()}
    return [name for name in files if name in words]


def in_order(files: Mapping[str, str], only: Iterable[str] | None = None) -> list[str]:
    """The files, each after what it requires; with `only`, those and what they require."""
    ordered: list[str] = []

    def place(name: str) -> None:
        if name not in ordered:
            for other in needs(files[name], files):
                place(other)
            ordered.append(name)

    for name in files if only is None else only:
        place(name)
    return ordered


# --- compiling --------------------------------------------------------------------------------------------------------


def compile_files(
    files: Mapping[str, str],
    folder: Path,
    only: Iterable[str] | None = None,
    reuse: Path | None = None,
    progress: StageProgress | None = None,
) -> dict[str, Compiled]:
    """Compile in a folder, two at a time. A file is not compiled if one that it requires did not compile.

    `reuse` is a folder where all was compiled before: a file whose text, and whose requirements, are the same is taken
    from there.
    """
    coqc, waiting = need_coqc(), in_order(files, only)
    required = {name: needs(files[name], files) for name in waiting}
    done: dict[str, Compiled] = {}
    reused: set[str] = set()
    running: dict[Future[Compiled], str] = {}

    def begin(name: str) -> None:
        """What is ready: its requirements are compiled, or one of them cannot be."""
        (folder / f"{name}.v").write_text(files[name])
        if not all(done[other].ok for other in required[name]):
            done[name] = Compiled(False, 0.0)
        elif reuse and _unchanged(name, files[name], reuse) and reused.issuperset(required[name]):
            shutil.copy(reuse / f"{name}.vo", folder)
            reused.add(name)
            done[name] = Compiled(True, 0.0)
        else:
            if progress:
                progress(name, len(done), len(required))
            running[pool.submit(_compile, coqc, folder, name)] = name

    with ThreadPoolExecutor(AT_ONCE) as pool:
        while waiting or running:
            ready = next((name for name in waiting if done.keys() >= set(required[name])), None)
            if ready and len(running) < AT_ONCE:
                waiting.remove(ready)
                begin(ready)
                continue
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                done[running.pop(future)] = future.result()
    return {name: done[name] for name in required}


def _unchanged(name: str, text: str, reuse: Path) -> bool:
    return (reuse / f"{name}.vo").exists() and (reuse / f"{name}.v").read_text() == text


def _compile(coqc: str, folder: Path, name: str) -> Compiled:
    start = time.perf_counter()
    ran = subprocess.run([coqc, "-q", f"{name}.v"], cwd=folder, capture_output=True, text=True, check=False)
    seconds = round(time.perf_counter() - start, 2)
    if ran.returncode == 0:
        return Compiled(True, seconds, ran.stdout)
    return Compiled(False, seconds, ran.stdout, *_stopped(folder, name, ran.stderr or ran.stdout))


def _stopped(folder: Path, name: str, said: str) -> tuple[str, str]:
    """Which lemma of a file does not check, and Coq's first words about it."""
    place = re.search(r"line (\d+)", said)
    before = (folder / f"{name}.v").read_text().splitlines()[: int(place.group(1)) if place else 0]
    stated = _STATED.findall("\n".join(before))
    words = " ".join(said.partition("Error:")[2].split()) or " ".join(said.split())
    lemma = stated[-1] if stated else ""
    return lemma, f"{name}.v: {lemma or 'the beginning'} does not check: {words[:300]}"


# --- the report -------------------------------------------------------------------------------------------------------


def check(
    source: Path = HERE,
    of: Functions = printed,
    texts: int = TEXTS,
    only: Iterable[str] | None = None,
    folder: Path | None = None,
    reuse: Path | None = None,
    progress: StageProgress | None = None,
) -> FormalReport:
    """Compile the proof (in a temporary folder, or the one given) and say what Coq made of each claim.

    `source` is the folder of the `.v` files and `of` gives the program's functions by name; tests put wrong ones in
    their place. `only` names the files to check; what they require is checked with them.
    """
    need_coqc()
    start = time.perf_counter()
    files, errors = proof_files(source), []
    wanted = None if only is None else list(only)
    for name, made in generated_files(of, texts).items():
        if wanted is None or name in wanted:
            try:
                files[name] = made()
            except NotInModel as error:
                errors.append(str(error))
    if folder is None:
        with tempfile.TemporaryDirectory(prefix="turing-programs-coq-") as temporary:
            return _checked(files, Path(temporary), wanted, reuse, progress, of, errors, start)
    return _checked(files, folder, wanted, reuse, progress, of, errors, start)


def _checked(
    files: dict[str, str],
    folder: Path,
    only: list[str] | None,
    reuse: Path | None,
    progress: StageProgress | None,
    of: Functions,
    errors: list[str],
    start: float,
) -> FormalReport:
    if only is not None:
        only = [name for name in only if name in files]
    compiled = compile_files(files, folder, only, reuse, progress)
    for name, made in compiled.items():
        if made.error:
            errors.append(_moved(folder, made, of) if name == "Traced" else made.error)
    claims = [claim for name, made in compiled.items() for claim in _claims(files[name], made, compiled)]
    return FormalReport(tuple(claims), tuple(errors), round(time.perf_counter() - start, 2), coq_version())


def _claims(text: str, made: Compiled, compiled: Mapping[str, Compiled]) -> list[Claim]:
    """The claims of one file, with what each rests on."""
    stated = _CLAIM.findall(text)
    asked = re.findall(r"^Print Assumptions ([\w.]+)\.", text, re.MULTILINE)
    answers = dict(zip(asked, _assumptions(made.said), strict=False)) if made.ok else {}
    found = []
    for file, claim, scope, theorem in stated:
        rests_on = answers.get(theorem, "unknown")
        result = "proved" if rests_on == "closed" else "failed" if made.ok or made.error else "not reached"
        seconds = compiled[file].seconds if file in compiled else made.seconds
        found.append(
            Claim(" ".join(claim.split()), " ".join(scope.split()), theorem, f"{file}.v", rests_on, result, seconds)
        )
    return found


def _assumptions(said: str) -> list[str]:
    """Coq's answers in order: "closed", or the axioms by name."""
    answers: list[str] = []
    for line in said.splitlines():
        if line.strip() == CLOSED:
            answers.append("closed")
        elif line.startswith(("Axioms:", "Section Variables:")):
            answers.append("")
        elif answers and answers[-1] != "closed" and " : " in line and not line.startswith(" "):
            answers[-1] = ", ".join(filter(None, (answers[-1], line.partition(" : ")[0].strip())))
    return answers


def _moved(folder: Path, made: Compiled, of: Functions) -> str:
    """Which Python function no longer traces to the graph of the theorem, and at which node."""
    functions = {function.lemma: function for function in traced_functions(of)}
    function = functions.get(made.lemma)
    if function is None:
        return made.error
    (folder / "Expected.v").write_text(
        "From Coq Require Import List ZArith.\nImport ListNotations.\nRequire Import Program Graph.\n"
        f"Set Printing Width 100000.\nCompute fst (Build.graph_of {function.arity} ({function.coq})).\n"
    )
    expected = _compile(need_coqc(), folder, "Expected")
    where = first_difference(expected.said, function) if expected.ok else "Graph.v has no such definition"
    return f"{function.name} moved: it is no longer the graph that the theorem is about; {where}"
