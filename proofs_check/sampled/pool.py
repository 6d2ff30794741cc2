"""Where chunks are computed: in this process, in a pool of processes, or on a Dask cluster.

Each pool is a context manager whose `map(function, items)` yields (item, result) pairs as they are finished, in any
order. Losing a worker loses nothing: what it was computing is computed again.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from functools import cache
from itertools import islice
from multiprocessing import parent_process
from multiprocessing.context import SpawnContext, SpawnProcess
from types import ModuleType
from typing import Any, Protocol

ItemFunction = Callable[[int], Any]
MAX_LOSSES = 3  # so often in a row may workers die before anything is finished


class PoolError(ConnectionError):
    """Workers that cannot be reached, or that keep dying."""


class Pool(Protocol):
    @property
    def workers(self) -> int: ...
    def map(self, function: ItemFunction, items: Iterable[int]) -> Iterator[tuple[int, Any]]: ...
    def __enter__(self) -> Pool: ...
    def __exit__(self, *error: object) -> None: ...


def open_pool(workers: int, dask: str | None = None) -> Pool:
    if dask is not None:
        return DaskPool(dask)
    return InProcess() if workers == 1 else LocalPool(workers)


def available_cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class InProcess:
    workers = 1

    def map(self, function: ItemFunction, items: Iterable[int]) -> Iterator[tuple[int, Any]]:
        for item in items:
            yield item, function(item)

    def __enter__(self) -> InProcess:
        return self

    def __exit__(self, *error: object) -> None:
        pass


# --- local processes --------------------------------------------------------------------------------------------------


class LocalPool:
    """Processes started fresh: a fork of a process that has run numba, torch or JAX threads may hang."""

    def __init__(self, workers: int) -> None:
        self.workers = workers
        self._executor = self._start()

    def _start(self) -> ProcessPoolExecutor:
        return ProcessPoolExecutor(self.workers, mp_context=_Spawn(), initializer=_prepare_worker)

    def map(self, function: ItemFunction, items: Iterable[int]) -> Iterator[tuple[int, Any]]:
        waiting, losses = dict.fromkeys(items), 0
        while waiting:
            finished = 0
            try:
                for item, result in self._map_once(function, list(waiting)):
                    del waiting[item]
                    finished += 1
                    yield item, result
            except BrokenProcessPool:
                losses = 1 if finished else losses + 1
                if losses >= MAX_LOSSES:
                    raise PoolError(
                        f"worker processes died {losses} times in a row before finishing anything: is there enough "
                        "memory? Try fewer workers"
                    ) from None
                self._executor.shutdown(wait=False, cancel_futures=True)
                self._executor = self._start()

    def _map_once(self, function: ItemFunction, items: list[int]) -> Iterator[tuple[int, Any]]:
        """Keeps a few chunks per worker in the queue; the rest wait here, so that little is lost when stopped."""
        rest = iter(items)
        running: dict[Future[Any], int] = {}
        try:
            while True:
                for item in islice(rest, 3 * self.workers - len(running)):
                    running[self._executor.submit(function, item)] = item
                if not running:
                    return
                for future in wait(running, return_when=FIRST_COMPLETED).done:
                    yield running.pop(future), future.result()
        finally:
            for future in running:
                future.cancel()

    def __enter__(self) -> LocalPool:
        return self

    def __exit__(self, *error: object) -> None:
        self._executor.shutdown(wait=error[0] is None, cancel_futures=True)


class _FreshProcess(SpawnProcess):
    """A process that does not run the caller's script again: no chunk needs it, and it may be typed or piped in."""

    @staticmethod
    def _Popen(process_obj: Any) -> Any:
        script = sys.modules["__main__"]
        sys.modules["__main__"] = ModuleType("__main__")
        try:
            return SpawnProcess._Popen(process_obj)  # type: ignore[attr-defined]
        finally:
            sys.modules["__main__"] = script


class _Spawn(SpawnContext):
    Process = _FreshProcess


def _prepare_worker() -> None:
    """Ctrl-C is the parent's to handle; and a worker whose parent was killed must not stay behind."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_die_with_parent, daemon=True).start()


def _die_with_parent() -> None:
    parent = parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


# --- Dask -------------------------------------------------------------------------------------------------------------


MOST_IN_A_TASK = 16
M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3  # of glibc's malloc.h
LARGEST_KEPT = 32 << 20  # bytes: what glibc comes to by itself where nobody sets either


@cache
def keep_freed_memory() -> None:
    """Let this process use the memory of freed arrays again, as it would if Dask had not told it to give all back.

    Dask starts workers with MALLOC_TRIM_THRESHOLD_=65536. Then every array of a chunk is mapped anew and each of its
    pages is a fault: 1.6 times the processor time of a chunk. Elsewhere than on glibc nothing is to be done.
    """
    with contextlib.suppress(OSError, AttributeError, TypeError):
        library = ctypes.CDLL(None)
        library.mallopt(M_MMAP_THRESHOLD, LARGEST_KEPT)
        library.mallopt(M_TRIM_THRESHOLD, 2 * LARGEST_KEPT)


def _each(function: ItemFunction, items: list[int]) -> list[tuple[int, Any]]:
    keep_freed_memory()
    return [(item, function(item)) for item in items]


class DaskPool:
    """The workers of a running Dask cluster; the scheduler gives the work of a lost worker to another."""

    def __init__(self, address: str, timeout: float = 10) -> None:
        from distributed import Client

        try:
            self._client = Client(address, timeout=timeout, set_as_default=False)
            self._client.wait_for_workers(1, timeout=timeout)
            self.workers = sum(self._client.nthreads().values())
        except (OSError, ValueError, TypeError) as error:  # a timeout is an OSError too
            with contextlib.suppress(AttributeError):
                self._client.close()
            raise PoolError(
                f"no Dask scheduler with a worker answers at {address!r} ({error or 'timed out'}): start one with "
                "`dask scheduler` and `dask worker ADDRESS`, or leave out --dask"
            ) from None

    def map(self, function: ItemFunction, items: Iterable[int]) -> Iterator[tuple[int, Any]]:
        from distributed import as_completed

        waiting = list(items)
        size = max(1, min(MOST_IN_A_TASK, len(waiting) // (8 * self.workers)))  # a task costs Dask some 30 ms
        rest = iter([waiting[i : i + size] for i in range(0, len(waiting), size)])
        completed = as_completed(loop=self._client.loop)

        def submit(count: int) -> None:
            for group in islice(rest, count):
                completed.add(self._client.submit(_each, function, group, pure=False, retries=MAX_LOSSES))

        submit(4 * self.workers)
        for future in completed:
            submit(1)
            yield from self._result(future)

    def _result(self, future: Any) -> Any:
        from distributed import KilledWorker

        try:
            return future.result()
        except KilledWorker as error:
            raise PoolError(f"a chunk was lost with its Dask worker too often ({error})") from None

    def __enter__(self) -> DaskPool:
        return self

    def __exit__(self, *error: object) -> None:
        self._client.close()
