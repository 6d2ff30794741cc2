"""`turing-programs train` and `reproduce`: the learned half."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from experiments.cli.common import (
    INTERRUPTED,
    MOST,
    DeviceOption,
    JsonOption,
    ThreadsOption,
    command_line,
    path_option,
    print_json,
    read_range,
    versions,
)

if TYPE_CHECKING:
    from experiments.training import TrainingRequest

OutputOption = Annotated[
    Path | None, path_option("-o", "--output", help="Folder of the run.", show_default="runs/NAME")
]
ResumeOption = Annotated[bool, typer.Option("--resume", help="Continue the run in that folder.")]
SaveOption = Annotated[float, typer.Option(min=0, help="Minutes between checkpoints.")]
EncodingOption = Annotated[
    str | None, typer.Option(help="hard_alibi, nope, alibi, rope, absolute, learned, randomized, t5, fire.")
]
StartOption = Annotated[
    str | None, typer.Option(help="Checkpoint to go on from: a shipped one, or a folder; of the same shape.")
]
PrecisionOption = Annotated[
    str | None, typer.Option(help="auto (the faster one here), float32 or bf16.", show_default="the recipe's")
]


def register(app: typer.Typer) -> None:
    app.command(
        epilog="Examples:  turing-programs train tm-tiny  ·  "
        "turing-programs train tm-cpu --machine-seed 3 --minutes 20  ·  "
        "turing-programs train tm-cpu --machine my.json  ·  "
        "turing-programs train addition-cpu --task my.py:Reversal  ·  "
        "turing-programs train tm-cpu --resume  ·  turing-programs train paper-addition --dry-run  ·  "
        "torchrun --nproc_per_node 2 -m experiments.cli train tm-cpu"
    )(train)
    app.command(epilog="Example:  turing-programs reproduce tm-0")(reproduce)


def train(
    name: Annotated[str, typer.Argument(metavar="PRESET", help="tm-tiny, tm-cpu, addition-cpu, ..., paper-tm, ...")],
    device: DeviceOption = "auto",
    minutes: Annotated[float | None, typer.Option(help="Choose the number of steps to take about this long.")] = None,
    steps: Annotated[int | None, typer.Option(help="Number of steps; with --resume, end at this one.")] = None,
    seed: Annotated[int | None, typer.Option(min=0, max=MOST, help="Of weights and data.")] = None,
    machine_seed: Annotated[int | None, typer.Option(min=0, max=MOST, help="Which random machine, of tm-*.")] = None,
    batch: Annotated[int | None, typer.Option(help="Rows of a step.")] = None,
    machine: Annotated[str | None, typer.Option(help="The machine to learn, as for `run`: a file, a name, ...")] = None,
    task: Annotated[
        str | None, typer.Option(help="A task of your own, FILE.py:CLASS, with this preset's model.")
    ] = None,
    accumulate: Annotated[int | None, typer.Option(help="Parts of a step, one after the other: less memory.")] = None,
    context: Annotated[int | None, typer.Option(help="Tokens of a row.")] = None,
    lengths: Annotated[str | None, typer.Option(help="Training lengths, such as 2-20.")] = None,
    encoding: EncodingOption = None,
    start: StartOption = None,
    scratchpad: Annotated[bool, typer.Option("--scratchpad/--no-scratchpad", help="Write the steps out.")] = True,
    output: OutputOption = None,
    resume: ResumeOption = False,
    save_minutes: SaveOption = 2.0,
    precision: PrecisionOption = None,
    threads: ThreadsOption = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what it would take.")] = False,
    json: JsonOption = False,
) -> None:
    """Train a transformer on one of the paper's tasks, from a preset."""
    from experiments.training import TrainingRequest, preset
    from experiments.training.variations import Variation

    variation = Variation(
        seed=seed,
        machine_seed=machine_seed,
        machine=machine,
        task=task,
        batch=batch,
        accumulate=accumulate,
        context=context,
        lengths=None if lengths is None else read_range(lengths),
        encoding=encoding,
        start=start,
        scratchpad=scratchpad,
    )
    request = TrainingRequest(
        recipe=variation.of(preset(name)),
        folder=output or Path("runs") / name,
        device=device,
        minutes=minutes,
        steps=steps,
        resume=resume,
        save_minutes=save_minutes,
        precision=precision,
        threads=threads,
        command=command_line(),
    )
    if dry_run:
        print_size(name, request, json)
    else:
        run(request, json)


def reproduce(
    name: Annotated[str, typer.Argument(help="A shipped checkpoint: tm-0 .. tm-9, addition, sgd, ...")],
    device: DeviceOption = "auto",
    output: OutputOption = None,
    resume: ResumeOption = False,
    save_minutes: SaveOption = 2.0,
    precision: PrecisionOption = None,
    threads: ThreadsOption = None,
    json: JsonOption = False,
) -> None:
    """Train a shipped checkpoint again from its own recipe."""
    from experiments.training import TrainingRequest
    from experiments.training.presets import recipe_of

    request = TrainingRequest(
        recipe=recipe_of(name),
        folder=output or Path("runs") / name,
        device=device,
        resume=resume,
        save_minutes=save_minutes,
        precision=precision,
        threads=threads,
        command=command_line(),
    )
    run(request, json)


def print_size(name: str, request: TrainingRequest, json: bool) -> None:
    from experiments.training.sizing import SPEEDS, size_of

    if request.minutes is not None:
        raise ValueError("--dry-run computes nothing, and --minutes needs steps that are timed; give --steps instead")
    size = size_of(request.new_recipe())
    if json:
        print_json({"preset": name, **size.to_dict(SPEEDS), "versions": versions()})
        return
    unit, name_of_unit = (2**30, "GiB") if size.bytes >= 2**30 else (2**20, "MiB")
    typer.echo(
        f"{name}: {size.parameters:,} parameters, {size.steps:,} steps of {size.tokens_per_step:,} tokens, "
        f"{size.flops_per_step:.3g} FLOPs each, {size.flops:.3g} in all\n"
        f"memory {size.bytes / unit:.2f} {name_of_unit}: weights {size.weight_bytes / unit:.2f}, gradients "
        f"{size.gradient_bytes / unit:.2f}, optimizer {size.optimizer_bytes / unit:.2f}, average "
        f"{size.average_bytes / unit:.2f}, activations {size.activation_bytes / unit:.2f}\n"
        + ", ".join(f"{_time(size.hours(speed))} at {speed:.0e} FLOP/s" for speed in SPEEDS)
    )


def _time(hours: float) -> str:
    seconds = 3600 * hours
    return f"{hours:,.1f} h" if hours >= 1 else f"{seconds / 60:.1f} min" if seconds >= 60 else f"{seconds:.2g} s"


def run(request: TrainingRequest, json: bool) -> None:
    from experiments.training import train
    from experiments.training.state import Interrupted

    try:
        record = train(request)
    except Interrupted as stopped:
        typer.echo(str(stopped), err=True)
        raise typer.Exit(INTERRUPTED) from None
    if int(os.environ.get("RANK", "0")) > 0:  # of several processes the first one speaks
        return
    if json:
        print_json({**record, "output": str(request.folder), "versions": versions()})
    else:
        typer.echo(
            f"wrote {request.folder} after {record['steps_done']} steps, {record['tokens']:,} tokens and "
            f"{record['seconds'] / 60:.1f} minutes; try: turing-programs evaluate {request.folder}"
        )
