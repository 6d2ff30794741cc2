"""What a person wrote in a file of their own: FILE.py:NAME or MODULE:NAME, loaded once, with errors in a sentence."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any


def is_import(name: str) -> bool:
    """Whether this names something in a file or module, rather than a machine such as random:12x16:0."""
    source, mark, attribute = name.rpartition(":")
    named = attribute.isidentifier() and (source.endswith(".py") or all(p.isidentifier() for p in source.split(".")))
    return bool(mark) and named and source != "random"


def imported(name: str, what: str = "function") -> Any:
    """The object that FILE.py:NAME or MODULE:NAME stands for."""
    source, _, attribute = name.rpartition(":")
    if not source or not attribute:
        raise ValueError(f"{name!r} is not FILE.py:NAME or MODULE:NAME; give both parts, such as my.py:{what}")
    with own_errors(f"{source} cannot be loaded"):
        module = _load_file(str(Path(source).resolve())) if source.endswith(".py") else _load_module(source)
    if not hasattr(module, attribute):
        known = [key for key, value in vars(module).items() if callable(value) and not key.startswith("_")]
        own = [key for key in known if getattr(vars(module)[key], "__module__", None) == module.__name__]
        there = f"; there are {', '.join(own)}" if own else ""
        raise ValueError(f"{source} has no {what} {attribute!r}{there}")
    found = getattr(module, attribute)
    if not callable(found):
        raise ValueError(f"{attribute} in {source} is no {what} but {type(found).__name__}; name a {what}")
    return found


@contextmanager
def own_errors(doing: str) -> Iterator[None]:
    """Whatever a person's own code does wrong, as one sentence."""
    try:
        yield
    except (ValueError, OverflowError, OSError):
        raise
    except (Exception, SystemExit) as error:
        where = f" (line {line})" if (line := _line_of(error)) else ""
        raise ValueError(f"{doing}: {type(error).__name__}: {error}{where}") from error


def _line_of(error: BaseException) -> int | None:
    if isinstance(error, SyntaxError):
        return None  # its own message names the line
    step = error.__traceback__
    while step is not None and step.tb_next is not None:
        step = step.tb_next
    return step.tb_lineno if step is not None else None


@cache
def _load_file(path: str) -> ModuleType:
    if not Path(path).is_file():
        raise ValueError(f"there is no file {path!r}")
    name = Path(path).stem
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ValueError(f"{path!r} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    before = sys.modules.get(name)
    sys.modules[name] = module  # dataclasses look their module up while it is loaded
    try:
        spec.loader.exec_module(module)
    finally:
        if before is not None:
            sys.modules[name] = before
    return module


def _load_module(name: str) -> ModuleType:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        raise ValueError(f"there is no module {name!r} ({error}); a file is named {name}.py:NAME") from None
