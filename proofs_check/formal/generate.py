"""The program as Python traces it, written as a Coq file.

`Graph.v` defines the graph of every function for every n. `Traced.v`, written here from the functions themselves, asks
Coq to check that each traces to exactly that graph, innermost functions first: the first that does not is the one that
moved. (`texts` asks the other way round.)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from types import ModuleType
from typing import Any

from rasp import next_tokens
from rasp.graph import Aggregate, Full, Indices, Input, Map, Node, Select, Width
from rasp.scalar import Expr, Scalar, Table, const
from rasp.tracing import Traced, Tracer, trace

PACKINGS = {"paper": "Paper", "unbounded": "Unbounded", "tuple": "Tuple"}  # by their names in Program.v
SIZES = range(1, 6)  # the n at which the whole program is compared; its functions at n = 2
Functions = Callable[[str], Callable[..., Any]]  # a function of the program, by its name


class NotInModel(ValueError):
    """A function of the program does something that the Coq model has no word for."""


# --- tracing for every machine ----------------------------------------------------------------------------------------


POWER = Table("base **", None, 1)  # of a whole number


class Base(int):
    """The number of token ids, unknown: a small number to Python's checks, `base ** n` in a traced product."""

    exponent: int

    def __new__(cls, value: int = 5, exponent: int = 1) -> Base:
        made = super().__new__(cls, value)
        made.exponent = exponent
        return made

    def __pow__(self, n: int) -> Base:  # type: ignore[override]
        return Base(int(self) ** n, self.exponent * n)

    def __mul__(self, other: Any) -> Any:
        if isinstance(other, Scalar):
            return Scalar(Expr("*", (Expr("table", (const(self.exponent),), POWER), other.expr)))
        return int(self) * other

    __rmul__ = __mul__


class AnyMachine:
    """What the program asks of a machine, all of it unknown."""

    base = Base()
    is_state = Table("is_state", None, 1)
    next_state = Table("next_state", None)
    next_symbol = Table("next_symbol", None)
    move = Table("move", None)


@dataclass(frozen=True)
class TracedFunction:
    """A Python function of `arity` sequences as nodes, with the numbers of its results, and its definition in Coq."""

    name: str
    coq: str
    arity: int
    nodes: tuple[Node, ...]
    results: Any

    @property
    def lemma(self) -> str:
        return "traced_" + "".join(c if c.isalnum() else "_" for c in self.name).strip("_")


def trace_function(name: str, coq: str, arity: int, function: Callable[..., Any]) -> TracedFunction:
    tracer = Tracer()
    results = function(*[tracer.add(Input(number=i)) for i in range(arity)])
    return TracedFunction(name, coq, arity, tuple(tracer.nodes), _numbers(results))


def _numbers(results: Any) -> Any:
    return results.id if isinstance(results, Traced) else tuple(_numbers(r) for r in results)


def program_module() -> ModuleType:
    """The module that the program is written in; it imports the library functions that it uses."""
    return import_module(next_tokens.__module__)


def known_packings() -> list[str]:
    """The packings that the program has, of those that the model has."""
    return [packing for packing in PACKINGS if packing in program_module().PACKINGS]


def printed(name: str) -> Callable[..., Any]:
    """The function of that name, as the program has it."""
    found = getattr(program_module(), name, None)
    if found is None:
        raise NotInModel(f"{name} moved: {program_module().__name__} has no such function, and Graph.v models it")
    return found  # type: ignore[no-any-return]


