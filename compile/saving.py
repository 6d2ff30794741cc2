"""Models as files: model.safetensors beside config.json, checked on the way in, and never a pickle.

config.json holds the configuration and two SHA-256 sums, of the weights file and of the configuration itself: a window
changed by hand loads as well as the right one and computes something else, so that is refused too.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from huggingface_hub import snapshot_download
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

if TYPE_CHECKING:
    from compile.model import Transformer, TransformerConfig

WEIGHTS, CONFIG = "model.safetensors", "config.json"
FORMAT = {"model_type": "turing-programs", "format_version": 1}
SUMS = ("weights_sha256", "config_sha256")
AGAIN = "Copy or save the model again."
STORED = "stored_dtype"  # of the weights in the file, where it is not the one that the model computes in
SAFETENSORS_DTYPES = {"float16": "F16", "float32": "F32", "float64": "F64"}


class InvalidModel(ValueError):
    """A model file that is missing, damaged, changed, or not one of ours."""


# --------------------------------------------------------------------------------------------------- saving


def need_finite(tensors: Mapping[str, Tensor], owner: str) -> None:
    broken = [name for name, tensor in tensors.items() if not bool(torch.isfinite(tensor).all())]
    if broken:
        raise InvalidModel(f"{owner} has values that are not finite in {_some(broken)}; use the last good checkpoint.")


def save_weights_and_config(model: Transformer, folder: Path, stored: str | None = None) -> None:
    """`stored` "float16" halves the file of a learned model by rounding; compiled weights need all their digits."""
    dtype = getattr(torch, stored or model.config.dtype)
    tensors = {name: t.detach().to("cpu", dtype).contiguous() for name, t in model.state_dict().items()}
    need_finite(tensors, f"this model, as {stored or model.config.dtype},")
    save_file(tensors, folder / f"{WEIGHTS}.partial", metadata={"format": "pt"})
    values = {**model.config.to_dict(), **FORMAT, **({STORED: stored} if stored else {})}
    sums = dict(zip(SUMS, (_sum_of_file(folder / f"{WEIGHTS}.partial"), _sum_of_config(values)), strict=True))
    (folder / f"{CONFIG}.partial").write_text(json.dumps({**values, **sums}, indent=1, sort_keys=True) + "\n")
    for name in (WEIGHTS, CONFIG):  # a crash before this leaves the old files, one in between is caught by the sum
        os.replace(folder / f"{name}.partial", folder / name)


def _sum_of_file(path: Path) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _sum_of_config(values: Mapping[str, Any]) -> str:
    counted = {key: value for key, value in values.items() if key not in SUMS}
    return hashlib.sha256(json.dumps(counted, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


# -------------------------------------------------------------------------------------------------- loading


def load_weights_and_config(
    model_class: type[Transformer], config_class: type[TransformerConfig], folder: Path, device: str
) -> Transformer:
    """Every check comes before the allocation it protects: configuration, sum, header, then tensors."""
    values = read_config(folder)
    config = _make_config(config_class, values, folder)
    path = folder / WEIGHTS
    if not path.is_file():
        raise InvalidModel(f"{folder} has no {WEIGHTS}; expected it beside {CONFIG}. {AGAIN}")
    if _sum_of_file(path) != values["weights_sha256"]:
        raise InvalidModel(f"{path} does not have the SHA-256 that {CONFIG} notes: it was cut or changed. {AGAIN}")
    with torch.device("meta"):
        expected = {name: tuple(t.shape) for name, t in model_class(config).state_dict().items()}
    tensors = _read_tensors(path, expected, SAFETENSORS_DTYPES[values.get(STORED, config.dtype)])
    need_finite(tensors, str(path))
    model = model_class(config)
    model.load_state_dict(tensors)
    return model.eval().to(device)


def read_config(folder: Path) -> dict[str, Any]:
    """The contents of config.json, if it is one of ours and unchanged."""
    path = folder / CONFIG
    if not folder.is_dir() or not path.is_file():
        raise InvalidModel(f"{folder} is not a folder with a {CONFIG}; expected one written by save_pretrained.")
    try:
        values = json.loads(path.read_text(encoding="utf-8"), parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise InvalidModel(f"{path} is not readable JSON ({error}); it is cut short or was changed. {AGAIN}") from None
    if not isinstance(values, dict) or any(values.get(key) != value for key, value in FORMAT.items()):
        raise InvalidModel(f"{path} is not of type {FORMAT}; it is another program's, or a newer version's.")
    if values.get(STORED, "float32") not in SAFETENSORS_DTYPES:
        raise InvalidModel(f"{path} says that weights are stored as {values[STORED]!r}; expected one of "
                           f"{', '.join(SAFETENSORS_DTYPES)}. {AGAIN}")  # fmt: skip
    lacking = [key for key in SUMS if not isinstance(values.get(key), str)]
    if lacking:
        raise InvalidModel(f"{path} lacks {' and '.join(lacking)}, so the model cannot be checked. {AGAIN}")
    return values


def _refuse_constant(name: str) -> float:
    raise ValueError(f"{name} is not a JSON number")


def _make_config(config_class: type[TransformerConfig], values: dict[str, Any], folder: Path) -> TransformerConfig:
    given = {key: value for key, value in values.items() if key not in (*FORMAT, *SUMS, STORED)}
    try:
        config = config_class.from_dict(given)
    except (ValueError, TypeError, ArithmeticError) as error:
        raise InvalidModel(f"{folder / CONFIG} does not describe a model: {error} {AGAIN}") from error
    if _sum_of_config(values) != values["config_sha256"]:
        raise InvalidModel(f"{folder / CONFIG} was changed after it was saved (its SHA-256 differs). {AGAIN}")
    return config


def _read_tensors(path: Path, expected: dict[str, tuple[int, ...]], dtype: str) -> dict[str, Tensor]:
    """All tensors, after the header has been found to hold exactly the expected names, shapes and type."""
    try:
        with safe_open(path, framework="pt") as file:
            headers = {name: file.get_slice(name) for name in file.keys()}  # noqa: SIM118 (not a dictionary)
            found = {name: (tuple(h.get_shape()), h.get_dtype()) for name, h in headers.items()}
            _need_same(found, {name: (shape, dtype) for name, shape in expected.items()}, path)
            return {name: file.get_tensor(name) for name in expected}
    except (SafetensorError, OSError) as error:
        raise InvalidModel(f"{path} is not a readable safetensors file ({error}). {AGAIN}") from None


def _need_same(found: Mapping[str, Any], expected: Mapping[str, Any], path: Path) -> None:
    missing, unknown = sorted(set(expected) - set(found)), sorted(set(found) - set(expected))
    if missing or unknown:
        raise InvalidModel(f"{path} lacks {_some(missing)} and has unexpected {_some(unknown)}. {AGAIN}")
    for name, wanted in expected.items():
        if found[name] != wanted:
            raise InvalidModel(f"{path}: tensor {name} is {found[name]}, but {CONFIG} calls for {wanted}. {AGAIN}")


def _some(names: list[str]) -> str:
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "") if names else "nothing"


# ------------------------------------------------------------------------------------------------------ hub


def may_be_hub_name(name: str) -> bool:
    """owner/name, as on the Hugging Face Hub, and not obviously a path."""
    return re.fullmatch(r"[A-Za-z0-9][\w.-]*/[\w.-]+", name) is not None


def download(name: str, **options: Any) -> Path:
    known = ("revision", "token", "cache_dir", "force_download", "local_files_only")
    chosen = {key: options[key] for key in known if key in options}
    return Path(snapshot_download(name, allow_patterns=[WEIGHTS, CONFIG], **chosen))


# ---------------------------------------------------------------------------------------------- GPT-NeoX


def gpt_neox_config(theirs: Any) -> dict[str, Any]:
    """The TransformerConfig fields of a Hugging Face GPTNeoXConfig."""
    rope = theirs.rope_parameters
    return {
        "vocabulary": theirs.vocab_size,
        "layers": theirs.num_hidden_layers,
        "heads": theirs.num_attention_heads,
        "d_model": theirs.hidden_size,
        "d_mlp": theirs.intermediate_size,
        "encoding": "rope",
        "rotary_fraction": rope.get("partial_rotary_factor", 1.0),
        "rotary_base": rope["rope_theta"],
        "norm": "layernorm",
        "norm_epsilon": theirs.layer_norm_eps,
        "activation": theirs.hidden_act,
        "parallel": theirs.use_parallel_residual,
    }


def copy_gpt_neox_weights(model: Transformer, theirs: Mapping[str, Tensor]) -> None:
    """Load the state of a Hugging Face GPTNeoXForCausalLM of the same shape; logits are then the same."""
    ends = {"embed": "gpt_neox.embed_in", "ln_final": "gpt_neox.final_layer_norm", "unembed": "lm_head"}
    inside = {
        "ln1": "input_layernorm",
        "ln2": "post_attention_layernorm",
        "attn.qkv": "attention.query_key_value",
        "attn.out": "attention.dense",
        "mlp.up": "mlp.dense_h_to_4h",
        "mlp.down": "mlp.dense_4h_to_h",
    }
    state = {}
    for name in model.state_dict():
        module, kind = name.rsplit(".", 1)
        if module in ends:
            state[name] = theirs[f"{ends[module]}.{kind}"]
            continue
        _, layer, part = module.split(".", 2)
        tensor = theirs[f"gpt_neox.layers.{layer}.{inside[part]}.{kind}"]
        state[name] = _q_then_k_then_v(tensor, model.config.shapes[int(layer)].heads) if part == "attn.qkv" else tensor
    model.load_state_dict(state)


def _q_then_k_then_v(rows: Tensor, heads: int) -> Tensor:
    """GPT-NeoX keeps q, k, v of one head together; here all q come first, then all k, then all v."""
    return rows.view(heads, 3, rows.shape[0] // (3 * heads), -1).transpose(0, 1).reshape(rows.shape)
