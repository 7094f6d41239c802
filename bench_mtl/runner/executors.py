"""Where cases are run: in worker processes on this machine, or in this process."""

from __future__ import annotations

import contextlib
import os
import queue
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from typing import Protocol, Self

from bench_mtl.core.errors import InputError
from bench_mtl.core.types import Status
from bench_mtl.engine.driver import describe
from bench_mtl.engine.environment import pinned_threads
from bench_mtl.engine.registry import load_registry
from bench_mtl.engine.suite import Case
from bench_mtl.results import Outcome
from bench_mtl.runner.gathered import Gathered
from bench_mtl.runner.inprocess import CaseRunner
from bench_mtl.runner.job import Job, run_job
from bench_mtl.runner.memory import peak_mib
from bench_mtl.runner.process import DeadBeforeError, Worker
from bench_mtl.runner.setting import Setting


class Executor(Protocol):
    """Runs cases and promises an outcome for each. Use as a context manager, from one thread."""

    @property
    def capacity(self) -> int:
        """How many cases run at once now."""

    def find_mistake(self, cases: Sequence[Case]) -> str | None:
        """Return what is wrong with the first of the cases, at least one, whose data or parameters are a mistake, if one is."""

    def submit(self, case: Case | Job) -> Future[Outcome]:
        """Begin a case. The future raises `IncompleteError` where nobody can say any more how the case ended."""

    def stop(self) -> None:
        """End the running cases at once; their outcomes mean nothing."""

    def __enter__(self) -> Self: ...

    def __exit__(self, *_: object) -> None: ...


class Slot:
    """A place for one case at a time, with a worker that is kept warm from case to case. Belongs to one thread."""

    def __init__(self, setting: Setting) -> None:
        self._setting = setting
        self._worker: Worker | None = None
        self._has_ended = False

    def serves(self, setting: Setting) -> bool:
        """Whether its workers are given `setting`."""
        return self._setting == setting and not self._has_ended

    def run(self, case: Case | Job) -> Outcome:
        try:
            try:
                outcome = self._worker_for(case.threads).run(case)
            except DeadBeforeError:
                outcome = self._worker_for(case.threads).run(case)
        except (OSError, DeadBeforeError) as error:  # no more processes, or no memory for one
            reason = f"the worker could not be started: {describe(error)}"
            return Gathered(self._setting.environment()).ended(Status.CRASHED, reason)
        if self._worker is not None and (not self._worker.is_alive or self._worker.should_be_replaced):
            self.close()
        return outcome

    def find_mistake(self, cases: Sequence[Case]) -> str | None:
        with contextlib.suppress(OSError):  # no worker: the runs will say so
            return first_mistake(cases, lambda case: self._worker_for(case.threads).find_mistake(case))
        return None

    def end(self) -> None:
        """End what runs in it, for good; may be called from another thread."""
        self._has_ended = True
        worker = self._worker
        if worker is not None:
            worker.end()

    def close(self) -> None:
        worker, self._worker = self._worker, None
        if worker is not None:
            worker.close()

    def _worker_for(self, threads: int) -> Worker:
        if self._worker is not None and (not self._worker.is_alive or self._setting.threads != threads):
            self.close()
        if self._worker is None:
            self._setting = replace(self._setting, threads=threads)
            self._worker = Worker(self._setting)
            if self._has_ended:  # while the worker was being made
                self._worker.end()
        return self._worker


class LocalExecutor:
    """Workers on this machine, one a slot, each on processors of its own."""

    def __init__(self, setting: Setting, slots: int = 1) -> None:
        layout = processors(slots, setting.threads)
        self.capacity = slots
        self._slots = [Slot(replace(setting, processors=chosen, slots=slots)) for chosen in layout]
        self._free: queue.SimpleQueue[Slot] = queue.SimpleQueue()
        for slot in self._slots:
            self._free.put(slot)
        self._of_thread = threading.local()
        # A thread a slot: the system kills a worker when the thread that started it ends.
        self._threads = ThreadPoolExecutor(slots, "slot", self._take_slot)

    def find_mistake(self, cases: Sequence[Case]) -> str | None:
        return self._threads.submit(lambda: self._slot.find_mistake(cases)).result()

    def submit(self, case: Case | Job) -> Future[Outcome]:
        return self._threads.submit(lambda: self._slot.run(case))

    def stop(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)
        for slot in self._slots:
            slot.end()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for slot in self._slots:
            slot.end()
        self._threads.shutdown(cancel_futures=True)
        for slot in self._slots:
            slot.close()

    @property
    def _slot(self) -> Slot:
        return self._of_thread.slot

    def _take_slot(self) -> None:
        self._of_thread.slot = self._free.get()


class InlineExecutor:
    """This process itself, to debug and to profile: no hard limit, and what brings down a solver brings down everything."""

    capacity = 1

    def __init__(self, setting: Setting) -> None:
        self._runner = CaseRunner(load_registry(setting.plugins), setting.data_dir)
        self._data_dir = setting.data_dir
        self._environment = replace(setting, isolation="inline").environment()
        self._threads = setting.threads
        self._pinned = contextlib.ExitStack()

    def find_mistake(self, cases: Sequence[Case]) -> str | None:
        return first_mistake(cases, lambda case: self._runner.find_mistake(case.instance))

    def submit(self, case: Case | Job) -> Future[Outcome]:
        gathered = Gathered(self._environment)
        ran = self._runner.run(case, gathered.take) if isinstance(case, Case) else run_job(case, self._data_dir, gathered.take)
        gathered.take(("record", ran.record, peak_mib()))
        gathered.take(("patterns", ran.patterns(), False))
        future: Future[Outcome] = Future()
        future.set_result(gathered.outcome())
        return future

    def stop(self) -> None:
        """Nothing runs between two calls."""

    def __enter__(self) -> Self:
        from threadpoolctl import threadpool_limits

        self._pinned.enter_context(pinned_threads(self._threads))
        self._pinned.enter_context(threadpool_limits(self._threads))
        return self

    def __exit__(self, *_: object) -> None:
        self._pinned.close()


def first_mistake(cases: Sequence[Case], find_mistake: Callable[[Case], str | None]) -> str | None:
    """Return what is wrong with the first of the cases that is a mistake.

    The first case is looked at last, because its problem, which is built for that, is kept for its run, and it is the first to be run.
    """
    first, *others = cases
    found = next(filter(None, map(find_mistake, others)), None)
    return find_mistake(first) or found


def processors(slots: int, threads: int) -> list[tuple[int, ...] | None]:
    """The logical processors of each slot, `threads` a slot, from the last one down: the first are everybody else's favourites.

    Raises
    ------
    InputError : there are too few for more than one slot. A single slot with more threads than processors may use them all.
    """
    if not hasattr(os, "sched_getaffinity"):
        available: Sequence[int] = range(os.cpu_count() or 1)
        pin: Callable[[Sequence[int]], tuple[int, ...] | None] = lambda chosen: None  # noqa: E731 - no such thing here
    else:
        available = sorted(os.sched_getaffinity(0))
        pin = tuple
    if slots == 1 and threads > len(available):
        return [None]
    if slots * threads > len(available):
        raise InputError(f"{slots} slots of {threads} threads need {slots * threads} processors, but there are {len(available)}")
    return [pin(available[len(available) - (slot + 1) * threads : len(available) - slot * threads]) for slot in range(slots)]
