"""Record a RASP-L program as a graph, by running it on sequences that only remember how they were made."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from rasp.arithmetic import WHOLE_NUMBERS, Fraction, Kind, constant
from rasp.core import Function
from rasp.errors import NO_CHANGE, NO_TRUTH, NO_TRUTH_OF_SELECTORS, TraceError
from rasp.graph import Aggregate, Full, Graph, Indices, Input, Map, Node, Select, Width
from rasp.operators import Operators
from rasp.predicates import both
from rasp.scalar import Expr, Scalar, arg, binary, capture, const, operate, substitute, truth, whole


class Tracer:
    """Collects the nodes of one program; the interpreter of its `Traced` sequences."""

    def __init__(self) -> None:
        self.nodes: list[Node] = []
        self.names: dict[int, str] = {}

    def add(self, node: Node, kind: Kind = "int") -> Traced:
        self.nodes.append(node)
        return Traced(self, (len(self.nodes) - 1,), arg(0, kind))

    def lift(self, x: Any) -> Traced:
        if isinstance(x, Traced):
            if x.tracer is not self:
                raise TraceError("two programs' sequences are mixed: a sequence belongs to the trace it was made in")
            return x
        raise TraceError(f"a traced sequence was combined with {type(x).__name__}; use full(x, c) for a constant")

    def lift_selector(self, A: Any) -> TracedSelector:
        if not isinstance(A, TracedSelector):
            raise TraceError(f"a traced program needs a selector made by select, not {type(A).__name__}")
        if A.tracer is not self:
            raise TraceError("two programs' selectors are mixed: a selector belongs to the trace it was made in")
        return A

    def full(self, x: Traced, const: int) -> Traced:
        self.lift(x)
        return self.add(Full(value=constant(const, "the constant of full")))

    def indices(self, x: Traced) -> Traced:
        self.lift(x)
        return self.add(Indices())

    def tok_map(self, x: Traced, func: Function) -> Traced:
        return self._map(func, self.lift(x))

    def seq_map(self, x: Any, y: Any, func: Function) -> Traced:
        return self._map(func, self.lift(x), self.lift(y))

    def _map(self, func: Function, *xs: Traced) -> Traced:
        inputs, values = _side_by_side(xs)
        function = whole(capture(func, len(xs), [x.kind for x in xs]))
        return self.map_expr(substitute(function, values), inputs)

    def map_expr(self, expr: Expr, inputs: Sequence[int]) -> Traced:
        """A sequence computed position by position. Fractions are not stored: they wait for what is made of them."""
        if expr.kind == "float":
            return Traced(self, tuple(inputs), expr)
        return self.add(Map(tuple(inputs), function=expr), expr.kind)

    def stored(self, x: Any) -> int:
        """The node of a sequence of whole numbers or truth values; fractions are cut."""
        x = self.lift(x)
        if x.kind == "float":
            x = self.map_expr(whole(x.expr), x.inputs)
        return x.id  # type: ignore[no-any-return]

    def select(self, k: Any, q: Any, pred: Function, causal: bool) -> TracedSelector:
        k, q = self.lift(k), self.lift(q)
        condition = truth(capture(pred, 2, [k.kind, q.kind], truth=True))
        inputs, values = _side_by_side([k, q])
        keys = len(k.inputs)
        return TracedSelector(self, inputs[:keys], inputs[keys:], truth(substitute(condition, values)), causal)

    def sel_width(self, A: TracedSelector) -> Traced:
        return self.add(Width((self.lift_selector(A).id,)))

    def aggr(self, A: TracedSelector, v: Any, default: int, reduction: str) -> Traced:
        A, v = self.lift_selector(A), self.lift(v)
        if reduction == "mean" and v.kind == "float":
            raise TraceError(
                "a mean of fractions depends on the order in which they are added, which a graph does not keep; cut "
                "them first (tok_map), or run the program with engine='eager' or 'reference'"
            )
        otherwise = constant(default, "the default")
        if reduction == "max" and v.kind == "bool":
            otherwise = int(bool(default))  # as in the listing, where the result has the type of v until its end
        return self.add(Aggregate((A.id, self.stored(v)), default=otherwise, reduction=reduction))

    def kqv(self, k: Any, q: Any, v: Any, pred: Function, default: int, reduction: str) -> Traced:
        return self.aggr(self.select(k, q, pred, True), v, default, reduction)

    def named(self, x: Any, label: str) -> Traced:
        if self.lift(x).kind != "float":
            self.names[x.id] = label
        return x  # type: ignore[no-any-return]


def _side_by_side(xs: Sequence[Traced]) -> tuple[tuple[int, ...], list[Expr]]:
    """The nodes that several sequences are made of, and each sequence as an expression of them."""
    inputs: list[int] = []
    values: list[Expr] = []
    for x in xs:
        values.append(x.numbered_from(len(inputs)))
        inputs.extend(x.inputs)
    return tuple(inputs), values


class TracedSelector:
    """A selector of a traced program. Conjunction and disjunction join the predicates; keys and queries are tuples."""

    def __init__(
        self, tracer: Tracer, keys: tuple[int, ...], queries: tuple[int, ...], condition: Expr, causal: bool
    ) -> None:
        self.tracer, self.keys, self.queries, self.condition, self.causal = tracer, keys, queries, condition, causal
        self.id = tracer.add(Select((*keys, *queries), function=condition, keys=len(keys), causal=causal)).id

    @property
    def __rasp__(self) -> Tracer:
        return self.tracer

    def __and__(self, other: TracedSelector) -> TracedSelector:
        return self._join(other, both)

    def __or__(self, other: TracedSelector) -> TracedSelector:
        return self._join(other, lambda a, b: binary("|", a, b))

    def __bool__(self) -> bool:
        raise TraceError(NO_TRUTH_OF_SELECTORS)

    def __invert__(self) -> TracedSelector:
        raise TraceError("~ of a causal selector would look at the future; negate the predicate instead")

    def _join(self, other: TracedSelector, how: Callable[[Expr, Expr], Expr]) -> TracedSelector:
        other = self.tracer.lift_selector(other)
        if self.causal != other.causal:
            raise TraceError("a causal and a non-causal selector cannot be joined")
        mine, theirs = (len(s.keys) for s in (self, other))
        my_queries, their_queries = (len(s.queries) for s in (self, other))
        keys, queries = self.keys + other.keys, self.queries + other.queries
        a = substitute(self.condition, [arg(i if i < mine else theirs + i) for i in range(mine + my_queries)])
        places = [mine + i if i < theirs else mine + my_queries + i for i in range(theirs + their_queries)]
        b = substitute(other.condition, [arg(i) for i in places])
        return TracedSelector(self.tracer, keys, queries, how(a, b), self.causal)


class Traced(Operators):
    """A sequence of a traced program: an expression of the nodes in `inputs`.

    Whole numbers and truth values are nodes themselves. A sequence of fractions is none: it is what it would be
    computed from, until a primitive (or the end of the program) makes whole numbers of it.
    """

    __slots__ = ("tracer", "inputs", "expr")
    __array_ufunc__ = None  # numpy leaves operators to us

    def __init__(self, tracer: Tracer, inputs: tuple[int, ...], expr: Expr) -> None:
        self.tracer, self.inputs, self.expr = tracer, inputs, expr

    @property
    def __rasp__(self) -> Tracer:
        return self.tracer

    @property
    def kind(self) -> Kind:
        return self.expr.kind

    @property
    def id(self) -> int:
        """The node that this sequence is."""
        assert self.kind != "float", "fractions are not stored"
        return self.inputs[0]

    def numbered_from(self, first: int) -> Expr:
        """The expression, its arguments counted from `first`."""
        if self.kind != "float":
            return arg(first, self.kind)
        return substitute(self.expr, [arg(first + i) for i in range(len(self.inputs))])

    def __bool__(self) -> bool:
        raise TraceError(NO_TRUTH)

    def __setitem__(self, place: Any, value: Any) -> None:
        raise TraceError(NO_CHANGE)

    def __len__(self) -> int:
        raise TraceError("a program has no length: it runs on sequences of every length")

    def __getitem__(self, key: Any) -> Any:
        raise TraceError("a program cannot index a sequence by position; use shift_right or index_select")

    def __iter__(self) -> Any:
        raise TraceError("a program cannot loop over a sequence; use tok_map or seq_map")

    def __array__(self, *args: Any, **kwargs: Any) -> Any:
        raise TraceError("a traced sequence has no numbers for numpy to work on; use the functions of rasp")

    def _unary(self, op: str) -> Traced:
        return self._computed(lambda a: Scalar(a)._unary(op).expr, self)

    def _binary(self, op: str, other: Any, swapped: bool) -> Traced:
        def operated(a: Expr, b: Expr) -> Expr:
            return operate(op, b, a) if swapped else operate(op, a, b)

        if not isinstance(other, Traced):
            try:
                fixed = const(other)
            except TypeError:
                self.tracer.lift(other)
            except OverflowError as error:
                raise TraceError(str(error)) from None
            return self._computed(lambda a: operated(a, fixed), self)
        return self._computed(operated, self, self.tracer.lift(other))

    def _computed(self, function: Callable[..., Expr], *xs: Traced) -> Traced:
        inputs, values = _side_by_side(xs)
        try:
            return self.tracer.map_expr(function(*values), inputs)
        except Fraction as error:
            raise TraceError(str(error)) from None


def trace(program: Callable[..., Any], arity: int = 1, kinds: Sequence[Kind] = ()) -> Graph:
    """The graph of a program of `arity` sequences, node for node as it was written.

    `kinds` says which of them hold truth values, whose operators differ from those of numbers.
    """
    tracer = Tracer()
    known = tuple(kinds) or (WHOLE_NUMBERS,) * arity
    inputs = [tracer.add(Input(number=i), kind) for i, kind in enumerate(known)]
    tracer.names.update({x.id: "x" if arity == 1 else f"x{i}" for i, x in enumerate(inputs)})
    output = program(*inputs)
    if not isinstance(output, Traced):
        raise TraceError(f"the program returned {type(output).__name__}, not a sequence")
    stored = tracer.stored(output)
    return Graph(tuple(tracer.nodes), stored, tracer.names)
