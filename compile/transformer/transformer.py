"""The Transformer: a model, and what one does with it: predict, generate, look inside, save and load."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, overload

import numpy as np
import torch
from huggingface_hub import PyTorchModelHubMixin
from torch import Tensor

from compile.errors import REFUSED, CapacityError
from compile.sparse.bounds import NotSparse
from compile.transformer import saving
from compile.transformer.annotations import Fact
from compile.transformer.attention import Hook
from compile.transformer.config import need_size
from compile.transformer.decoding import TOKENS_AT_ONCE, Decoder
from compile.transformer.engines import LONG_TEXT, MANY_TOKENS, sparse_engine, through_torch
from compile.transformer.model import Model
from compile.transformer.streaming import TokenStream
from rasp.files import write_whole

if TYPE_CHECKING:
    from compile.sparse import SparseEngine

OnePrompt = Sequence[int] | np.ndarray
Prompts = OnePrompt | Sequence[OnePrompt] | Tensor


class SummaryRow(NamedTuple):
    layer: int
    head: int | None  # None: the row is about the layer's MLP
    window: int | None  # tokens a head sees; None: all of them, or an MLP
    label: str
    role: str  # of `annotations`; "" in a learned model


CARD_FILE = "README.md"
CARD = """---
{{ card_data }}
---
A decoder-only Transformer of `turing-programs`, compiled from a program or trained.
Load it with `from compile import Transformer; Transformer.from_pretrained("this folder")`.
"""


class Transformer(Model, PyTorchModelHubMixin, library_name="turing-programs", model_card_template=CARD):
    """Tokens (B, T) -> logits (B, T, outputs). `config` says everything but the weights."""

    @torch.no_grad()
    def predict(self, tokens: Prompts, engine: str = "auto") -> np.ndarray:
        """The next token at every position: an array of the shape of `tokens`, which is (T,) or (B, T).

        `engine` is "torch", "sparse" (compiled weights looked up, see `engines`) or "auto": sparse for long texts.
        """
        given = _as_array(tokens)
        rows = np.atleast_2d(given)
        if rows.size == 0:
            return np.zeros_like(given)
        found = self.looked_up(lambda sparse: [sparse.predict(row) for row in rows], engine, rows.shape[1], LONG_TEXT)
        if found is not None:
            return np.array(found).reshape(given.shape)
        batch = self.as_input(rows)
        parts = batch.split(max(1, TOKENS_AT_ONCE // rows.shape[1]))
        best = torch.cat([self(part).argmax(dim=-1) for part in parts])
        return self.need_answers(self.output_tokens[best].cpu().numpy().reshape(given.shape))

    def need_answers(self, tokens: np.ndarray) -> np.ndarray:
        """`tokens`; an error if the model says with one of them that the input is beyond what it was compiled for."""
        if self.config.refusal and (tokens == REFUSED).any():
            raise CapacityError(self.config.refusal)
        return tokens

    def generate(
        self,
        prompts: Prompts,
        count: int,
        stop: int | Collection[int] | None = None,
        *,
        context: int | None = None,
        advance: int = 20,
        engine: str = "auto",
        workers: int = 1,
    ) -> np.ndarray | list[np.ndarray]:
        """Prompt and `count` greedily chosen tokens; fewer after a `stop` token, which is kept.

        One prompt gives one array; several, of any lengths, give a list of arrays. With `context`, the model sees at
        most that many tokens: when they are full it forgets the oldest `advance` (the paper's sliding window).
        `engine` is "torch", "sparse" (compiled weights looked up, on so many `workers`) or "auto": sparse for many
        tokens of a compiled model.
        """
        single, rows = _as_rows(prompts)
        need_size("count", count, 0, 2**62)
        arrays = None
        if context is None:
            ends = _stops(stop)
            arrays = self.looked_up(
                lambda sparse: sparse.generate(rows, count, ends, workers), engine, count * len(rows), MANY_TOKENS
            )
        elif engine == "sparse":
            raise ValueError("engine 'sparse' sees everything; leave out context, or use engine 'torch'.")
        if arrays is None:
            arrays = self.written_by_torch(rows, count, stop, context, advance)
        return arrays[0] if single else arrays

    def written_by_torch(
        self, rows: list[list[int]], count: int, stop: int | Collection[int] | None, context: int | None, advance: int
    ) -> list[np.ndarray]:
        results = [list(row) for row in rows]
        try:
            for step in self.stream(rows, count, stop, context=context, advance=advance):
                for row, token in zip(results, step.tolist(), strict=True):
                    if token >= self.config.first_token:
                        row.append(token)
        except CapacityError as error:
            error.written = [np.array(row, dtype=np.int64) for row in results]
            raise
        return [np.array(row, dtype=np.int64) for row in results]

    def looked_up(
        self, ask: Callable[[SparseEngine], list[np.ndarray]], engine: str, tokens: int, enough: int
    ) -> list[np.ndarray] | None:
        """What the sparse engine answers; None where torch is to answer."""
        sparse = sparse_engine(self, engine, tokens, enough)
        if sparse is None:
            return None
        try:
            return ask(sparse)
        except NotSparse as reason:
            if engine == "sparse":
                raise
            through_torch(reason)
            return None

    @overload
    def stream(
        self,
        prompts: OnePrompt,
        count: int,
        stop: int | Collection[int] | None = None,
        *,
        context: int | None = None,
        advance: int = 20,
        engine: str = "auto",
    ) -> TokenStream: ...

    @overload
    def stream(
        self,
        prompts: Sequence[OnePrompt],
        count: int,
        stop: int | Collection[int] | None = None,
        *,
        context: int | None = None,
        advance: int = 20,
        engine: str = "auto",
    ) -> Iterator[np.ndarray]: ...

    def stream(
        self,
        prompts: Prompts | Sequence[OnePrompt],
        count: int,
        stop: int | Collection[int] | None = None,
        *,
        context: int | None = None,
        advance: int = 20,
        engine: str = "auto",
    ) -> TokenStream | Iterator[np.ndarray]:
        """`generate` step by step: for one prompt its next token, for several (through torch) an array with -1 where a
        row stopped."""
        single, rows = _as_rows(prompts)
        need_size("count", count, 0, 2**62)
        if single and context is None:
            sparse = sparse_engine(self, engine, count, MANY_TOKENS)
            if sparse is not None:
                return self.stream_looked_up(sparse, rows[0], count, _stops(stop), engine)
        decoder = Decoder(self, rows, context, advance)
        steps = decoder.run(count, np.array(_stops(stop), dtype=np.int64))
        if not single:
            return steps
        return TokenStream("torch", (int(step[0]) for step in steps), decoder.memory.count_bytes)

    def stream_looked_up(
        self, sparse: SparseEngine, prompt: list[int], count: int, stops: list[int], engine: str
    ) -> TokenStream:
        """Tokens from the sparse engine, and from torch after one at which it cannot go on."""
        memory = sparse.memory()

        def tokens() -> Iterator[int]:
            written: list[int] = []
            try:
                for piece in sparse.stream(prompt, count, stops, memory):
                    for token in piece.tolist():
                        written.append(token)
                        yield token
            except NotSparse as reason:
                if engine == "sparse":
                    raise
                through_torch(reason)
                rest = self.stream([*prompt, *written], count - len(written), stops, engine="torch")
                stream.go_on_with(rest)
                yield from rest

        stream = TokenStream("sparse", tokens(), lambda: memory.bytes)
        return stream

    def run_with_cache(self, tokens: Prompts) -> tuple[Tensor, dict[str, Tensor]]:
        """Logits, and every activation by its TransformerLens name (these include a prepended token's position)."""
        cache: dict[str, Tensor] = {}

        def record(name: str, value: Tensor) -> Tensor:
            cache[name] = value.detach()
            return value

        return self.run_seen(tokens, record), cache

    def run_with_hooks(self, tokens: Prompts, hooks: Mapping[str, Callable[[Tensor], Tensor | None]]) -> Tensor:
        """Logits after each named activation was replaced by what its function returns (None: left as it is)."""
        waiting = set(hooks)

        def replace(name: str, value: Tensor) -> Tensor:
            if name not in hooks:
                return value
            waiting.discard(name)
            changed = hooks[name](value)
            return value if changed is None else changed

        logits = self.run_seen(tokens, replace)
        if waiting:
            raise ValueError(f"no activation is called {sorted(waiting)}; run_with_cache lists the names there are.")
        return logits

    def run_seen(self, tokens: Prompts, see: Hook) -> Tensor:
        batch = self.with_prepended(self.as_input(np.atleast_2d(_as_array(tokens))))
        logits = self.unembed(self.residual(batch, see=see))
        return logits[:, self.prepended :]

    def as_input(self, rows: np.ndarray) -> Tensor:
        """Check token ids once, at the boundary, and move them to the model."""
        first, last = self.config.first_token, self.config.last_token
        wrong = (rows < first) | (rows > last)
        if self.config.refusal:
            wrong |= rows == self.config.prepend
        if wrong.any():
            bad, own = rows[wrong].flat[0], self.config.prepend if self.config.refusal else None
            raise ValueError(
                f"token {bad} is unknown to this model; expected {first} to {last - 1 if own == last else last}."
            )
        return torch.from_numpy(np.ascontiguousarray(rows)).to(self.device)

    # ---- size, labels, files

    def parameter_count(self) -> int:
        return sum(p.numel() for p in self.parameters())

    def nonzero_count(self) -> int:
        return sum(int(p.count_nonzero()) for p in self.parameters())

    def summary(self) -> list[SummaryRow]:
        """One row per head and per MLP, with its window and what it does in words."""
        rows, known = [], self.config.annotations
        for layer, shape in enumerate(self.config.shapes):
            facts = known.heads[layer] if known.heads else (Fact(),) * shape.heads
            rows += [SummaryRow(layer, h, shape.windows[h], fact.label, fact.role) for h, fact in enumerate(facts)]
            mlp = known.mlps[layer] if known.mlps else Fact()
            rows += [SummaryRow(layer, None, None, mlp.label, mlp.role)] if shape.d_mlp else []
        return rows

    def save_pretrained(self, save_directory: str | Path, **options: object) -> str | None:
        """Write model.safetensors, config.json and a card; what is there is replaced when the new files are whole."""
        if options.get("push_to_hub"):
            saving.need_finite(self.state_dict(), "the model")
            return super().save_pretrained(save_directory, **options)  # type: ignore[arg-type]  # the mixin's own
        folder = Path(save_directory)
        folder.mkdir(parents=True, exist_ok=True)
        saving.save_weights_and_config(self, folder)
        if not (folder / CARD_FILE).exists():
            write_whole(folder / CARD_FILE, str(self.generate_model_card()))
        return None

    def _save_pretrained(self, save_directory: Path) -> None:
        saving.save_weights_and_config(self, save_directory)

    @classmethod
    def from_pretrained(cls, pretrained_model_name_or_path: str | Path, **options: object) -> Transformer:
        """A local folder (no network), or else the name of a model on the Hugging Face Hub."""
        folder = Path(pretrained_model_name_or_path)
        if not folder.exists() and not saving.may_be_hub_name(str(pretrained_model_name_or_path)):
            raise saving.InvalidModel(f"there is no folder {folder}; expected one written by save_pretrained.")
        if not folder.exists():
            folder = saving.download(str(pretrained_model_name_or_path), options)
        return saving.load_weights_and_config(cls, folder, str(options.get("map_location", "cpu")))


def _as_array(tokens: Prompts) -> np.ndarray:
    array = tokens.detach().cpu().numpy() if isinstance(tokens, Tensor) else np.asarray(tokens)
    if array.size == 0:
        array = array.astype(np.int64)
    if array.dtype.kind not in "iu" or array.ndim not in (1, 2):
        raise ValueError(f"tokens are {array.ndim}-dimensional {array.dtype}; give whole numbers, (T,) or (B, T).")
    return array.astype(np.int64)


def _stops(stop: int | Collection[int] | None) -> list[int]:
    return sorted(stop) if isinstance(stop, Collection) else [] if stop is None else [stop]


def _as_rows(prompts: Prompts) -> tuple[bool, list[list[int]]]:
    """Whether it was a single prompt, and the prompts as lists, which may differ in length."""
    single = len(prompts) == 0 or np.ndim(prompts[0]) == 0
    rows = [prompts] if single else prompts
    return single, [_as_array(row).tolist() for row in rows]  # type: ignore[arg-type]
