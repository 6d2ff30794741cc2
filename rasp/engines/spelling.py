"""Expressions as source code that follows the rule of arithmetic, for Python and for numba.

Both targets get the same text except for integers that may leave int64. Numba has no answer for these (it promises the
compiler that they do not overflow), so a helper adds them as unsigned numbers. Python's grow: they are wrapped only
where they are looked at (compared, divided, stored, used as an index), since sums, products and bitwise operators of
numbers that agree modulo 2**64 agree modulo 2**64 too.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from math import prod

import numpy as np

from rasp.arithmetic import BITWISE, COMPARISONS, HIGHEST, LOWEST
from rasp.engines.ranges import ANY, Range, fits, hull, of_binary, of_number, of_table, of_unary, power_fits
from rasp.errors import EngineError, FunctionError, place_of
from rasp.scalar import ARGUMENTS, Expr, Opaque, Table, spell_number

DEEPEST = 90  # nested parentheses after which a variable is made: Python's parser takes 200
MOST_VALUES = 4096  # that a function is asked for beforehand, where it cannot be called
_RING = frozenset({"+", "-", "*", "&", "|", "^"})
_HELPERS = {
    "+": "add",
    "-": "subtract",
    "*": "multiply",
    "//": "floordiv",
    "%": "modulo",
    "**": "power",
    "<<": "shift_left",
    ">>": "shift_right",
    "/": "divide",
}


@dataclass(frozen=True)
class Term:
    """How a value is written, between which bounds it lies (of floats: nothing known), and how deep it nests."""

    source: str
    range: Range = ANY
    nesting: int = 0
    is_chain: bool = False  # of `a if b else c`, which another `else` may take in without parentheses


@dataclass
class Names:
    """What the code refers to: tables and functions handed in, and tables worked out from functions."""

    tables: list[Table] = field(default_factory=list)
    functions: list[Opaque] = field(default_factory=list)
    constants: dict[str, np.ndarray] = field(default_factory=dict)

    def of_table(self, table: Table) -> str:
        return f"t{_place(self.tables, table)}"

    def of_function(self, function: Opaque) -> str:
        return f"f{_place(self.functions, function)}"


def _place(pool: list, item: object) -> int:  # type: ignore[type-arg]
    for i, known in enumerate(pool):
        if known is item or known == item:
            return i
    pool.append(item)
    return len(pool) - 1


class Speller:
    """Writes expressions. `native`: for numba, where every number is an int64 and functions cannot be called."""

    def __init__(self, names: Names, native: bool, emit: Callable[[str], None] | None = None) -> None:
        self.names, self.native, self.emit = names, native, emit
        self._fresh = itertools.count()

    def spell(self, e: Expr, args: Sequence[Term]) -> Term:
        """`e` with `args[i]` for argument i; its value may lie outside int64 until it is settled."""
        term = self._spell(e, args)
        if term.nesting > DEEPEST:
            if self.emit is None:
                raise EngineError(f"{str(e)[:60]} ... nests too deep to be run one token at a time; use engine='eager'")
            name = f"u{next(self._fresh)}"
            self.emit(f"{name} = {term.source}")
            return Term(name, term.range)
        return term

    def settled(self, e: Expr, args: Sequence[Term]) -> Term:
        return self.settle(self.spell(e, args))

    def settle(self, term: Term) -> Term:
        """The value as an int64."""
        if fits(term.range):
            return term
        if self.native:
            return replace(term, range=ANY)
        t = f"w{next(self._fresh)}"
        source = f"({t} if {LOWEST} <= ({t} := {term.source}) <= {HIGHEST} else wrap({t}))"
        return Term(source, ANY, term.nesting + 2)

    def _spell(self, e: Expr, args: Sequence[Term]) -> Term:
        if e.op in ARGUMENTS:
            return args[e.payload]
        if e.op == "const":
            return Term(spell_number(e.payload), ANY if e.kind == "float" else of_number(e.payload), 1)
        if e.op == "ite":
            return self._choice(e, args)
        if e.op == "table":
            return self._look_up(e, args)
        if e.op == "opaque":
            return self._call(e, args)
        if len(e.args) == 1:
            return self._unary(e, args)
        return self._float_binary(e, args) if "float" in (e.kind, *(a.kind for a in e.args)) else self._binary(e, args)

    def _choice(self, e: Expr, args: Sequence[Term]) -> Term:
        condition, then, other = (self.spell(a, args) for a in e.args)
        text, depth = (other.source[1:-1], other.nesting - 1) if other.is_chain else (other.source, other.nesting)
        bounds = ANY if e.kind == "float" else hull(then.range, other.range)
        nesting = 1 + max(condition.nesting, then.nesting, depth)
        return Term(f"({then.source} if {condition.source} else {text})", bounds, nesting, is_chain=True)

    def _unary(self, e: Expr, args: Sequence[Term]) -> Term:
        operand = e.args[0]
        if operand.kind == "float":
            a = self.spell(operand, args)
            text = {"neg": "-{0}", "abs": "abs({0})", "not": "{0} == 0", "int": "cut({0})"}[e.op].format(a.source)
            return Term(f"({text})", ANY, a.nesting + 2)
        a = self.spell(operand, args) if e.op in ("neg", "invert") else self.settled(operand, args)
        if self.native and not fits(of_unary(e.op, a.range)):
            helper = {"neg": "negate", "abs": "absolute", "invert": "~"}[e.op]
            return Term(f"({helper}({a.source}))", ANY, a.nesting + 2)
        template = {"neg": "-{0}", "invert": "~{0}", "abs": "abs({0})", "not": "not {0}", "int": "int({0})"}[e.op]
        return Term(f"({template.format(a.source)})", of_unary(e.op, a.range), a.nesting + 2)

    def _binary(self, e: Expr, args: Sequence[Term]) -> Term:
        by = e.args[1].payload if e.args[1].op == "const" else None
        lazy = e.op in _RING or (e.op == "<<" and by is not None and 0 <= by < 64)
        a, b = ((self.spell if lazy else self.settled)(x, args) for x in e.args)
        bounds = of_binary(e.op, a.range, b.range)
        if lazy and max(-bounds[0], bounds[1]) >> 256:  # numbers that grow without end would grow slow
            a, b = self.settle(a), self.settle(b)
            bounds = of_binary(e.op, a.range, b.range)
        nesting = 1 + max(a.nesting, b.nesting)
        if self.native and not fits(bounds) and e.op in _HELPERS:
            return Term(f"{_HELPERS[e.op]}({a.source}, {b.source})", ANY, nesting)
        if self._is_plain(e.op, a.range, b.range, by):
            return Term(f"({a.source} {e.op} {b.source})", bounds, nesting)
        return Term(f"{_HELPERS[e.op]}({a.source}, {b.source})", bounds, nesting)

    def _is_plain(self, op: str, a: Range, b: Range, by: int | None) -> bool:
        """Whether the target's own operator has our answer for all numbers within these bounds."""
        if op in ("//", "%"):
            return b[0] > 0
        if op in ("<<", ">>"):
            return b[0] >= 0 and b[1] < 64
        if op == "**":
            return not self.native and by is not None and power_fits(a, by)
        return True

    def _float_binary(self, e: Expr, args: Sequence[Term]) -> Term:
        assert e.op not in BITWISE, "refused where it was recorded"
        a, b = (self._as_float(x, args) for x in e.args)
        nesting = 2 + max(a.nesting, b.nesting)
        if e.op == "**" and self.native:
            raise EngineError(f"{e}: powers of fractions are not exact in machine code; use engine='eager' or 'stream'")
        by = e.args[1].payload if e.args[1].op == "const" else 0
        if e.op in ("+", "-", "*", *COMPARISONS) or (e.op == "/" and by != 0):
            return Term(f"({a.source} {e.op} {b.source})", (0, 1) if e.op in COMPARISONS else ANY, nesting)
        return Term(f"float_{_HELPERS[e.op]}({a.source}, {b.source})", ANY, nesting)

    def _as_float(self, e: Expr, args: Sequence[Term]) -> Term:
        if e.op == "const":
            return Term(spell_number(float(e.payload)), ANY, 1)
        if e.kind == "float":
            return self.spell(e, args)
        a = self.settled(e, args)
        return Term(f"float({a.source})", ANY, a.nesting + 1)

    # --- tables and functions -----------------------------------------------------------------------------------------

    def _look_up(self, e: Expr, args: Sequence[Term]) -> Term:
        indices = [self.settled(a, args) for a in e.args]
        table: Table = e.payload
        bounds = of_table(table)
        sizes = table.values.shape if table.values is not None else (0,) * len(indices)
        tests, places = [], []
        for a, size in zip(indices, sizes, strict=True):
            inside = a.range[0] >= 0 and a.range[1] < size
            place = a.source if inside or a.source.isidentifier() else f"p{next(self._fresh)}"
            if not inside:
                named = a.source if place == a.source else f"({place} := {a.source})"
                if self.native and self.emit is not None and named != place:  # numba has no :=
                    self.emit(f"{place} = {a.source}")
                    named = place
                tests.append(f"(0 <= {named} < {size})")
            places.append(place)
        name = self.names.of_table(table)
        found = f"{name}[{', '.join(places)}]" if self.native else name + "".join(f"[{p}]" for p in places)
        found = f"np.int64({found})" if self.native else found
        nesting = 3 + max(a.nesting for a in indices)
        if not tests:
            return Term(found, bounds, nesting)
        every = " & ".join(tests)  # & and not `and`: each has to name its place
        return Term(f"({found} if {every} else 0)", hull(bounds, (0, 0)), nesting)

    def _call(self, e: Expr, args: Sequence[Term]) -> Term:
        if self.native:
            return self._tabulated(e, args)
        given = [self.spell(a, args) if a.kind == "float" else self.settled(a, args) for a in e.args]
        spelled = [f"bool({t.source})" if a.is_bool else t.source for a, t in zip(e.args, given, strict=True)]
        name = self.names.of_function(e.payload)
        bounds = (0, 1) if e.is_bool else ANY
        return Term(f"{name}({', '.join(spelled)})", bounds, 2 + max(t.nesting for t in given))

    def _tabulated(self, e: Expr, args: Sequence[Term]) -> Term:
        """A function that cannot be called from machine code, as the table of its values."""
        given = [self.settled(a, args) for a in e.args]
        ranges = [(0, 1) if a.is_bool else t.range for a, t in zip(e.args, given, strict=True)]
        if any(not a.is_whole for a in e.args) or prod(high - low + 1 for low, high in ranges) > MOST_VALUES:
            raise EngineError(
                f"{place_of(e.payload.function)} cannot be recorded as an expression (it indexes, hashes or converts "
                "its argument, or branches too often), and its argument may have too many values to try them all, so "
                "it cannot be compiled; write it with arithmetic and comparisons, or use engine='eager' or 'stream'"
            )
        values = np.empty([high - low + 1 for low, high in ranges], dtype=np.int64)
        for place in np.ndindex(values.shape):
            at = [low + i for i, (low, _) in zip(place, ranges, strict=True)]
            try:
                values[place] = e.payload(*(bool(v) if a.is_bool else v for v, a in zip(at, e.args, strict=True)))
            except FunctionError as error:
                raise EngineError(f"{error}; to be compiled it must have a value wherever it may be asked") from error
        name = f"k{len(self.names.constants)}"
        self.names.constants[name] = values
        places = [
            f"{t.source} - {low}" if low else f"int({t.source})" for t, (low, _) in zip(given, ranges, strict=True)
        ]
        source = f"{name}[{', '.join(places)}]"
        nesting = 3 + max(t.nesting for t in given)
        if e.is_bool:
            return Term(f"({source} != 0)", (0, 1), nesting)
        return Term(source, (int(values.min()), int(values.max())), nesting)
