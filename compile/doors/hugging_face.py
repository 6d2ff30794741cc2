"""The door to Hugging Face: our folders open with `AutoModelForCausalLM`, and `generate` writes our tokens.

Importing this module registers the classes below; no code is downloaded and none has to be trusted. The folder is the
one that `save_pretrained` writes anyway (its weights keep their sums and are checked), with a tokenizer beside it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from compile.doors.libraries import need
from compile.doors.text import names_of, separator
from compile.errors import REFUSED, CapacityError
from compile.transformer import Transformer, TransformerConfig
from compile.transformer.files import FORMAT

need("transformers", "the door to Hugging Face")

from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers  # noqa: E402
from transformers import (  # noqa: E402
    AutoConfig,
    AutoModelForCausalLM,
    GenerationConfig,
    GenerationMixin,
    PreTrainedConfig,
    PreTrainedModel,
    PreTrainedTokenizerFast,
)
from transformers.modeling_outputs import CausalLMOutput  # noqa: E402

KIND = str(FORMAT["model_type"])


class TuringProgramsConfig(PreTrainedConfig):
    """A few sizes in transformers' words; what decides the model stays in its own configuration."""

    model_type = KIND
    vocab_size: int = 1
    hidden_size: int = 1
    num_hidden_layers: int = 0
    use_cache: bool = False  # every step reads the whole text again: windows and start tokens need no memory

    @classmethod
    def from_dict(cls, config_dict: dict[str, Any], **options: Any) -> Any:
        """From config.json as `Transformer.save_pretrained` writes it."""
        config = cls(
            vocab_size=config_dict["vocabulary"],
            hidden_size=config_dict["d_model"],
            num_hidden_layers=config_dict["layers"],
            architectures=[TuringProgramsForCausalLM.__name__],
        )
        left = {key: value for key, value in options.items() if not key.startswith("_")}
        return (config, left) if left.pop("return_unused_kwargs", False) else config


class TuringProgramsForCausalLM(PreTrainedModel, GenerationMixin):
    """One of our models behind transformers' interface."""

    config_class = TuringProgramsConfig
    base_model_prefix = "transformer"

    def __init__(self, config: TuringProgramsConfig, transformer: Transformer) -> None:
        super().__init__(config)
        self.transformer = transformer
        known = set(range(transformer.config.vocabulary)) - {transformer.config.prepend}
        outputs = transformer.output_tokens.tolist()
        strange = [answer for answer in outputs if answer not in known and answer != REFUSED]
        if strange:
            raise ValueError(
                f"this model answers numbers such as {strange[0]} that are none of its {len(known)} tokens, and so "
                "writes no text; use predict, or the doors to TransformerLens and ONNX"
            )
        self.answers = [(place, answer) for place, answer in enumerate(outputs) if answer != REFUSED]
        self.refusals = [place for place, answer in enumerate(outputs) if answer == REFUSED]
        self.generation_config = GenerationConfig(do_sample=False, use_cache=False)

    @classmethod
    def from_pretrained(  # type: ignore[override]  # it is ours that decides what is read
        cls, pretrained_model_name_or_path: str | Path, *args: Any, **options: Any
    ) -> Any:
        """A folder of ours, or a name on the Hub; every file is checked as `Transformer.from_pretrained` does."""
        return cls.wrap(Transformer.from_pretrained(pretrained_model_name_or_path))

    @classmethod
    def wrap(cls, transformer: Transformer) -> TuringProgramsForCausalLM:
        config = TuringProgramsConfig.from_dict(transformer.config.to_dict())
        return cls(config, transformer).eval()

    def save_pretrained(  # type: ignore[override]
        self, save_directory: str | Path, *args: Any, **options: Any
    ) -> None:
        save_for_hugging_face(self.transformer, save_directory)

    def forward(
        self, input_ids: Tensor, attention_mask: Tensor | None = None, labels: Tensor | None = None, **_: Any
    ) -> CausalLMOutput:
        """Logits (B, T, vocabulary); -inf for tokens that the model never answers. Padding may be on either side."""
        rows = _aligned(input_ids, attention_mask)
        logits = self.by_token(self.transformer(rows.tokens))
        logits = rows.back(logits)
        loss = None if labels is None else self.loss_function(logits, labels, vocab_size=self.config.vocab_size)
        return CausalLMOutput(loss=loss, logits=logits)  # type: ignore[arg-type]  # any float tensor

    def by_token(self, logits: Tensor) -> Tensor:
        """From what our logits stand for to token ids; refusals raise, as `generate` does here."""
        if self.refusals and bool(torch.isin(logits[:, -1].argmax(-1), torch.tensor(self.refusals)).any()):
            raise CapacityError(self.transformer.config.refusal)
        places, tokens = zip(*self.answers, strict=True)
        found = torch.full((*logits.shape[:-1], self.config.vocab_size), -torch.inf, dtype=logits.dtype)
        found[..., list(tokens)] = logits[..., list(places)]
        return found

    def prepare_inputs_for_generation(  # type: ignore[override]  # there is no cache to prepare
        self, input_ids: Tensor, attention_mask: Tensor | None = None, **_: Any
    ) -> dict[str, Any]:
        return {"input_ids": input_ids, "attention_mask": attention_mask}


class _aligned:
    """Rows moved to the left, without the padding before them: a compiled model has no token that means nothing."""

    def __init__(self, tokens: Tensor, mask: Tensor | None) -> None:
        size = tokens.shape[1]
        first = torch.zeros(len(tokens), dtype=torch.long) if mask is None else (mask != 0).int().argmax(dim=1)
        places = torch.arange(size)
        self.to_left = (first[:, None] + places).clamp(max=size - 1)  # the last token stands in for what is missing
        self.to_place = (places - first[:, None]).clamp(min=0)
        self.tokens = tokens.gather(1, self.to_left)

    def back(self, logits: Tensor) -> Tensor:
        return logits.gather(1, self.to_place[..., None].expand(-1, -1, logits.shape[-1]))


def make_tokenizer(config: TransformerConfig) -> PreTrainedTokenizerFast:
    """Text by token names: with spaces between, or run together where each is one character."""
    names = names_of(config)
    space = separator(names)
    tokenizer = Tokenizer(models.WordLevel({name: token for token, name in enumerate(names)}, unk_token=names[0]))
    split = pre_tokenizers.WhitespaceSplit() if space else pre_tokenizers.Split(Regex(r"start|\S"), "isolated")
    tokenizer.pre_tokenizer = split
    tokenizer.decoder = decoders.Fuse() if not space else None
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token=names[0], padding_side="left", clean_up_tokenization_spaces=False
    )


def save_for_hugging_face(model: Transformer, folder: str | Path) -> None:
    """Write the model and its tokenizer, to be opened by `AutoModelForCausalLM` and `AutoTokenizer`."""
    TuringProgramsForCausalLM.wrap(model)  # refuses a model that writes no text
    model.save_pretrained(folder)
    make_tokenizer(model.config).save_pretrained(str(folder))


AutoConfig.register(KIND, TuringProgramsConfig, exist_ok=True)
AutoModelForCausalLM.register(TuringProgramsConfig, TuringProgramsForCausalLM, exist_ok=True)
