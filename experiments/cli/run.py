"""`turing-programs run`: watch a machine, the RASP program, or a transformer write the tapes of a run."""

from __future__ import annotations

import time
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from experiments.cli import problem_display
from experiments.cli.common import (
    BACKENDS,
    ENGINES,
    INTERRUPTED,
    JsonOption,
    MachineOrProgram,
    PackingOption,
    PrecisionOption,
    StepsOption,
    TagsOption,
    TapeArgument,
    ThreadsOption,
    one_of,
    print_json,
    refuse_others,
    stage_bar,
    versions,
)

if TYPE_CHECKING:
    from rich.text import Text

    from experiments.own_programs import ProgramRun
    from experiments.playback import Playback, PlaybackRequest, PlayedRun, WritingSpeed
    from rasp import TuringMachine
    from rasp.machines.machine import Configuration
    from rasp.progress import Progress, StageProgress

MOST_LINES = 240  # longer runs are shown by their beginning and end

OnOption = Annotated[
    str,
    typer.Option(
        help="machine, rasp, universal, compiled, or the folder of a compiled model; "
        "of a problem: program, compiled or a checkpoint."
    ),
]
EngineOption = Annotated[
    str, typer.Option(help="How rasp runs: jit, stream, graph, eager or reference.", callback=one_of(ENGINES))
]
RoomOption = Annotated[
    bool | None,
    typer.Option("--room/--no-room", help="Add blanks so that the head stays on the tape. Default: if it can halt."),
]
BackendOption = Annotated[
    str, typer.Option(help="With `--on compiled`: hard_alibi, lean or tracr.", callback=one_of(BACKENDS))
]


def register(app: typer.Typer) -> None:
    app.command(
        epilog="Examples:  turing-programs run bb4  ·  turing-programs run palindrome abba  ·  "
        "turing-programs run random:12x16:7 --on rasp --steps 40  ·  turing-programs run bb4 --on rasp --tags  ·  "
        "turing-programs run bb4 --on compiled  ·  turing-programs run bb3 --on universal  ·  "
        "turing-programs run addition 4324+139 --on compiled  ·  turing-programs run my.py:majority '1 0 1 1'"
    )(run)


def run(
    context: typer.Context,
    machine: MachineOrProgram,
    tape: TapeArgument = None,
    steps: StepsOption = 200,
    on: OnOption = "machine",
    n: Annotated[int | None, typer.Option("--n", help="The program hashes n+1 tokens; 1, for problems 4.")] = None,
    packing: PackingOption = "paper",
    engine: EngineOption = "jit",
    tags: TagsOption = None,
    room: RoomOption = None,
    backend: BackendOption = "lean",
    precision: PrecisionOption = "float32",
    threads: ThreadsOption = None,
    json: JsonOption = False,
) -> None:
    """Run a machine on a tape: by itself, by the RASP program, or inside a transformer, checked as it goes.

    Exit code 1 if a transformer departs from the machine; the RASP program may, and is shown where and why.
    """
    from rasp.programs.tasks import is_task

    if is_task(machine):
        from experiments.problems import ProblemRequest

        settings = ("on", "n", "backend", "precision", "threads")
        refuse_others(context, f"a problem of {machine}", "machine", "tape", *settings)
        request = ProblemRequest(
            task=machine, problem=tape, on=on, n=n, backend=backend, precision=precision, threads=threads
        )
        problem_display.work_out(request, json)
        return
    from experiments.programs import is_program

    if is_program(machine):
        from experiments.own_programs import ProgramRun

        refuse_others(context, f"a run of the program {machine}", "machine", "tape", "on", "engine", "backend")
        _run_program(ProgramRun(program=machine, tokens=tape, on=on, engine=engine, backend=backend), json)
        return
    from experiments.playback import PlaybackRequest

    asked = PlaybackRequest(
        machine=machine,
        tape=tape,
        steps=steps,
        on=on,
        n=1 if n is None else n,
        packing=packing,
        engine=engine,
        tags=tags,
        room=room,
        backend=backend,
        precision=precision,
        threads=threads,
    )
    _play(asked, json)


def _run_program(asked: ProgramRun, json: bool) -> None:
    from experiments.own_programs import run_program

    found = run_program(asked)
    tokens, said, expected = (part.tolist() for part in (found.tokens, found.said, found.expected))
    if json:
        print_json(
            {
                "program": asked.program,
                "on": asked.on,
                "tokens": tokens,
                "output": said,
                "correct": found.correct,
                "versions": versions(),
            }
        )
    else:
        width = max(len(str(number)) for number in (*tokens, *said, *expected)) + 1
        rows = {"tokens": tokens, "says": said, **({} if found.correct else {"should say": expected})}
        for name, numbers in rows.items():
            typer.echo(f"{name:<10}" + "".join(f"{number:>{width}}" for number in numbers))
    if not found.correct:
        raise typer.Exit(1)


def _play(asked: PlaybackRequest, json: bool) -> None:
    from experiments.playback import play_request

    with stage_bar("tokens") as tell:
        played = play_request(asked, _with_speed(tell))
    if json:
        print_json({"machine": asked.machine, "on": asked.on, **_report(played, asked.n)})
    else:
        _print(played, asked)
    if not played.playback.correct and asked.on not in ("machine", "rasp"):
        raise typer.Exit(1)
    if played.playback.cut is not None:
        typer.echo(_cut_sentence(played.playback), err=True)
        raise typer.Exit(INTERRUPTED if played.playback.cut.interrupted else 2)


