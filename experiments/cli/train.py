"""`turing-programs train`, `reproduce` and `evaluate`: the learned half."""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from experiments.cli.common import INTERRUPTED, JsonOption, need_folder, print_json, progress_bar, versions

if TYPE_CHECKING:
    from experiments.evaluation import Checkpoint, Result
    from experiments.recipe import Recipe

DeviceOption = Annotated[str, typer.Option(help="auto, cpu or cuda.")]
OutputOption = Annotated[
    Path | None, typer.Option("-o", "--output", help="Folder of the run.", show_default="runs/NAME")
]
ResumeOption = Annotated[bool, typer.Option("--resume", help="Continue the run in that folder.")]
SaveOption = Annotated[float, typer.Option(min=0, help="Minutes between checkpoints.")]
EncodingOption = Annotated[
    str | None, typer.Option(help="hard_alibi, nope, alibi, rope, absolute, learned, randomized, t5, fire.")
]
ThreadsOption = Annotated[int | None, typer.Option(min=1, max=1024, help="CPU threads.")]
MOST = 2**32 - 1  # of a seed


def register(app: typer.Typer) -> None:
    app.command(
        epilog="Examples:  turing-programs train tm-tiny  ·  "
        "turing-programs train tm-cpu --machine-seed 3 --minutes 20  ·  "
        "turing-programs train tm-cpu --resume  ·  torchrun --nproc_per_node 2 -m experiments.cli train tm-cpu"
    )(train)
    app.command(epilog="Example:  turing-programs reproduce tm-0")(reproduce)
    app.command(
        epilog="Examples:  turing-programs evaluate --shipped  ·  "
        "turing-programs evaluate runs/tm-cpu --lengths 20,40,60 --rollout 10 -o figures/"
    )(evaluate)
    app.command(epilog="Examples:  turing-programs figure machines  ·  turing-programs figure grid -o grid/")(figure)


def train(
    name: Annotated[str, typer.Argument(metavar="PRESET", help="tm-tiny, tm-cpu, addition-cpu, ..., paper-tm, ...")],
    device: DeviceOption = "auto",
    minutes: Annotated[float | None, typer.Option(help="Choose the number of steps to take about this long.")] = None,
    steps: Annotated[int | None, typer.Option(help="Number of steps; with --resume, end at this one.")] = None,
    seed: Annotated[int | None, typer.Option(min=0, max=MOST, help="Of weights and data.")] = None,
    machine_seed: Annotated[int | None, typer.Option(min=0, max=MOST, help="Which random machine, of tm-*.")] = None,
    batch: Annotated[int | None, typer.Option(help="Rows of a step.")] = None,
    context: Annotated[int | None, typer.Option(help="Tokens of a row.")] = None,
    lengths: Annotated[str | None, typer.Option(help="Training lengths, such as 2-20.")] = None,
    encoding: EncodingOption = None,
    start: Annotated[
        str | None, typer.Option(help="Checkpoint to go on from: a shipped one, or a folder; of the same shape.")
    ] = None,
    scratchpad: Annotated[bool, typer.Option("--scratchpad/--no-scratchpad", help="Write the steps out.")] = True,
    output: OutputOption = None,
    resume: ResumeOption = False,
    save_minutes: SaveOption = 2.0,
    threads: ThreadsOption = None,
    json: JsonOption = False,
) -> None:
    """Train a transformer on one of the paper's tasks, from a preset."""
    from experiments.presets import preset, with_encoding
    from experiments.recipe import with_lengths

    changes = {"batch": batch, "context": context, "seed": seed}
    recipe = preset(name).changed(**{key: value for key, value in changes.items() if value is not None})
    recipe = recipe if lengths is None else with_lengths(recipe, read_range(lengths))
    recipe = with_task(recipe, machine_seed, scratchpad)
    recipe = recipe if encoding is None else with_encoding(recipe, encoding)
    recipe = recipe if start is None else recipe.changed(start=find_start(start))
    recipe.changed(start="" if resume else recipe.start).make_model()  # refuses what no model can be
    folder = output or Path("runs") / name
    run_recipe(recipe, folder, device, minutes, steps, resume, save_minutes, threads, json)


def reproduce(
    name: Annotated[str, typer.Argument(help="A shipped or planned checkpoint: tm-0 .. tm-9, addition, sgd, ...")],
    device: DeviceOption = "auto",
    output: OutputOption = None,
    resume: ResumeOption = False,
    save_minutes: SaveOption = 2.0,
    threads: ThreadsOption = None,
    json: JsonOption = False,
) -> None:
    """Train a shipped checkpoint again from its own recipe, or one that is still to come."""
    from experiments.shipped import recipe_of

    run_recipe(recipe_of(name), output or Path("runs") / name, device, None, None, resume, save_minutes, threads, json)


