"""`turing-programs inspect`: a page that shows what every head does while a model runs a machine."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from experiments.cli.common import JsonOption, NOption, need_output, print_json, read_machine

if TYPE_CHECKING:
    from experiments.inspections import Scene
    from rasp import TuringMachine

ModelArgument = Annotated[
    str | None, typer.Argument(help="`compiled`, the folder of a model, or the name of a shipped checkpoint.")
]
MachineArgument = Annotated[
    str | None, typer.Argument(help="The machine to run, as for `run`. Default: the one the model was made for.")
]
TapeArgument = Annotated[
    str | None, typer.Argument(help="Its cells, the head in brackets: 10[1]10, or 10[q1:1]10 with a state.")
]
AgainstOption = Annotated[str | None, typer.Option(help="A second model, shown beside the first on the same trace.")]
GalleryOption = Annotated[
    Path | None, typer.Option(help="Write a page for every gallery machine and an index into this folder instead.")
]
TagsOption = Annotated[
    bool | None, typer.Option("--tags/--no-tags", help="Tag the cells so that no n-gram repeats. Default: if compiled.")
]
FreeOption = Annotated[bool, typer.Option("--free", help="Show what the model writes by itself, right or wrong.")]


def register(app: typer.Typer) -> None:
    app.command(
        epilog="Examples:  turing-programs inspect compiled bb4 --open  ·  "
        "turing-programs inspect --gallery pages/  ·  "
        "turing-programs inspect model/ palindrome abba --steps 12 -o page.html  ·  "
        "turing-programs inspect compiled random:15x5:0 --against runs/tm-0"
    )(inspect)


def inspect(
    model: ModelArgument = None,
    machine: MachineArgument = None,
    tape: TapeArgument = None,
    steps: Annotated[int, typer.Option("--steps", "-t", help="Stop here if it has not halted.")] = 20,
    output: Annotated[Path | None, typer.Option("-o", "--output", help="The page. Default: inspector.html")] = None,
    open_: Annotated[bool, typer.Option("--open", help="Open it in the browser.")] = False,
    against: AgainstOption = None,
    backend: Annotated[str, typer.Option(help="For `compiled`: hard_alibi, lean or tracr.")] = "lean",
    n: NOption = 1,
    tags: TagsOption = None,
    free: FreeOption = False,
    gallery: GalleryOption = None,
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
    from experiments.inspections import inspect_scene, need_same_language

    names = [name for name in (model, against) if name is not None]
    saved = [_load(name) for name in names]
    scene = _scene(saved, machine, tape, steps, n, tags)
    models = [_compile(scene, backend, n) if m is None else m for m in saved]
    for name, made in zip(names, models, strict=True):
        need_same_language(made, scene, name)
    titles = tuple(f"compiled ({backend})" if m is None else name for name, m in zip(names, saved, strict=True))
    page = inspect_scene(models[0], scene, models[1] if against else None, titles, free)
    path = page.save(output or Path("inspector.html"))
    _report(path, scene, page.data, json)
    if open_:
        _open(path)


def _load(name: str) -> Any:
    """The model a person named; None: to be compiled."""
    if name == "compiled":
        return None
    from compile import Transformer
    from experiments.shipped import find

    folder = find(name)
    if not folder.is_dir():
        raise ValueError(f"{name!r} is neither `compiled`, the folder of a model, nor a shipped checkpoint")
    return Transformer.from_pretrained(folder)


def _scene(
    saved: list[Any], name: str | None, tape: str | None, steps: int, n: int, tags: bool | None
) -> Scene:  # fmt: skip
    """The machine and tape that were asked for, in the language of the models that are there already."""
    from experiments.cli.run import cells_to_tag, first_tape, kinds_of_tags
    from experiments.inspections import machine_scene, task_scene
    from rasp import make_simulable

    model = next((m for m in saved if m is not None), None)
    if name is None and model is None:
        raise ValueError("say which machine to compile, for example: turing-programs inspect compiled bb4")
    own = None if model is None else _machine_of(model)
    if name is None and own is None:
        return task_scene(model)
    chosen = read_machine(name) if name is not None else own
    assert chosen is not None
    start = first_tape(chosen, name or "random", tape, steps, None)
    kinds = kinds_of_tags(model, chosen) if own else 1
    wants_tags = tags if tags is not None else kinds > 1 or model is None
    if not wants_tags:
        return machine_scene(chosen, start, steps)
    tagged = make_simulable(chosen, cells_to_tag(len(start) - 3, n, kinds), n)
    at = chosen.decode(start)
    return machine_scene(tagged.machine, tagged.encode(at.cells, at.head, at.state), steps, chosen.name)


def _machine_of(model: Any) -> TuringMachine | None:
    """The machine a model carries, if its tokens are that machine's."""
    from rasp.formats import from_json

    text = model.config.extra.get("machine")
    machine = from_json(text) if isinstance(text, str) else None
    return machine if machine and tuple(model.config.token_names[: machine.base]) == machine.vocabulary else None


def _compile(scene: Scene, backend: str, n: int) -> Any:
    from compile import compile_machine

    assert scene.machine is not None
    steps = max(1, len(scene.trace) // scene.given - 1)
    options: dict[str, Any] = {"max_seq_len": len(scene.trace)} if backend == "tracr" else {}
    return compile_machine(scene.machine, backend=backend, n=n, steps=steps, check=False, **options)


def _report(path: Path, scene: Scene, data: dict[str, Any], as_json: bool) -> None:
    size, tokens = path.stat().st_size, len(scene.trace)
    right = [sum(m["predictions"][i] == data["truth"][i] for i in range(scene.given - 1, tokens - 1))
             for m in data["models"]]  # fmt: skip
    if as_json:
        print_json({"output": str(path), "bytes": size, "tokens": tokens, "predicted": tokens - scene.given,
                    "right": right})  # fmt: skip
        return
    said = " and ".join(map(str, right))
    typer.echo(f"wrote {path} ({size / 1000:,.0f} KB): {tokens} tokens, {said} of {tokens - scene.given} right")


def _gallery(folder: Path, open_: bool, as_json: bool) -> None:
    from experiments.inspections import write_gallery

    cards = write_gallery(folder, lambda name: None if as_json else typer.echo(f"{name} ...", err=True))
    index = folder / "index.html"
    if as_json:
        print_json({"output": str(index), "pages": [{"name": c.name, "file": c.file, "bytes": c.size} for c in cards]})
    else:
        typer.echo(f"wrote {index} and {len(cards)} pages")
    if open_:
        _open(index)


def _open(path: Path) -> None:
    import webbrowser

    webbrowser.open(path.resolve().as_uri())