def _with_speed(tell: StageProgress) -> Progress:
    """Progress that says how many tokens there are per second, from the first one on."""
    began: list[tuple[float, int]] = []

    def progress(done: int, of: int) -> None:
        began[:] = began or [(time.perf_counter(), done)]
        taken = time.perf_counter() - began[0][0]
        tell(f"{(done - began[0][1]) / taken:,.0f} tokens/s" if taken > 0 else "tokens", done, of)

    return progress


def _cut_sentence(playback: Playback) -> str:
    assert playback.cut is not None
    kept = f"what was written up to step {playback.steps} is above"
    return f"interrupted: {kept}" if playback.cut.interrupted else f"error: {playback.cut.reason}; {kept}"


# --- showing ----------------------------------------------------------------------------------------------------------


def _report(played: PlayedRun, n: int) -> dict[str, Any]:
    from experiments.playback import explain

    playback, chosen, speed = played.playback, played.chosen, played.playback.speed
    last = playback.tapes[-1] if playback.correct else playback.tapes[-2]
    at = played.decode(last)
    divergence = playback.divergence
    return {
        "steps": playback.steps,
        "halted": playback.halted,
        "correct": playback.correct,
        "tape": chosen.format_tape(chosen.encode(at.cells, at.head, at.state)),
        "state": at.state,
        "non_blank": sum(cell != chosen.blank for cell in at.cells),
        "divergence": None if divergence is None else divergence.__dict__,
        "explanation": None if divergence is None else explain(playback, n, played.packing),
        "cut": playback.cut and playback.cut.reason,
        "decoding": speed and {**asdict(speed), "tokens_per_second": speed.tokens_per_second},
        "n": n,
        "packing": played.packing,
        "versions": versions(),
    }


def _print(played: PlayedRun, asked: PlaybackRequest) -> None:
    from rich.console import Console

    playback, chosen = played.playback, played.chosen
    console = Console(highlight=False, soft_wrap=True, markup=False)
    good = playback.tapes if playback.correct else playback.tapes[:-1]
    width = max(len(name) for name in chosen.states)
    for step, tape in enumerate(good):
        if len(good) > MOST_LINES and MOST_LINES // 2 <= step < len(good) - MOST_LINES // 2:
            if step == MOST_LINES // 2:
                console.print(f"   ...   {len(good) - MOST_LINES:,} steps not shown", style="dim")
            continue
        console.print(_line(step, played.decode(tape), width))
    if not playback.correct:
        _print_divergence(console, playback, asked.on, asked.n, played.packing)
    console.print(_verdict(playback, played.decode(good[-1]), chosen, asked.on))
    if playback.speed is not None and playback.speed.tokens:
        console.print(_speed_sentence(playback.speed), style="dim")


def _line(step: int, at: Configuration, width: int) -> Text:
    """Step, state, and the cells with the one under the head marked by brackets and colour."""
    from rich.text import Text

    line = Text(f"{step:>6}  ", style="dim")
    line.append(f"{at.state:<{width}}", style="bold cyan")
    line.append(" ")
    for i in range(-1, len(at.cells) + 1):
        name = "|" if i in (-1, len(at.cells)) else at.cells[i]
        if i == at.head:
            line.append(f"[{name}]", style="bold reverse")
        else:
            line.append(f" {name} ", style="dim" if name == "|" else "")
    return line


def _print_divergence(console: Any, playback: Playback, on: str, n: int, packing: str) -> None:
    from rich.text import Text

    from experiments.playback import explain

    divergence = playback.divergence
    assert divergence is not None
    for who, tape, style in ((on, playback.tapes[-1], "bold red"), ("machine", playback.true_tape, "bold green")):
        line = Text(f"{divergence.step:>6}  {who:<8}", "dim")
        for i, token in enumerate([*tape, 0]):
            name = playback.machine.vocabulary[token]
            line.append(f" {name} ", style=f"{style} reverse" if i == divergence.position else "")
        console.print(line)
    if on == "rasp":
        console.print(explain(playback, n, packing), style="yellow")


def _speed_sentence(speed: WritingSpeed) -> str:
    each = speed.memory_bytes / speed.tokens
    return (
        f"{speed.tokens:,} tokens at {speed.tokens_per_second:,.0f} per second, by the engine {speed.engine}; it holds "
        f"{speed.memory_bytes:,} bytes of context, {each:,.0f} per token."
    )


def _verdict(playback: Playback, at: Configuration, chosen: TuringMachine, on: str) -> Text:
    from rich.text import Text

    written = sum(cell != chosen.blank for cell in at.cells)
    who = {"machine": "The machine", "rasp": "The RASP program"}.get(on, "The transformer")
    if not playback.correct:
        return Text(f"{who} is right for {playback.steps} steps and then departs from the machine.", style="bold red")
    how = f"halted in {at.state} after" if playback.halted else "ran for"
    agrees = "" if on == "machine" else ", every token as the machine writes it"
    return Text(f"{who} {how} {playback.steps} steps with {written} non-blank cells{agrees}.", style="bold green")
