"""A worker process seen from outside: it receives cases and is watched, and its cases are killed with all that they have started."""

from __future__ import annotations

import contextlib
import math
import mmap
import os
import tempfile
import time
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

from bench_mtl.core.types import Status
from bench_mtl.engine.proofs import RUNGS
from bench_mtl.engine.suite import Case
from bench_mtl.results import Outcome
from bench_mtl.runner.child import LONGEST_WAIT_SECONDS, Child
from bench_mtl.runner.deadline import SharedDeadline
from bench_mtl.runner.disturbances import Surroundings
from bench_mtl.runner.gathered import Gathered
from bench_mtl.runner.job import Job
from bench_mtl.runner.memory import cpu_seconds, descendants
from bench_mtl.runner.messages import MOST_ARRAYS, Gone, Message, Mistake, Parts, Ready, UnreadableError
from bench_mtl.runner.own_process import kill
from bench_mtl.runner.setting import Setting
from bench_mtl.runner.spawning import STARTING_SECONDS, sentence_of
from bench_mtl.runner.watch import Watch

#: How long a worker may take to say that it has a case. One that does not is replaced.
_TAKING_SECONDS = 20.0
#: Messages of a run that are taken before it is watched again, at most.
_MOST_AT_ONCE = 100
#: How long a case may take, once it has handed in a record, to look at the solution and to be gone, and once it is killed.
_AFTER_RECORD_SECONDS, _KILLED_SECONDS = 10.0, 2.0


class DeadBeforeError(Exception):
    """A worker was dead when it was given a case, which is not to blame."""


