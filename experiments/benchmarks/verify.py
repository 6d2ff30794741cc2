"""How many machines per minute `verify` samples, runs, compares and judges; on one core, two processes, and Dask."""

from __future__ import annotations

import time
from functools import partial
from typing import Any

from experiments.benchmarks.rows import Row
from proofs_check.sampled.pool import DaskPool, InProcess, LocalPool, Pool
from proofs_check.sampled.report import CHUNK, Sweep
from proofs_check.sampled.sweep import run_chunk, verify
from rasp.machines.simulate import batch_traces, random_tables, random_tapes

ASKED = 1_000_000  # machines per minute and core


def bench_verify(machines: int = 1_000_000, workers: int = 2, dask: bool = True) -> list[Row]:
    """End to end: 12 x 16 machines, 10 cells, 32 steps. Pools are measured warm; their start is a row of its own."""
    one = _per_minute(machines, InProcess())
    rows = [Row("verify, 1 core", one, "machines/min", f"asked: {ASKED:,}", one / ASKED)]
    direct = _machines_only(machines // 10)
    rows.append(Row("sampling and running machines only", direct, "machines/min", "verify, 1 core", direct / one))
    started = time.perf_counter()
    with LocalPool(workers) as pool:
        verify(workers * 3 * CHUNK, pool=pool)
        rows.append(Row("start of the processes", time.perf_counter() - started, "s"))
        local = _per_minute(machines * workers, pool)
    rows.append(Row(f"verify, {workers} processes", local, "machines/min", "verify, 1 core", local / one))
    if dask:
        cluster = _on_dask(machines * workers, workers)
        name = f"verify, Dask with {workers} workers"
        rows.append(Row(name, cluster, "machines/min", f"verify, {workers} processes", cluster / local))
    return rows


def _per_minute(machines: int, pool: Pool) -> float:
    verify(1000)  # compiled
    started = time.perf_counter()
    for _ in pool.map(_work(machines), range(-(-machines // CHUNK))):
        pass
    return machines / (time.perf_counter() - started) * 60


def _work(machines: int) -> Any:
    return partial(run_chunk, Sweep(machines), "jit", None)


def _machines_only(machines: int) -> float:
    started = time.perf_counter()
    for first in range(0, machines, 256):
        batch_traces(*random_tables(256, first=first), random_tapes(256, first=first), 32)
    return machines / (time.perf_counter() - started) * 60


def _on_dask(machines: int, workers: int) -> float:
    from distributed import LocalCluster

    with LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address=None) as cluster:
        pool = DaskPool(cluster.scheduler_address)
        with pool:
            for _ in pool.map(_work(workers * 3 * CHUNK), range(workers * 3)):
                pass
            return _per_minute(machines, pool)
