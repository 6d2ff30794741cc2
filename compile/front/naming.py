"""Nodes in words, for the labels that heads, MLPs and registers carry."""

from __future__ import annotations

import re
from collections.abc import Sequence

from compile.front.matches import Match
from rasp.graph import Count, Delay, Graph, Kqv, Map
from rasp.scalar import to_source

LONGEST = 60


class NodeNames:
    """A node is called by the name its program gave it, else by what it computes of nodes that have a name."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.known: dict[int, str] = {}

    def of(self, i: int) -> str:
        if i not in self.known:
            self.known[i] = self.graph.names.get(i) or _shortened(self._describe(i), f"n{i}")
        return self.known[i]

    def _describe(self, i: int) -> str:
        node = self.graph.nodes[i]
        match node:
            case Delay():
                default = f", default={node.default}" if node.default else ""
                return f"shift_right({self.of(node.inputs[0])}, {node.distance}{default})"
            case Map():
                return _bare(to_source(node.function, [self.of(j) for j in node.inputs]))
            case Count():
                return f"sel_width({_bare(to_source(node.function, [self.of(j) for j in node.inputs]))})"
            case Kqv():
                return f"kqv({_bare(to_source(node.function, [self.of(j) for j in node.inputs]))})"
        return self.graph.describe(i)

    def condition(self, parts: Sequence[Match]) -> str:
        return " and ".join(_bare(to_source(m.condition, [self.of(m.key), self.of(m.query)])) for m in parts)

    def attention(self, i: int) -> str:
        """What a head that computes node i does."""
        node = self.graph.nodes[i]
        assert isinstance(node, Kqv), "a head that matches"
        return f"match {self.of(i)}" if i in self.graph.names else f"{self.of(i)}, {node.reduction}"


def _bare(text: str) -> str:
    """Without the parentheses around the whole, and without the 0/1 bookkeeping of truth values."""
    if text.startswith("int(") and text.endswith(")"):
        text = text[3:]
    while text.startswith("(") and _closes_at_end(text):
        text = text[1:-1]
        if text.startswith("int(") and _closes_at_end(text[3:]):
            text = text[3:]
    shorter = text.removesuffix(" != 0")
    return shorter if text.count(" ") == 2 or _is_comparison(shorter) else text


def _is_comparison(text: str) -> bool:
    while text != (outside := re.sub(r"\([^()]*\)", "", text)):
        text = outside
    return re.search(r" (==|!=|<=?|>=?) ", text) is not None


def _closes_at_end(text: str) -> bool:
    depth = 0
    for place, letter in enumerate(text):
        depth += (letter == "(") - (letter == ")")
        if depth == 0:
            return place == len(text) - 1
    return False


def _shortened(text: str, otherwise: str) -> str:
    return text if len(text) <= LONGEST else otherwise
