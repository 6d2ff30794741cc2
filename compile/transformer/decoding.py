"""Greedy decoding of rows that need not be equally long, over one memory."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

import numpy as np
import torch
from torch import Tensor

from compile.transformer.cache import Cache, Remembering
from compile.transformer.config import TransformerConfig, need_size
from compile.transformer.one_row import WORTH_IT, OneRow, suits

TOKENS_AT_ONCE = 2**15  # of a forward pass without gradients, to bound its memory


class Decodable(Remembering, Protocol):
    """What decoding needs of a model."""

    config: TransformerConfig

    @property
    def prepended(self) -> int: ...
    def with_prepended(self, tokens: Tensor) -> Tensor: ...
    def as_input(self, rows: np.ndarray) -> Tensor: ...
    def need_answers(self, tokens: np.ndarray) -> np.ndarray: ...
    def need_room(self, length: int) -> None: ...


class Decoder:
    """One decoding: what each row has seen, the memory of it, and the logits after it."""

    def __init__(self, model: Decodable, prompts: list[list[int]], context: int | None, advance: int) -> None:
        if context is not None:
            need_size("context", context)
            need_size("advance", advance, 1, context)
        if model.config.prepend is None and not all(prompts):
            raise ValueError("a prompt is empty, and this model prepends no token; give at least one token.")
        self.model, self.context, self.advance = model, context, advance
        self.seen = [prompt[-context:] if context else list(prompt) for prompt in prompts]  # what memory holds
        self.memory = Cache(model, len(prompts))
        self.logits = model.unembed.weight.new_zeros(len(prompts), model.config.output_count)
        for row in prompts:
            model.as_input(np.array(row, dtype=np.int64))

    @torch.no_grad()
    def run(self, count: int, stops: np.ndarray) -> Iterator[np.ndarray]:
        """Yield the next token of every row, up to `count` times; in rows that have produced a stop token, one below
        the lowest (-1)."""
        total = len(self.seen)
        if self.context is None and suits(self.model.config, total):
            yield from self.run_one(count, set(stops.tolist()))
            return
        owner, live = np.arange(total), np.ones(total, dtype=bool)  # of the rows still in memory
        tokens: np.ndarray | None = None
        for _ in range(count if total else 0):
            tokens = self.start() if tokens is None else self.push(tokens)
            result = np.full(total, self.model.config.first_token - 1)
            result[owner[live]] = self.need_inputs(tokens[live])
            yield result
            live = live & ~np.isin(tokens, stops)
            if not live.any():
                return
            if 2 * live.sum() <= len(live):  # rare enough that copying the memory costs less than dead rows
                self.keep(np.flatnonzero(live))
                owner, tokens, live = owner[live], tokens[live], live[live]
            self.restart(np.flatnonzero(~live))
            tokens = np.where(live, tokens, 0)

    def run_one(self, count: int, stops: set[int]) -> Iterator[np.ndarray]:
        """`run` for one sequence of compiled weights, without what only many rows need."""
        row: OneRow | None = None
        known: set[int] = set()  # tokens that were found to be inputs
        tokens = self.start() if count else np.zeros(0, dtype=np.int64)
        for done in range(1, count + 1):
            token = int(tokens[0])
            if token not in known:
                self.need_inputs(tokens)
                known.add(token)
            yield tokens
            if token in stops or done == count:
                return
            if done < WORTH_IT:
                tokens = self.push(tokens)
                continue
            row = row or OneRow(self.model, self.memory, self.model.config.first_token)
            self.memory.reserve(row.position + 1)
            tokens = np.array([row.push(token)])

    def start(self) -> np.ndarray:
        self.encode(list(range(len(self.seen))))
        return self.choose()

    def choose(self) -> np.ndarray:
        return self.model.output_tokens[self.logits.argmax(dim=-1)].cpu().numpy()

    def need_inputs(self, tokens: np.ndarray) -> np.ndarray:
        """`tokens`, if each is one that the model can be given next (what finished rows say does not matter)."""
        self.model.as_input(self.model.need_answers(tokens))
        return tokens

    def keep(self, rows: np.ndarray) -> None:
        """Forget all rows but these."""
        self.seen = [self.seen[row] for row in rows]
        self.memory.keep(torch.from_numpy(rows).to(self.model.device))

    def restart(self, rows: np.ndarray) -> None:
        """Send finished rows back to position 0, where they cost least and never run out of positions."""
        for row in rows:
            self.seen[row] = []
        self.memory.lengths[torch.from_numpy(rows).to(self.model.device)] = 0

    def push(self, tokens: np.ndarray) -> np.ndarray:
        """Feed one token to every row and choose the next; a full context first loses its oldest tokens."""
        full = [row for row, seen in enumerate(self.seen) if len(seen) == self.context]
        shortened = [self.seen[row][self.advance :] for row in full]
        self.restart(np.array(full, dtype=np.int64))
        for seen, token in zip(self.seen, tokens.tolist(), strict=True):
            seen.append(token)
        self.reserve()
        self.logits = self.memory.extend(torch.from_numpy(tokens).to(self.model.device)).to(self.logits)
        for row, seen in zip(full, shortened, strict=True):
            self.seen[row] = [*seen, *self.seen[row]]
        if full:
            self.encode(full)
        return self.choose()

    def reserve(self) -> None:
        longest = max(map(len, self.seen)) + self.model.prepended
        self.model.need_room(longest)
        self.memory.reserve(longest)

    def encode(self, rows: list[int]) -> None:
        extra = self.model.prepended
        longest = max(len(self.seen[row]) for row in rows)
        self.reserve()
        at_once = max(1, TOKENS_AT_ONCE // max(1, longest))
        for part in (rows[i : i + at_once] for i in range(0, len(rows), at_once)):
            tokens = np.zeros((len(part), longest), dtype=np.int64)
            for index, row in enumerate(part):
                tokens[index, : len(self.seen[row])] = self.seen[row]
            lengths = torch.tensor([len(self.seen[row]) + extra for row in part], device=self.model.device)
            where = torch.tensor(part, device=self.model.device)
            batch = self.model.with_prepended(torch.from_numpy(tokens).to(self.model.device))
            self.logits[where] = self.memory.encode(batch, where, lengths).to(self.logits)
