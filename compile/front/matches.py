"""The parts of a factored selector: each speaks of one key and one query, and all of them must hold."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from compile.errors import CompileError
from rasp.graph import AttentionNode
from rasp.predicates import both, classify, conjuncts
from rasp.scalar import Expr, arg, arguments, binary, const, substitute

EQUAL = binary("==", arg(0), arg(1))


@dataclass(frozen=True)
class Match:
    """One part of a selector: `condition` of argument 0, the node `key`, and argument 1, the node `query`."""

    key: int
    query: int
    condition: Expr

    @property
    def is_equality(self) -> bool:
        return self.condition == EQUAL


def matches(node: AttentionNode) -> tuple[Match, ...]:
    """The parts of a factored `kqv` or `width`."""
    if classify(node.function, node.keys).kind == "constant":
        return ()
    return tuple(_part(node, part) for part in conjuncts(node.function))


def _part(node: AttentionNode, condition: Expr) -> Match:
    used = arguments(condition)
    keys, queries = sorted(i for i in used if i < node.keys), sorted(i for i in used if i >= node.keys)
    if len(keys) > 1 or len(queries) > 1:
        raise CompileError(f"the selector {condition} looks at several keys or queries at once; factor the graph first")
    key, query = (keys or [0])[0], (queries or [node.keys])[0]
    places = [arg(0) if i == key else arg(1) for i in range(len(node.inputs))]
    return Match(node.inputs[key], node.inputs[query], substitute(condition, places))


def conjunction(parts: Sequence[Match]) -> tuple[tuple[int, ...], Expr]:
    """The inputs (keys, then queries) and the condition of a selector with these parts."""
    count, expr = len(parts), const(True)
    for place, match in enumerate(parts):
        own = substitute(match.condition, [arg(place), arg(count + place)])
        expr = own if place == 0 else both(expr, own)
    return (*(m.key for m in parts), *(m.query for m in parts)), expr
