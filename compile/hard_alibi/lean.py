"""The paper's program by hand, for tapes with one head: two layers, inside the shape the paper trains.

Layer 0 brings the last tokens (window heads) and the number of separators (a NoPE head). Its MLP computes at once what
stands on the next tape at three or more neighbouring cells. Layer 1 matches (n+1)-gram and count, as the program does.

What makes two layers enough: around one head, the token T(p) of the next tape at cell p depends on x[p-2..p+1] by
cases that exclude each other (`next_tape_boxes`), and T(p) is a separator exactly where x[p] is. So the separators of
the next tape need not be counted: up to cell i-3 there are as many as up to token i, minus those among the last three
tokens, plus the one the program sees just before the input.

Exact for every sequence of tapes `bos .. eos sep` with one state token in each (repeats included), at every position;
tests/test_compile_lean.py. On other inputs use the backend `hard_alibi`.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import isqrt

import numpy as np

from compile.errors import REFUSED, CompileError
from compile.front.cover import Box, merge
from compile.front.domains import Capacity
from compile.front.record import record_program
from compile.front.trace import rewrite, trace
from compile.hard_alibi.assemble import assemble
from compile.hard_alibi.lower import refusal
from compile.hard_alibi.network import Network, Part, Shift, inside
from compile.hard_alibi.readings import INSIDE, added, combine
from compile.hard_alibi.shapes import PAPER
from compile.readings import BIAS, Reading, View
from compile.source import MachineProgram, Source, Tokens, check_flags, check_numbers
from compile.transformer import Transformer
from compile.transformer.annotations import Fact
from compile.validate import answers, looked_up, need_equal
from rasp.graph import Delay, Graph
from rasp.machines.machine import TuringMachine, bos, eos, sep
from rasp.programs.turing import next_tokens, step_bound

BEFORE = -1  # the value of a shifted token before the input; the program reads a separator there
VALUE_AT, KEY_AT = 2, 3  # the program looks up next_tape(x, 2) by next_tape(x, 3)
OFFSETS = (2, 1, 0, -1)  # T(p) depends on x[p-2], x[p-1], x[p], x[p+1]


def lean_network(machine: TuringMachine, graph: Graph, n: int = 1, steps: int = 64, dtype: str = "float32") -> Network:
    """The layers; `graph` is the program that they compute, to say which of its operations each part stands for."""
    tokens, counts, nodes = range(machine.base), steps + 2, _Nodes(graph)
    network = Network(tokens, KEY_AT + n + 2, layers=2, dtype=dtype, source=Fact("tokens", "x", nodes.of("input")))
    near = _recent_tokens(network, KEY_AT + n + 2, nodes)
    share = _count_separators(network, counts, nodes)
    keys, values = _next_tape(network, machine, near, n)
    queries = _query_gram(network, near, n)
    count_keys, count_queries = _decode_counts(network, share, near, counts, nodes)
    parts = [_equal(k, q) for k, q in zip([*keys, *count_keys], [*queries, *count_queries], strict=True)]
    match = Fact("match", f"match next {n + 1}-gram", (graph.output,))
    network.answer = network.best(1, match, "next token", parts, values, tokens, default=sep, order="max")
    network.refusal = refusal(Capacity(counts))
    return network


class _Nodes:
    """The operations of the program that this construction carries out in its own way."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.reach: list[int] = []  # how far back from x each node looks
        for node in graph.nodes:
            own = node.distance if isinstance(node, Delay) else 0
            self.reach.append(max((self.reach[j] for j in node.inputs), default=0) + own)

    def of(self, op: str) -> tuple[int, ...]:
        return tuple(i for i, node in enumerate(self.graph.nodes) if node.op == op)

    def delays(self, distance: int) -> tuple[int, ...]:
        """Here x itself is shifted; the program may shift what it has computed, as far back in all."""
        return tuple(i for i in self.of("delay") if self.reach[i] == distance)


# --- layer 0 ----------------------------------------------------------------------------------------------------------


def _recent_tokens(network: Network, most: int, nodes: _Nodes) -> list[View]:
    """x and its shifts by 1..most; what lies before the input has a direction of its own."""
    values = (*network.tokens, BEFORE)
    facts = [Fact("value", f"shift_right(x, {k})", nodes.delays(k)) for k in range(1, most + 1)]
    wanted = [Shift(fact, network.input, values, k, BEFORE) for k, fact in enumerate(facts, 1)]
    return [network.input, *network.shifts(0, wanted)]


