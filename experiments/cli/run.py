"""`turing-programs run`: watch a machine, the RASP program, or a transformer write the tapes of a run."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from experiments.cli.common import (
    JsonOption,
    MachineArgument,
    NOption,
    PackingOption,
    print_json,
    progress_bar,
    read_machine,
    versions,
)

if TYPE_CHECKING:
    from rich.text import Text

    from experiments.playback import Playback, Writer
    from rasp import TuringMachine
    from rasp.machine import Configuration

MOST_LINES = 240  # longer runs are shown by their beginning and end

TapeArgument = Annotated[
    str | None, typer.Argument(help="Its cells, the head in brackets: 10[1]10, or 10[q1:1]10 with a state.")
]
StepsOption = Annotated[int, typer.Option("--steps", "-t", help="Stop here if it has not halted.")]
OnOption = Annotated[str, typer.Option(help="machine, rasp, compiled, or the folder of a compiled model.")]
EngineOption = Annotated[str, typer.Option(help="How rasp runs: jit, stream, graph, eager or reference.")]
TagsOption = Annotated[
    bool | None,
    typer.Option("--tags/--no-tags", help="Tag the cells so that no n-gram repeats. Default: only if `compiled`."),
]
RoomOption = Annotated[
    bool | None,
    typer.Option("--room/--no-room", help="Add blanks so that the head stays on the tape. Default: if it can halt."),
]
BackendOption = Annotated[str, typer.Option(help="With `--on compiled`: hard_alibi, lean or tracr.")]


def register(app: typer.Typer) -> None:
    app.command(
        epilog="Examples:  turing-programs run bb4  ·  turing-programs run palindrome 10101  ·  "
        "turing-programs run random:12x16:7 --on rasp --steps 40  ·  turing-programs run bb4 --on rasp --tags  ·  "
        "turing-programs run bb4 --on compiled"
    )(run)


def run(
    machine: MachineArgument,
    tape: TapeArgument = None,
    steps: StepsOption = 200,
    on: OnOption = "machine",
    n: NOption = 1,
    packing: PackingOption = "paper",
    engine: EngineOption = "jit",
    tags: TagsOption = None,
    room: RoomOption = None,
    backend: BackendOption = "lean",
    json: JsonOption = False,
) -> None:
    """Run a machine on a tape: by itself, by the RASP program, or inside a transformer, checked as it goes.

    Exit code 1 if a transformer departs from the machine; the RASP program may, and is shown where and why.
    """
    from experiments.playback import play
    from rasp import make_simulable
    from rasp.engines import check_engine
    from rasp.turing import check_packing

    check_engine(engine)
    chosen = read_machine(machine)
    check_packing(n, chosen.base, packing)
    start = first_tape(chosen, machine, tape, steps, room)
    model = _saved_model(on)
    kinds = kinds_of_tags(model, chosen)
    wants_tags = tags if tags is not None else on == "compiled" or kinds > 1
    tagged = make_simulable(chosen, cells_to_tag(len(start) - 3, n, kinds), n) if wants_tags else None
    runs, decode = (tagged.machine, tagged.decode) if tagged else (chosen, chosen.decode)
    at = chosen.decode(start)
    first = tagged.encode(at.cells, at.head, at.state) if tagged else start
    if tagged and packing == "paper" and on == "rasp":
        packing = "unbounded"  # tags are there to lift the limits; the step bound is one of them
    true_steps = len(chosen.trace(start, steps)) // (len(start) + 1) - 1
    writer = _writer(on, runs, n, packing, engine, backend, true_steps, model)
    with progress_bar("tokens") as progress:
        playback = play(runs, first, steps, writer, progress)
    if json:
        print_json({"machine": machine, "on": on, **_report(playback, chosen, decode, n, packing)})
    else:
        _print(playback, chosen, decode, on, n, packing)
    if not playback.correct and on not in ("machine", "rasp"):
        raise typer.Exit(1)


def first_tape(chosen: TuringMachine, name: str, tape: str | None, steps: int, room: bool | None) -> list[int]:
    from rasp.formats import default_tape

    if tape is None and name.startswith("random"):
        cells = [chosen.symbols[(7 * i + 3) % len(chosen.symbols)] for i in range(8)]
        start = chosen.encode(cells, head=4)
    else:
        start = chosen.parse_tape(default_tape(name) if tape is None else tape)
    wants_room = bool(chosen.final) if room is None else room
    return chosen.with_room(start, steps) if wants_room else start


def _writer(
    on: str, machine: TuringMachine, n: int, packing: str, engine: str, backend: str, steps: int, model: Any
) -> Writer | None:
    """Who continues the prompt; None for the machine itself."""
    if on == "machine":
        return None
    from rasp.formats import to_json

    if on == "rasp":
        from rasp import generate

        return lambda prompt, count: generate(prompt, machine, count, n, packing, engine)[len(prompt) :].tolist()
    if model is None:
        from compile import compile_machine

        model = compile_machine(machine, backend=backend, n=n, steps=max(steps, 1))
    elif model.config.extra.get("machine") != to_json(machine):
        raise ValueError(f"the model in {on} was compiled for another machine; compile this one, or run that one")
    import torch

    torch.set_num_threads(1)  # one token of one tape at a time: threads would only wait for each other
    return lambda prompt, count: model.stream(prompt, count)  # type: ignore[no-any-return]


def _saved_model(on: str) -> Any:
    """The model in the folder that --on names, if it names one."""
    if on in ("machine", "rasp", "compiled"):
        return None
    if not Path(on).is_dir():
        raise ValueError(f"--on {on!r} is neither machine, rasp, compiled nor the folder of a compiled model")
    from compile import Transformer

    model = Transformer.from_pretrained(on)
    if "machine" not in model.config.extra:
        raise ValueError(f"the model in {on} was not compiled from a machine")
    return model


def kinds_of_tags(model: Any, chosen: TuringMachine) -> int:
    """How many tags the machine of a saved model has (1: none)."""
    from rasp.formats import from_json

    return 1 if model is None else len(from_json(model.config.extra["machine"]).symbols) // len(chosen.symbols)


def cells_to_tag(needed: int, n: int, kinds: int) -> int:
    """How many cells to tag: those needed, or as many more as make use of all the tags the model knows."""
    from rasp.simulable import tag_row

    while kinds > 1 and max(tag_row(needed, n)) + 1 < kinds:
        needed += 1
    return needed


# --- showing ----------------------------------------------------------------------------------------------------------


def _report(playback: Playback, chosen: TuringMachine, decode: Any, n: int, packing: str) -> dict[str, Any]:
    from experiments.playback import explain

    last = playback.tapes[-1] if playback.correct else playback.tapes[-2]
    at = decode(last)
    divergence = playback.divergence
    return {
        "steps": playback.steps,
        "halted": playback.halted,
        "correct": playback.correct,
        "tape": chosen.format_tape(chosen.encode(at.cells, at.head, at.state)),
        "state": at.state,
        "non_blank": sum(cell != chosen.blank for cell in at.cells),
        "divergence": None if divergence is None else divergence.__dict__,
        "explanation": None if divergence is None else explain(playback, n, packing),
        "n": n,
        "packing": packing,
        "versions": versions(),
    }


def _print(playback: Playback, chosen: TuringMachine, decode: Any, on: str, n: int, packing: str) -> None:
    from rich.console import Console

    console = Console(highlight=False, soft_wrap=True)
    good = playback.tapes if playback.correct else playback.tapes[:-1]
    width = max(len(name) for name in chosen.states)
    for step, tape in enumerate(good):
        if len(good) > MOST_LINES and MOST_LINES // 2 <= step < len(good) - MOST_LINES // 2:
            if step == MOST_LINES // 2:
                console.print(f"   ...   {len(good) - MOST_LINES:,} steps not shown", style="dim")
            continue
        console.print(_line(step, decode(tape), width))
    if not playback.correct:
        _print_divergence(console, playback, on, n, packing)
    console.print(_verdict(playback, decode(good[-1]), chosen, on))


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


def _verdict(playback: Playback, at: Configuration, chosen: TuringMachine, on: str) -> Text:
    from rich.text import Text

    written = sum(cell != chosen.blank for cell in at.cells)
    who = {"machine": "The machine", "rasp": "The RASP program"}.get(on, "The transformer")
    if not playback.correct:
        return Text(f"{who} is right for {playback.steps} steps and then departs from the machine.", style="bold red")
    how = f"halted in {at.state} after" if playback.halted else "ran for"
    agrees = "" if on == "machine" else ", every token as the machine writes it"
    return Text(f"{who} {how} {playback.steps} steps with {written} non-blank cells{agrees}.", style="bold green")
