"""A program one token at a time: a generated step function whose cost does not grow with the context."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import copy
from functools import lru_cache
from typing import Any

import numpy as np

from rasp.arithmetic import FLOAT, HIGHEST, LOWEST, WHOLE, constant, cut, mean, wrap
from rasp.engines.codegen import Code, generate_code, total_range
from rasp.engines.ranges import of_table
from rasp.engines.spelling import Speller, Term
from rasp.errors import EngineError, ProgramError
from rasp.graph import Count, Graph, Kqv
from rasp.rewrite import simplify
from rasp.scalar import Table
from rasp.sequences import whole_numbers

MAX_DISTINCT = 1024  # keys a general predicate may be asked about at each token


class PythonMemory:
    """Memories as dictionaries. A general predicate is asked about each distinct key seen so far."""

    native = False

    def ring(self, code: Code, name: str, source: str, default: int, offset: int) -> None:
        """A queue, which is no longer than what was seen so far."""
        code.setup.append(f"ring{name} = deque()")
        code.body.append(f"{name} = ring{name}.popleft() if i >= {offset} else {default}")
        code.handover.append(f"ring{name}.append({source})")

    def equality(self, code: Code, name: str, node: Count | Kqv, operands: list[Term], reduction: str) -> None:
        memory = f"m{name}"
        k, q, v = (term.source for term in operands)
        if node.keys > 1:
            code.body.append(f"k{name} = {k}")
            k = f"k{name}"
        code.setup += [f"{memory} = {{}}", f"{memory}_get = {memory}.get"]
        if reduction == "count":
            code.body.append(f"{memory}[{k}] = {memory}_get({k}, 0) + 1")
            code.body.append(f"{name} = {memory}_get({q}, 0)")
        elif reduction == "mean":
            total = Speller(code.names, native=False).settle(Term("s", total_range(operands[2].range))).source
            code.body += [
                f"s, c = {memory}_get({k}, (0, 0))",
                f"{memory}[{k}] = (s + {v}, c + 1)",
                f"s, c = {memory}_get({q}, (0, 0))",
                f"{name} = mean({total}, c) if c else {node.default}",
            ]
        else:
            better = ">" if reduction == "max" else "<"
            code.body += [
                f"p = {memory}_get({k})",
                f"if p is None or {v} {better} p:",
                f"    {memory}[{k}] = {v}",
                f"{name} = {memory}_get({q}, {node.default})",
            ]

    def scan(self, code: Code, name: str, node: Count | Kqv, operands: list[Term], operation: str) -> None:
        keys, queries = operands[: node.keys], operands[node.keys : len(node.inputs) - isinstance(node, Kqv)]
        v = operands[-1].source if isinstance(node, Kqv) else "1"
        seen = [Term(f"key[{i}]", key.range) for i, key in enumerate(keys)]
        condition = Speller(code.names, native=False).settled(node.function, [*seen, *queries]).source
        code.setup.append(f"m{name} = {{}}")
        code.body += [
            f"remember(m{name}, ({', '.join(key.source for key in keys)},), {v}, {operation!r})",
            f"found = [total for key, total in m{name}.items() if {condition}]",
            f"{name} = reduce_{node.reduction}(found, {node.default})",
        ]


def remember(memory: dict[Any, tuple[int, int, int, int]], key: Any, v: int, operation: str) -> None:
    """Add v to the totals (count, sum, max, min) of its key."""
    old = memory.get(key)
    if old is not None:
        memory[key] = (old[0] + 1, old[1] + v, max(old[2], v), min(old[3], v))
    elif len(memory) < MAX_DISTINCT:
        memory[key] = (1, v, v, v)
    else:
        raise EngineError(
            f"{operation} compares keys by more than equality and has seen over {MAX_DISTINCT} distinct ones: "
            "the cost of a token would grow with the context; run it with engine='eager'"
        )


def reduce_mean(found: list[tuple[int, int, int, int]]) -> int:
    count, total = (sum(t[i] for t in found) for i in range(2))
    return mean(wrap(total), count)


_RUNTIME: dict[str, Any] = {
    "deque": deque,
    "remember": remember,
    "reduce_count": lambda found, default: sum(t[0] for t in found),
    "reduce_mean": lambda found, default: reduce_mean(found) if found else default,
    "reduce_max": lambda found, default: max((t[2] for t in found), default=default),
    "reduce_min": lambda found, default: min((t[3] for t in found), default=default),
    "wrap": wrap,
    "cut": cut,
    "mean": mean,
    "floordiv": WHOLE["//"],
    "modulo": WHOLE["%"],
    "power": WHOLE["**"],
    "shift_left": WHOLE["<<"],
    "shift_right": WHOLE[">>"],
    "float_floordiv": FLOAT["//"],
    "float_modulo": FLOAT["%"],
    "float_power": FLOAT["**"],
    "float_divide": FLOAT["/"],
}


def stream_source(graph: Graph) -> tuple[str, Code]:
    """The generated program: a coroutine that is sent tokens and yields predictions."""
    code = generate_code(graph, PythonMemory())
    names = ", ".join(f"x{i}" for i in range(graph.arity))
    tables, functions = len(code.names.tables), len(code.names.functions)
    parameters = [*(f"t{i}" for i in range(tables)), *(f"f{i}" for i in range(functions))]
    inside = [f"{names} = yield out", *code.body, f"out = {code.output}", *code.handover, "i += 1"]
    lines = [
        f"def program({', '.join(parameters)}):",
        *(f"    {line}" for line in [*code.setup, "i = 0", "out = None", "while True:"]),
        *(f"        {line}" for line in inside),
    ]
    return "\n".join(lines) + "\n", code


class Stream:
    """A running program. `step(token)` takes the next token and gives the program's value there."""

    def __init__(self, graph: Graph, tables: list[np.ndarray] | None = None) -> None:
        self.source, code = stream_source(graph)
        self._tables, self._limits = code.names.tables, code.limits
        self._functions = [lru_cache(4096)(f) for f in code.names.functions]
        self._arguments = self._with_functions(tables)
        namespace = dict(_RUNTIME)
        exec(compile(self.source, "<rasp stream>", "exec"), namespace)
        self._program: Callable[..., Any] = namespace["program"]
        self.arity = graph.arity
        self.reset()

    def _with_functions(self, tables: list[np.ndarray] | None) -> list[Any]:
        return [values.tolist() for values in check_tables(self._tables, tables)] + self._functions

    def with_tables(self, tables: list[np.ndarray]) -> Stream:
        """The same program over other tables, from its beginning; nothing is generated again."""
        other = copy(self)
        other._arguments = self._with_functions(tables)
        other.reset()
        return other

    def reset(self) -> None:
        """Forget everything seen."""
        coroutine = self._program(*self._arguments)
        next(coroutine)
        self._send = coroutine.send

    def step(self, *tokens: int) -> int:
        """The program's value at the next position."""
        if len(tokens) != self.arity:
            raise EngineError(f"the program takes {self.arity} sequence(s), {len(tokens)} given")
        for i, limit in self._limits.items():
            if not 0 <= tokens[i] < limit:
                raise EngineError(f"token {tokens[i]} is outside 0..{limit - 1}, the range of the program's tables")
        for token in tokens:
            if type(token) is not int or not LOWEST <= token <= HIGHEST:
                return self._send_checked(tokens)
        return self._send(tokens[0] if self.arity == 1 else tokens)  # type: ignore[no-any-return]

    def _send_checked(self, tokens: Sequence[Any]) -> int:
        """Tokens of numpy's or of no type that a sequence holds."""
        try:
            plain = [constant(token, "a token") for token in tokens]
        except ProgramError as error:
            raise EngineError(str(error)) from None
        return self._send(plain[0] if self.arity == 1 else plain)  # type: ignore[no-any-return]

    def run(self, *sequences: Iterable[int]) -> np.ndarray:
        """The program's value at every position of whole sequences, continuing from what was seen before."""
        arrays = [whole_numbers(s) for s in sequences]
        check_sequences(arrays, self.arity, self._limits)
        lists = [a.tolist() for a in arrays]
        tokens = lists[0] if self.arity == 1 else zip(*lists, strict=True)
        with np.errstate(all="ignore"):  # for functions that are called
            return np.fromiter(map(self._send, tokens), dtype=np.int64, count=len(lists[0]))


