"""Record a RASP-L program as a graph, by running it on sequences that only remember how they were made."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from rasp.core import Function, Predicate
from rasp.graph import Graph, Node
from rasp.predicates import both
from rasp.scalar import Expr, Scalar, arg, capture, substitute, truth, whole
from rasp.scalar import binary as binary_expr


class TraceError(TypeError):
    """The program does something to a sequence that a graph cannot record."""


class Tracer:
    """Collects the nodes of one program; the interpreter of its `Traced` sequences."""

    def __init__(self) -> None:
        self.nodes: list[Node] = []
        self.names: dict[int, str] = {}

    def add(self, node: Node, is_bool: bool = False) -> Traced:
        self.nodes.append(node)
        return Traced(self, len(self.nodes) - 1, is_bool)

    def lift(self, x: Any) -> Traced:
        if isinstance(x, Traced):
            if x.tracer is not self:
                raise TraceError("two programs' sequences are mixed: a sequence belongs to the trace it was made in")
            return x
        if isinstance(x, float | np.floating):
            raise TraceError(f"a traced sequence holds whole numbers, not {x}; use tok_map, which cuts fractions")
        raise TraceError(f"a traced sequence was combined with {type(x).__name__}; use full(x, c) for a constant")

    def lift_selector(self, A: Any) -> TracedSelector:
        if not isinstance(A, TracedSelector):
            raise TraceError(f"a traced program needs a selector made by select, not {type(A).__name__}")
        if A.tracer is not self:
            raise TraceError("two programs' selectors are mixed: a selector belongs to the trace it was made in")
        return A

    def full(self, x: Traced, const: int) -> Traced:
        self.lift(x)
        return self.add(Node("full", default=int(const)))

    def indices(self, x: Traced) -> Traced:
        self.lift(x)
        return self.add(Node("indices"))

    def tok_map(self, x: Traced, func: Function) -> Traced:
        return self._map(func, self.lift(x))

    def seq_map(self, x: Any, y: Any, func: Function) -> Traced:
        return self._map(func, self.lift(x), self.lift(y))

    def _map(self, func: Function, *xs: Traced) -> Traced:
        return self.map_expr(whole(capture(func, len(xs), [x.is_bool for x in xs])), *xs)

    def map_expr(self, expr: Expr, *xs: Traced) -> Traced:
        return self.add(Node("map", tuple(x.id for x in xs), expr), expr.is_bool)

    def select(self, k: Any, q: Any, pred: Predicate, causal: bool) -> TracedSelector:
        k, q = self.lift(k), self.lift(q)
        condition = truth(capture(pred, 2, [k.is_bool, q.is_bool]))
        return TracedSelector(self, (k,), (q,), condition, causal)

    def sel_width(self, A: TracedSelector) -> Traced:
        return self.add(Node("width", (self.lift_selector(A).id,)))

    def aggr(self, A: TracedSelector, v: Any, default: int, reduction: str) -> Traced:
        A, v = self.lift_selector(A), self.lift(v)
        if reduction == "max" and v.is_bool:
            default = bool(default)  # as in the listing, where the result has the type of v until its end
        return self.add(Node("aggr", (A.id, v.id), default=int(default), reduction=reduction))

    def kqv(self, k: Any, q: Any, v: Any, pred: Predicate, default: int, reduction: str) -> Traced:
        return self.aggr(self.select(k, q, pred, True), v, default, reduction)

    def named(self, x: Any, label: str) -> Traced:
        self.names[self.lift(x).id] = label
        return x  # type: ignore[no-any-return]


class TracedSelector:
    """A selector of a traced program. Conjunction and disjunction join the predicates; keys and queries are tuples."""

    def __init__(
        self, tracer: Tracer, keys: tuple[Traced, ...], queries: tuple[Traced, ...], condition: Expr, causal: bool
    ) -> None:
        self.tracer, self.keys, self.queries, self.condition, self.causal = tracer, keys, queries, condition, causal
        inputs = tuple(x.id for x in (*keys, *queries))
        self.id = tracer.add(Node("select", inputs, condition, keys=len(keys), causal=causal)).id

    @property
    def __rasp__(self) -> Tracer:
        return self.tracer

    def __and__(self, other: TracedSelector) -> TracedSelector:
        return self._join(other, both)

    def __or__(self, other: TracedSelector) -> TracedSelector:
        return self._join(other, lambda a, b: binary_expr("|", a, b))

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


class Traced:
    """A sequence of a traced program: which node it is, and whether it holds truth values."""

    __slots__ = ("tracer", "id", "is_bool")
    __hash__ = None  # type: ignore[assignment]
    __array_ufunc__ = None  # numpy leaves operators to us

    def __init__(self, tracer: Tracer, id: int, is_bool: bool = False) -> None:
        self.tracer, self.id, self.is_bool = tracer, id, is_bool

    @property
    def __rasp__(self) -> Tracer:
        return self.tracer

    def __bool__(self) -> bool:
        raise TraceError("a program cannot branch on a whole sequence; use where(condition, x, y)")

    def __len__(self) -> int:
        raise TraceError("a program has no length: it runs on sequences of every length")

    def __getitem__(self, key: Any) -> Any:
        raise TraceError("a program cannot index a sequence by position; use shift_right or index_select")

    def __iter__(self) -> Any:
        raise TraceError("a program cannot loop over a sequence; use tok_map or seq_map")

    def __array__(self, *args: Any, **kwargs: Any) -> Any:
        raise TraceError("a traced sequence has no numbers for numpy to work on; use the functions of rasp")

    def __truediv__(self, other: Any) -> Any:
        raise TraceError("a traced sequence holds whole numbers; use // or tok_map, which cuts fractions")

    __rtruediv__ = __truediv__

    def _unary(self, function: Callable[[Any], Any]) -> Traced:
        try:
            return self.tracer.map_expr(function(Scalar(arg(0, self.is_bool))).expr, self)
        except TypeError as error:
            raise TraceError(str(error)) from None

    def __neg__(self) -> Traced:
        return self._unary(lambda a: -a)

    def __invert__(self) -> Traced:
        return self._unary(lambda a: ~a)

    def __abs__(self) -> Traced:
        return self._unary(abs)


def _operator(function: Callable[[Any, Any], Any], swapped: bool) -> Callable[[Traced, Any], Traced]:
    def method(self: Traced, other: Any) -> Traced:
        if isinstance(other, int | np.integer | np.bool_):
            return self._unary(lambda a: function(other, a) if swapped else function(a, other))
        a, b = (Scalar(arg(i, x.is_bool)) for i, x in enumerate((self, self.tracer.lift(other))))
        try:
            return self.tracer.map_expr(function(a, b).expr, self, other)
        except TypeError as error:
            raise TraceError(str(error)) from None

    return method


for _op in ("add", "sub", "mul", "floordiv", "mod", "pow", "lshift", "rshift", "and", "or", "xor"):
    _function = getattr(operator, f"__{_op}__")
    setattr(Traced, f"__{_op}__", _operator(_function, swapped=False))
    setattr(Traced, f"__r{_op}__", _operator(_function, swapped=True))
for _op in ("eq", "ne", "lt", "le", "gt", "ge"):
    setattr(Traced, f"__{_op}__", _operator(getattr(operator, _op), swapped=False))


def trace(program: Callable[..., Any], arity: int = 1, is_bool: Sequence[bool] = ()) -> Graph:
    """The graph of a program of `arity` sequences, node for node as it was written.

    `is_bool` says which of them hold truth values, whose operators differ from those of numbers.
    """
    tracer = Tracer()
    flags = tuple(is_bool) or (False,) * arity
    inputs = [tracer.add(Node("input", offset=i), flag) for i, flag in enumerate(flags)]
    tracer.names.update({x.id: "x" if arity == 1 else f"x{i}" for i, x in enumerate(inputs)})
    output = program(*inputs)
    if not isinstance(output, Traced):
        raise TraceError(f"the program returned {type(output).__name__}, not a sequence")
    return Graph(tuple(tracer.nodes), output.id, tracer.names)