def _count_separators(network: Network, counts: int, nodes: _Nodes) -> int:
    network.check_count("count separators", counts)
    truth = np.array([[token == sep] for token in network.tokens])
    fact = Fact("count", "count separators", nodes.of("width"))
    return network.count(0, [Part(network.input, {0: dict(INSIDE)}, truth)], fact)


def _next_tape(network: Network, machine: TuringMachine, near: list[View], n: int) -> tuple[list[View], View]:
    """The digits of the key, newest first, and the value: T(p) at cells i-3, i-4, .. and i-2."""
    boxes = next_tape_boxes(machine)
    keys = []
    for j in range(n + 1):
        masks = [near[KEY_AT + m] for m in range(j)]  # a separator on the way hides what lies before it
        keys.append(_computed(network, f"next tape at i-{KEY_AT + j}", boxes, near, KEY_AT + j, masks))
    values = _computed(network, f"next tape at i-{VALUE_AT}", boxes, near, VALUE_AT, [])
    return keys, values


def _computed(
    network: Network, name: str, boxes: Sequence[Box], near: list[View], at: int, masks: Iterable[View]
) -> View:
    """T at cell i - `at`; 0 behind a mask. Boxes of value 0 need no unit: 0 is what is left over."""
    written = network.onehot(Fact("value", name), network.tokens)
    hidden = added(_separators(view) for view in masks)
    inputs = [near[at + offset] for offset in OFFSETS]
    network.layers[0].unit(dict(INSIDE), written[sep])
    for box in boxes:
        reads = combine((1.0, inside(box, inputs)), (-1.0, hidden))
        network.box(0, reads, combine((1.0, written[box.value]), (-1.0, written[sep])))
    network.layers[0].made.append(Fact("compute", name))
    return written


def _separators(view: View) -> Reading:
    return combine((1.0, view[sep]), (1.0, view.get(BEFORE, {})))


def _query_gram(network: Network, near: list[View], n: int) -> list[View]:
    """x, and the tokens before it that no separator hides: on where the token stands and no separator on the way."""
    grams = [near[0]]
    for j in range(1, n + 1):
        name = f"x[i-{j}] of this tape"
        written = network.onehot(Fact("value", name), network.tokens)
        hidden = added(_separators(near[m]) for m in range(j))
        network.layers[0].unit(dict(INSIDE), written[sep])
        for token in network.tokens[1:]:
            reads = combine((1.0, near[j][token]), (-1.0, hidden), (-1.0, {BIAS: 1.0}))
            network.box(0, reads, combine((1.0, written[token]), (-1.0, written[sep])))
        network.layers[0].made.append(Fact("compute", name))
        grams.append(written)
    return grams


