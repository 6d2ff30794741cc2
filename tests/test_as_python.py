"""Machine code says what the Python that it is compiled from says."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import as_python
import pytest

PARTS = (as_python.arithmetic, as_python.machines, as_python.programs, as_python.models)


def differences(one: dict[str, Any], other: dict[str, Any]) -> list[str]:
    return [name for name in {**one, **other} if one.get(name) != other.get(name)]


@pytest.fixture(scope="module")
def uncompiled() -> dict[str, Any]:
    environment = {**os.environ, "NUMBA_DISABLE_JIT": "1", "PYTHONWARNINGS": "ignore"}  # numpy warns of overflows
    command = [sys.executable, str(Path(as_python.__file__))]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)  # type: ignore[no-any-return]


@pytest.mark.parametrize("part", PARTS, ids=lambda part: part.__name__)
def test_machine_code_is_what_it_was_compiled_from(part: Any, uncompiled: dict[str, Any]) -> None:
    compiled = json.loads(json.dumps(part()))
    assert compiled and differences(compiled, uncompiled[part.__name__]) == []


def test_a_difference_is_seen() -> None:
    assert differences({"a": [1], "b": 2}, {"a": [1], "b": 3}) == ["b"] and differences({"a": 1}, {}) == ["a"]
