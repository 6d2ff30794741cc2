"""Runs to look at: which models, on which tokens, for one page of the inspector or for the whole gallery."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from experiments.explanations import why_model_wrong
from experiments.imports import is_import
from experiments.machines import first_tape, read_machine, tagged_start, tags_of, text_of_run
from experiments.own_programs import answers, compile_for_tokens, compile_named, read_tokens
from experiments.programs import UNIVERSAL, is_program, read_program
from rasp import TuringMachine, make_simulable
from rasp.files import write_whole
from rasp.gallery import Entry, entry, gallery, machine
from rasp.programs.problems import prompt_tokens, text_tokens
from rasp.programs.tasks import is_task, task_program
from rasp.programs.universal import Size, universal_prompt, universal_tokens

if TYPE_CHECKING:
    from compile import Transformer
    from compile.inspector import Inspection
    from compile.inspector.index import Card

GALLERY_TOKENS = 480  # per page: enough to see what happens, small enough to compile and draw all of them in minutes
GALLERY_STEPS = 60


@dataclass(frozen=True)
class Scene:
    """What is shown: `trace` is right, its first `given` tokens are the prompt, `machine` speaks its language.

    `says` is what a program says at every token, where that is not the next one; `names` are the trace's tokens.
    """

    trace: np.ndarray
    given: int
    title: str
    machine: TuringMachine | None = None
    says: tuple[int, ...] | None = None
    names: tuple[str, ...] = ()

    @property
    def truth(self) -> list[int]:
        """What should be said at every token; -1: nobody knows."""
        return [*self.trace[1:].tolist(), -1] if self.says is None else list(self.says)


def machine_scene(runs: TuringMachine, tape: list[int], steps: int, title: str = "") -> Scene:
    trace = text_of_run(runs, tape, steps)
    return Scene(trace, len(tape) + 1, title or runs.name or "machine", runs)


def task_scene(model: Any, seed: int = 0) -> Scene:
    """One sample of the task that a model was trained on, of a length it has seen."""
    from experiments.tasks import make_task

    extra = model.config.extra
    if not {"task", "lengths"} <= set(extra):
        raise ValueError("this model carries neither a machine nor a task; call compile.inspect(model, tokens) instead")
    task = make_task(extra["task"])
    low, high = extra["lengths"]
    lengths = task.draw_lengths(np.random.default_rng(seed), 1, low, high)
    samples = task.sample(np.random.default_rng(seed), lengths)
    return Scene(samples.row(0), int(samples.prompts[0]), str(extra["task"]["name"]))


def need_same_language(model: Any, scene: Scene, name: str) -> None:
    """Refuse a model whose token ids stand for something else."""
    wanted = scene.names if scene.machine is None else scene.machine.vocabulary
    if tuple(model.config.token_names[: len(wanted)]) != wanted:
        raise ValueError(f"{name} was made for other tokens than {scene.title}; choose what it was made for")


def inspect_scene(
    model: Any, scene: Scene, against: Any = None, names: tuple[str, ...] = (), free: bool = False
) -> Inspection:
    """A page; with `free`, of what the first model writes by itself instead of the right trace."""
    from compile import inspect

    tokens = model.generate(scene.trace[: scene.given], len(scene.trace) - scene.given) if free else scene.trace
    return inspect(model, tokens, against=against, truth=scene.truth, given=scene.given, title=scene.title, names=names)


# --- on request


@dataclass(frozen=True, kw_only=True)
class InspectionRequest:
    """Which model is shown on which run, and beside which other one. `compiled` is compiled for it."""

    model: str  # `compiled`, a folder, or a shipped checkpoint by name; or FILE.py:FUNCTION, which is compiled
    against: str | None = None
    machine: str | None = None  # or a program; None: the one the model was made for
    tape: str | None = None  # or a problem, the tokens of a program, the machine that `universal` runs
    steps: int = 20
    backend: str = "lean"
    n: int | None = None  # None: 1, for tasks 4
    tags: bool | None = None  # None: if it is compiled
    free: bool = False
    precision: str = "float32"
    threads: int | None = None

    def spelled_out(self) -> InspectionRequest:
        """`my.py:f TOKENS` means `compiled my.py:f TOKENS`."""
        if not is_import(self.model):
            return self
        if self.tape is not None:
            raise ValueError(
                f"{self.tape!r} is one word too many; give {self.model} its tokens as one, such as '1 0 1'"
            )
        return replace(self, model="compiled", machine=self.model, tape=self.machine)


@dataclass(frozen=True)
class ModelScore:
    """How often a model is right on a scene; where it first is not, and why."""

    right: int
    asked: int
    wrong_at: int | None
    why: str


class InspectedScene(NamedTuple):
    page: Inspection
    scene: Scene
    scores: list[ModelScore]  # of each model on the page


def score(model: Transformer, scene: Scene, truth: Sequence[int], said: Sequence[int]) -> ModelScore:
    asked = [i for i in range(scene.given - 1, len(scene.trace)) if truth[i] >= 0 or scene.says is not None]
    wrong = [i for i in asked if said[i] != truth[i]]
    at = wrong[0] if wrong else 0
    why = why_model_wrong(model, scene.trace, scene.given, scene.machine, at, said[at]) if wrong else ""
    return ModelScore(len(asked) - len(wrong), len(asked), wrong[0] + 1 if wrong else None, why)


def inspect_request(request: InspectionRequest) -> InspectedScene:
    """The page that was asked for, and the run on it."""
    from experiments.devices import use_threads
    from experiments.models import load_model, use_precision

    use_threads(request.threads)
    request = request.spelled_out()
    names = [name for name in (request.model, request.against) if name is not None]
    saved = [None if name == "compiled" else load_model(name) for name in names]
    scene = requested_scene(request, next((model for model in saved if model is not None), None))
    models = [compile_for(scene, request) if model is None else model for model in saved]
    for name, model in zip(names, models, strict=True):
        need_same_language(model, scene, name)
    backend = general_backend(request.backend) if scene.machine is None else request.backend
    titles = tuple(f"compiled ({backend})" if model is None else name for name, model in zip(names, saved, strict=True))
    use_precision(request.precision, *models)
    page = inspect_scene(models[0], scene, models[1] if request.against else None, titles, request.free)
    shown = zip(models, page.data["models"], strict=True)
    scores = [score(model, scene, page.data["truth"], part["predictions"]) for model, part in shown]
    return InspectedScene(page, scene, scores)


def requested_scene(request: InspectionRequest, model: Transformer | None) -> Scene:
    """The machine and tape that were asked for, in the language of the model that is there already, if one is."""
    from compile.machine import machine_of

    if request.machine is None and model is None:
        raise ValueError("say which machine or program to compile, for example: turing-programs inspect compiled bb4")
    if request.machine is not None and is_program(request.machine):
        return program_scene(request.machine, request.tape, request.steps)
    own = None if model is None else machine_of(model)
    if model is not None and own is not None and tuple(model.config.token_names[: own.base]) != own.vocabulary:
        own = None  # its tokens are not the machine's
    chosen = own if request.machine is None else read_machine(request.machine)
    if chosen is None:
        return task_scene(model)
    tape = first_tape(chosen, request.machine or "random", request.tape, request.steps, None)
    kinds = tags_of(model, chosen) if own else 1
    wants_tags = request.tags if request.tags is not None else kinds > 1 or model is None
    if not wants_tags:
        return machine_scene(chosen, tape, request.steps)
    start = tagged_start(chosen, tape, 1 if request.n is None else request.n, kinds)
    return machine_scene(start.machine, start.tape, request.steps, chosen.name)


def compile_for(scene: Scene, request: InspectionRequest) -> Transformer:
    from compile import compile_machine

    if scene.machine is None:
        return compile_program_for(scene, request)
    steps = max(1, len(scene.trace) // scene.given - 1)
    options: dict[str, Any] = {"max_seq_len": len(scene.trace)} if request.backend == "tracr" else {}
    return compile_machine(
        scene.machine,
        backend=request.backend,
        n=1 if request.n is None else request.n,
        steps=steps,
        check=False,
        **options,
    )


# --- programs that are no machine's


def program_scene(name: str, typed: str | None, steps: int) -> Scene:
    """A problem of a task and its scratchpad; a machine's table and its run; or the tokens typed for a program."""
    if is_task(name):
        task = task_program(name)
        problem = task.read(typed or task.example)
        return Scene(text_tokens(problem), len(prompt_tokens(problem)), name, names=task.vocabulary.names)
    if name == "universal":
        chosen = read_machine(typed or "bb2")
        tape = first_tape(chosen, typed or "bb2", None, steps, None)
        size = Size(*UNIVERSAL)
        prompt = universal_prompt(chosen, tape, *size)
        after = universal_tokens(chosen, text_of_run(chosen, tape, steps)[len(tape) + 1 :], size)
        return Scene(np.array([*prompt, *after]), len(prompt), f"universal: {chosen.name}", names=size.vocabulary.names)
    program, tokens = read_program(name), read_tokens(name, typed)
    program.need_one_sequence()
    return Scene(tokens, 1, name, says=tuple(answers(program, tokens).tolist()))


