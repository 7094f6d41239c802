"""Where cases are run: in worker processes on this machine, or in this process."""

from __future__ import annotations

import contextlib
import os
import queue
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from typing import Protocol, Self

from bench_mtl.core.errors import InputError, plural
from bench_mtl.core.threads import available_processors
from bench_mtl.core.types import Certificate, Status
from bench_mtl.engine.driver import describe
from bench_mtl.engine.environment import pinned_threads
from bench_mtl.engine.registry import Registry, load_registry
from bench_mtl.engine.suite import Case
from bench_mtl.results import Outcome
from bench_mtl.runner import placing, watch
from bench_mtl.runner.certifier import Certifier, Prepared, UncertifiableError
from bench_mtl.runner.disturbances import Surroundings
from bench_mtl.runner.gathered import Gathered
from bench_mtl.runner.inprocess import CaseRunner
from bench_mtl.runner.job import Job, run_job
from bench_mtl.runner.judgement import early_work, judged, proving
from bench_mtl.runner.memory import cpu_seconds, peak_mib
from bench_mtl.runner.placing import Placed, Shelf, key_of
from bench_mtl.runner.process import DeadBeforeError, Worker
from bench_mtl.runner.setting import Setting

#: Workers that one slot keeps; those that are not needed now stand still.
_MOST_WORKERS = 4
#: After a data set of more bytes the process that has read or made it is not kept.
_SMALL_BYTES = 2**24


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
    """A place for one case at a time, with workers that are kept warm from case to case, and a certifier. Belongs to one thread.

    Solvers that come with the package share a worker. One of a plug-in folder has a worker of its own, since it may change whatever it
    likes in it. No solver ever runs where its runs are judged.

    Parameters
    ----------
    shelf : where the data of its cases are placed, for several slots to share
    """

    def __init__(self, setting: Setting, shelf: Shelf) -> None:
        self._setting = setting
        self._shelf = shelf
        self._workers: dict[str, Worker] = {}
        """By the solver that each is for, the last one used last; under no name that of all solvers of the package."""
        self._certifier: Certifier | None = None
        self._data: Placed | None = None
        self._placer: Worker | None = None
        self.has_ended = False
        """Whether nothing can be run in it any more."""

    def serves(self, setting: Setting) -> bool:
        """Whether its workers are given `setting`."""
        return self._setting == setting and not self.has_ended

    def run(self, case: Case | Job) -> Outcome:
        """Run a case and certify what it shows, or run a job."""
        try:
            self._settle(case.threads)
            self._data = self._placed(case)
            prepared = None
            if isinstance(case, Case) and _owner(case):
                prepared = self._certifier_started().prepare(case.instance, watch.PREPARATION_SECONDS)
            try:
                outcome, gathered = self._worker_for(case, prepared).run(case)
            except DeadBeforeError:
                outcome, gathered = self._worker_for(case, prepared).run(case)
        except (OSError, DeadBeforeError) as error:  # no more processes, or no memory for one
            reason = f"the worker could not be started: {describe(error)}"
            return Gathered(self._setting.environment()).ended(Status.CRASHED, reason)
        is_refuted = False
        if isinstance(case, Case):
            outcome, is_refuted = self._judged(case, outcome, gathered, prepared)
        owner = _owner(case)
        worker = self._workers.get(owner)
        is_refuted |= bool(owner) and outcome.record.status.is_failure
        if worker is not None and (is_refuted or not worker.is_alive or worker.should_be_replaced):
            self._workers.pop(owner).close()
        elif worker is not None and owner:
            worker.rest()
        return outcome

    def find_mistake(self, cases: Sequence[Case]) -> str | None:
        with contextlib.suppress(OSError):  # no worker: the runs will say so
            return first_mistake(cases, self._mistake)
        return None

    def end(self) -> None:
        """End what runs in it, for good; may be called from another thread."""
        self.has_ended = True
        self._data = None
        for started in (*list(self._workers.values()), self._certifier, self._placer):
            if started is not None:
                started.end()
                started.data = None

    def close(self) -> None:
        for worker in self._workers.values():
            worker.close()
        self._workers.clear()
        self._close_placer()
        certifier, self._certifier = self._certifier, None
        if certifier is not None:
            certifier.close()
        self._data = None

    def _mistake(self, case: Case) -> str | None:
        self._settle(case.threads)
        self._data = self._placed(case)
        return self._worker_for(case, None).find_mistake(case)

    def _placed(self, case: Case | Job) -> Placed | None:
        """Return the data of a case, read or made now unless this process has them already; None where the case does that itself."""
        if not isinstance(case, Case) or not placing.is_possible():
            return None
        key = key_of(case.instance, self._setting.data_dir, self._setting.threads)
        return None if key is None else self._shelf.placed(key, partial(self._place, case))

    def _place(self, case: Case, descriptor: int) -> bool | None:
        if self._placer is None:
            self._placer = Worker(replace(self._setting, plugins=None))
        has_placed = not self.has_ended and self._placer.place(case, descriptor)
        if not has_placed or os.fstat(descriptor).st_size > _SMALL_BYTES:
            self._close_placer()
        return None if self.has_ended else has_placed

    def _close_placer(self) -> None:
        placer, self._placer = self._placer, None
        if placer is not None:
            placer.close()

    def _judged(self, case: Case, outcome: Outcome, gathered: Gathered, prepared: Prepared | None) -> tuple[Outcome, bool]:
        """Return the outcome as far as it is proven, and whether the run has shown something false."""
        record = outcome.record
        if record.status is Status.SKIPPED:  # it has nothing to show
            return replace(outcome, record=replace(record, samples=()), patterns=()), bool(gathered.samples)
        if not (gathered.samples or record.status is Status.VERIFIED):
            return replace(outcome, baseline=self._baseline(case, outcome, prepared), patterns=()), False
        if prepared is not None:
            # What it says that it compiled is in its row.
            used = gathered.used_before - gathered.phases.get("compile", 0.0)
            early = early_work(used, self._certifier_started().longest_preparation)
            if early is not None:
                return replace(outcome, record=replace(record, status=Status.ERROR, reason=early, samples=(), places=()), patterns=()), True
        proofs, names = [kept.proof for kept in gathered.proofs], tuple(pattern.part for pattern in outcome.patterns)
        try:
            found = self._certifier_started().certify(case.instance, proofs, case.target, names)
        except UncertifiableError as error:
            reason = f"nothing that it showed could be certified again: {error}"
            return replace(outcome, record=replace(record, status=Status.ERROR, reason=reason, samples=(), places=()), patterns=()), True
        judgement = judged(gathered, record, case.target, found, case.threads)
        if judgement.is_refuted:
            return replace(outcome, record=judgement.record, baseline=found.baseline, patterns=()), True
        kept = proving(gathered.proofs, found.verdicts)
        return replace(outcome, record=judgement.record, baseline=found.baseline, patterns=found.patterns, proofs=kept), False

    def _baseline(self, case: Case, outcome: Outcome, prepared: Prepared | None) -> Certificate | None:
        """What is proven of the zero point, for a run that shows nothing else; a plug-in's process may say what it likes of it."""
        if prepared is None or outcome.baseline is None:
            return outcome.baseline if not _owner(case) else None
        with contextlib.suppress(UncertifiableError):
            return self._certifier_started().certify(case.instance, (), case.target).baseline
        return None

    def _settle(self, threads: int) -> None:
        """Let go of workers that use another number of threads."""
        if self._setting.threads != threads:
            self.close()
            self._setting = replace(self._setting, threads=threads)

    def _certifier_started(self) -> Certifier:
        if self._certifier is None:
            self._certifier = Certifier(self._setting)
        self._certifier.data = self._data
        self._certifier.start()
        if self.has_ended:  # while it was being made
            self._certifier.end()
        return self._certifier

    def _worker_for(self, case: Case | Job, prepared: Prepared | None) -> Worker:
        owner = _owner(case)
        worker = self._workers.pop(owner, None)
        if worker is not None and not worker.is_alive:
            worker.close()
            worker = None
        if worker is None:
            self._certifier_started()  # before any solver can do anything
            while len(self._workers) >= _MOST_WORKERS:
                self._workers.pop(next(iter(self._workers))).close()
            worker = Worker(replace(self._setting, solvers_of=_module(case)))
        worker.data = self._data
        worker.most_arrays = None if prepared is None else 2 * prepared.point_bytes + prepared.dual_bytes
        self._workers[owner] = worker
        if self.has_ended:  # while the worker was being made
            worker.end()
        return worker


