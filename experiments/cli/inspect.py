"""`turing-programs inspect`: a page that shows what every head does while a model runs a machine."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from experiments.cli.common import (
    BACKENDS,
    JsonOption,
    NOrDefault,
    PrecisionOption,
    StepsOption,
    TagsOption,
    TapeArgument,
    ThreadsOption,
    one_of,
    open_in_browser,
    path_option,
    print_json,
    refuse_others,
)
from experiments.files import need_output

if TYPE_CHECKING:
    from experiments.inspections import InspectedScene

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
BackendOption = Annotated[
    str, typer.Option(help="For `compiled`: hard_alibi, lean or tracr.", callback=one_of(BACKENDS))
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
    context: typer.Context,
    model: ModelArgument = None,
    machine: ShownMachineArgument = None,
    tape: TapeArgument = None,
    steps: StepsOption = 20,
    output: Annotated[Path | None, path_option("-o", "--output", help="The page. Default: inspector.html")] = None,
    open_: Annotated[bool, typer.Option("--open", help="Open it in the browser.")] = False,
    against: AgainstOption = None,
    backend: BackendOption = "lean",
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
        refuse_others(context, "a gallery of all machines", "gallery", "open_")
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
    found = inspect_request(request)
    path = found.page.save(output or Path("inspector.html"))
    _report(path, found, json)
    if open_:
        open_in_browser(path)


def _report(path: Path, found: InspectedScene, as_json: bool) -> None:
    size, tokens, scores = path.stat().st_size, len(found.scene.trace), found.scores
    asked, right, why = scores[0].asked, [one.right for one in scores], [one.why or None for one in scores]
    if as_json:
        about = {"output": str(path), "bytes": size, "tokens": tokens}
        print_json({**about, "predicted": asked, "right": right, "why": why})
        return
    said = " and ".join(map(str, right))
    typer.echo(f"wrote {path} ({size / 1000:,.0f} KB): {tokens} tokens, {said} of {asked} right")
    for name, one in zip((part["title"] for part in found.page.data["models"]), scores, strict=True):
        if one.why:
            typer.echo(f"{name}, first wrong at token {one.wrong_at}: {one.why}")


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
