"""A worker process seen from outside: started, told what to run, watched, and killed with all that it has started."""

from __future__ import annotations

import contextlib
import json
import math
import mmap
import os
import signal
import socket
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from multiprocessing.connection import wait
from typing import Any

import psutil

from bench_mtl.core.types import Limits, Status
from bench_mtl.engine.proofs import RUNGS
from bench_mtl.engine.suite import Case
from bench_mtl.results import Outcome
from bench_mtl.runner import watch as watching
from bench_mtl.runner.channel import ParentEnd
from bench_mtl.runner.deadline import SharedDeadline
from bench_mtl.runner.disturbances import Surroundings
from bench_mtl.runner.gathered import GONE, TAKEN, Gathered, Message, TooMuchError, Usage
from bench_mtl.runner.job import Job
from bench_mtl.runner.memory import cpu_seconds, descendants, queued_seconds, resident_mib
from bench_mtl.runner.placing import Placed, descriptor_of
from bench_mtl.runner.setting import Setting
from bench_mtl.runner.spawning import STARTING_SECONDS, start
from bench_mtl.runner.watch import LONGEST_WAIT_SECONDS, Watch
from bench_mtl.runner.wire import UnreadableError

#: How long a worker may take to say that it has a case. One that does not is still busy with the case before, and is replaced.
_TAKING_SECONDS = 20.0
#: A worker that holds more than this after a case is replaced, so that the next case's memory is its own.
_KEPT_MIB = 600.0
#: How long a worker may take, once it has handed in a record, to look at the solution and at what the run has left behind.
_AFTER_RECORD_SECONDS = 10.0
#: How long a worker whose pipe is closed may take to end.
_EXIT_SECONDS = 1.0
#: Of what a worker prints, its last bytes are kept, for the runs that fail.
_TAIL_BYTES = 4000


