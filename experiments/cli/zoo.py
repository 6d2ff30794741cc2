"""`turing-programs zoo`: models whose circuits are known, and how well a method finds them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from experiments.cli.common import JsonOption, path_argument, print_json, progress_bar, screen, versions


def register(app: typer.Typer) -> None:
    app.command(
        name="zoo",
        epilog="Examples:  turing-programs zoo models/  ·  turing-programs zoo models/ --only induct --only bb3  ·  "
        "turing-programs zoo models/ --score patching  ·  turing-programs zoo models/ --score my.py:my_method",
    )(zoo_command)


def zoo_command(
    folder: Annotated[
        Path | None, path_argument(help="Where the models are or shall be; default ~/.cache/turing-programs/zoo.")
    ] = None,
    only: Annotated[list[str] | None, typer.Option(help="A model of the zoo; may be given again.")] = None,
    score: Annotated[
        str | None, typer.Option(help="Measure a method against the circuits: patching, random or FILE.py:FUNCTION.")
    ] = None,
    show: Annotated[bool, typer.Option("--list", help="Only list what there is.")] = False,
    json: JsonOption = False,
) -> None:
    """Write compiled models with their sources, circuits, test vectors and hashes; those already there are kept."""
    from experiments.zoo.catalogue import chosen
    from experiments.zoo.loading import zoo_folder

    names = chosen(only or ())
    if show:
        _list(names, json)
    elif score is not None:
        _score(score, folder or zoo_folder(), names, json)
    else:
        _write(folder or zoo_folder(), names, json)


def _list(names: Sequence[str], json: bool) -> None:
    from experiments.zoo.catalogue import catalogue

    entries = [catalogue()[name] for name in names]
    if json:
        print_json({"models": [{"name": e.name, "family": e.family, "description": e.description} for e in entries]})
        return
    _table("model", "family", "what it does", rows=[(e.name, e.family, e.description) for e in entries])


def _write(folder: Path, names: Sequence[str], json: bool) -> None:
    from experiments.files import output_folder
    from experiments.zoo.building import build_zoo

    done: dict[str, dict[str, Any]] = {}
    with output_folder(folder), progress_bar("models", len(names)) as tell:
        for name, manifest in build_zoo(folder, names):
            done[name] = manifest
            tell(len(done), len(names))
    if json:
        kept = ("family", "sha256", "layers", "parameters", "nonzero", "edges", "learned_twin")
        models = {name: {key: m[key] for key in kept} for name, m in done.items()}
        print_json({"folder": str(folder), "models": models, "versions": versions("torch")})
        return
    rows = [
        (name, m["family"], m["layers"], sum(m["heads"]), f"{m['nonzero']:,}", _shares(m["edges"]))
        for name, m in done.items()
    ]
    _table("model", "family", "layers", "heads", "weights", "in circuit / possible edges", rows=rows)
    typer.echo(f"{len(done)} models in {folder}; every one was compared with its program on the inputs tried.")
    typer.echo(
        "Ablating an edge of a circuit changes an answer at an input that is named (guards: once another is ablated).\n"
        "On all other edges no answer depends, as zeros in the weights show. load_zoo(name).check_circuit() tries both."
    )


def _shares(edges: dict[str, int]) -> str:
    inside = sum(count for kind, count in edges.items() if kind != "possible")
    guards = f" ({edges['guard']} guards)" if edges["guard"] else ""
    return f"{inside}{guards} / {edges['possible']}"


def _score(name: str, folder: Path, names: Sequence[str], json: bool) -> None:
    from experiments.zoo.loading import load_zoo
    from experiments.zoo.scoring import SHARES, Score, find_method, score

    method = find_method(name)
    found: list[Score] = []
    with progress_bar(name, len(names)) as tell:
        for one in score(method, (load_zoo(model, folder) for model in names)):
            found.append(one)
            tell(len(found), len(names))
    means = {key: _mean([getattr(one, key) for one in found]) for key in (*SHARES, "auroc")}
    if json:
        report = {"method": name, "folder": str(folder), "mean": means, "models": [one.to_dict() for one in found]}
        print_json({**report, "versions": versions("torch")})
        return
    rows = [(s.model, s.edges, s.circuit, s.claimed, *(_figure(getattr(s, key)) for key in means)) for s in found]
    mean = ("mean", "", "", "", *map(_figure, means.values()))
    headings = ("model", "edges", "in circuit", "claimed", "precision", "recall", "of what cuts show", "AUROC")
    _table(*headings, rows=[*rows, mean])


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None


def _figure(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"


def _table(*headings: str, rows: Sequence[Sequence[Any]]) -> None:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    table = Table(box=SIMPLE_HEAD)
    for heading in headings:
        table.add_column(heading)
    for row in rows:
        table.add_row(*(Text(str(cell)) for cell in row))
    screen().print(table)
