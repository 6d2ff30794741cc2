"""A program compiled to machine code with numba, for one sequence or for many machines and tapes at once.

The generated module is a function of the graph alone: a machine's tables are arguments, so one compilation serves
every machine of the same size. It is written to a cache folder, where numba keeps the machine code beside it.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import os
import sys
import tempfile
import threading
from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from rasp.engines.codegen import Code, generate_code
from rasp.engines.spelling import Term
from rasp.engines.stream import check_sequences, check_tables
from rasp.errors import EngineError
from rasp.graph import Count, Graph, Kqv
from rasp.rewrite import simplify
from rasp.sequences import whole_numbers

NewTable = Callable[[int], Any]  # a memory for so many tokens


class NumbaMemory:
    """Memories as hash tables passed in from outside and emptied at the start of each sequence."""

    native = True

    def __init__(self) -> None:
        self.tables: list[NewTable] = []  # of each memory: its table for so many tokens

    def ring(self, code: Code, name: str, source: str, default: int, offset: int) -> None:
        """An array no longer than the sequence: what is never written keeps the default."""
        code.setup.append(f"size{name} = min({offset}, len(s0) + 1)")
        code.setup.append(f"ring{name} = np.full(size{name}, {default}, np.int64)")
        code.body.append(f"{name} = ring{name}[i % size{name}]")
        code.handover.append(f"ring{name}[i % size{name}] = {source}")

    def equality(self, code: Code, name: str, node: Count | Kqv, operands: list[Term], reduction: str) -> None:
        memory, size = f"m{len(code.memories)}", node.keys
        kind = "tuple_" if size > 1 else ""
        k, q, v = (term.source for term in operands)
        code.memories.append(memory)
        self.tables.append(partial(_new_table, size=size, reduction=reduction))
        code.setup.append(f"clear_tuples({memory})" if size > 1 else f"clear({memory})")
        value = "" if reduction == "count" else f", {v}"
        get = "mean" if reduction == "mean" else "total"
        code.body.append(f"put_{kind}{reduction}({memory}, {k}{value})")
        code.body.append(f"{name} = get_{kind}{get}({memory}, {q}, {node.default})")

    def scan(self, code: Code, name: str, node: Count | Kqv, operands: list[Term], operation: str) -> None:
        raise EngineError(
            f"{operation} compares keys by more than equality, which the jit engine cannot do in constant time; "
            "run it with engine='eager' or 'stream'"
        )


def _new_table(tokens: int, size: int, reduction: str) -> Any:
    """An empty memory: keys of `size` numbers."""
    from rasp.engines.hashtable import new_table
    from rasp.engines.tupletable import new_tuple_table

    return new_tuple_table(tokens, size) if size > 1 else new_table(tokens, 3 if reduction == "mean" else 2)


_HEADER = """\
import numpy as np
from rasp.engines.hashtable import clear, get_mean, get_total, put_count, put_max, put_mean, put_min
from rasp.engines.native import (
    LOWEST, absolute, add, cut, float_divide, float_floordiv, float_modulo, floordiv, mean, modulo, multiply, negate,
    power, shift_left, shift_right, subtract
)
from rasp.engines.tupletable import (
    clear_tuples, get_tuple_mean, get_tuple_total, put_tuple_count, put_tuple_max, put_tuple_mean, put_tuple_min
)
from rasp.machine_code import compiled

"""

_LOOP = """
@compiled
def {name}({arguments}):
{setup}
    for i in range({count}):
{body}
{after}
    return {result}
"""

_BATCH = """
@compiled
def {name}_batch({arguments}):
    for b in range(x0.shape[0]):
        {call}
