"""A program compiled to machine code with numba, for one sequence or for many machines and tapes at once.

The generated module is a function of the graph alone: a machine's tables are arguments, so one compilation serves
every machine of the same size. It is written to a cache folder, where numba keeps the machine code beside it.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import sys
import tempfile
import threading
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from rasp.codegen import Code, EngineError, generate_code
from rasp.graph import Graph, Node
from rasp.rewrite import simplify
from rasp.stream import check_sequences, check_tables

_GENERATED_BY = 6  # raise when the generated code changes in a way its text does not show


class NumbaMemory:
    """Memories as hash tables passed in from outside and emptied at the start of each sequence."""

    index = "array"

    def __init__(self) -> None:
        self.rows: list[int] = []  # of each memory's table

    def ring(self, code: Code, name: str, source: str, default: int, offset: int) -> None:
        """An array no longer than the sequence: what is never written keeps the default."""
        code.setup.append(f"size{name} = min({offset}, len(s0) + 1)")
        code.setup.append(f"ring{name} = np.full(size{name}, {default}, np.int64)")
        code.body.append(f"{name} = ring{name}[i % size{name}]")
        code.handover.append(f"ring{name}[i % size{name}] = {source}")

    def equality(self, code: Code, name: str, k: str, q: str, v: str, default: int, reduction: str) -> None:
        memory = f"m{len(code.memories)}"
        code.memories.append(memory)
        self.rows.append(3 if reduction == "mean" else 2)
        code.setup.append(f"clear({memory})")
        value = "" if reduction == "count" else f", {v}"
        get = "get_mean" if reduction == "mean" else "get_total"
        code.body += [f"put_{reduction}({memory}, {k}{value})", f"{name} = {get}({memory}, {q}, {default})"]

    def scan(self, code: Code, name: str, node: Node, operands: list[str], operation: str) -> None:
        raise EngineError(
            f"{operation} compares keys by more than equality, which the jit engine cannot do in constant time; "
            "run it with engine='eager' or 'stream'"
        )


_HEADER = """\
import numba
import numpy as np
from rasp.hashtable import clear, get_mean, get_total, put_count, put_max, put_mean, put_min

"""

_LOOP = """
@numba.njit(cache=True, nogil=True)
def {name}({arguments}):
{setup}
    for i in range({count}):
{body}
{after}
    return {result}
"""

_BATCH = """
@numba.njit(cache=True, nogil=True)
def {name}_batch({arguments}):
    for b in range(x0.shape[0]):
        {call}
"""


def jit_source(graph: Graph) -> tuple[str, Code, list[int]]:
    """The generated module: `predict`, `first_error` and `generate`, each also over a batch; and its table widths."""
    memory = NumbaMemory()
    code = generate_code(graph, memory)
    if code.functions:
        name = getattr(code.functions[0], "__name__", repr(code.functions[0]))
        raise EngineError(
            f"the function {name} cannot be recorded as an expression (it indexes, hashes or converts its argument, "
            "or branches too often), so it cannot be compiled; write it with arithmetic and comparisons, or use "
            "engine='eager' or 'stream'"
        )
    parts = [_HEADER, _predict(graph, code)]
    if graph.arity == 1:
        parts += [_first_error(code), _generate(code)]
    return "\n".join(parts), code, memory.rows


def _loop(code: Code, name: str, arguments: list[str], count: str, after: list[str], result: str, arity: int) -> str:
    read = [f"x{k} = np.int64(s{k}[i])" for k in range(arity)]
    return _LOOP.format(
        name=name,
        arguments=", ".join([*arguments, *_shared(code)]),
        setup="\n".join(f"    {line}" for line in code.setup) or "    pass",
        count=count,
        body="\n".join(f"        {line}" for line in [*read, *code.body]),
        after="\n".join(f"        {line}" for line in [f"out = {code.output}", *after, *code.handover]),
        result=result,
    )


def _shared(code: Code) -> list[str]:
    return [*(f"t{i}" for i in range(len(code.tables))), *code.memories]


def _batch(code: Code, name: str, arguments: list[str], rows: list[str], extra: list[str], into: str = "") -> str:
    one_each = [*rows, *extra, *(f"t{i}[b]" for i in range(len(code.tables))), *code.memories]
    call = f"{into}{name}({', '.join(one_each)})"
    return _BATCH.format(name=name, arguments=", ".join([*arguments, *_shared(code)]), call=call)


def _predict(graph: Graph, code: Code) -> str:
    inputs = [f"s{k}" for k in range(graph.arity)]
    one = _loop(code, "predict", ["out_", *inputs], "len(s0)", ["out_[i] = out"], "0", graph.arity)
    xs = [f"x{k}" for k in range(graph.arity)]
    return one + _batch(code, "predict", ["out_", *xs], ["out_[b]", *(f"{x}[b]" for x in xs)], [])


def _first_error(code: Code) -> str:
    check = ["if i >= start and out != s0[i + 1]:", "    return i"]
    one = _loop(code, "first_error", ["s0", "start"], "len(s0) - 1", check, "-1", 1)
    return one + _batch(code, "first_error", ["found", "x0", "start"], ["x0[b]"], ["start"], into="found[b] = ")


def _generate(code: Code) -> str:
    write = ["if i + 1 >= start:", "    s0[i + 1] = out"]
    if 0 in code.limits:  # what was written is read back as a token
        write += [f"    if out < 0 or out >= {code.limits[0]}:", "        return i + 1"]
    one = _loop(code, "generate", ["s0", "start"], "len(s0) - 1", write, "0", 1)
    return one + _batch(code, "generate", ["x0", "start"], ["x0[b]"], ["start"])


# --- loading ----------------------------------------------------------------------------------------------------------


@lru_cache(maxsize=1)
def cache_folder() -> Path:
    """Where generated code is kept: $TURING_PROGRAMS_CACHE, else the user's cache folder, else a temporary one."""
    given = os.environ.get("TURING_PROGRAMS_CACHE")
    try:
        home = Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser()
        base = Path(given) if given else home / "turing-programs"
        base.mkdir(parents=True, exist_ok=True)
        if os.access(base, os.W_OK):
            return base
    except (OSError, RuntimeError):  # not ours to write; or there is no home
        pass
    return Path(tempfile.mkdtemp(prefix="turing-programs-"))  # our own: what is imported must not be writable by others


