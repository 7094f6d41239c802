"""Threads for compiled kernels, which release the GIL."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import suppress
from typing import Any

from bench_mtl.checks import whole_number

#: Entries below which threads cost more than they save.
_WORTH_THREADS = 300_000

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
