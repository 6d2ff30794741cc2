"""Models written to a folder and read back: configuration, weights and answers must be the same to the last bit.

A folder with anything changed in it is refused in a sentence.
"""

from __future__ import annotations

import json
import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from compile import Transformer
from compile.transformer import TransformerConfig
from compile.transformer.encodings import ENCODINGS
from compile.transformer.files import CONFIG, WEIGHTS, InvalidModel

from .changes import changed_bytes, sentence_faults
from .compare import Figures, patience

TOKENS, CHANGES = 24, 12


@dataclass(frozen=True)
class Unequal:
    """What did not come back from a file as it was, or was not refused as it should be."""

    kind: str
    told: str

    def script(self) -> str:
        return self.told


def round_trip(model: Transformer, folder: Path, source: str) -> tuple[Transformer, list[Unequal]]:
    """The model saved and loaded, and whatever of it is not the same."""
    model.save_pretrained(folder)
    loaded = Transformer.from_pretrained(folder)
    told = f"{source}\nmodel.save_pretrained(folder)\nloaded = Transformer.from_pretrained(folder)\n"
    faults = [] if loaded.config == model.config else ["configuration"]
    one, other = model.state_dict(), loaded.state_dict()
    faults += [] if list(one) == list(other) else ["names of weights"]
    faults += [f"weights {name}" for name in one if name in other and not torch.equal(one[name], other[name])]
    return loaded, [Unequal(f"saved and loaded: {fault.split()[0]}", f"{told}# {fault} differ") for fault in faults[:1]]


def draw_config(rng: np.random.Generator) -> TransformerConfig:
    """A small model as one would train it, of any encoding."""
    heads, d_head, layers = int(rng.integers(1, 4)), 2 * int(rng.integers(1, 4)), int(rng.integers(1, 3))
    encoding = str(rng.choice(list(ENCODINGS)))
    windows = tuple(None if rng.random() < 0.5 else int(rng.integers(1, 9)) for _ in range(heads))
    vocabulary = int(rng.integers(2, 12))
    return TransformerConfig(
        vocabulary=vocabulary,
        layers=layers,
        d_model=heads * d_head,
        heads=heads,
        d_mlp=int(rng.integers(0, 9)),
        windows=windows if encoding == "hard_alibi" else (),
        encoding=encoding,
        max_positions=4 * TOKENS + 8,
        norm=str(rng.choice(["none", "layernorm", "rmsnorm"])),
        activation=str(rng.choice(["relu", "gelu"])),
        gated=bool(rng.integers(2)),
        bias=bool(rng.integers(2)),
        unembed_bias=bool(rng.integers(2)),
        parallel=bool(rng.integers(2)),
        prepend=None if rng.integers(2) else vocabulary - 1,
        dtype=str(rng.choice(["float32", "float64"])),
        token_names=[f"t{i}é" for i in range(vocabulary)] if rng.integers(2) else (),
        extra={"note": "é\n", "numbers": [1, 0.5, None]} if rng.integers(2) else {},
    )


def compare_saved(seed: int, number: int, figures: Figures) -> list[Unequal]:
    """A model with weights by chance: what is loaded answers the same, what is damaged is refused."""
    rng = np.random.default_rng([seed, number, 3])
    config = draw_config(rng)
    torch.manual_seed(number)
    model = Transformer(config).eval()
    told = f"model = Transformer({config!r})  # torch.manual_seed({number}) before it"
    with patience(), tempfile.TemporaryDirectory(prefix="fuzz-model-") as name:
        folder = Path(name)
        loaded, found = round_trip(model, folder, told)
        found += compare_logits(model, loaded, rng, told)
        found += [fault for _ in range(CHANGES) if (fault := damaged(folder, rng, told))]
    figures.counts["models saved and loaded"] += 1
    figures.counts["damaged models tried"] += CHANGES
    figures.tokens["saved and loaded"] += TOKENS
    return found


def compare_logits(model: Transformer, loaded: Transformer, rng: np.random.Generator, told: str) -> list[Unequal]:
    tokens = torch.from_numpy(rng.integers(0, model.config.vocabulary, (1, TOKENS)))
    with torch.no_grad():
        same = torch.equal(model(tokens), loaded(tokens))
    return [] if same else [Unequal("saved and loaded: answers", f"{told}\n# logits of {tokens.tolist()} differ")]


def damaged(folder: Path, rng: np.random.Generator, told: str) -> Unequal | None:
    """One of the folder's files with some bytes changed must be refused in a sentence; then it is put back."""
    path = folder / str(rng.choice([CONFIG, WEIGHTS]))
    whole = path.read_bytes()
    path.write_bytes(changed_bytes(rng, whole))
    try:
        Transformer.from_pretrained(folder)
    except InvalidModel as refusal:
        faults = sentence_faults(str(refusal))
    except Exception as error:
        faults = [f"{type(error).__name__}: {error}"]
    else:
        faults = [] if same_text(path, whole) else ["it was loaded"]
    changed = path.read_bytes()
    path.write_bytes(whole)
    if not faults:
        return None
    return Unequal(
        f"damaged {path.name}: {faults[0].split(':')[0]}", f"{told}\n# {path.name} is {changed!r}: {faults[0]}"
    )


def same_text(path: Path, whole: bytes) -> bool:
    """Whether what was changed says the same: nothing, space, or the order of what stands in a configuration."""
    changed = path.read_bytes()
    try:
        return changed == whole or (path.name == CONFIG and json.loads(changed) == json.loads(whole))
    except ValueError:
        return False
