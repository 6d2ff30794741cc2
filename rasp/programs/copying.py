"""What the paper's arithmetic programs share: lines, the regions of a line, and copying from the line before.

A Turing Program writes each line as a slightly changed copy of the one before. To copy, look in the line before for the
place whose last n+1 tokens are those just written, and write what that place offers: the token its right neighbour
becomes. Within a region no (n+1)-gram may stand twice, as on the machine's tape.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import Any

from rasp.core import full, kqv, tok_map
from rasp.errors import check_n
from rasp.library import equals, mask, shift_right, where
from rasp.programs.vocabulary import InvalidProblem, Vocabulary

NOWHERE = -1  # the line of a place that nobody should find


def is_token(x: Any, *tokens: int) -> Any:
    """1 where x is one of the tokens."""
    return reduce(lambda a, b: a | b, (tok_map(x, lambda z, token=token: z == token) for token in tokens))


def negation(x: Any) -> Any:
    return tok_map(x, lambda z: z == 0)


def told(line: Any, at: Any, fact: Any, asked: Any, default: int = 0) -> Any:
    """The fact that stands `at` one place of a line, known on every later place that asks for this line."""
    return kqv(mask(line, at, NOWHERE), asked, fact, equals, default=default, reduction="max")


def has_had(line: Any, at: Any) -> Any:
    """1 where this line has had such a place."""
    return told(line, at, full(line, 1), line)


def last_tokens(x: Any, is_start: Any, n: int, start: int) -> list[Any]:
    """The last n+1 tokens of a region, newest first; its start, and what lies before it, reads `start`."""
    tokens, over = [], full(x, 0)
    for back in range(n + 1):
        over = over | shift_right(is_start, back, default=1)
        tokens.append(where(over, full(x, start), shift_right(x, back)))
    return tokens


def delayed(sequences: Sequence[Any], offset: int) -> list[Any]:
    """The sequences as they were `offset` tokens ago."""
    return [shift_right(x, offset) for x in sequences]


def first_case(*cases: tuple[Any, Any], otherwise: Any) -> Any:
    """The value of the first case whose condition holds."""
    return reduce(lambda rest, case: where(case[0], case[1], rest), reversed(cases), otherwise)


def check_program(x: Any, vocabulary: Vocabulary, n: int) -> Any:
    """x, which must hold tokens of the task when it holds anything yet."""
    check_n(n, InvalidProblem)
    return x if hasattr(x, "__rasp__") else vocabulary.check(x)


def last(predictions: Any) -> int:
    """The prediction after the whole text."""
    if not len(predictions):
        raise InvalidProblem("there is no token to predict from: the text is empty; give at least the problem")
    return int(predictions[-1])
