"""Check a compiled model against the program it was compiled from, on generated inputs, by torch and by looking up.

Every position is compared: it must say what the program says, or refuse because a count ran over. When one differs,
the residual stream says which operation went wrong first: registers are never overwritten, so each node's value can be
read at the end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import numpy as np
import torch

from compile.errors import REFUSED, CompileError
from compile.front.naming import NodeNames
from compile.front.program import FiniteProgram
from compile.front.watch import is_mean
from compile.hurting import hurting_inputs
from compile.readings import BIAS, View
from compile.source import Built, Tokens
from compile.sparse import NotSparse
from compile.transformer import Transformer
from compile.transformer.decoding import TOKENS_AT_ONCE
from compile.transformer.engines import looked_up_by
from rasp.graph import evaluate

BLUR = 0.25  # how far a register may be from a one-hot vector before its operation is called wrong


def validate(built: Built, program: FiniteProgram, examples: Iterable[Tokens] = (), longest: int | None = None) -> None:
    """Raise `CompileError` naming the operation if the model differs from the program on any input tried.

    Inputs have at most `longest` tokens.
    """
    given = [np.asarray(tokens, dtype=np.int64)[:longest] for tokens in examples]
    inputs = [*hurting_inputs(program, longest=longest), *given]
    for tokens, found in answers(built.model, inputs):
        need_right(tokens, found, program, lambda x: first_wrong(built, program, x))
    for tokens, found in looked_up(built.model, inputs):
        need_right(tokens, found, program, looked_up_wrongly)


def need_right(
    tokens: np.ndarray, found: np.ndarray, program: FiniteProgram, culprit: Callable[[np.ndarray], str]
) -> None:
    refused = found == REFUSED
    if (refused & ~_ran_over(program, tokens)).any():
        raise CompileError(f"the model says a count ran over in {_ending(tokens)}, but none does")
    expected = program.written.run(tokens)
    need_equal(tokens, np.where(refused, expected, found), expected, lambda: culprit(tokens))


@torch.no_grad()
def answers(model: Transformer, inputs: Iterable[np.ndarray]) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Each input with what the model says at every position, `REFUSED` where it refuses; the shortest first.

    Inputs of about the same length go through it together: what is padded on the right, no earlier token sees.
    """
    waiting = sorted((x for x in inputs if len(x)), key=len)
    while waiting:
        alike = sum(len(x) <= 2 * len(waiting[0]) for x in waiting)
        size = max(1, min(alike, TOKENS_AT_ONCE // len(waiting[alike - 1])))
        batch, waiting = waiting[:size], waiting[size:]
        rows = np.stack([np.pad(x, (0, len(batch[-1]) - len(x)), mode="edge") for x in batch])
        said = model.output_tokens[model(model.as_input(rows)).argmax(dim=-1)].cpu().numpy()
        yield from ((x, row[: len(x)]) for x, row in zip(batch, said, strict=True))


def looked_up(model: Transformer, inputs: Iterable[np.ndarray]) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """The same by the sparse engine, wherever it can decode the model."""
    engine = looked_up_by(model)
    if isinstance(engine, NotSparse):
        return
    for tokens in inputs:
        try:
            yield tokens, engine.answers(tokens)
        except NotSparse:
            continue


def looked_up_wrongly(tokens: np.ndarray) -> str:
    """What to say of it: through torch these weights were right."""
    return "none through torch; the sparse engine"


def need_equal(
    tokens: Tokens, found: np.ndarray, expected: np.ndarray, culprit: Callable[[], str] | None = None
) -> None:
    """Raise `CompileError` at the first position where the model's answer is not the program's."""
    wrong = np.flatnonzero(found != expected)
    if len(wrong):
        at = int(wrong[0])
        where = f"; first wrong operation: {culprit()}" if culprit else ""
        raise CompileError(
            f"the compiled model differs from the program after {_ending(tokens[: at + 1])} (position {at}): it says "
            f"{found[at]}, the program {expected[at]}{where}"
        )


def _ending(tokens: Tokens, most: int = 24) -> str:
    text = " ".join(str(int(t)) for t in tokens[-most:])
    return f"[{'.. ' if len(tokens) > most else ''}{text}]"


def _ran_over(program: FiniteProgram, tokens: np.ndarray) -> np.ndarray:
    """At every position, whether a count of the program is beyond its capacity there or was before."""
    capacity, nodes = program.domains.capacity, program.written.nodes
    places = np.arange(len(tokens))
    over = places >= (len(tokens) if capacity.positions is None else capacity.positions)
    if any(is_mean(node) for node in nodes):
        over |= places >= capacity.counts
    for value, node in zip(evaluate(program.written, [tokens]), nodes, strict=True):
        if node.op == "width":
            over |= value > capacity.counts
    return np.logical_or.accumulate(over)


# --- which operation --------------------------------------------------------------------------------------------------


def first_wrong(built: Built, program: FiniteProgram, tokens: np.ndarray) -> str:
    """The first node, in order of the program, whose value in the residual stream is not what it should be.

    From where a count ran over, values may be anything; without that, before it.
    """
    clear = tokens[~_ran_over(program, tokens)]
    tokens = clear if len(clear) else tokens
    values = evaluate(program.graph, [tokens])
    stream = final_stream(built.model, tokens)
    names = NodeNames(program.graph)
    for i in sorted(built.views):
        if not shows(built.views[i], stream, values[i]):
            return f"n{i} = {names.of(i)}"
    return "none in the residual stream; the unembedding"


def final_stream(model: Transformer, tokens: np.ndarray) -> np.ndarray:
    """The residual stream after the last layer, (T, d_model), start tokens left out."""
    with torch.no_grad():
        _, cache = model.run_with_cache(tokens)
    return cache["ln_final.hook_normalized"][0, model.prepended :].numpy()


def readings(view: View, stream: np.ndarray) -> np.ndarray:
    """How much of each value the view shows at every position: (values, T), in a right model ones and zeros."""
    table = np.zeros((len(view), len(stream)))
    for row, reading in zip(table, view.values(), strict=True):
        for dim, coefficient in reading.items():
            row += coefficient * (1.0 if dim == BIAS else stream[:, dim])
    return table


def shows(view: View, stream: np.ndarray, values: np.ndarray) -> bool:
    """Whether the view shows these values and nothing else, clearly."""
    return bool((np.abs(readings(view, stream) - (np.array(list(view))[:, None] == values)) < BLUR).all())
