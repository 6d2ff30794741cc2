"""One run of a Turing machine by whoever is asked to do it, compared with what the machine really does.

`Playback` is what `turing-programs run` shows: the tapes as they were written, and the first token that is wrong.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from compile.errors import CapacityError
from compile.transformer.streaming import TokenStream
from experiments.explanations import why_wrong
from experiments.machines import first_tape, plain_start, read_machine, tagged_start, tags_of, text_of_run
from experiments.writers import Writer
from rasp import TuringMachine
from rasp.engines.dispatch import check_engine
from rasp.machines.machine import Configuration
from rasp.programs.turing import check_packing
from rasp.progress import Progress

if TYPE_CHECKING:
    from compile import Transformer

REPORTED = 256  # tokens between two reports of progress


@dataclass(frozen=True)
class Divergence:
    """The first wrong token: on tape `step`, at `position`, `written` stands where `expected` belongs."""

    step: int
    position: int
    expected: int
    written: int


@dataclass(frozen=True)
class Cut:
    """A run that was ended by Ctrl-C, or by a capacity that the sentence names."""

    reason: str
    interrupted: bool = False


@dataclass(frozen=True)
class WritingSpeed:
    """How a transformer wrote: by which engine, how fast, and what it held of the context at the end."""

    engine: str
    tokens: int
    seconds: float  # after the first token
    memory_bytes: int

    @property
    def tokens_per_second(self) -> float:
        return max(0, self.tokens - 1) / max(self.seconds, 1e-9)


@dataclass(frozen=True)
class Playback:
    """`tapes` are as written, up to and with the one that goes wrong. `true_tape` is what that one should be.

    `cut` says why it ended before its time, if it did: the tapes up to there are kept.
    """

    machine: TuringMachine
    tapes: list[list[int]]
    true_tape: list[int]
    halted: bool
    divergence: Divergence | None
    cut: Cut | None = None
    speed: WritingSpeed | None = None  # of a transformer

    @property
    def correct(self) -> bool:
        return self.divergence is None

    @property
    def steps(self) -> int:
        """Steps carried out correctly."""
        return len(self.tapes) - 1 - (self.divergence is not None)


def play(
    machine: TuringMachine, tape: list[int], steps: int, write: Writer | None = None, progress: Progress | None = None
) -> Playback:
    """Run `steps` steps (or to a final state). `write` continues a prompt; without one the machine itself runs."""
    truth = text_of_run(machine, tape, steps)
    width = len(tape) + 1
    run = _Written(truth, width)
    if write is None:
        run.tokens = truth.tolist()
    else:
        run.follow(write, progress)
    written = np.array(run.tokens[: len(truth)])
    wrong = np.flatnonzero(written != truth[: len(written)])
    divergence = None
    if len(wrong):
        at = int(wrong[0])
        divergence = Divergence(at // width, at % width, int(truth[at]), int(written[at]))
    shown = divergence.step if divergence else len(written) // width - 1
    tapes = [written[t * width : (t + 1) * width - 1].tolist() for t in range(shown + 1)]
    last = truth[shown * width : (shown + 1) * width - 1].tolist()
    halted = divergence is None and any(token in machine.final_tokens for token in last)
    return Playback(machine, tapes, last, halted, divergence, run.cut, run.speed)


class _Written:
    """The prompt and what is written after it: all, or to the end of the first tape that goes wrong."""

    def __init__(self, truth: np.ndarray, width: int) -> None:
        self.truth, self.width = truth, width
        self.tokens: list[int] = truth[:width].tolist()
        self.cut: Cut | None = None
        self.speed: WritingSpeed | None = None
        self.first_written = time.perf_counter()  # before it the prompt is read, and kernels may have to be compiled

    def follow(self, write: Writer, progress: Progress | None) -> None:
        """Whatever ends it, what was written by then is kept."""
        stream = write(self.truth[: self.width], len(self.truth) - self.width)
        try:
            self._take(stream, progress)
        except KeyboardInterrupt:
            self.cut = Cut("interrupted", interrupted=True)
        except CapacityError as error:
            self.cut = Cut(str(error))
        if isinstance(stream, TokenStream):
            taken, count = time.perf_counter() - self.first_written, len(self.tokens) - self.width
            self.speed = WritingSpeed(stream.engine, count, taken, stream.memory_bytes)

    def _take(self, stream: Iterable[int], progress: Progress | None) -> None:
        expected, end = self.truth.tolist(), len(self.truth)
        for token in stream:
            at = len(self.tokens)
            if at == self.width:
                self.first_written = time.perf_counter()
            if token != expected[at]:
                end = min(end, (at // self.width + 1) * self.width)
            self.tokens.append(int(token))
            if progress and at % REPORTED == 0:
                progress(at + 1, len(expected))
            if at + 1 >= end:
                break


# --- on request


@dataclass(frozen=True, kw_only=True)
class PlaybackRequest:
    """Which machine runs on which tape, and who does it."""

    machine: str
    tape: str | None = None
    steps: int = 200
    on: str = "machine"  # or rasp, universal, compiled, the folder of a compiled model
    n: int = 1
    packing: str = "paper"
    engine: str = "jit"
    tags: bool | None = None  # None: if it is compiled
    room: bool | None = None  # None: if it can halt
    backend: str = "lean"
    precision: str = "float32"
    threads: int | None = None


@dataclass(frozen=True)
class PlayedRun:
    """`chosen` is the machine that was named; `decode` reads the tapes of the playback as its own."""

    playback: Playback
    chosen: TuringMachine
    decode: Callable[[list[int]], Configuration]
    packing: str


def play_request(request: PlaybackRequest, progress: Progress | None = None) -> PlayedRun:
    check_engine(request.engine)
    chosen = read_machine(request.machine)
    check_packing(request.n, chosen.base, request.packing)
    tape = first_tape(chosen, request.machine, request.tape, request.steps, request.room)
    model = saved_model(request.on)
    kinds = tags_of(model, chosen)
    tagged = request.tags if request.tags is not None else request.on in ("compiled", "universal") or kinds > 1
    start = tagged_start(chosen, tape, request.n, kinds) if tagged else plain_start(chosen, tape)
    # Tags are there to lift the limits; the step bound of the paper's packing is one of them.
    lifted = tagged and request.on == "rasp" and request.packing == "paper"
    packing = "unbounded" if lifted else request.packing
    steps = len(text_of_run(chosen, tape, request.steps)) // (len(tape) + 1) - 1
    writer = make_writer(request, start.machine, packing, steps, model)
    return PlayedRun(play(start.machine, start.tape, request.steps, writer, progress), chosen, start.decode, packing)


def saved_model(on: str) -> Transformer | None:
    """The model in the folder that --on names, if it names one."""
    if on in ("machine", "rasp", "compiled", "universal"):
        return None
    if not Path(on).is_dir():
        raise ValueError(
            f"--on {on!r} is neither machine, rasp, compiled, universal nor the folder of a compiled model"
        )
    from compile import Transformer

    model = Transformer.from_pretrained(on)
    if not {"machine", "universal"} & set(model.config.extra):
        raise ValueError(f"the model in {on} was not compiled from a machine")
    return model


def make_writer(
    request: PlaybackRequest, machine: TuringMachine, packing: str, steps: int, model: Transformer | None
) -> Writer | None:
    """Who continues the prompt; None for the machine itself."""
    if request.on == "machine":
        return None
    if request.on == "rasp":
        from rasp import generate

        n, engine = request.n, request.engine
        return lambda prompt, count: generate(prompt, machine, count, n, packing, engine)[len(prompt) :].tolist()
    from compile import compile_machine
    from compile.machine import machine_of
    from experiments.devices import use_threads
    from experiments.models import use_precision

    use_threads(request.threads or 1)  # one token of one tape at a time: threads would only wait for each other
    if request.on == "universal" or (model is not None and "universal" in model.config.extra):
        from experiments.universal import universal_model, universal_writer

        model = model or universal_model(machine, request.n, countable_steps(steps))
        use_precision(request.precision, model)
        return universal_writer(machine, model)
    if model is None:
        counted = max(steps, 1) if request.backend == "tracr" else countable_steps(steps)
        model = compile_machine(machine, backend=request.backend, n=request.n, steps=counted)
    elif machine_of(model) != machine:
        raise ValueError(
            f"the model in {request.on} was compiled for another machine; compile this one, or run that one"
        )
    use_precision(request.precision, model)
    return model.stream


def countable_steps(steps: int) -> int:
    """As many of the steps as a Hard-ALiBi model can count; a longer run ends there, and says so."""
    from compile.hard_alibi.network import MOST_COUNT

    return max(1, min(steps, MOST_COUNT["float32"] - 2))


def explain(playback: Playback, n: int, packing: str) -> str:
    """Why the RASP program went wrong where it did."""
    assert playback.divergence is not None
    return why_wrong(playback.machine, playback.tapes[0], playback.divergence.step, n, packing)