@lru_cache(maxsize=256)
def load_module(source: str) -> ModuleType:
    """Import generated code from the cache folder, writing it there first."""
    digest = hashlib.sha256(f"{_GENERATED_BY}\n{source}".encode()).hexdigest()[:16]
    path = cache_folder() / f"rasp_jit_{digest}.py"
    if not path.exists() or path.read_text() != source:
        temporary = path.with_suffix(f".{os.getpid()}.{threading.get_ident()}.tmp")  # others may be doing the same
        temporary.write_text(source)
        temporary.replace(path)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module  # numba looks the module up by name when it loads cached machine code
    spec.loader.exec_module(module)
    return module


class Kernel:
    """A compiled program. Tables default to those of the traced machine; batches bring one of each per row."""

    def __init__(self, graph: Graph) -> None:
        self.source, code, self._rows = jit_source(graph)
        self.module = load_module(self.source)
        self.arity = graph.arity
        self._known = code.tables
        self._limits = code.limits
        self._own = threading.local()  # what a call writes to: threads need one each
        self._tables(None)

    def predict(self, *sequences: Any, tables: Sequence[np.ndarray] | None = None) -> np.ndarray:
        """The program's value at every position."""
        xs = [np.ascontiguousarray(s, dtype=np.int64) for s in sequences]
        check_sequences(xs, self.arity, self._limits)
        out = np.empty(len(xs[0]), dtype=np.int64)
        self.module.predict(out, *xs, *self._tables(tables), *self._memory(len(out)))
        return out

    def predict_batch(self, tokens: np.ndarray, tables: Sequence[np.ndarray]) -> np.ndarray:
        """The program's value at every position of every row; `tables[k][b]` is machine b's k-th table."""
        tokens, tables = self._checked_batch(tokens, tables)
        out = np.empty(tokens.shape, dtype=np.int64)
        self.module.predict_batch(out, tokens, *tables, *self._memory(tokens.shape[1]))
        return out

    def first_errors(self, tokens: np.ndarray, tables: Sequence[np.ndarray], start: int) -> np.ndarray:
        """For each row, the first position from `start` on whose prediction is not the next token; -1 if none."""
        tokens, tables = self._checked_batch(tokens, tables)
        found = np.empty(len(tokens), dtype=np.int64)
        self.module.first_error_batch(found, tokens, start, *tables, *self._memory(tokens.shape[1]))
        return found

    def generate(self, prompt: Any, count: int, tables: Sequence[np.ndarray] | None = None) -> np.ndarray:
        """The prompt followed by `count` predicted tokens."""
        prompt = np.asarray(prompt, dtype=np.int64)
        check_sequences([prompt], self.arity, self._limits)
        if not len(prompt):
            raise EngineError("there is no token to predict from: the prompt is empty")
        x = np.concatenate([prompt, np.zeros(count, dtype=np.int64)])
        stopped = self.module.generate(x, len(prompt), *self._tables(tables), *self._memory(len(x)))
        if stopped:
            known = f"0..{self._limits[0] - 1}, the range of its tables"
            raise EngineError(f"the program's value {x[stopped]} at position {stopped - 1} is outside {known}")
        return x

    def _checked_batch(
        self, tokens: np.ndarray, tables: Sequence[np.ndarray]
    ) -> tuple[np.ndarray, Sequence[np.ndarray]]:
        """Machine code does not check indices: what is outside would read foreign memory."""
        tokens = np.asarray(tokens)
        if tokens.ndim != 2 or not np.issubdtype(tokens.dtype, np.integer):
            raise EngineError(f"a batch is rows of whole numbers, not {tokens.dtype} of shape {tokens.shape}")
        check_sequences([tokens], self.arity, self._limits)
        return tokens, check_tables(self._known, tables, rows=(len(tokens),))

    def _tables(self, given: Sequence[np.ndarray] | None) -> list[np.ndarray]:
        return check_tables(self._known, given)

    def _memory(self, tokens: int) -> list[np.ndarray]:
        """Tables of the right size (a larger one would cost more to empty), kept for the next call."""
        from rasp.hashtable import new_table

        if getattr(self._own, "tokens", None) != tokens:
            self._own.tokens, self._own.pool = tokens, [new_table(tokens, rows) for rows in self._rows]
        return self._own.pool  # type: ignore[no-any-return]


def jit(graph: Graph) -> Kernel:
    """A traced program, compiled."""
    return Kernel(simplify(graph))


@lru_cache(maxsize=64)
def turing_kernel(symbols: int, states: int, n: int = 1, packing: str = "paper") -> Kernel:
    """The paper's program for every machine of this size: bring the machine's tables with each call."""
    from rasp.engines import turing_graph

    return Kernel(turing_graph(symbols, states, n, packing))