def check_sequences(arrays: Sequence[np.ndarray], arity: int, limits: Mapping[int, int]) -> None:
    """Refuse sequences that are too few or differ in length, and tokens that the program's tables do not know."""
    if len(arrays) != arity:
        raise EngineError(f"the program takes {arity} sequence(s), {len(arrays)} given")
    if len({a.shape for a in arrays}) != 1:
        raise EngineError(f"the sequences differ in shape: {', '.join(str(a.shape) for a in arrays)}")
    for i, limit in limits.items():
        wrong = (arrays[i] < 0) | (arrays[i] >= limit)
        if wrong.any():
            token = arrays[i][wrong][0]
            raise EngineError(f"token {token} is outside 0..{limit - 1}, the range of the program's tables")


def check_tables(
    known: Sequence[Table], given: Sequence[np.ndarray] | None, rows: tuple[int, ...] = ()
) -> list[np.ndarray]:
    """The tables to run with: those of the traced program, or others of the same shape (one for each of `rows`)."""
    for table in known:
        if table.values is None:
            raise EngineError(f"{table.name} is an unknown function: a program that asks it can be proved, but not run")
    own = [np.asarray(t.values) for t in known]
    values = own if given is None else [np.asarray(v) for v in given]
    if len(values) != len(known):
        raise EngineError(f"the program has {len(known)} table(s), {len(values)} given")
    for table, traced, v in zip(known, own, values, strict=True):
        expected = (*rows, *traced.shape)
        if v.shape != expected:
            raise EngineError(f"the table {table.name} must be of shape {expected}, not {v.shape}")
        low, high = of_table(table)
        if v.size and (v.min() < low or v.max() > high):
            raise EngineError(f"the table {table.name} must hold numbers in {low}..{high}, as the traced one does")
    return values


def stream(graph: Graph) -> Stream:
    """A traced program, ready to take tokens one at a time."""
    return Stream(simplify(graph))
