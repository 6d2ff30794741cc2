"""Check a compiled model against the program it was compiled from, on generated inputs.

Every position is compared. When one differs, the residual stream says which operation went wrong first: registers are
never overwritten, so each node's value can be read at the end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np
import torch

from compile.errors import CapacityError, CompileError
from compile.front import Prepared
from compile.lower import Lowered
from compile.model import Transformer
from compile.naming import Names
from compile.stream import BIAS, Reading
from rasp.graph import evaluate

LENGTHS = (1, 2, 3, 5, 8, 13, 21, 34)


def validate(
    model: Transformer, lowered: Lowered, prepared: Prepared, examples: Iterable[Sequence[int]] = (), seed: int = 0
) -> None:
    """Raise `CompileError` naming the operation if the model differs from the program on any input tried."""
    for tokens in (*generated(prepared, seed), *examples):
        check(model, lowered, prepared, np.asarray(tokens, dtype=np.int64))


def generated(prepared: Prepared, seed: int = 0) -> list[np.ndarray]:
    """Random inputs of growing length: over all tokens, and over two or three so that values repeat."""
    rng = np.random.default_rng(seed)
    tokens = np.array(prepared.domains.vocabulary)
    inputs = []
    for length in LENGTHS:
        few = rng.choice(tokens, size=min(len(tokens), int(rng.integers(2, 4))), replace=False)
        inputs += [rng.choice(tokens, size=length), rng.choice(few, size=length)]
    return inputs


def check(model: Transformer, lowered: Lowered, prepared: Prepared, tokens: np.ndarray) -> None:
    try:
        found = model.predict(tokens)
    except CapacityError:
        if _runs_over(prepared, tokens):
            return
        raise CompileError(f"the model says a count ran over in {_ending(tokens)}, but none does") from None
    need_equal(tokens, found, prepared.written.run(tokens), lambda: first_wrong(model, lowered, prepared, tokens))


Tokens = Sequence[int] | np.ndarray


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


def _runs_over(prepared: Prepared, tokens: np.ndarray) -> bool:
    capacity = prepared.domains.capacity
    values = evaluate(prepared.written, [tokens])
    counts = [v.max() for v, node in zip(values, prepared.written.nodes, strict=True) if node.op == "width"]
    long = capacity.positions is not None and len(tokens) > capacity.positions
    means = any(node.reduction == "mean" for node in prepared.written.nodes) and len(tokens) > capacity.counts
    return long or means or max(counts, default=0) > capacity.counts


def first_wrong(model: Transformer, lowered: Lowered, prepared: Prepared, tokens: np.ndarray) -> str:
    """The first node, in order of the program, whose value in the residual stream is not what it should be."""
    values = evaluate(prepared.graph, [tokens])
    stream = final_stream(model, tokens)
    names = Names(prepared.graph)
    for i in sorted(lowered.views):
        if not np.array_equal(read(lowered.views[i], stream), values[i]):
            return f"n{i} = {names.of(i)}"
    return "none in the residual stream; the unembedding"


def final_stream(model: Transformer, tokens: np.ndarray) -> np.ndarray:
    """The residual stream after the last layer, (T, d_model), start tokens left out."""
    with torch.no_grad():
        _, cache = model.run_with_cache(tokens)
    return cache["ln_final.hook_normalized"][0, model.prepended :].numpy()


def read(view: dict[int, Reading], stream: np.ndarray) -> np.ndarray:
    """The value a view shows at every position."""
    table = np.zeros((len(view), len(stream)))
    for row, reading in zip(table, view.values(), strict=True):
        for dim, coefficient in reading.items():
            row += coefficient * (1.0 if dim == BIAS else stream[:, dim])
    return np.array(list(view))[table.argmax(axis=0)]
