"""`turing-programs inspect`: a page that shows what every head does while a model runs a machine."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from experiments.cli.common import (
    JsonOption,
    NOrDefault,
    PrecisionOption,
    StepsOption,
    TagsOption,
    TapeArgument,
    ThreadsOption,
    open_in_browser,
    path_option,
    print_json,
)
from experiments.files import need_output

if TYPE_CHECKING:
    from experiments.inspections import Scene

ModelArgument = Annotated[
    str | None,
    typer.Argument(
        help="`compiled`, the folder of a model, or the name of a shipped checkpoint; FILE.py:FUNCTION is compiled."
    ),
]
ShownMachineArgument = Annotated[
    str | None,
    typer.Argument(
        help="The machine or program to run, as for `run`. Default: the one the model was made for.",
    ),
]
AgainstOption = Annotated[str | None, typer.Option(help="A second model, shown beside the first on the same trace.")]
GalleryOption = Annotated[
    Path | None, path_option(help="Write a page for every gallery machine and an index into this folder instead.")
]
FreeOption = Annotated[bool, typer.Option("--free", help="Show what the model writes by itself, right or wrong.")]


def register(app: typer.Typer) -> None:
    app.command(
        epilog="Examples:  turing-programs inspect compiled bb4 --open  ·  "
        "turing-programs inspect --gallery pages/  ·  "
        "turing-programs inspect model/ palindrome abba --steps 12 -o page.html  ·  "
        "turing-programs inspect compiled random:15x5:0 --against runs/tm-0  ·  "
        "turing-programs inspect compiled addition 43+9 --against addition  ·  "
        "turing-programs inspect my.py:majority '1 0 1 1'"
    )(inspect)


def inspect(
    model: ModelArgument = None,
    machine: ShownMachineArgument = None,
    tape: TapeArgument = None,
    steps: StepsOption = 20,
    output: Annotated[Path | None, path_option("-o", "--output", help="The page. Default: inspector.html")] = None,
    open_: Annotated[bool, typer.Option("--open", help="Open it in the browser.")] = False,
    against: AgainstOption = None,
    backend: Annotated[str, typer.Option(help="For `compiled`: hard_alibi, lean or tracr.")] = "lean",
    n: NOrDefault = None,
    tags: TagsOption = None,
    free: FreeOption = False,
    gallery: GalleryOption = None,
    precision: PrecisionOption = "float32",
    threads: ThreadsOption = None,
    json: JsonOption = False,
) -> None:
    """Write one self-contained HTML page: tapes, predictions, and the attention of every head, step by step."""
    need_output(output, (".html",))
    if gallery is not None and model is not None:
        raise ValueError(f"--gallery compiles its own models; leave out {model!r}, or leave out --gallery")
    if gallery is not None:
        _gallery(gallery, open_, json)
        return
    if model is None:
        raise ValueError("name a model (`compiled`, or a folder), or give --gallery FOLDER")
    from experiments.inspections import InspectionRequest, inspect_request

    request = InspectionRequest(
        model=model,
        against=against,
        machine=machine,
        tape=tape,
        steps=steps,
        backend=backend,
        n=n,
        tags=tags,
        free=free,
        precision=precision,
        threads=threads,
    )
    page, scene = inspect_request(request)
    path = page.save(output or Path("inspector.html"))
    _report(path, scene, page.data, json)
    if open_:
        open_in_browser(path)


def _report(path: Path, scene: Scene, data: dict[str, Any], as_json: bool) -> None:
    size, tokens = path.stat().st_size, len(scene.trace)
    asked = [i for i in range(scene.given - 1, tokens) if data["truth"][i] >= 0 or scene.says is not None]
    right = [sum(m["predictions"][i] == data["truth"][i] for i in asked) for m in data["models"]]
    if as_json:
        print_json({"output": str(path), "bytes": size, "tokens": tokens, "predicted": len(asked), "right": right})
        return
    said = " and ".join(map(str, right))
    typer.echo(f"wrote {path} ({size / 1000:,.0f} KB): {tokens} tokens, {said} of {len(asked)} right")


def _gallery(folder: Path, open_: bool, as_json: bool) -> None:
    from experiments.inspections import write_gallery

    cards = write_gallery(folder, lambda name: None if as_json else typer.echo(f"{name} ...", err=True))
    index = folder / "index.html"
    if as_json:
        print_json({"output": str(index), "pages": [{"name": c.name, "file": c.file, "bytes": c.size} for c in cards]})
    else:
        typer.echo(f"wrote {index} and {len(cards)} pages")
    if open_:
        open_in_browser(index)
