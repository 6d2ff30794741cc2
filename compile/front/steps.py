"""Large maps in steps: a part of the function that has few values becomes a map of its own, one MLP earlier.

`a if p == q else b` looks at four numbers at once, and a table of it has a row for every combination. Whether `p == q`
is one bit; once that is known, three numbers are left, and one of them is that bit. Parts are chosen one after another,
each time the one that leaves the fewest combinations.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import inf, prod

from compile.errors import CompileError
from compile.front.bounds import MOST_COMBINATIONS, Set, combinations, values_taken
from compile.front.cover import MOST_BOXES, TooManyBoxes, cover
from compile.front.program import FiniteProgram
from rasp.graph import Graph, Map, Node
from rasp.rewrite import pruned
from rasp.scalar import Expr, arg, arguments, as_int, replaced, substitute, truth, walk


def split_maps(program: FiniteProgram) -> FiniteProgram:
    """The program with every map that is too large for an MLP in steps, where steps are smaller."""
    nodes: list[Node] = []
    place: dict[int, int] = {}
    for i, node in enumerate(program.graph.nodes):
        parts = _parts(program, node) if isinstance(node, Map) else []
        inputs = [place[j] for j in node.inputs]
        for part in parts[:-1]:
            inputs.append(len(nodes))
            nodes.append(_map(part, inputs))
        place[i] = len(nodes)
        nodes.append(_map(parts[-1], inputs) if parts else replace(node, inputs=tuple(inputs)))
    if len(nodes) == len(program.graph):
        return program
    names = {place[i]: name for i, name in program.graph.names.items()}
    graph, left = pruned(Graph(tuple(nodes), place[program.graph.output], names))
    places = {i: left[new] for i, new in place.items() if new in left}
    watched = {places[i]: spreads for i, spreads in program.watched.items() if i in places}
    return FiniteProgram(program.written, graph, program.domains.moved(graph, places), watched)


def _parts(program: FiniteProgram, node: Map) -> list[Expr]:
    sets = [program.domains.get(j) for j in node.inputs]
    known = [values for values in sets if values is not None]
    return in_steps(node.function, known) if len(known) == len(sets) else [node.function]


def _map(function: Expr, inputs: Sequence[int]) -> Map:
    """A map of those of the inputs that it depends on."""
    used = sorted(arguments(function))
    places = [arg(used.index(i) if i in used else 0) for i in range(len(inputs))]
    return Map(tuple(inputs[i] for i in used), function=substitute(function, places))


def in_steps(e: Expr, sets: Sequence[Set]) -> list[Expr]:
    """Functions that lead up to `e`, the last of them: argument `len(sets)` + k is the value of function k.

    Only `e` itself, if one layer can compute it or its parts are no smaller.
    """
    steps = _Steps(sets)
    try:
        last = steps.shrunk(e)
    except CompileError:
        return [e]
    return [*steps.parts, last]


class _Steps:
    def __init__(self, sets: Sequence[Set]) -> None:
        self.sets = list(sets)
        self.parts: list[Expr] = []

    def shrunk(self, e: Expr) -> Expr:
        """`e` with as many of its parts replaced by arguments as a layer needs."""
        while combinations(e, self.sets) > MOST_BOXES:
            part = self.best_part(e)
            if part is None and not self.parts:
                raise TooManyBoxes("nothing to split")
            if self.fits(e):
                break
            if part is None:
                raise TooManyBoxes("no part of it has fewer values")
            e = replaced(e, {part: self.known(part)})
        return e

    def fits(self, e: Expr) -> bool:
        if combinations(e, self.sets) > MOST_COMBINATIONS:
            return False
        try:
            return len(cover(e, self.sets, MOST_BOXES)) <= MOST_BOXES
        except TooManyBoxes:
            return False

    def best_part(self, e: Expr) -> Expr | None:
        """The one that, once it is known, leaves the fewest combinations; None if all leave as many as there are."""
        parts = {part for part in walk(e) if part.args and part.is_whole and arguments(part)} - {e}
        left = {part: self.left(e, part) for part in parts}
        best = min(parts, key=lambda part: (left[part], part.size, str(part)), default=e)
        return best if left.get(best, inf) < combinations(e, self.sets) else None

    def left(self, e: Expr, part: Expr) -> int:
        try:
            values = values_taken(as_int(part), self.sets)
        except CompileError:  # too many, or it fails where the whole never asks for it
            return combinations(e, self.sets)
        rest = arguments(replaced(e, {part: arg(len(self.sets))})) - {len(self.sets)}
        return len(values) * prod(len(self.sets[i]) for i in rest)

    def known(self, part: Expr) -> Expr:
        """The part as an argument, after it has become a step."""
        step = self.shrunk(as_int(part))
        self.sets.append(values_taken(step, self.sets))
        self.parts.append(step)
        place = arg(len(self.sets) - 1)
        return truth(place) if part.is_bool else place