def _decode_counts(
    network: Network, share: int, near: list[View], counts: int, nodes: _Nodes
) -> tuple[tuple[View, View], tuple[View, View]]:
    """Both counts as two digits. Up to cell i-3 the next tape has 1 + c - s separators, where c is their number up to
    token i and s, 0 or 1, how many of the last three tokens are one: the units are gated by s and by 1 - s."""
    base = isqrt(counts) + 1
    low, high = range(base), range(counts // base + 1)

    def digit(name: str, values: range) -> View:
        return network.onehot(Fact("count", name, nodes.of("width")), values)

    query = digit("count // b", high), digit("count % b", low)
    key = digit("count on the next tape // b", high), digit("count on the next tape % b", low)

    def digits(views: tuple[View, View], c: int) -> Reading:
        return combine((1.0, views[0][c // base]), (1.0, views[1][c % base])) if c <= counts else {}

    recent = added(view[sep] for view in near[:KEY_AT])
    for seen, gate in ((0, combine((1.0, INSIDE), (-1.0, recent))), (1, recent)):
        places = {c: added([digits(query, c), digits(key, 1 + c - seen)]) for c in range(counts + 1)}
        network.decode(0, share, places, gate, beyond=False)
    network.watch(0, share, counts)
    made = Fact("compute", "separators so far, here and on the next tape", nodes.of("width"))
    network.layers[0].made.append(made)
    return key, query


def _equal(keys: View, queries: View) -> Part:
    return Part(keys, queries, np.array([[k == q for q in queries] for k in keys]))


# --- one step of the machine ------------------------------------------------------------------------------------------


def next_tape_boxes(machine: TuringMachine) -> list[Box]:
    """T(p) by cases of x[p-2], x[p-1], x[p], x[p+1] (arguments 0..3), for at most one head nearby.

    The head stands right of the symbol a it reads; in state q it writes a' and becomes q', then changes places with the
    neighbour it moves to: right of it, or a' itself. Boxes whose value is 0 (a separator that stays) are left out.
    """
    cells = (bos, eos, *machine.symbol_tokens)
    plain = frozenset(range(machine.base)) - frozenset(machine.state_tokens)
    quiet = plain | {BEFORE}
    boxes = [_box(t, {1: quiet, 2: {t}, 3: quiet}) for t in plain if t != sep]  # no head near: nothing changes
    for q in machine.state_tokens:
        right = frozenset(a for a in cells if machine.move(q, a))
        left = frozenset(cells) - right
        for a in cells:
            then, write, goes_right = machine.next_state(q, a), machine.next_symbol(q, a), a in right
            boxes.append(_box(write if goes_right else then, {2: {a}, 3: {q}}))  # this is the cell it reads
            boxes.append(_box(then, {0: {a}, 1: {q}}) if goes_right else _box(write, {1: {a}, 2: {q}}))
        boxes += [_box(t, {1: right, 2: {q}, 3: {t}}) for t in cells if right]  # it leaves to the right
        boxes += [_box(t, {0: left, 1: {q}, 2: {t}}) for t in cells if left]  # it left to the left: nothing changes
    return merge([box for box in boxes if box.value != sep])


def _box(value: int, sides: dict[int, Iterable[int]]) -> Box:
    return Box(tuple((place, frozenset(tokens)) for place, tokens in sorted(sides.items())), value)


# --- the backend ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class LeanOptions:
    """With `paper_shape`, the model is two layers of the architecture that the paper trains."""

    dtype: str = "float32"
    activation: str = "relu"
    paper_shape: bool = False
    check: bool = True

    def __post_init__(self) -> None:
        check_numbers(self.dtype, self.activation)
        check_flags(paper_shape=self.paper_shape, check=self.check)


class LeanBackend:
    """Machines only, and only their own tapes: the layers above, assembled and compared with the program."""

    name = "lean"
    options = LeanOptions
    aliases: Mapping[str, str] = {}

    def compile(self, source: Source, options: LeanOptions) -> Transformer:
        if source.machine is None:
            raise CompileError("backend 'lean' compiles Turing machines; use compile_machine, or backend 'hard_alibi'")
        _check_packing(source.machine)
        machine, n, steps = source.machine.machine, source.machine.n, source.machine.steps
        graph = rewrite(trace(source.program))
        network = lean_network(machine, graph, n, steps, options.dtype)
        model = assemble(
            network,
            activation=options.activation,
            token_names=source.token_names,
            extra=source.extra,
            shape=PAPER if options.paper_shape else None,
            program=record_program(graph),
        )
        if options.check:
            _validate(model, source.machine, source.examples)
        return model


def _check_packing(given: MachineProgram) -> None:
    counts, bound = given.steps + 2, step_bound(given.machine, given.n)
    if given.packing == "paper" and counts >= bound:
        raise CompileError(
            f"backend 'lean' compares counts and {given.n + 1}-grams apart, as packing='unbounded' does; "
            f"packing='paper' is the same only for counts below {given.machine.base}**{given.n} = {bound}, and "
            f"{given.steps} steps count to {counts}: give packing='unbounded', fewer steps or a larger n"
        )


def _validate(model: Transformer, given: MachineProgram, examples: Iterable[Tokens]) -> None:
    inputs = [np.asarray(tokens) for tokens in examples]
    for tokens, found in itertools.chain(answers(model, inputs), looked_up(model, inputs)):
        expected = next_tokens(tokens, given.machine, given.n, given.packing)
        over = (found == REFUSED) & (np.cumsum(tokens == sep) > given.steps + 2)
        need_equal(tokens, np.where(over, expected, found), expected)
