"""Threads for compiled kernels, which release the GIL, and how many of them linear algebra takes."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from functools import lru_cache
from typing import Any

from bench_mtl.checks import whole_number

#: Entries below which threads cost more than they save.
_WORTH_THREADS = 300_000

#: Numbers in the data below which linear algebra takes one thread: with two of them OpenBLAS takes two to ten times as long on 150,000, and
#: gains nothing up to 3 million.
_WORTH_BLAS_THREADS = 4_000_000

_blas_lock = threading.Lock()
_blas: dict[str, Any] = {"inside": 0, "limits": None}

_pool: ThreadPoolExecutor | None = None  # made at the first use; threads that wait cost nothing


def useful_threads(threads: Any, entries: int) -> int:
    """How many threads to use on so many entries.

    Parameters
    ----------
    threads : at most so many; None for the processors this process may use, or OMP_NUM_THREADS where that is set and smaller

    Raises
    ------
    InputError : neither None nor a whole number of at least 1.
    """
    if threads is not None:
        threads = whole_number("threads", threads, minimum=1)
    if entries < _WORTH_THREADS:
        return 1
    allowed = _processors()
    if threads is None:
        first = os.environ.get("OMP_NUM_THREADS", "").split(",")[0].strip()
        allowed = min(allowed, max(1, int(first))) if first.isdecimal() else allowed
    return min(allowed if threads is None else min(threads, allowed), 2 * entries // _WORTH_THREADS)


def start_together(work: Callable[[], None], helpers: int) -> None:
    """Run work() in so many other threads, soon, or in fewer where there are no more to be had; nobody waits for it."""
    with suppress(RuntimeError):  # "can't start new thread", or the interpreter is shutting down
        for _ in range(helpers):
            _shared_pool().submit(work)


def run_together(calls: Sequence[Callable[[], None]]) -> None:
    """Run all calls, the first of them in this thread; ends when all have ended, also where one fails."""
    others: list[Future[None]] = []
    left = list(calls[1:])
    with suppress(RuntimeError):
        while left:
            others.append(_shared_pool().submit(left[0]))
            left.pop(0)
    try:
        for call in (*calls[:1], *left):
            call()
    finally:
        wait(others)
    for other in others:
        other.result()


def fitting_blas_threads(entries: int) -> AbstractContextManager[None]:
    """In which linear algebra on data of so many numbers takes one thread, or where they are many those that it would take anyway."""
    return one_blas_thread() if entries < _WORTH_BLAS_THREADS else nullcontext()


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Holds for the process while at least one of its threads is inside; then what was set before holds again."""
    with _blas_lock:
        if _blas["inside"] == 0:
            _blas["limits"] = _controller().limit(limits=1)
        _blas["inside"] += 1
    try:
        yield
    finally:
        with _blas_lock:
            _blas["inside"] -= 1
            if _blas["inside"] == 0:
                _blas["limits"].restore_original_limits()


@lru_cache(maxsize=1)
def _controller() -> Any:
    """Of the libraries that are loaded: looking for them takes milliseconds."""
    import scipy.linalg  # noqa: F401 - has a library of its own
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


def _shared_pool() -> ThreadPoolExecutor:
    global _pool
    if _pool is None:
        _pool = ThreadPoolExecutor(max(1, _processors() - 1), thread_name_prefix="bench_mtl")
    return _pool


def _processors() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _forget_pool() -> None:
    global _pool
    _pool = None  # its threads did not survive the fork


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_pool)
