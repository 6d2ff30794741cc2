"""A RASP-L program in tracr's own language, as a user of tracr would write it.

tracr has no `max`, no defaults, no constant sequences and only maps of one or two arguments, so the translation says
what tracr can say: a mean for every reduction, nothing for every default, a map of the tokens for a constant, tuples
for further arguments.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rasp.graph import (
    Aggregate,
    AttentionNode,
    Count,
    Delay,
    Full,
    Graph,
    Indices,
    Input,
    Kqv,
    Map,
    Node,
    Select,
    Width,
)
from rasp.scalar import Expr, evaluate, evaluate_int


def to_tracr(graph: Graph) -> Any:
    """The program as a tracr `SOp`."""
    made: list[Any] = []
    for node in graph.nodes:
        made.append(_translate(node, [made[i] for i in node.inputs]))
    return made[graph.output]


def _translate(node: Node, args: list[Any]) -> Any:
    from tracr.rasp import rasp

    match node:
        case Input() if node.number == 0:
            return rasp.tokens
        case Indices():
            return rasp.indices
        case Full():
            return rasp.Map(lambda _: node.value, rasp.tokens, simplify=False)
        case Map():
            return _map(node.function, args)
        case Select():
            return _select(node.function, args[: node.keys], args[node.keys :])
        case Aggregate():
            return rasp.Aggregate(args[0], args[1])
        case Width():
            return rasp.SelectorWidth(args[0])
        case Count():
            return rasp.SelectorWidth(_select_of(node, args))
        case Delay():
            return rasp.Aggregate(rasp.Select(rasp.indices, rasp.indices, lambda k, q: k + node.distance == q), args[0])
        case Kqv():
            return rasp.Aggregate(_select_of(node, args[:-1]), args[-1])
    raise NotImplementedError(f"{node} has no counterpart in tracr")


def _select_of(node: AttentionNode, args: list[Any]) -> Any:
    return _select(node.function, args[: node.keys], args[node.keys :])


def _map(expr: Expr, args: list[Any]) -> Any:
    from tracr.rasp import rasp

    distinct = list({id(a): a for a in args}.values())
    places = [next(i for i, d in enumerate(distinct) if d is a) for a in args]
    if len(distinct) == 1:
        return rasp.Map(lambda v: evaluate_int(expr, [v] * len(args)), distinct[0], simplify=False)
    left = _tuple(distinct[:-1])

    def function(a: Any, b: Any) -> int:
        values = [*_as_tuple(a, len(distinct) - 1), b]
        return evaluate_int(expr, [values[i] for i in places])

    return rasp.SequenceMap(function, left, distinct[-1])


def _select(condition: Expr, keys: list[Any], queries: list[Any]) -> Any:
    from tracr.rasp import rasp

    def predicate(k: Any, q: Any) -> bool:
        return bool(evaluate(condition, [*_as_tuple(k, len(keys)), *_as_tuple(q, len(queries))]))

    return rasp.Select(_tuple(keys), _tuple(queries), predicate)


def _tuple(args: Sequence[Any]) -> Any:
    """Several sequences as one of tuples, which is how a function of three arguments is said in tracr."""
    from tracr.rasp import rasp

    joined = args[0]
    for count, other in enumerate(args[1:], start=1):
        joined = rasp.SequenceMap(lambda a, b, c=count: (*_as_tuple(a, c), b), joined, other)
    return joined


def _as_tuple(value: Any, count: int) -> tuple[Any, ...]:
    return (value,) if count == 1 else value
