"""The door to ONNX: a file that any runtime reads. Tokens (B, T) go in; logits and answers (B, T) come out."""

from __future__ import annotations

import logging
import warnings
from pathlib import Path

import torch
from torch import Tensor, nn

from compile.doors.libraries import need
from compile.transformer import Transformer

EXAMPLE = 8  # tokens of the text that the model is recorded on


class _Open(nn.Module):
    """The model with its whole score matrices, whose sizes follow from the input's; start tokens are put in here."""

    def __init__(self, model: Transformer) -> None:
        super().__init__()
        self.model = model

    def forward(self, tokens: Tensor) -> tuple[Tensor, Tensor]:
        model = self.model
        if model.config.prepend is not None:
            front = torch.full((1, model.prepended), model.config.prepend, dtype=tokens.dtype)
            tokens = torch.cat((front.expand(tokens.shape[0], -1), tokens), dim=1)
        stream = model.residual(tokens, see=lambda name, value: value)
        logits = model.unembed(stream)[:, model.prepended :]
        return logits, model.output_tokens[logits.argmax(dim=-1)]


def save_onnx(model: Transformer, path: str | Path) -> None:
    """Write the model as one ONNX file, for inputs of any number and length (of as many tokens as it has positions).

    Where a compiled model refuses, its answer is REFUSED (-2**62): checks of inputs stay on this side of the door.
    """
    need("onnxscript", "export to ONNX")
    need("onnx", "export to ONNX")
    tokens = torch.zeros((2, EXAMPLE), dtype=torch.long)
    batch, length = torch.export.Dim("batch"), torch.export.Dim("length")
    logging.getLogger("torch.onnx").setLevel(logging.ERROR)  # it warns about libraries that are not needed here
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")  # the exporter's own, about itself
        torch.onnx.export(
            _Open(model).eval(),
            (tokens,),
            str(path),
            input_names=["tokens"],
            output_names=["logits", "answers"],
            dynamic_shapes={"tokens": {0: batch, 1: length}},
            dynamo=True,
            external_data=False,
            verbose=False,
        )
