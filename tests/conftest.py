"""What all tests share: Hypothesis draws the same examples in every run, and machine code is cached in one place."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from browsing import browser, watched  # noqa: F401  (fixtures of all tests of pages)
from hypothesis import HealthCheck, settings

# Two workers share two cores: more threads, here and in the processes that tests start, would wait for each other.
for _variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_variable, "1")

settings.register_profile(
    "fixed",
    derandomize=True,
    deadline=None,
    database=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much],
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "fixed"))


def pytest_collection_finish() -> None:
    """The million objects of imported libraries stay to the end; the garbage collector need not look at them again."""
    gc.collect()
    gc.freeze()


@pytest.fixture
def fresh_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty folder for generated machine code."""
    from rasp.engines.jit import cache_folder, load_module

    monkeypatch.setenv("TURING_PROGRAMS_CACHE", str(tmp_path / "kernels"))
    for known in (cache_folder, load_module):
        known.cache_clear()
    yield tmp_path / "kernels"
    for known in (cache_folder, load_module):
        known.cache_clear()
