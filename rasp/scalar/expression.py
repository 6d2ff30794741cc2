"""Expressions: what functions of numbers compute, as plain data."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from rasp.arithmetic import BINARY, Kind, Number, cut, kind_of, number, result_kind
from rasp.scalar.table import Table
from rasp.values import call

ARGUMENTS = frozenset({"arg", "boolarg", "floatarg"})


@dataclass(frozen=True)
class Opaque:
    """A function that could not be recorded: called as it is. `truth`: as a condition, not as a whole number."""

    function: Callable[..., Any]
    truth: bool = False

    @property
    def name(self) -> str:
        return getattr(self.function, "__name__", type(self.function).__name__)

    def __call__(self, *args: Any) -> int | bool:
        result = call(self.function, *args)
        return bool(result) if self.truth else cut(result)


@dataclass(frozen=True, eq=False)
class Expr:
    """A node of an expression: an operator, its operands, and for leaves their payload.

    Leaves: `arg`, `boolarg`, `floatarg` (payload: which argument), `const` (payload: the number). `table` and `opaque`
    carry what they call. What is asked of every node again and again is worked out once, from the operands.
    """

    op: str
    args: tuple[Expr, ...] = ()
    payload: Any = None
    size: int = field(init=False, repr=False)
    depth: int = field(init=False, repr=False)
    kind: Kind = field(init=False, repr=False)
    _hash: int = field(init=False, repr=False)

    def __post_init__(self) -> None:
        known, args = self.__dict__, self.args  # frozen to everyone else
        known["size"], known["depth"] = 1, 1
        for a in args:
            known["size"] += a.size
            known["depth"] = max(known["depth"], a.depth + 1)
        known["kind"] = _kind(self)
        known["_hash"] = hash((self.op, args, self.payload))

    @property
    def is_bool(self) -> bool:
        return self.kind == "bool"

    @property
    def is_whole(self) -> bool:
        """A whole number (or truth value) by construction: no fraction to cut."""
        return self.kind != "float"

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, Expr) or self._hash != other._hash or self.op != other.op:
            return False
        same_kind = type(self.payload) is type(other.payload)  # 1, 1.0 and True are different constants
        return same_kind and _same(self.payload, other.payload) and self.args == other.args

    def __hash__(self) -> int:
        return self._hash

    def __reduce__(self) -> tuple[Any, ...]:
        return Expr, (self.op, self.args, self.payload)  # hashes differ from one process to the next

    def __str__(self) -> str:
        return to_source(self, [f"x{i}" for i in range(1 + max(arguments(self), default=-1))])


def _same(a: Any, b: Any) -> bool:
    return repr(a) == repr(b) if isinstance(a, float) else a == b  # 0.0 and -0.0 are different constants


def _kind(e: Expr) -> Kind:
    if e.op == "const":
        return kind_of(e.payload)
    if e.op in BINARY:
        return result_kind(e.op, e.args[0].kind, e.args[1].kind)
    if e.op == "ite":
        kinds = {e.args[1].kind, e.args[2].kind}
        return kinds.pop() if len(kinds) == 1 else "float" if "float" in kinds else "int"
    if e.op == "opaque":
        return "bool" if e.payload.truth else "int"
    if e.op in ("neg", "abs", "invert"):
        return "int" if e.args[0].kind == "bool" else e.args[0].kind
    return {"boolarg": "bool", "not": "bool", "floatarg": "float"}.get(e.op, "int")  # type: ignore[return-value]


def arg(i: int, kind: Kind | bool = "int") -> Expr:
    """Argument i; of truth values for `bool` (or True)."""
    return Expr({"bool": "boolarg", True: "boolarg", "float": "floatarg"}.get(kind, "arg"), (), i)


def const(value: Any) -> Expr:
    return Expr("const", (), number(value))


def walk(e: Expr) -> list[Expr]:
    """Every node of `e`, operands first."""
    found: list[Expr] = []
    stack = [e]
    while stack:
        found.append(node := stack.pop())
        stack.extend(node.args)
    return found[::-1]


def size(e: Expr) -> int:
    return e.size


def arguments(e: Expr) -> set[int]:
    """Which arguments `e` depends on."""
    return {node.payload for node in walk(e) if node.op in ARGUMENTS}


def tables(e: Expr) -> list[Table]:
    return [node.payload for node in walk(e) if node.op == "table"]


def opaque_calls(e: Expr) -> list[Callable[..., Any]]:
    """The functions that `e` has to call as they are."""
    return [node.payload.function for node in walk(e) if node.op == "opaque"]


# --- for eyes ---------------------------------------------------------------------------------------------------------

_SPELLED = {"neg": "-{0}", "invert": "~{0}", "abs": "abs({0})", "not": "not {0}", "int": "int({0})"}


def to_source(e: Expr, args: Sequence[str]) -> str:
    """`e` as one would write it in Python, with `args[i]` for argument i: for people to read."""
    if e.op in ARGUMENTS:
        return args[e.payload]
    if e.op == "const":
        return spell_number(e.payload)
    parts = [to_source(a, args) for a in e.args]
    if e.op == "ite":
        other = parts[2][1:-1] if e.args[2].op == "ite" else parts[2]  # a chain of cases needs no nesting
        return f"({parts[1]} if {parts[0]} else {other})"
    if e.op in ("table", "opaque"):
        return f"{e.payload.name}({', '.join(parts)})"
    if e.op in BINARY:
        return f"({parts[0]} {e.op} {parts[1]})"
    return f"({_SPELLED[e.op].format(parts[0])})"


def spell_number(value: Number) -> str:
    """A constant as source code."""
    if isinstance(value, float) and not math.isfinite(value):
        return {"inf": "1e999", "-inf": "(-1e999)"}.get(repr(value), "(1e999 - 1e999)")
    return repr(value) if math.copysign(1, value) > 0 else f"({value!r})"  # -1 ** 2 is not (-1) ** 2
