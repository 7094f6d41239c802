"""Runs cases one after the other in a local worker process, under hard limits."""

from __future__ import annotations

import dataclasses
import math
import multiprocessing
import time
from collections.abc import Callable, Iterable
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import psutil

from bench_mtl.environment import describe_environment, pinned_threads
from bench_mtl.runner.worker import work
from bench_mtl.store import Outcome, Store
from bench_mtl.suite import Case
from bench_mtl.types import Certificate, Record, Sample, Status, Times

#: How far past its limit a solver may be when it is killed: time for one that stops by itself to hand in its answer.
GRACE_SECONDS = 0.3
_POLL_SECONDS = 0.02
#: How long anything but the solver's own clock (building, compiling, certifying) may take at a stretch: this many times
#: the run's limit, and at least this many seconds.
OTHER_PHASES_FACTOR, OTHER_PHASES_SECONDS = 10.0, 120.0
#: A worker that holds more than this after a case is replaced, so that the next case's memory is its own.
_KEPT_MIB = 600.0
_START_SECONDS = 120.0

OnOutcome = Callable[[Case, Outcome], None]


def run_cases(
    cases: Iterable[Case],
    store: Store,
    *,
    plugins: Path | None = None,
    data_dir: Path | None = None,
    on_start: Callable[[Case], None] = lambda case: None,
    on_outcome: OnOutcome = lambda case, outcome: None,
) -> None:
    """Run every case that `store` has no row for, and store a row for each, whatever happens to its worker."""
    finished = store.finished()
    worker: Worker | None = None
    environment_id: int | None = None
    try:
        for case in cases:
            if case.key in finished:
                continue
            if environment_id is None:
                environment_id = store.add_environment(describe_environment(case.threads))
            on_start(case)
            if worker is None or not worker.is_alive or worker.threads != case.threads:
                if worker is not None:
                    worker.kill()
                worker = Worker(case.threads, plugins, data_dir)
            outcome = worker.run(case)
            if worker.is_alive and worker.resident_mib() > _KEPT_MIB:
                worker.kill()
            store.add(case, outcome, environment_id)
            on_outcome(case, outcome)
    finally:
        if worker is not None:
            worker.kill()


class Worker:
    """A spawned process that runs cases, and the watch over it."""

    def __init__(self, threads: int, plugins: Path | None, data_dir: Path | None) -> None:
        context = multiprocessing.get_context("spawn")
        self.threads = threads
        self._deadline = context.Value("d", 0.0, lock=False)
        self._pipe: Connection
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(target=work, args=(theirs, self._deadline, plugins, data_dir), daemon=True)
        with pinned_threads(threads):
            self._process.start()
        theirs.close()
        self._ready = False

    @property
    def is_alive(self) -> bool:
        return self._process.is_alive()

    def kill(self) -> None:
        """End the process at once."""
        self._process.kill()
        self._process.join()
        self._pipe.close()

    def run(self, case: Case) -> Outcome:
        """Run one case to its record; a worker that breaks a limit or dies gives a record too, and is gone."""
        gathered = _Gathered()
        if not self._ready:
            failure = self._await_ready()
            if failure is not None:
                return gathered.outcome(failure)
        self._deadline.value = 0.0
        started = standing_since = time.perf_counter()
        try:
            self._pipe.send(case)
            while gathered.record is None:
                if self._pipe.poll(_POLL_SECONDS):
                    gathered.take(self._pipe.recv())
                gathered.peak_mib = max(gathered.peak_mib, self.resident_mib())
                if self._deadline.value:
                    standing_since = time.perf_counter()
                broken = self._broken_limit(case, gathered, time.perf_counter() - standing_since)
                # What was sent before the limit was noticed still counts.
                if broken is not None and not self._pipe.poll(0):
                    self.kill()
                    solve = min(time.perf_counter() - started, case.limits.seconds or math.inf)
                    return gathered.outcome(Record(*broken, times=Times(**gathered.phases, solve=solve)))
        except (EOFError, OSError):
            self._process.join(5.0)
            return gathered.outcome(Record(Status.CRASHED, f"the solver's process died: {_exit_sentence(self._process.exitcode)}"))
        return gathered.outcome(gathered.record)

    def _await_ready(self) -> Record | None:
        try:
            if not self._pipe.poll(_START_SECONDS):
                self.kill()
                return Record(Status.CRASHED, f"the worker did not start within {_START_SECONDS:g} s")
            self._pipe.recv()
        except (EOFError, OSError):
            self._process.join(5.0)
            return Record(Status.CRASHED, f"the worker died at its start: {_exit_sentence(self._process.exitcode)}")
        self._ready = True
        return None

    def _broken_limit(self, case: Case, gathered: _Gathered, standing: float) -> tuple[Status, str] | None:
        """What the run has broken, if anything; `standing` is for how long its clock has stood still."""
        deadline = self._deadline.value
        if deadline and time.monotonic() > deadline + GRACE_SECONDS:
            return Status.TIMEOUT, f"time limit of {case.limits.seconds:g} s, killed; {gathered.proven()}"
        longest = max(OTHER_PHASES_SECONDS, OTHER_PHASES_FACTOR * (case.limits.seconds or 0.0))
        if standing > longest:
            return Status.TIMEOUT, f"building, compiling or certifying took more than {longest:g} s, killed; {gathered.proven()}"
        bound = case.limits.memory_gib
        if bound is not None and self.resident_mib() > bound * 1024:
            return Status.MEMORY, f"memory limit of {bound:g} GiB, killed; {gathered.proven()}"
        return None

    def resident_mib(self) -> float:
        """Resident memory of the process now, MiB."""
        try:
            return float(psutil.Process(self._process.pid).memory_info().rss) / 2**20
        except psutil.Error:
            return 0.0


@dataclasses.dataclass
class _Gathered:
    """What a worker has sent about one case."""

    samples: list[Sample] = dataclasses.field(default_factory=list)
    dimensions: dict[str, int] = dataclasses.field(default_factory=dict)
    notes: tuple[str, ...] = ()
    baseline: Certificate | None = None
    version: str = ""
    phases: dict[str, float] = dataclasses.field(default_factory=dict)
    record: Record | None = None
    peak_mib: float = 0.0

    def take(self, message: tuple[Any, ...]) -> None:
        kind, *content = message
        if kind == "sample":
            self.samples.append(content[0])
        elif kind == "problem":
            self.dimensions, self.notes, self.baseline = content
        elif kind == "solver":
            self.version = content[0]
        elif kind == "phase":
            self.phases[content[0]] = content[1]
        else:
            self.record = content[0]

    def proven(self) -> str:
        gaps = [sample.certificate.relative_gap for sample in self.samples]
        return f"relative gap {min(gaps):.1e} proven before" if gaps else "nothing proven but the zero point"

    def outcome(self, record: Record) -> Outcome:
        ran = record.status is not Status.SKIPPED
        whole = dataclasses.replace(record, samples=tuple(self.samples), peak_memory_mib=self.peak_mib if ran and self.peak_mib else None)
        return Outcome(whole, self.dimensions, self.notes, self.version, self.baseline if ran else None)


def _exit_sentence(code: int | None) -> str:
    if code is None:
        return "it no longer answers"
    return f"signal {-code}" if code < 0 else f"exit code {code}"