def compile_program_for(scene: Scene, request: InspectionRequest) -> Transformer:
    """Just large enough for the scene."""
    assert request.machine is not None
    if scene.says is not None:
        return compile_for_tokens(request.machine, scene.trace, request.backend)
    mark = scene.names.index("|" if "|" in scene.names else "sep")
    options: dict[str, Any] = {"max_seq_len": len(scene.trace)} if request.backend == "tracr" else {}
    counts = int((scene.trace == mark).sum()) + 2
    backend = general_backend(request.backend)
    return compile_named(request.machine, n=request.n, counts=counts, backend=backend, check=False, **options)


def general_backend(backend: str) -> str:
    """`lean` is of machines only."""
    return "hard_alibi" if backend == "lean" else backend


# --- the gallery ------------------------------------------------------------------------------------------------------


def write_gallery(folder: Path, tell: Callable[[str], None] = lambda _: None) -> list[Card]:
    """A page for every machine of the gallery, compiled over tagged symbols, index.html to choose from, and the page
    on which one transformer runs any of them live."""
    from compile.inspector.index import index_page

    folder.mkdir(parents=True, exist_ok=True)
    write_live_page(folder)
    cards = []
    for name in gallery():
        cards.append(_write_page(folder, entry(name)))
        tell(name)
    write_whole(folder / "index.html", index_page(cards))
    return cards


