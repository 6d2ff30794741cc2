"""The first stages: a program as a graph, rewritten to the least attention depth; what goes wrong, in words."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice

from compile.errors import CompileError
from rasp.core import Program
from rasp.graph import Graph
from rasp.rewrite import simplify
from rasp.tracing import TraceError
from rasp.tracing import trace as record

MOST_TOKENS = 2**20  # of a vocabulary: the embedding has a row for each


def trace(program: Program) -> Graph:
    """The program node for node as it was written."""
    if not callable(program):
        raise CompileError(f"{program!r} is no program; give a function from a sequence to a sequence")
    try:
        return record(program)
    except TraceError as error:
        raise CompileError(f"the program cannot be recorded: {error}") from error
    except Exception as error:  # whatever the program itself raises
        raise CompileError(f"the program fails when it is recorded ({type(error).__name__}: {error})") from error


def rewrite(graph: Graph) -> Graph:
    """The same with delays next to the input, where a transformer wants them."""
    try:
        return simplify(graph, hoist=False)
    except ValueError as error:  # a selector that looks at the future
        raise CompileError(str(error)) from error


def check_vocabulary(vocabulary: Iterable[int]) -> tuple[int, ...]:
    """The tokens, in order."""
    example = "give the token ids that inputs are made of, such as range(10)"
    if not isinstance(vocabulary, Iterable):
        raise CompileError(f"the vocabulary is {vocabulary!r}; {example}")
    tokens = tuple(islice(vocabulary, MOST_TOKENS + 1))
    if not tokens:
        raise CompileError(f"the vocabulary is empty; {example}")
    if len(tokens) > MOST_TOKENS:
        raise CompileError(f"the vocabulary has more than {MOST_TOKENS} tokens; {example}")
    wrong = [t for t in tokens if isinstance(t, bool) or not hasattr(t, "__index__") or abs(int(t)) >= MOST_TOKENS]
    if wrong:
        raise CompileError(
            f"{wrong[0]!r} is no token id; give whole numbers below {MOST_TOKENS} in size, such as range(10)"
        )
    return tuple(sorted({int(t) for t in tokens}))