class Worker:
    """A spawned process that runs cases, and the watch over it. Belongs to one thread."""

    def __init__(self, setting: Setting) -> None:
        self._setting = setting
        with contextlib.ExitStack() as theirs, contextlib.ExitStack() as ours:
            pipe, end_of_pipe = socket.socketpair()
            ours.enter_context(pipe)
            theirs.enter_context(end_of_pipe)
            printed, prints = os.pipe()
            ours.callback(os.close, printed)
            theirs.callback(os.close, prints)
            page = theirs.enter_context(_shared_page())
            self._deadline = SharedDeadline(page)
            self._process = start("bench_mtl.runner.worker:serve", setting, [end_of_pipe.fileno(), page], prints)
            self._pipe = ParentEnd(pipe.detach())
            self._output = _Tail(printed)
            ours.pop_all()
        self._environment: Mapping[str, Any] | None = None
        self._surroundings = Surroundings(setting, partial(_processor_seconds, self._process.pid))
        self._has_leftovers = False
        self._is_shared = setting.solvers_of == ""
        self._warm: set[str] = set()
        self.most_arrays: int | None = None
        """Bytes of arrays that a message may have, where somebody knows."""
        self.data: Placed | None = None
        """The data of what it is given from now on, where they are placed."""

    @property
    def is_alive(self) -> bool:
        return self._process.returncode is None and self._process.poll() is None

    @property
    def should_be_replaced(self) -> bool:
        """Whether the next case should have another worker: the last run has left something behind in this one, or running beside it."""
        has_grown = self._is_shared and resident_mib(self._process.pid) > _KEPT_MIB
        return self._has_leftovers or has_grown or any(map(_runs, descendants(self._process.pid)))

    def end(self) -> None:
        """Kill the process and all that it has started, at once, wherever it is. Safe to call from another thread."""
        if self._process.returncode is not None:  # until it is waited for, its number is nobody else's
            return
        started = descendants(self._process.pid)  # in sessions of their own, too, which the group leaves out
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.kill()  # which may not have its group yet
        for pid in started:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)

    def close(self) -> None:
        """`end`, and leave nothing behind."""
        self.end()
        self._process.close()
        self._pipe.close()
        self._output.close()

    def rest(self) -> None:
        """Keep it from doing anything until it is needed again."""
        if self.is_alive:
            os.kill(self._process.pid, signal.SIGSTOP)

    def run(self, case: Case | Job) -> tuple[Outcome, Gathered]:
        """Run one case, or job, to its record; a worker that breaks a limit or dies gives a record too, and is gone.

        Returns
        -------
        what the run says for itself, and what was gathered of it, which is to be held against it

        Raises
        ------
        DeadBeforeError : it had died before it took up the case, which is not to blame.
        """
        failure = self._await_ready() or self._await_warm(case)
        if failure is not None:
            gathered = Gathered(self._environment or self._setting.environment())
            return gathered.ended(*failure), gathered
        assert self._environment is not None
        gathered = Gathered(self._environment, usage=self._usage, surroundings=self._surroundings)
        if isinstance(case, Case):
            gathered.rungs = tuple(sorted({*RUNGS, *case.targets, case.target}, reverse=True))
        return self._run(case, gathered), gathered

    def _run(self, case: Case | Job, gathered: Gathered) -> Outcome:
        self._output.forget()
        self._deadline.value = self._deadline.compiling = 0.0
        if self.most_arrays is not None:
            self._pipe.most_arrays = self.most_arrays
        watch = Watch(case.limits, self._process.pid, self._deadline, gathered, is_apart=not self._is_shared)
        try:
            if not self._pipe.is_silent:  # what it says before it is asked is no answer
                self.close()
                raise DeadBeforeError
            gathered.give()
            self._pipe.send(("run", case), descriptor_of(self.data))
            given = time.monotonic()
            while gathered.record is None:
                if (message := self._next_message(watch.longest_wait())) is not None:
                    gathered.take(message)
                elif not gathered.is_taken and time.monotonic() > given + _TAKING_SECONDS:
                    self.close()
                    raise DeadBeforeError
                broken = None if gathered.record is not None else watch.broken()
                if broken is not None:
                    gathered.end()
                    counted = watch.counted()
                    if counted is not None and not gathered.is_one_shot:  # whose clock begins anew at every tolerance
                        gathered.mark(counted)
                    self.end()
                    if not self._receive_what_was_sent(gathered):
                        return self._closed_with_outcome(gathered, *broken, counted)
                    self.close()
                    return gathered.outcome()  # it had ended by itself: nothing follows
        except (EOFError, OSError):
            if not gathered.is_taken:
                self.close()
                raise DeadBeforeError from None
            gathered.end()
            counted = watch.counted()
            self._wait_for_exit(lambda: watch.broken() is not None)
            return self._closed_with_outcome(gathered, Status.CRASHED, "the solver's process died", counted)
        except (UnreadableError, TooMuchError) as error:
            self.close()
            gathered.samples.clear()
            return gathered.ended(Status.CRASHED, f"the solver's process sent what cannot be read ({error})")
        self._receive_the_rest(gathered)
        return gathered.outcome()

    def _receive_the_rest(self, gathered: Gathered) -> None:
        """Take what follows the record. It costs the run nothing if that does not come; the worker is gone then."""
        deadline = time.monotonic() + _AFTER_RECORD_SECONDS
        is_gone = self._is_shared
        with contextlib.suppress(EOFError, OSError, UnreadableError):
            while (gathered.leftovers is None or not is_gone) and time.monotonic() < deadline:
                message = self._next_message(LONGEST_WAIT_SECONDS)
                if message is not None and message[0] == "patterns" and gathered.leftovers is None:
                    gathered.take(message)
                elif message == GONE and gathered.leftovers is not None:
                    is_gone = True
                elif message is not None:  # the run goes on after its end
                    break
        if gathered.leftovers is None or not is_gone:
            self.close()
        self._has_leftovers = gathered.leftovers != () or gathered.is_last

    def find_mistake(self, case: Case) -> str | None:
        """Return what is wrong with the data or parameters of the case's problem, for whose run the worker keeps it.

        None means that nothing is wrong, or that nobody can tell within the limits of the case.
        """
        if self._await_ready() is not None or self._await_warm(case) is not None:
            return None
        message = self._watched_answer(case.limits, ("check", case.instance), descriptor_of(self.data))
        found: str | None = message[1] if message is not None and message[0] == "mistake" else None
        return found

    def place(self, case: Case, descriptor: int) -> bool:
        """Let it read or make the data of a case, within its limits, and write them to a descriptor; return whether that could be done."""
        if self._await_ready() is not None:
            return False
        return self._watched_answer(case.limits, ("place", case.instance), descriptor) == ("placed", True)

    def _watched_answer(self, limits: Limits, question: Message, descriptor: int | None) -> Message | None:
        """Ask, and return the answer; None where it breaks a limit or dies, and is gone."""
        watch = Watch(limits, self._process.pid, self._deadline, Gathered())
        try:
            self._pipe.send(question, descriptor)
            while (message := self._next_message(watch.longest_wait())) is None:
                if watch.broken() is not None:
                    self.close()
                    return None
            return message
        except (EOFError, OSError, UnreadableError):
            self.close()
            return None

    def _await_ready(self) -> tuple[Status, str] | None:
        """Wait until the worker has loaded everything; how it failed to, if it did."""
        if self._environment is not None:
            os.kill(self._process.pid, signal.SIGCONT)
            return None
        try:
            self._pipe.send(self._setting)
            if (message := self._answer(STARTING_SECONDS)) is None or message[0] != "environment":
                self.close()
                return Status.CRASHED, f"the worker did not start within {STARTING_SECONDS:g} s"
            self._environment = message[1]
        except (EOFError, OSError, UnreadableError):
            self._wait_for_exit()
            code = self._process.returncode
            last = self._output.text.strip().splitlines()
            self.close()
            return Status.CRASHED, f"the worker died at its start: {_exit_sentence(code)}" + (f" ({last[-1]})" if last else "")
        return None

    def _await_warm(self, case: Case | Job) -> tuple[Status, str] | None:
        """Let a solver of a plug-in folder warm up before its process can know a problem; how that ended it, if it did."""
        if not self._setting.solvers_of or not isinstance(case, Case):
            return None
        known = case.solver, dict(case.options), case.instance.problem, case.target
        name = json.dumps(known, sort_keys=True, default=str)
        if name in self._warm:
            return None
        message: Message | None = None
        try:
            self._pipe.send(("warm", known))
            message = self._answer(_TAKING_SECONDS)
            if message is None:
                self.close()
                raise DeadBeforeError
            message = self._answer(watching.PREPARATION_SECONDS) if message == TAKEN else message
        except (EOFError, OSError, UnreadableError):
            if message is None:
                self.close()
                raise DeadBeforeError from None
            self._wait_for_exit()
            code = self._process.returncode
            self.close()
            return Status.CRASHED, f"the solver's process died: {_exit_sentence(code)}"
        if message != ("warmed",):
            self.close()
            return (
                Status.TIMEOUT,
                f"building the problem and compiling took more than {watching.PREPARATION_SECONDS:g} s, killed; nothing proven",
            )
        self._warm.add(name)
        return None

    def _answer(self, seconds: float) -> Message | None:
        """Wait for the next message."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            if (message := self._next_message(LONGEST_WAIT_SECONDS)) is not None:
                return message
        return None

    def _next_message(self, seconds: float) -> Message | None:
        """Return the next message, if it comes within `seconds`; what is printed meanwhile is read."""
        message = self._pipe.take()
        if message is not None:
            return message
        pipe, output = self._pipe.fileno(), self._output.fd
        ready = wait([pipe] if self._output.has_ended else [pipe, output], seconds)
        if output in ready:
            self._output.read()
        if pipe in ready:
            self._pipe.read()
        return self._pipe.take()

    def _usage(self) -> Usage:
        return Usage(cpu_seconds(self._process.pid), queued_seconds(self._process.pid))

    def _receive_what_was_sent(self, gathered: Gathered) -> bool:
        """Take what was sent before the end; whether the record was among it, so that the run had come to its own end."""
        with contextlib.suppress(EOFError, OSError, UnreadableError, TooMuchError):
            while gathered.record is None and (message := self._next_message(0.0)) is not None:
                gathered.take(message)
        return gathered.record is not None

    def _closed_with_outcome(self, gathered: Gathered, status: Status, reason: str, counted: float | None) -> Outcome:
        died = status is Status.CRASHED
        code = self._process.returncode
        self._output.read()
        output = self._output.text
        self.close()
        sentence = f"{reason}: {_exit_sentence(code)}" if died else f"{reason}, killed{gathered.doing}; {gathered.proven}"
        return gathered.ended(status, sentence, counted, (("output", output),) if output else ())

    def _wait_for_exit(self, breaks_limit: Callable[[], bool] = lambda: False) -> None:
        """Give a worker that has closed its pipe the time to end by itself, so that it can be told how, and read its last words."""
        deadline = time.monotonic() + _EXIT_SECONDS
        while self._process.poll() is None and time.monotonic() < deadline and not breaks_limit():
            time.sleep(0.001)
        self._output.read()


class DeadBeforeError(Exception):
    """A worker was dead when it was given a case."""


class _Tail:
    """The end of what a worker prints. All of it is read, lest the worker waits for a reader."""

    def __init__(self, fd: int) -> None:
        self.fd = fd
        self._bytes = b""
        self.has_ended = False
        os.set_blocking(fd, False)

    def read(self) -> None:
        if self.fd < 0:
            return
        with contextlib.suppress(BlockingIOError):
            chunk = os.read(self.fd, 2**20)
            self.has_ended = not chunk
            self._bytes = (self._bytes + chunk)[-_TAIL_BYTES:]

    def forget(self) -> None:
        self._bytes = b""

    def close(self) -> None:
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1

    @property
    def text(self) -> str:
        return self._bytes.decode(errors="replace").strip()


@contextlib.contextmanager
def _shared_page() -> Iterator[int]:
    """A file descriptor of a page of memory, zeroed, for two processes to share."""
    if hasattr(os, "memfd_create"):
        fd = os.memfd_create("deadline")
    else:
        with tempfile.TemporaryFile() as file:
            fd = os.dup(file.fileno())
    try:
        os.ftruncate(fd, mmap.PAGESIZE)
        yield fd
    finally:
        os.close(fd)


def _processor_seconds(worker: int) -> float:
    """Return what a worker and this process have used, seconds; NaN where the worker is gone."""
    return (cpu_seconds(worker) or math.nan) + time.process_time()


def _runs(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.Error:
        return False


def _exit_sentence(code: int | None) -> str:
    if code is None:
        return "it no longer answers"
    if code >= 0:
        return f"exit code {code}"
    names = {number.value: f" ({number.name})" for number in signal.Signals}  # real-time signals have none
    return f"signal {-code}{names.get(-code, '')}"
