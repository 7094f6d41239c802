"""Threads for compiled kernels, which release the GIL, and how many of them linear algebra takes."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from functools import lru_cache
from typing import Any

from bench_mtl.core.checks import whole_number
from bench_mtl.core.errors import InputError

#: Entries below which threads cost more than they save.
_WORTH_THREADS = 300_000
#: Numbers in the data below which linear algebra takes one thread: with two of them OpenBLAS takes two to ten times as long on 150,000, and
#: gains nothing up to 3 million.
_WORTH_BLAS_THREADS = 4_000_000


class _Hold:
    """The limit on BLAS's threads, and how many threads are inside `one_blas_thread`."""

    def __init__(self) -> None:
        self.lock = threading.RLock()  # an abandoned generator may be closed while its thread holds it
        self.inside = 0
        self.limit: Any = None
        self.generation = 0
        """The number of forks between this process and the first."""

    def change(self, by: int) -> None:
        """Let one thread more in, or one out; limit BLAS for the first, and restore what was set before after the last."""
        inside = self.inside + by
        if self.inside and inside:
            self.inside = inside
            return
        from threadpoolctl import OpenBLASController

        # Newer releases let only the first thread that sets OpenBLAS's threads do so, until it lets go; here any may.
        free = getattr(OpenBLASController, "clear_controlling_thread", lambda force: None)
        free(force=True)
        if inside:
            self.limit = _blas_libraries().limit(limits=1)
        else:
            self.limit.restore_original_limits()
        free(force=True)
        self.inside = inside  # at last: what fails or is interrupted above is done again


_hold = _Hold()

_pool: ThreadPoolExecutor | None = None  # made at the first use; threads that wait cost nothing


def number_of_threads(name: str, threads: Any) -> int:
    """Return `threads`. Raises InputError: not a whole number of at least 1, or more than the processors that this process may use."""
    if whole_number(name, threads, minimum=1) > (most := available_processors()):
        raise InputError(name, threads, f"at most {most}, the processors that this process may use")
    return int(threads)


def useful_threads(threads: Any, entries: int) -> int:
    """Return how many threads are worth using on data with this number of entries, at most `threads`.

    None means the processors this process may use, or OMP_NUM_THREADS where that is set and smaller. Raises InputError: neither None
    nor a whole number of at least 1.
    """
    if threads is not None:
        threads = whole_number("threads", threads, minimum=1)
    if entries < _WORTH_THREADS:
        return 1
    allowed = available_processors()
    if threads is None:
        allowed = min(allowed, _pinned() or allowed)
    return min(allowed if threads is None else min(threads, allowed), 2 * entries // _WORTH_THREADS)


def pinned_thread_count() -> int:
    """The threads that the environment pins numerical libraries to; 1 where it pins nothing."""
    return _pinned() or 1


def _pinned() -> int | None:
    """Return the number in OMP_NUM_THREADS, of several levels the first, and at least 1; None where there is none."""
    first = os.environ.get("OMP_NUM_THREADS", "").split(",")[0].strip()
    return max(1, int(first)) if first.isdecimal() else None


def run_together(calls: Sequence[Callable[[], None]]) -> None:
    """Run all calls, the first of them in this thread; return when all have ended, also where one fails."""
    others: list[Future[None]] = []
    with suppress(RuntimeError):  # "can't start new thread", or the interpreter is shutting down
        others.extend(_shared_pool().submit(call) for call in calls[1:])
    try:
        for call in (*calls[:1], *calls[1 + len(others) :]):
            call()
    finally:
        wait(others)
    for other in others:
        other.result()


def fitting_blas_threads(numbers: int) -> AbstractContextManager[None]:
    """Return a context in which BLAS takes one thread in the whole process; one that changes nothing for data of very many numbers."""
    return one_blas_thread() if numbers < _WORTH_BLAS_THREADS else nullcontext()


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Limit BLAS to one thread, in the whole process, while at least one thread is inside; then restore what was set before."""
    with _hold.lock:
        generation = _hold.generation
        _hold.change(1)
    try:
        yield
    finally:
        with _hold.lock:
            if generation == _hold.generation:  # otherwise this is a child, forked inside, which has released it already
                _hold.change(-1)


@lru_cache(maxsize=1)
def _blas_libraries() -> Any:
    """The BLAS libraries that are loaded: looking for them takes milliseconds."""
    import scipy.linalg  # noqa: F401 - has a library of its own
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController().select(user_api="blas")


def _shared_pool() -> ThreadPoolExecutor:
    global _pool
    if _pool is None:
        _pool = ThreadPoolExecutor(max(1, available_processors() - 1), thread_name_prefix="bench_mtl")
    return _pool


def end_pool() -> None:
    """End the threads that `run_together` keeps for its next call, as before a fork."""
    global _pool
    pool, _pool = _pool, None
    if pool is not None:
        pool.shutdown()


def available_processors() -> int:
    """Return how many logical processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _after_fork() -> None:
    """Start afresh in the child, where no other thread of the parent has survived."""
    global _pool
    _pool = None
    _hold.lock = threading.RLock()
    _hold.generation += 1
    if _hold.inside:
        _hold.change(-_hold.inside)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
