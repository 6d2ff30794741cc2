"""What is installed only when asked for: which extra brings each library, and the sentence that says so.

A test holds the table to pyproject.toml.
"""

from __future__ import annotations

EXTRAS = {  # the library as it is imported: the extra that brings it
    "matplotlib": "draw",
    "z3": "proofs",
    "cvc5": "proofs",
    "dask": "dask",
    "distributed": "dask",
    "torch": "torch",
    "huggingface_hub": "torch",
    "tracr": "tracr",
    "jax": "tracr",
    "haiku": "tracr",
    "accelerate": "train",
    "tensorboard": "train",
    "automata": "dtm",
    "transformers": "bench",
    "transformer_lens": "doors",
    "onnx": "doors",
    "onnxscript": "doors",
    "onnxruntime": "doors",
}


def how_to_get(library: str) -> str:
    """The command that installs a library that is not here, for users of this project."""
    extra = EXTRAS.get(library.partition(".")[0])
    return f"pip install 'turing-programs[{extra}]'" if extra else f"pip install {library.partition('.')[0]}"


def missing(what: str, error: ModuleNotFoundError) -> ModuleNotFoundError:
    """The error of an import, in a sentence that says who needs the library and how to get it."""
    if error.name is None:
        return error
    sentence = f"{what} needs {error.name}; install it with: {how_to_get(error.name)}"
    return ModuleNotFoundError(sentence, name=error.name, path=error.path)
