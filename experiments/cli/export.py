"""`turing-programs export`: a model for other people's tools."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from experiments.cli.common import JsonOption, path_option, print_json, versions

app = typer.Typer(
    help="Write a model for other people's tools.",
    no_args_is_help=True,
    epilog="Examples:  turing-programs export onnx bb3 -o bb3.onnx  ·  turing-programs export hugging-face tm-0 -o tm/",
)
ModelArgument = Annotated[
    str, typer.Argument(help="The folder of a model, a shipped checkpoint, or a model of the zoo.", show_default=False)
]
OutputOption = Annotated[Path, path_option("-o", "--output", help="Where to write it.", show_default=False)]


@app.command(epilog="Example:  turing-programs export onnx induct -o induct.onnx")
def onnx(model: ModelArgument, output: OutputOption, json: JsonOption = False) -> None:
    """One ONNX file: tokens (B, T) in, logits and answers (B, T) out, at any length."""
    from compile.doors import save_onnx
    from experiments.files import need_output

    need_output(output, (".onnx",))
    save_onnx(_load(model), output)
    _done(model, output, json, ("torch", "onnx", "onnxscript"))


@app.command("hugging-face", epilog="Example:  turing-programs export hugging-face bb3 -o bb3/")
def hugging_face(model: ModelArgument, output: OutputOption, json: JsonOption = False) -> None:
    """A folder for AutoModelForCausalLM and AutoTokenizer, after `import compile.doors.hugging_face`."""
    from compile.doors import save_for_hugging_face
    from experiments.files import output_folder

    loaded = _load(model)  # before there is a folder that may have the model's name
    with output_folder(output):
        save_for_hugging_face(loaded, output)
    _done(model, output, json, ("torch", "transformers", "tokenizers"))


def _load(name: str) -> Any:
    from experiments.evaluation.shipped import find
    from experiments.models import load_model
    from experiments.zoo import load_zoo
    from experiments.zoo.catalogue import catalogue

    return load_model(name) if find(name).is_dir() or name not in catalogue() else load_zoo(name).model


def _done(model: str, output: Path, json: bool, packages: tuple[str, ...]) -> None:
    if json:
        print_json({"model": model, "output": str(output), "versions": versions(*packages)})
    else:
        typer.echo(f"wrote {output}")
