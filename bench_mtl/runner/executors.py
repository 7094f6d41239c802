"""Where cases are run: in worker processes on this machine, or in this process."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from typing import Protocol, Self, TypeVar

from bench_mtl.core.errors import InputError, plural
from bench_mtl.core.threads import available_processors
from bench_mtl.core.types import Status
from bench_mtl.engine.driver import describe
from bench_mtl.engine.environment import pinned_threads
from bench_mtl.engine.registry import Registry, load_registry
from bench_mtl.engine.suite import Case
from bench_mtl.model.patterns import PackedPattern, patterns_of
from bench_mtl.results import Outcome
from bench_mtl.runner.certifier import Certifier, UncertifiableError
from bench_mtl.runner.disturbances import Surroundings
from bench_mtl.runner.gathered import Gathered
from bench_mtl.runner.inprocess import CaseRunner
from bench_mtl.runner.job import Job, run_job
from bench_mtl.runner.judgement import judged, proving, refused
from bench_mtl.runner.memory import cpu_seconds, peak_mib
from bench_mtl.runner.messages import Ended
from bench_mtl.runner.process import DeadBeforeError, Worker
from bench_mtl.runner.setting import Setting

T = TypeVar("T")


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
    """A place for one case at a time: a worker that each case is forked from, and a certifier. For one thread at a time.

    No solver ever runs where its runs are judged.
    """

    def __init__(self, setting: Setting) -> None:
        self._setting = setting
        self._worker: Worker | None = None
        self._certifier: Certifier | None = None
        self.has_ended = False
        """Whether nothing can be run in it any more."""

    def serves(self, setting: Setting) -> bool:
        """Whether its worker is given `setting`."""
        return self._setting == setting and not self.has_ended

    def run(self, case: Case | Job) -> Outcome:
        """Run a case and certify what it shows, or run a job."""
        try:
            try:
                outcome, gathered = self._worker_for(case).run(case)
            except DeadBeforeError:
                outcome, gathered = self._worker_for(case).run(case)
        except (OSError, DeadBeforeError) as error:  # no more processes, or no memory for one
            reason = f"the worker could not be started: {describe(error)}"
            return Gathered(self._setting.environment()).ended(Status.CRASHED, reason)
        return self._judged(case, outcome, gathered) if isinstance(case, Case) else outcome

    def find_mistake(self, cases: Sequence[Case]) -> str | None:
        with contextlib.suppress(OSError):  # no worker: the runs will say so
            return first_mistake(cases, lambda case: self._worker_for(case).find_mistake(case))
        return None

    def end(self) -> None:
        """End what runs in it, for good; may be called from another thread."""
        self.has_ended = True
        for started in (self._worker, self._certifier):
            if started is not None:
                started.end()

    def close(self) -> None:
        worker, certifier, self._worker, self._certifier = self._worker, self._certifier, None, None
        for started in (worker, certifier):
            if started is not None:
                started.close()

    def _judged(self, case: Case, outcome: Outcome, gathered: Gathered) -> Outcome:
        """Return the outcome as far as it is proven."""
        record = outcome.record
        if record.status is Status.SKIPPED:  # it has nothing to show
            return replace(outcome, record=replace(record, samples=()))
        if not (gathered.samples or record.status is Status.VERIFIED):
            return outcome
        try:
            proofs = [kept.proof for kept in gathered.proofs]
            found = self._certifier_started().certify(case.instance, proofs, case.target, gathered.parts)
        except (UncertifiableError, OSError) as error:
            return replace(outcome, record=refused(record, f"nothing that it showed could be certified again: {error}"))
        record = judged(gathered, record, case.target, found, case.threads)
        if not record.samples:
            return replace(outcome, record=record, baseline=found.baseline)
        kept = proving(gathered.proofs, found.verdicts)
        return replace(outcome, record=record, baseline=found.baseline, patterns=found.patterns, proofs=kept)

    def _certifier_started(self) -> Certifier:
        if self._certifier is None:
            # It works while no solver runs in this slot: where there is no other one, all processors are free.
            self._certifier = Certifier(replace(self._setting, processors=None) if self._setting.slots == 1 else self._setting)
        self._certifier.start()
        if self.has_ended:  # while it was being made
            self._certifier.end()
        return self._certifier

    def _worker_for(self, case: Case | Job) -> Worker:
        """Return a worker that lives and has the threads of the case."""
        if self._setting.threads != case.threads:
            self.close()
            self._setting = replace(self._setting, threads=case.threads)
        worker, self._worker = self._worker, None
        if worker is not None and not worker.is_alive:
            worker.close()
            worker = None
        if worker is None:
            self._certifier_started()  # which loads what it needs meanwhile
            worker = Worker(self._setting)
        self._worker = worker
        if self.has_ended:  # while the worker was being made
            worker.end()
        return worker


class LocalExecutor:
    """Workers on this machine, one a slot, each on processors of its own."""

    def __init__(self, setting: Setting, slots: int = 1) -> None:
        layout = processors(slots, setting.threads)
        self.capacity = slots
        self._slots = [Slot(replace(setting, processors=chosen, slots=slots)) for chosen in layout]
        self._free = list(self._slots)  # the one used last comes last
        self._threads = ThreadPoolExecutor(slots, "slot")

    def find_mistake(self, cases: Sequence[Case]) -> str | None:
        return self._threads.submit(self._in_slot, lambda slot: slot.find_mistake(cases)).result()

    def submit(self, case: Case | Job) -> Future[Outcome]:
        return self._threads.submit(self._in_slot, lambda slot: slot.run(case))

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

    def _in_slot(self, call: Callable[[Slot], T]) -> T:
        slot = self._free.pop()  # there are as many as threads
        try:
            return call(slot)
        finally:
            self._free.append(slot)


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
        gathered.take(Ended(ran.record, peak_mib()))
        kept = proving(gathered.proofs, [gathered.samples[each.place].certificate for each in gathered.proofs])
        future: Future[Outcome] = Future()
        patterns: tuple[PackedPattern, ...] = ()
        with contextlib.suppress(Exception):  # whatever matrices they are
            patterns = patterns_of(ran.parts())
        future.set_result(replace(gathered.outcome(), proofs=kept, patterns=patterns))
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

    The first case is looked at last, because its problem, which is built for that, is reused for its run, and it is the first to be run.
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

    Raises InputError where there are too few; says how many slots, or threads, are allowed.
    """
    numbers = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else None
    count = os.cpu_count() or 1 if numbers is None else len(numbers)
    require_processors(threads)
    if slots * threads > count:
        most = f"at most {plural(count // threads, 'slot')}"
        needed = f"{plural(slots, 'slot')} of {plural(threads, 'thread')} need {slots * threads} processors"
        raise InputError(f"{needed}, but this process may use {count}: {most}")
    ends = [count - slot * threads for slot in range(slots)]
    return [None if numbers is None else tuple(numbers[end - threads : end]) for end in ends]