def traced_functions(of: Functions = printed, sizes: Sequence[int] = SIZES) -> Iterator[TracedFunction]:
    """Each function of the program, innermost first, and the whole of it for these n. `of` gives a function by name."""
    m = AnyMachine()
    yield trace_function("shift_right", "Build.shift_right 0 2", 1, lambda x: of("shift_right")(x, 2))
    yield trace_function("shift_right by 0", "Build.shift_right 0 0", 1, lambda x: of("shift_right")(x, 0))
    yield trace_function("cumsum", "Build.cumsum 0", 1, of("cumsum"))
    yield trace_function("where", "Build.where_ 0 1 2", 3, of("where"))
    yield trace_function("where3", "Build.where3 0 1 2 3", 4, of("where3"))
    yield trace_function("prefix_fill", "Build.prefix_fill 0 2 3", 1, lambda x: of("prefix_fill")(x, 2, 3))
    yield trace_function("get_next", "Build.get_next 0 1 2", 3, lambda x, left, r: of("get_next")(x, left, r, m))
    yield trace_function("select_move_token", "Build.select_move_token 0 1", 2, of("select_move_token"))
    both_cells = "Build.move_head (0, 1, 2) (3, 4, 5)"
    yield trace_function("move_head", both_cells, 6, lambda *s: of("move_head")(tuple(s[:3]), tuple(s[3:])))
    for shift in (2, 3):
        tape = partial(of("next_tape"), shift=shift, machine=m)
        yield trace_function(f"next_tape {shift}", f"Build.next_tape 0 {shift}", 1, tape)
    yield trace_function("hash_n_gram", "Build.hash_n_gram 0 2", 1, lambda x: of("hash_n_gram")(x, 2, m.base))
    yield trace_function("n_gram", "Build.n_gram 0 2", 1, lambda x: of("n_gram")(x, 2))
    for packing in known_packings():
        coq = f"Build.hash_n_gram_iter {PACKINGS[packing]} 0 2"
        keys = partial(_parts, of("hash_n_gram_iter"), n=2, base=m.base, packing=packing)
        yield trace_function(f"hash_n_gram_iter {packing}", coq, 1, keys)
    for packing in known_packings():
        for n in sizes:
            coq = f"Build.next_tokens {PACKINGS[packing]} {n} 0"
            whole = partial(of("next_tokens"), machine=m, n=n, packing=packing)
            yield trace_function(f"next_tokens {packing} {n}", coq, 1, whole)


def _parts(function: Callable[..., Any], x: Any, **options: Any) -> list[Any]:
    """A key as its parts: one number, or as many as a tuple has."""
    key = function(x, **options)
    return list(key) if isinstance(key, tuple) else [key]


def traced_sizes() -> dict[str, list[int]]:
    """How many nodes the traced program has for n = 1 .. 8, by packing."""
    return {
        packing: [len(trace(partial(next_tokens, machine=AnyMachine(), n=n, packing=packing))) for n in range(1, 9)]
        for packing in known_packings()
    }


# --- graphs as Coq terms ----------------------------------------------------------------------------------------------

OPERATORS = {
    "+": "Add", "-": "Sub", "*": "Mul", "&": "And", "|": "Or",
    "==": "Eq", "!=": "Ne", "<": "Lt", "<=": "Le", ">": "Gt", ">=": "Ge",
}  # fmt: skip
TABLES = {"next_state": "NextState", "next_symbol": "NextSymbol", "move": "Move"}


def coq_expr(e: Expr) -> str:
    match e.op:
        case "arg" | "boolarg":
            return f"(Arg {e.payload})"
        case "const":
            return f"(Const {_integer(e.payload)})"
        case "int" if e.args[0].is_bool:  # truth values are 0 and 1
            return coq_expr(e.args[0])
        case "ite":
            return f"(If {_condition(e.args[0])} {coq_expr(e.args[1])} {coq_expr(e.args[2])})"
        case "invert" | "not":
            return f"({e.op.capitalize()} {coq_expr(e.args[0])})"
        case "table" if e.payload is POWER:
            return f"(Power {e.args[0].payload})"
        case "table" if e.payload.name == "is_state":
            return f"(IsState {coq_expr(e.args[0])})"
        case "table":
            return f"(Look {TABLES[e.payload.name]} {coq_expr(e.args[0])} {coq_expr(e.args[1])})"
        case op if op in OPERATORS:
            return f"(Bin {OPERATORS[op]} {coq_expr(e.args[0])} {coq_expr(e.args[1])})"
    raise NotInModel(f"it computes {e}, and Graph.v has no word for {e.op!r}")


def _condition(e: Expr) -> str:
    """A sequence of truth values asked as such: is it not 0?"""
    return f"(Bin Ne (Arg {e.payload}) (Const 0))" if e.op == "boolarg" else coq_expr(e)


def _integer(value: int) -> str:
    if isinstance(value, float):
        raise NotInModel(f"it computes with the fraction {value}; Graph.v has whole numbers only")
    return str(int(value)) if value >= 0 else f"({int(value)})"


def coq_node(node: Node) -> str:
    inputs = list(node.inputs)
    match node:
        case Input():
            return f"Input {node.number}"
        case Full():
            return f"Full {_integer(node.value)}"
        case Indices():
            return "Indices"
        case Map():
            return f"Map {coq_expr(node.function)} {_list(inputs)}"
        case Select() if node.causal:
            return f"Select {_list(inputs[: node.keys])} {_list(inputs[node.keys :])} {coq_expr(node.function)}"
        case Width():
            return f"Width {inputs[0]}"
        case Aggregate():
            return f"Aggr {node.reduction.capitalize()} {inputs[0]} {inputs[1]} {_integer(node.default)}"
    ahead = " that looks ahead" if isinstance(node, Select) else ""
    raise NotInModel(f"it has a node {node.op!r}{ahead}; Graph.v knows none")