def evaluate(
    checkpoints: Annotated[list[str] | None, typer.Argument(help="Folders of runs, or names of shipped ones.")] = None,
    shipped: Annotated[bool, typer.Option("--shipped", help="All that come with this repository.")] = False,
    lengths: Annotated[
        str | None, typer.Option(help="Such as 20,40,60. Default: 1 and 1.5 times the trained; machines: also 2, 3.")
    ] = None,
    rollout: Annotated[int, typer.Option(min=0, help="Machine steps in a row.")] = 0,
    gram: Annotated[int, typer.Option(min=0, help="Split by whether the tape repeats an n-gram of this size.")] = 0,
    grid: Annotated[
        str | None, typer.Option(help="Operand lengths to cross, such as 6,12,18 (addition); at most 96 problems each.")
    ] = None,
    examples: Annotated[int, typer.Option(min=1, help="Problems per length.")] = 288,
    seed: Annotated[int, typer.Option(min=0, max=MOST, help="Of the test problems.")] = 0,
    seeds: Annotated[bool, typer.Option("--seeds", help="The checkpoints are seeds of one: mean and band.")] = False,
    output: Annotated[Path | None, typer.Option("-o", "--output", help="Folder for figures and results.json.")] = None,
    ship: Annotated[str | None, typer.Option(help="Keep the run among the shipped, under this name.")] = None,
    device: DeviceOption = "auto",
    markdown: Annotated[bool, typer.Option("--markdown", help="Print the README's table.")] = False,
    json: JsonOption = False,
) -> None:
    """Accuracy of trained models on problems of any length, with 95% intervals."""
    from experiments import evaluation
    from experiments.devices import choose_device
    from experiments.run_state import write_json
    from experiments.shipped import find, shipping
    from experiments.shipped import shipped as shipped_folders

    chosen, asked_lengths, asked_grid = choose_device(device), read_numbers(lengths), read_numbers(grid)
    folders = [find(name) for name in checkpoints or ()] + (shipped_folders() if shipped else [])
    if not folders:
        raise ValueError("nothing to evaluate; name a folder written by `train`, or use --shipped")
    if ship is not None and len(folders) != 1:
        raise ValueError(f"--ship keeps one run under one name; {len(folders)} were given")
    if seeds and len({folder.resolve() for folder in folders}) < 2:
        raise ValueError("--seeds takes the mean over several checkpoints; name at least two")
    need_folder(output)
    results, trained = [], {}
    with shipping(folders[0], ship) if ship is not None else nullcontext() as kept:
        for checkpoint in loaded([kept.folder] if kept else folders, chosen):
            trained[checkpoint.name] = checkpoint.lengths[1]
            alone = len(folders) == 1  # of one, everything; of several, each is asked what it can answer
            machine, pairs = alone or checkpoint.is_machine, alone or checkpoint.task.operands == 2
            results += evaluation.evaluate(checkpoint, asked_lengths, rollout * machine, examples=examples,
                                           seed=seed, gram=gram * machine, grid=asked_grid * pairs)  # fmt: skip
        if kept:
            kept.note(results)
    if seeds:
        if len(set(trained.values())) > 1:
            told = ", ".join(f"{name} to {longest}" for name, longest in trained.items())
            raise ValueError(f"--seeds takes the mean over seeds of one experiment; these differ in length: {told}")
        results = evaluation.band(results, f"{len(folders)} seeds")
        trained = {f"{len(folders)} seeds": max(trained.values())}
    report = {"results": [r.to_dict() for r in results], "examples": examples, "seed": seed, "versions": versions()}
    if output is not None:
        from experiments.figures import draw

        draw(results, output)
        write_json(output / "results.json", report)
    if json:
        print_json(report)
    elif markdown:
        typer.echo(evaluation.as_markdown(results, trained))
    else:
        print_results(results)


def figure(
    name: Annotated[str, typer.Argument(help="machines, rollouts, seeds, encodings, formats, grid, ...")],
    output: Annotated[Path | None, typer.Option("-o", "--output", help="Folder.", show_default="figures/NAME")] = None,
    examples: Annotated[int, typer.Option(min=1, help="Problems per length.")] = 288,
    seed: Annotated[int, typer.Option(min=0, max=MOST, help="Of the test problems.")] = 0,
    device: DeviceOption = "auto",
    json: JsonOption = False,
) -> None:
    """Draw one of the paper's figures from the checkpoints that come with this repository."""
    from experiments import evaluation
    from experiments.devices import choose_device
    from experiments.figures import FIGURES, draw
    from experiments.run_state import write_json
    from experiments.shipped import FOLDER

    if name not in FIGURES:
        raise ValueError(f"there is no figure {name!r}; choose one of {', '.join(FIGURES)}")
    chosen, where = FIGURES[name], choose_device(device)
    missing = [c for c in chosen.checkpoints if not (FOLDER / c).is_dir()]
    if missing:
        raise ValueError(f"the figure {name!r} shows {', '.join(missing)}, which is not shipped; "
                         f"train it with `turing-programs reproduce {missing[0]}` and keep it with `turing-programs "
                         f"evaluate runs/{missing[0]} --ship {missing[0]}`")  # fmt: skip
    folder = output or Path("figures") / name
    need_folder(folder)
    results = []
    for checkpoint in loaded([FOLDER / c for c in chosen.checkpoints], where):
        results += evaluation.evaluate(checkpoint, (), chosen.steps, examples=examples, seed=seed, grid=chosen.grid)
    if chosen.as_band:
        results = evaluation.band(results, f"{len(chosen.checkpoints)} seeds")
    made = draw(results, folder)
    report = {"figure": name, "about": chosen.about, "results": [r.to_dict() for r in results], "examples": examples,
              "seed": seed, "versions": versions()}  # fmt: skip
    write_json(folder / "results.json", report)
    if json:
        print_json(report)
    else:
        typer.echo(f"{chosen.about}: wrote {', '.join(map(str, made))} and {folder / 'results.json'}")


