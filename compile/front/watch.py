"""Which counts must be seen when they run past their capacity, and how far such an overrun reaches.

A count that ran over has no direction: it equals no number, and a map of it says something arbitrary. Where that can
change an answer, the answer must be a refusal. So every count is watched, except one that is

- only ever a key, compared as a whole with queries that lie within its own capacity (a count beyond it equals none of
  them, and a register without a direction matches nothing), and
- no lower digit of a packed key (`factor`), which would run into the digit above.

A refusal is written where the count ran over. The positions after it run over too if the count never falls (its
condition looks at keys alone); otherwise the overrun *spreads* wherever a later position may look at this one, and the
later position must be told.
"""

from __future__ import annotations

from collections.abc import Collection

from compile.front.domains import Domains
from compile.front.matches import matches
from rasp.graph import AttentionNode, Count, Delay, Graph, Indices, Kqv, Node

Watched = dict[int, bool]  # a count that must be seen -> whether its overrun spreads to later positions


def watched_counts(graph: Graph, domains: Domains, packed: Collection[int]) -> Watched:
    """Every count, position and mean of a factored graph that must be watched; `packed` are lower digits of keys."""
    users: dict[int, list[int]] = {i: [] for i in range(len(graph))}
    for i, node in enumerate(graph.nodes):
        for j in set(node.inputs):
            users[j].append(i)
    counts = [i for i, node in enumerate(graph.nodes) if is_counted(node)]
    needed = [
        i
        for i in counts
        if i in packed or i == graph.output or not all(_is_harmless(graph, domains, i, user) for user in users[i])
    ]
    return {i: not _never_falls(graph.nodes[i]) and _reaches_others(graph, domains, users, i) for i in needed}


def is_counted(node: Node) -> bool:
    """Whether the operation counts something: matches, positions, or the values that a mean is taken of."""
    return isinstance(node, Count | Indices) or is_mean(node)


def _is_harmless(graph: Graph, domains: Domains, count: int, user: int) -> bool:
    """Whether `user` does the same with this count once it ran over: it is a key that no query can equal."""
    node = graph.nodes[user]
    if not isinstance(node, AttentionNode) or is_mean(graph.nodes[count]):
        return False
    parts = matches(node)
    if count in (m.query for m in parts) or (isinstance(node, Kqv) and node.value == count):
        return False
    own = [m for m in parts if m.key == count]
    largest = domains[count][-1]
    return all(m.is_equality and (domains.get(m.query) or (largest + 1,))[-1] <= largest for m in own)


def is_mean(node: Node) -> bool:
    return isinstance(node, Kqv) and node.reduction == "mean"


def _never_falls(node: Node) -> bool:
    if isinstance(node, AttentionNode):
        return node.predicate.kind in ("key", "constant")
    return isinstance(node, Indices)


def _reaches_others(graph: Graph, domains: Domains, users: dict[int, list[int]], count: int) -> bool:
    """Whether a later position may look at something that was made of this count."""
    stack, seen = [count], {count}
    while stack:
        i = stack.pop()
        for user in users[i]:
            if i == count and _is_harmless(graph, domains, count, user):
                continue
            if i in _looked_at(graph.nodes[user]):
                return True
            if user not in seen:
                seen.add(user)
                stack.append(user)
    return False


def _looked_at(node: Node) -> tuple[int, ...]:
    """The inputs of which an operation reads the values at other positions."""
    if isinstance(node, Delay):
        return node.inputs
    if not isinstance(node, AttentionNode):
        return ()
    keys = tuple(m.key for m in matches(node))
    return (*keys, node.value) if isinstance(node, Kqv) else keys
