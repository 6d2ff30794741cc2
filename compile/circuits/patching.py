"""A compiled model with some of its edges cut, or carrying something else.

Without norms, what a port reads is the sum of what the components before it wrote. Cutting an edge takes its source's
part out of what that one port reads; all other readers still see it. A port reads nothing but the input's own bias once
all of its edges are cut. Something else can be put in the part's place: what the source writes on another input, or at
another position.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

import numpy as np
import torch
from torch import Tensor

from compile.circuits.components import Component, Edge
from compile.circuits.wiring import Wiring
from compile.transformer.attention import untouched
from compile.transformer.transformer import Transformer

Ablation = Callable[[Tensor], Tensor]  # from what an edge carries, (rows, T, d_model), to what is put in its place
ROWS_AT_ONCE = 2**14  # tokens that go through the layers after an edge together


class Patching:
    """What every component wrote on these inputs, (rows, T) token ids."""

    @torch.no_grad()
    def __init__(self, wiring: Wiring, tokens: np.ndarray) -> None:
        self.wiring, self.model = wiring, wiring.model
        batch = self.model.with_prepended(self.model.as_input(np.atleast_2d(tokens)))
        self.biases = [_score_bias(self.model, layer, batch) for layer in range(len(self.model.blocks))]
        self.parts: dict[str, Tensor] = {}  # component -> (rows, T, d_model)
        self.streams: list[Tensor] = []  # what is read at time 0, 1, .., and by the unembedding
        positions = torch.arange(batch.shape[1])
        stream: Tensor | None = None
        for time in range(-1, 2 * len(self.model.blocks)):
            for component in (c for c in wiring.components if c.time == time):
                if component.kind == "embed":
                    part = self.model.embed(batch - self.model.config.first_token)
                elif component.kind == "positions":
                    assert self.model.embed_position is not None, "the component is there because this is"
                    part = self.model.embed_position(positions, self.parts["embed"].dtype).expand_as(
                        self.parts["embed"]
                    )
                else:
                    assert stream is not None, "the embedding comes first"
                    part = self.run(component, {port: stream for port in component.ports})
                self.parts[component.name] = part
            written = [self.parts[c.name] for c in wiring.components if c.time == time]
            stream = sum(written, stream if stream is not None else torch.zeros_like(self.parts["embed"]))
            stream = stream + self.constant(time)
            self.streams.append(stream)
        self.logits = self.unembedded(self.streams[-1])

    # --- one component ------------------------------------------------------------------------------------------------

    def run(self, component: Component, reads: dict[str, Tensor]) -> Tensor:
        """What the component writes if its ports read this."""
        block = self.model.blocks[component.layer]
        if component.kind == "units":
            units = list(component.units)
            hidden = block.mlp.activation(
                torch.nn.functional.linear(reads["in"], block.mlp.up.weight[units], _rows(block.mlp.up.bias, units))
            )
            return hidden @ block.mlp.down.weight[:, units].T
        assert component.head is not None, "what is left are heads"
        attention, weights = block.attn, block.attn.head(component.head)
        biases = attention.qkv.bias
        bias = None if biases is None else biases.view(3, attention.heads, -1)[:, component.head]
        q, k, v = (
            torch.nn.functional.linear(reads[port], getattr(weights, port), None if bias is None else bias[place])
            for place, port in enumerate(component.ports)
        )
        scores = q @ k.transpose(-1, -2) * attention.scale + self.biases[component.layer][component.head]
        return scores.softmax(dim=-1) @ v @ weights.o.T

    def constant(self, time: int) -> Tensor | float:
        """What a layer's biases add to the stream, which is no component's."""
        if time < 0:
            return 0.0
        block = self.model.blocks[time // 2]
        if time % 2:
            return block.mlp.down.bias if block.has_mlp and block.mlp.down.bias is not None else 0.0
        return block.attn.out.bias if block.has_attention and block.attn.out.bias is not None else 0.0

    def unembedded(self, stream: Tensor) -> Tensor:
        return self.model.unembed(stream)[:, self.model.prepended :]

    def answers(self, logits: Tensor) -> np.ndarray:
        """(rows, T) tokens; REFUSED where the model refuses."""
        return self.model.output_tokens[logits.argmax(dim=-1)].cpu().numpy()

    # --- edges --------------------------------------------------------------------------------------------------------

    def without(self, edges: Iterable[Edge]) -> Iterator[tuple[Edge, Tensor]]:
        """Logits with each of the edges cut, one at a time."""
        return self.replaced((edge, torch.zeros_like(self.parts[edge.source])) for edge in edges)

    @torch.no_grad()
    def replaced(self, parts: Iterable[tuple[Edge, Tensor]]) -> Iterator[tuple[Edge, Tensor]]:
        """Logits with each of the edges carrying what is given, (rows, T, d_model), one edge at a time."""
        waiting: list[tuple[Edge, int, Tensor]] = []
        for edge, part in parts:
            target = self.wiring.by_name[edge.target]
            change = self.change(edge, target, part)
            if target.kind == "unembed":
                yield edge, self.unembedded(self.streams[-1] + change)
            elif not change.any():
                yield edge, self.logits
            else:
                waiting.append((edge, target.time, change))
            if waiting and (waiting[0][1] != target.time or self.full(waiting)):
                yield from self.finished(waiting)
                waiting = []
        yield from self.finished(waiting)

    def full(self, waiting: Sequence[tuple[Edge, int, Tensor]]) -> bool:
        return len(waiting) * self.logits.shape[0] * self.logits.shape[1] >= ROWS_AT_ONCE

    def change(self, edge: Edge, target: Component, part: Tensor) -> Tensor:
        """By how much what its target writes (of the unembedding: reads) changes if the edge carries this part."""
        taken = self.parts[edge.source] - part
        if target.kind == "unembed":
            return -taken
        if not taken[..., self.wiring.read_places[edge.target, edge.port]].any():
            return torch.zeros_like(taken)  # every weight on the way of what is taken is zero
        stream = self.streams[target.time]
        reads = {port: stream - taken if port == edge.port else stream for port in target.ports}
        return self.run(target, reads) - self.parts[target.name]

    def finished(self, waiting: Sequence[tuple[Edge, int, Tensor]]) -> Iterator[tuple[Edge, Tensor]]:
        """The layers after the change, for several edges at once; all of them lead to the same time."""
        for time in sorted({t for _, t, _ in waiting}):
            some = [(edge, change) for edge, t, change in waiting if t == time]
            stream = torch.cat([self.streams[time + 1] + change for _, change in some])
            logits = self.unembedded(_onwards(self.model, stream, time + 1))
            yield from zip((edge for edge, _ in some), logits.split(len(self.logits)), strict=True)

    @torch.no_grad()
    def ablated(self, ablations: Mapping[Edge, Ablation]) -> Tensor:
        """Logits with several edges carrying something else at once: each what is made of what it would carry then."""
        times = [self.wiring.by_name[edge.target].time for edge in ablations]
        first, last = min(times), max(times)  # before, all is as it was; after, whole layers are run at once
        parts, stream = dict(self.parts), self.streams[first]
        for time in range(first, last + 1):
            now = [c for c in self.wiring.components if c.time == time]
            for component in now:
                reads = {port: stream for port in component.ports}
                for edge, ablation in ablations.items():
                    if edge.target == component.name:
                        carried = parts[edge.source]
                        reads[edge.port] = reads[edge.port] + (ablation(carried) - carried)
                if component.kind == "unembed":
                    return self.unembedded(reads["in"])
                parts[component.name] = self.run(component, reads)
            stream = sum((parts[c.name] for c in now), stream) + self.constant(time)
        return self.unembedded(_onwards(self.model, stream, last + 1))

    @torch.no_grad()
    def only(self, kept: Collection[Edge]) -> Tensor:
        """Logits of the model with every other edge cut, all at once."""
        given = [c.name for c in self.wiring.components if not c.ports]
        parts: dict[str, Tensor] = {name: self.parts[name] for name in given}
        sources: dict[tuple[str, str], list[str]] = {}
        for edge in sorted(set(kept)):
            sources.setdefault((edge.target, edge.port), []).append(edge.source)
        reads: dict[str, Tensor] = {}
        for component in self.wiring.components:
            if not component.ports:
                continue
            reads = {port: torch.zeros_like(parts["embed"]) for port in component.ports}
            for port in component.ports:
                for time in range(component.time):
                    reads[port] = reads[port] + self.constant(time)
                for name in sources.get((component.name, port), []):
                    reads[port] = reads[port] + parts[name]
            if component.kind != "unembed":
                parts[component.name] = self.run(component, reads)
        return self.unembedded(reads["in"])


def _rows(bias: Tensor | None, places: list[int]) -> Tensor | None:
    return None if bias is None else bias[places]


def _score_bias(model: Transformer, layer: int, batch: Tensor) -> Tensor:
    """(heads, T, T): -inf where a head does not look."""
    block = model.blocks[layer]
    if not block.has_attention:
        return torch.zeros(0)
    i = torch.arange(batch.shape[1]).unsqueeze(1)
    dtype = model.embed.weight.dtype
    parts = [block.attn.bias(i - i.T, i, g, dtype).expand(len(g.heads), -1, -1) for g in block.attn.groups]
    return torch.cat(parts)[block.attn.inverse]


def _onwards(model: Transformer, stream: Tensor, time: int) -> Tensor:
    """The stream that the unembedding reads, from the one at this time."""
    if time % 2:
        block = model.blocks[time // 2]
        stream = stream + block.mlp(stream, untouched) if block.has_mlp else stream
    for block in model.blocks[(time + 1) // 2 :]:
        stream = block(stream, None, untouched, None)
    return stream
