"""Hugging Face's GPT-NeoX models in this Transformer: the same logits."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torch import Tensor

from compile.transformer import Transformer


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
    unembed = "lm_head" if "lm_head.weight" in theirs else "embed_out"  # its name in earlier versions of transformers 5
    ends = {"embed": "gpt_neox.embed_in", "ln_final": "gpt_neox.final_layer_norm", "unembed": unembed}
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