def loaded(folders: list[Path], device: str) -> Iterator[Checkpoint]:
    """One checkpoint after the other, with a bar that shows how many are done. Those of the same name go by path."""
    from experiments.evaluation import load_checkpoint

    names = Counter(folder.resolve().name for folder in folders)
    with progress_bar("evaluating", len(folders)) as tell:
        for done, folder in enumerate(folders):
            tell(done, len(folders))
            checkpoint = load_checkpoint(folder, device)
            yield checkpoint if names[checkpoint.name] == 1 else replace(checkpoint, name=str(folder))


def run_recipe(
    recipe: Recipe, folder: Path, device: str, minutes: float | None, steps: int | None, resume: bool,
    save_minutes: float, threads: int | None, json: bool,
) -> None:  # fmt: skip
    import torch

    from experiments import training
    from experiments.recipe import Recipe, with_steps
    from experiments.run_state import read_state

    if threads is not None:
        torch.set_num_threads(threads)
    if minutes is not None and steps is not None:
        raise ValueError("--minutes and --steps both say how long to train; give one of them")
    if steps is not None and steps < 1:
        raise ValueError(f"--steps is {steps}; expected at least 1")
    if resume and minutes is not None:
        raise ValueError("--minutes is for a new run; one that is resumed ends where it was meant to, or at --steps")
    if resume:  # the run knows how long it was meant to be; --steps makes it end at another step
        notes = read_state(folder)[1]
        begun = Recipe.from_dict(notes["recipe"])
        begun = begun if steps is None else begun.ending(steps, notes["steps_done"])
        recipe = recipe.changed(steps=begun.steps, warmup=begun.warmup, bends=begun.bends, horizon=begun.horizon,
                                gentler=begun.gentler, emphasis=begun.emphasis)  # fmt: skip
    elif steps is not None:
        recipe = with_steps(recipe, steps)
    elif minutes is not None:
        training.need_free_folder(folder, resume)
        recipe = training.steps_in(recipe, minutes, device)
    try:
        outcome = training.train(recipe, folder, device=device, resume=resume, save_minutes=save_minutes,
                                 command=" ".join(["turing-programs", *sys.argv[1:]]))  # fmt: skip
    except training.Interrupted as stopped:
        typer.echo(str(stopped), err=True)
        raise typer.Exit(INTERRUPTED) from None
    if int(os.environ.get("RANK", "0")) > 0:  # of several processes the first one speaks
        return
    if json:
        print_json({**outcome, "output": str(folder), "versions": versions()})
    else:
        typer.echo(f"wrote {folder} after {outcome['steps_done']} steps, {outcome['tokens']:,} tokens and "
                   f"{outcome['seconds'] / 60:.1f} minutes; try: turing-programs evaluate {folder}")  # fmt: skip


def with_task(recipe: Recipe, machine_seed: int | None, scratchpad: bool) -> Recipe:
    from experiments.presets import without_scratchpad

    changes = {} if machine_seed is None else {"machine_seed": machine_seed}
    changed = recipe.changed(task={**recipe.task, **changes})
    changed = changed if scratchpad else without_scratchpad(changed)
    changed.make_task()  # refuses what this task does not have
    return changed


def find_start(name: str) -> str:
    """The name of a shipped checkpoint, or a folder's path that means the same from everywhere."""
    from experiments.shipped import FOLDER

    if not name:
        raise ValueError("--start is empty; name a shipped checkpoint or a folder of a run, or leave it out")
    return name if (FOLDER / name).is_dir() else str(Path(name).resolve())


def read_range(text: str) -> tuple[int, int]:
    parts = text.split("-")
    if len(parts) != 2 or not all(part.isdecimal() for part in parts):
        raise ValueError(f"{text!r} is not a range of lengths such as 2-20")
    return int(parts[0]), int(parts[1])


def read_numbers(text: str | None) -> list[int]:
    parts = text.replace(" ", "").split(",") if text is not None else []
    if not all(part.isdecimal() and int(part) > 0 for part in parts):
        raise ValueError(f"{text!r} is not a list of lengths such as 20,40,60")
    return [int(part) for part in parts]


def print_results(results: list[Result]) -> None:
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table

    table = Table(box=SIMPLE_HEAD)
    for heading in ("name", "length", "steps", "right", "95% interval", "of", ""):
        table.add_column(heading, justify="left" if heading in ("name", "") else "right")
    for r in results:
        interval = f"{r.low:.3f} - {r.high:.3f}"
        group = "" if r.group == "all" else r.group
        table.add_row(r.name, str(r.length), str(r.rollout), f"{r.accuracy:.3f}", interval, str(r.examples), group)
    Console().print(table)