def _module(case: Case | Job) -> str | None:
    """Return the module of a plug-in folder that a case's solver comes from; empty for none, None where nobody says."""
    if not isinstance(case, Case) or not _owner(case):
        return ""
    return case.module or None


def _owner(case: Case | Job) -> str:
    """Return whose worker a case needs: that of its solver, or of all solvers of this package."""
    if not isinstance(case, Case) or case.module.partition(".")[0] == __name__.partition(".")[0]:
        return ""
    return f"{case.module}:{case.solver}"


class LocalExecutor:
    """Workers on this machine, one a slot, each on processors of its own."""

    def __init__(self, setting: Setting, slots: int = 1) -> None:
        layout = processors(slots, setting.threads)
        self.capacity = slots
        shelf = Shelf()
        self._slots = [Slot(replace(setting, processors=chosen, slots=slots), shelf) for chosen in layout]
        self._free: queue.SimpleQueue[Slot] = queue.SimpleQueue()
        for slot in self._slots:
            self._free.put(slot)
        self._of_thread = threading.local()
        # A thread a slot: the system kills a worker when the thread that started it ends. The threads do not hold this executor, so that
        # the data that are placed for it go when it goes.
        self._threads = ThreadPoolExecutor(slots, "slot", _take_slot, (self._of_thread, self._free))

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
        slot: Slot = self._of_thread.slot
        return slot