"""


def jit_source(graph: Graph) -> tuple[str, Code, list[NewTable]]:
    """The generated module: `predict`, `first_error` and `generate`, each also over a batch; and its memories."""
    memory = NumbaMemory()
    code = generate_code(graph, memory)
    constants = [f"{name} = np.array({v.tolist()}, dtype=np.int64)\n" for name, v in code.names.constants.items()]
    parts = [_HEADER, *constants, _predict(graph, code)]
    if graph.arity == 1:
        parts += [_first_error(code), _generate(code)]
    source = "\n".join(parts).replace(str(-(2**63)), "LOWEST")  # which numba would take for a uint64
    return source, code, memory.tables


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
    return [*(f"t{i}" for i in range(len(code.names.tables))), *code.memories]


def _batch(code: Code, name: str, arguments: list[str], rows: list[str], extra: list[str], into: str = "") -> str:
    one_each = [*rows, *extra, *(f"t{i}[b]" for i in range(len(code.names.tables))), *code.memories]
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
    digest = hashlib.sha256(f"{_called_code()}\n{source}".encode()).hexdigest()[:16]
    path = cache_folder() / f"rasp_jit_{digest}.py"
    try:
        if not path.exists() or path.read_bytes() != source.encode():
            _write(path, source)
    except OSError:  # a full disk, say: run it all the same, compiled anew each time
        return _module(path.stem, source)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module  # numba looks the module up by name when it loads cached machine code
    spec.loader.exec_module(module)
    return module


def _write(path: Path, source: str) -> None:
    temporary = path.with_suffix(f".{os.getpid()}.{threading.get_ident()}.tmp")  # others may be doing the same
    try:
        temporary.write_bytes(source.encode())
        temporary.replace(path)
    except OSError:
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise


def _module(name: str, source: str) -> ModuleType:
    module = sys.modules[name] = ModuleType(name)
    exec(compile(source, f"<{name}>", "exec"), module.__dict__)
    return module


@lru_cache(maxsize=1)
def _called_code() -> str:
    """What stands for the functions that generated code calls: their machine code becomes part of it."""
    folder = Path(__file__).parent
    modules = ("hashtable", "native", "tupletable")
    return "".join(hashlib.sha256((folder / f"{name}.py").read_bytes()).hexdigest() for name in modules)


class Kernel:
    """A compiled program. Tables default to those of the traced machine; batches bring one of each per row."""

    def __init__(self, graph: Graph) -> None:
        self.source, code, self._new_tables = jit_source(graph)
        self.module = load_module(self.source)
        self.arity = graph.arity
        self._known = code.names.tables
        self._limits = code.limits
        self._own = threading.local()  # what a call writes to: threads need one each
        self._tables(None)

    def predict(self, *sequences: Any, tables: Sequence[np.ndarray] | None = None) -> np.ndarray:
        """The program's value at every position."""
        xs = [np.ascontiguousarray(whole_numbers(s)) for s in sequences]
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
        prompt = whole_numbers(prompt)
        check_sequences([prompt], self.arity, self._limits)
        if not len(prompt):
            raise EngineError("there is no token to predict from: the prompt is empty")
        x = np.concatenate([prompt, np.zeros(count, dtype=np.int64)])
        stopped = self.module.generate(x, len(prompt), *self._tables(tables), *self._memory(len(x)))
        if stopped:
            known = f"0..{self._limits[0] - 1}, the range of its tables"
            raise EngineError(f"the program's value {x[stopped]} at position {stopped - 1} is outside {known}")
        return x

    def generate_batch(self, prompts: np.ndarray, count: int, tables: Sequence[np.ndarray]) -> np.ndarray:
        """Each row of prompts followed by `count` predicted tokens."""
        prompts, tables = self._checked_batch(prompts, tables)
        if not prompts.shape[1]:
            raise EngineError("there is no token to predict from: the prompts are empty")
        x = np.concatenate([prompts, np.zeros((len(prompts), count), dtype=np.int64)], axis=1)
        self.module.generate_batch(x, prompts.shape[1], *tables, *self._memory(x.shape[1]))
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
        if getattr(self._own, "tokens", None) != tokens:
            self._own.tokens, self._own.pool = tokens, [new(tokens) for new in self._new_tables]
        return self._own.pool  # type: ignore[no-any-return]


def jit(graph: Graph) -> Kernel:
    """A traced program, compiled."""
    return Kernel(simplify(graph))