def _list(items: Sequence[Any]) -> str:
    return "[" + "; ".join(map(str, items)) + "]"


def _results(function: TracedFunction) -> str:
    if isinstance(function.results, int):
        return str(function.results)
    if "n_gram" in function.name:  # as many sequences as the gram has tokens or the key parts
        return _list(function.results)
    return "(" + ", ".join(map(str, function.results)) + ")"


def same_graph(function: TracedFunction, results: str) -> str:
    """The nodes of a function as traced, and the lemma that Coq's own graph of it has just these."""
    try:
        nodes = ";\n   ".join(coq_node(node) for node in function.nodes)
    except NotInModel as error:
        raise NotInModel(f"{function.name} moved: {error}") from None
    return (
        f"Definition {function.lemma}_nodes : graph :=\n  [{nodes}].\n"
        f"Lemma {function.lemma} : Build.graph_of {function.arity} ({function.coq}) =\n"
        f"  ({function.lemma}_nodes, {results}).\nProof. reflexivity. Qed.\n"
    )


def traced_file(of: Functions = printed, sizes: Sequence[int] = SIZES) -> str:
    """`Traced.v`: the graphs as traced just now, and that each is the one of `Graph.v`."""
    parts = [HEADING]
    whole: dict[str, list[str]] = {}
    for function in traced_functions(of, sizes):
        parts.append(same_graph(function, _results(function)))
        if function.name.startswith("next_tokens"):
            _, packing, n = function.name.split()
            whole.setdefault(PACKINGS[packing], []).append(f"program {PACKINGS[packing]} {n} = {function.lemma}_nodes")
    parts += [_together(packing, claims) for packing, claims in whole.items()]
    parts += [_sizes(PACKINGS[packing], counted) for packing, counted in traced_sizes().items()]
    return "\n".join(parts)


HEADING = """(* Generated from the Python functions themselves by proofs_check/formal/generate.py.

   Each function of the program, traced on a machine of which nothing is known, is the graph that `Graph.v` builds for
   it, node by node; the whole program for n = 1 .. 5, and its size for n = 1 .. 8. *)
From Coq Require Import List ZArith.
Import ListNotations.
Require Import Program Graph.
"""


def _together(packing: str, claims: list[str]) -> str:
    name = f"{packing.lower()}_model"
    return (
        f"Theorem {name} :\n  " + " /\\\n  ".join(claims) + ".\nProof. repeat split; reflexivity. Qed.\n"
        f"(** [Traced.v] what Python traces is the graph of the theorem, node by node | {packing.lower()} packing, "
        f"n = 1..{len(claims)} *)\nPrint Assumptions {name}.\n"
    )


def _sizes(packing: str, counted: list[int]) -> str:
    name = f"{packing.lower()}_sizes"
    return (
        f"Theorem {name} : map (fun n => length (program {packing} n)) (seq 1 8) = {_list(counted)}.\n"
        "Proof. vm_compute. reflexivity. Qed.\n"
        "(** [Traced.v] the traced graph has as many nodes as the theorem says | "
        f"{packing.lower()} packing, n = 1..8 *)\n"
        f"Print Assumptions {name}.\n"
    )


def first_difference(printed_graph: str, function: TracedFunction) -> str:
    """Where the graph that Coq printed departs from the traced one, in words."""
    inside = printed_graph.partition("[")[2].rpartition("]")[0]
    theirs = [" ".join(node.split()) for node in _split(inside)]
    mine = [coq_node(node) for node in function.nodes]
    for i, (a, b) in enumerate(zip(mine, theirs, strict=False)):
        if _bare(a) != _bare(b):
            return f"node {i} is {a} in Python, {b} in Coq"
    return f"it has {len(mine)} nodes in Python, {len(theirs)} in Coq, or another result"


def _bare(text: str) -> str:
    return text.replace("(", "").replace(")", "").replace("%Z", "")


def _split(text: str) -> list[str]:
    """Split at the semicolons that are inside no bracket."""
    parts, depth = [""], 0
    for letter in text:
        depth += {"[": 1, "(": 1, "]": -1, ")": -1}.get(letter, 0)
        if letter == ";" and depth == 0:
            parts.append("")
        else:
            parts[-1] += letter
    return parts