class Worker(Child):
    """A process from which cases are forked, and the watch over it and them."""

    def __init__(self, setting: Setting) -> None:
        self._setting = setting
        with _shared_page() as page:
            self._deadline = SharedDeadline(page)
            super().__init__("bench_mtl.runner.worker:serve", setting, page)
        self._environment: Mapping[str, Any] | None = None
        self._has_case = False
        """Whether the process of a case may be there."""
        pid = self.pid
        self._surroundings = Surroundings(setting, lambda: (cpu_seconds(pid) or math.nan) + time.process_time())  # NaN: it is gone

    def run(self, case: Case | Job) -> tuple[Outcome, Gathered]:
        """Run one case, or job, to its record; one that breaks a limit or dies gives a record too.

        Returns what the run says for itself, and what was gathered of it, which is to be held against it. Its process may take a while to
        be gone, which the next call waits for. Raises DeadBeforeError where this process had died before it took up the case.
        """
        failure = self._await_ready()
        if failure is not None:
            gathered = Gathered(self._setting.environment())
            return gathered.ended(Status.CRASHED, failure), gathered
        assert self._environment is not None
        gathered = Gathered(self._environment, usage=partial(cpu_seconds, self.pid), surroundings=self._surroundings)
        if isinstance(case, Case):
            gathered.rungs = tuple(sorted({*RUNGS, *case.targets, case.target}, reverse=True))
        return self._run(case, gathered), gathered

    def _run(self, case: Case | Job, gathered: Gathered) -> Outcome:
        self._output = b""
        self._deadline.value = self._deadline.compiling = 0.0
        # No point is larger than the memory that a run may take.
        self.pipe.most_arrays = MOST_ARRAYS if case.limits.memory_gib is None else int(min(case.limits.memory_gib * 2.0**30, 2.0**62))
        watch = Watch(case.limits, self.pid, self._deadline, gathered)
        try:
            self._has_case = True
            self.send(("run", case))
            sent_at = time.monotonic()
            while gathered.record is None:
                message = self.next(watch.longest_wait())
                # All that it has sent: what it does after its record, which may wait behind others, is none of its use of memory.
                taken = 0
                while message is not None and not isinstance(message, Gone):
                    gathered.take(message)
                    taken += 1
                    message = self.next(0.0) if gathered.record is None and taken < _MOST_AT_ONCE else None
                if isinstance(message, Gone):
                    return self._died(gathered, watch, sentence_of(message.code))
                if message is None and not gathered.is_taken and time.monotonic() > sent_at + _TAKING_SECONDS:
                    raise EOFError
                if gathered.record is None and (broken := watch.broken()) is not None:
                    return self._stopped(gathered, watch, *broken)
        except (EOFError, OSError):
            outcome = self._died(gathered, watch, self.how_it_ended())
            self.close()
            if not gathered.is_taken:
                raise DeadBeforeError from None
            return outcome
        except UnreadableError as error:
            self.close()
            gathered.samples.clear()
            return gathered.ended(Status.CRASHED, f"the solver's process sent what cannot be read ({error})")
        self._receive_the_rest(gathered, _AFTER_RECORD_SECONDS, Gone if gathered.is_alone else Parts)
        return gathered.outcome()

    def _stopped(self, gathered: Gathered, watch: Watch, status: Status, reason: str) -> Outcome:
        """Kill a run that has broken a limit. If its record was on its way, it had come to its own end."""
        gathered.end()
        counted = watch.counted()
        if counted is not None:
            gathered.mark(counted)
        started = descendants(self.pid)
        if started and not gathered.is_alone:
            kill(started)
        else:
            self.end()
        self._receive_the_rest(gathered, _KILLED_SECONDS)
        if gathered.record is not None:
            return gathered.outcome()
        return gathered.ended(status, f"{reason}, killed{gathered.doing}; {gathered.proven}", counted, self.output())

    def _died(self, gathered: Gathered, watch: Watch, how: str) -> Outcome:
        gathered.end()
        return gathered.ended(Status.CRASHED, f"the solver's process died: {how}", watch.counted(), self.output())

    def _receive_the_rest(self, gathered: Gathered, seconds: float, last: type[Message] = Gone) -> None:
        """Take what a run has sent until the last message. Where that does not come, this process is ended; the run loses nothing."""
        deadline = time.monotonic() + seconds
        with contextlib.suppress(EOFError, OSError, UnreadableError):
            while time.monotonic() < deadline:
                message = self.next(LONGEST_WAIT_SECONDS)
                if message is not None and not isinstance(message, Gone):
                    gathered.take(message)
                if isinstance(message, (last, Gone)):
                    return
        self.output()
        self.close()

    def next(self, seconds: float) -> Message | None:
        message = super().next(seconds)
        self._has_case = self._has_case and not isinstance(message, Gone)
        return message

    def find_mistake(self, case: Case) -> str | None:
        """Return what is wrong with the data or parameters of the case's problem, for whose run the worker keeps it.

        None means that nothing is wrong, or that nobody can tell within the limits of the case.
        """
        if self._await_ready() is not None:
            return None
        watch = Watch(case.limits, self.pid, self._deadline, Gathered())
        try:
            self.send(("check", case.instance))
            while (message := self.next(watch.longest_wait())) is None:
                if watch.broken() is not None:
                    raise EOFError
        except (EOFError, OSError, UnreadableError):
            self.close()
            return None
        return message.sentence if isinstance(message, Mistake) else None

    def _await_ready(self) -> str | None:
        """Wait until the worker has loaded everything, and the last case is gone; how it failed to, if it did."""
        if self._has_case:
            self._receive_the_rest(Gathered(), _AFTER_RECORD_SECONDS)
        if self._environment is not None:
            return None
        try:
            self.send(self._setting)
            if isinstance(message := self.answer(STARTING_SECONDS), Ready):
                self._environment = message.environment
                return None
            failure = f"the worker did not start within {STARTING_SECONDS:g} s"
        except (EOFError, OSError, UnreadableError):
            failure = f"the worker died at its start: {self.how_it_ended()}"
            if last := self.output().splitlines()[-1:]:
                failure += f" ({last[0]})"
        self.close()
        return failure


@contextlib.contextmanager
def _shared_page() -> Iterator[int]:
    """A file descriptor of a page of memory, zeroed, for two processes to share."""
    has_memory_files = hasattr(os, "memfd_create")
    with os.fdopen(os.memfd_create("deadline"), "r+b") if has_memory_files else tempfile.TemporaryFile() as file:
        file.truncate(mmap.PAGESIZE)
        yield file.fileno()