def write_live_page(folder: Path) -> Path:
    """The page of the universal transformer, to which `machine_link` leads."""
    from compile.playground import PAGE, playground, playground_models

    return playground(playground_models(tasks=())).save(folder / PAGE)


def _write_page(folder: Path, known: Entry) -> Card:
    from compile import compile_machine
    from compile.inspector.index import Card
    from compile.playground import machine_link

    runs, tape, steps = _gallery_run(known)
    scene = machine_scene(runs, tape, steps, known.name)
    model = compile_machine(runs, backend="lean", n=1, steps=steps, check=False)
    page = inspect_scene(model, scene)
    path = page.save(folder / f"{known.name}.html")
    shown = len(scene.trace) // scene.given - 1
    part = "" if shown == known.steps else f"; the first {shown} are shown"
    result, live = known.result + part, machine_link(machine(known.name), known.tape)
    return Card(known.name, known.description, result, path.name, path.stat().st_size, _picture(scene), live)


def _gallery_run(known: Entry) -> tuple[TuringMachine, list[int], int]:
    """The machine over tags, its tape, and as many steps as fit on a page."""
    original, cells = machine(known.name), list(known.tape)
    steps = min(known.steps or GALLERY_STEPS, GALLERY_STEPS)
    while True:
        tagged = make_simulable(original, tape=cells, steps=steps)
        if (tagged.cells + 4) * (steps + 1) <= GALLERY_TOKENS or steps <= 4:
            return tagged.machine, tagged.encode(cells), steps
        steps -= 1


def _picture(scene: Scene) -> list[list[int]]:
    """For every tape its cells as 0 (blank), 1 (written) and 2 (under the head)."""
    runs = scene.machine
    assert runs is not None
    rows = []
    blank = runs.blank.rpartition(".")[0]  # of a tagged machine every tag has its own blank
    for start in range(0, len(scene.trace), scene.given):
        at = runs.decode(scene.trace[start : start + scene.given - 1])
        row = [int(cell.rpartition(".")[0] != blank) for cell in at.cells]
        if 0 <= at.head < len(row):
            row[at.head] = 2
        rows.append(row)
    return rows