def _take_slot(of_thread: threading.local, free: queue.SimpleQueue[Slot]) -> None:
    of_thread.slot = free.get()


class InlineExecutor:
    """This process itself, to debug and to profile: no hard limit, and what brings down a solver brings down everything.

    What it proves is weaker, for solver and judge are in one process: a solver that means to can change what judges it. Rows say so in
    their environment.

    Parameters
    ----------
    registry : the problems and solvers; by default what is installed and what the setting's plug-in folder defines
    """

    capacity = 1

    def __init__(self, setting: Setting, registry: Registry | None = None) -> None:
        self._runner = CaseRunner(registry or load_registry(setting.plugins), setting.data_dir)
        self._data_dir = setting.data_dir
        weaker = {"certified": "in the process of the solvers only, which they can change: weaker than a row of isolation process"}
        self._environment = {**replace(setting, isolation="inline").environment(), **weaker}
        self._surroundings = Surroundings(setting, lambda: cpu_seconds(os.getpid()))
        self._threads = setting.threads
        self._pinned = contextlib.ExitStack()

    def find_mistake(self, cases: Sequence[Case]) -> str | None:
        return first_mistake(cases, lambda case: self._runner.find_mistake(case.instance))

    def submit(self, case: Case | Job) -> Future[Outcome]:
        gathered = Gathered(self._environment, surroundings=self._surroundings)
        ran = self._runner.run(case, gathered.take) if isinstance(case, Case) else run_job(case, self._data_dir, gathered.take)
        gathered.take(("record", ran.record, peak_mib()))
        gathered.take(("patterns", ran.patterns(), (), False))
        kept = proving(gathered.proofs, [gathered.samples[each.place].certificate for each in gathered.proofs])
        future: Future[Outcome] = Future()
        future.set_result(replace(gathered.outcome(), proofs=kept))
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


def require_processors(threads: int) -> None:
    """Raise InputError where the threads of a suite are more than the processors that this process may use.

    Times with fewer would be those of another suite. One that is meant for a larger machine has to be run there.
    """
    if threads > available_processors():
        raise InputError(
            f"threads of the suite must be at most {available_processors()} here, the processors that this process may use, not {threads}: "
            "run it on a larger machine, or give it fewer threads"
        )


def processors(slots: int, threads: int) -> list[tuple[int, ...] | None]:
    """The logical processors of each slot, `threads` a slot, from the last one down: the first are everybody else's favourites.

    Raises
    ------
    InputError : there are too few; says how many slots, or threads, are allowed.
    """
    if not hasattr(os, "sched_getaffinity"):
        available: Sequence[int] = range(os.cpu_count() or 1)
        pin: Callable[[Sequence[int]], tuple[int, ...] | None] = lambda chosen: None  # noqa: E731 - no such thing here
    else:
        available = sorted(os.sched_getaffinity(0))
        pin = tuple
    require_processors(threads)
    if slots * threads > len(available):
        most = f"at most {plural(len(available) // threads, 'slot')}"
        needed = f"{plural(slots, 'slot')} of {plural(threads, 'thread')} need {slots * threads} processors"
        raise InputError(f"{needed}, but this process may use {len(available)}: {most}")
    return [pin(available[len(available) - (slot + 1) * threads : len(available) - slot * threads]) for slot in range(slots)]
